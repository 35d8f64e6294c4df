"""One emitter's numbers: what is new, what came twice, what is missing. No event is ever counted twice."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

MAX_SPANS: Final = 1000
"""Of missing numbers remembered per emitter, open ones and lost ones; what comes of forgotten ones is taken as a
duplicate."""


class Arrival(Enum):
    """What a number turned out to be."""

    NEW = "new"
    RECOVERED = "recovered"
    """New, after it had been counted as missing."""
    DUPLICATE = "duplicate"


class Span(msgspec.Struct, array_like=True):
    """Numbers ``low..high`` that have not come."""

    low: int
    high: int
    since_ns: int
    counts: bool
    """False for numbers from before the emitter was first heard: they may have gone to another sidecar."""


class Sequence(msgspec.Struct, kw_only=True):
    """Numbers seen of one emitter, as the spans that are not."""

    high: int = 0
    """Highest number given, as far as known."""
    gaps: list[Span] = []
    """Open, the oldest first."""
    lost: list[Span] = []
    """Given up: already counted as missing."""

    def take(self, seq: int, arrival_ns: int) -> Arrival:
        """Note number ``seq``."""
        if seq > self.high:
            if seq > self.high + 1:
                self.gaps.append(Span(self.high + 1, seq - 1, arrival_ns, self.high > 0))
            self.high = seq
            return Arrival.NEW
        if _remove(self.gaps, seq) is not None:
            return Arrival.NEW
        found = _remove(self.lost, seq)
        if found is None:
            return Arrival.DUPLICATE
        return Arrival.RECOVERED if found.counts else Arrival.NEW

    def announce(self, last: int, arrival_ns: int) -> None:
        """A heartbeat says that numbers up to ``last`` were given."""
        if last > self.high:
            self.gaps.append(Span(self.high + 1, last, arrival_ns, self.high > 0))
            self.high = last

    def give_up(self, before_ns: int) -> list[Span]:
        """Gaps open since ``before_ns`` or earlier, and the oldest of too many, become losses; returns those that
        count."""
        young = [gap for gap in self.gaps if gap.since_ns > before_ns][-MAX_SPANS:]
        old = self.gaps[: len(self.gaps) - len(young)]
        if not old:
            return []
        self.gaps = young
        self.lost = (self.lost + old)[-MAX_SPANS:]
        return [gap for gap in old if gap.counts]

    def oldest_ns(self) -> int | None:
        """When the oldest open gap was first seen."""
        return min((gap.since_ns for gap in self.gaps), default=None)


def _remove(spans: list[Span], seq: int) -> Span | None:
    """Take ``seq`` out of the span that holds it, splitting it; the span as it was, or None."""
    for index, span in enumerate(spans):
        if span.low <= seq <= span.high:
            spans[index : index + 1] = [
                Span(low, high, span.since_ns, span.counts)
                for low, high in ((span.low, seq - 1), (seq + 1, span.high))
                if low <= high
            ]
            return span
    return None
