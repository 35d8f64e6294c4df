"""A drawing's axis of time, on which long idle waits are drawn shorter, so that what happened stays to be seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from turnscope.model import SECOND_NS, Segment
from turnscope.semconv import Part
from turnscope_app import text

_MOST_BREAKS: Final = 12
_SHARE: Final = 8
"""A shortened wait is drawn as an eighth of all that is not idle."""
_IDLE: Final = (Part.USER_WAIT, Part.UNKNOWN)


class Break(NamedTuple):
    """A wait that is drawn shorter than it was."""

    start_ns: int
    end_ns: int
    drawn_ns: int

    @property
    def label(self) -> str:
        """How long it was."""
        return text.duration(self.end_ns - self.start_ns)


class Axis(NamedTuple):
    """From ``start_ns`` to ``end_ns``; ``breaks`` in order."""

    zero_ns: int
    """What its labels count from: the begin of the session."""
    start_ns: int
    end_ns: int
    breaks: tuple[Break, ...] = ()

    def place(self, ns: int) -> float:
        """Where a moment is drawn: seconds from the begin, shortened waits less what they are shortened by."""
        at = ns - self.start_ns
        for gap in self.breaks:
            if ns <= gap.start_ns:
                break
            length = gap.end_ns - gap.start_ns
            inside = min(ns, gap.end_ns) - gap.start_ns
            at -= inside - inside * gap.drawn_ns // length
        return at / SECOND_NS

    @property
    def length(self) -> float:
        """Of the whole drawing."""
        return self.place(self.end_ns)


def shortened(segments: Iterable[Segment], zero_ns: int, start_ns: int, end_ns: int) -> Axis:
    """The axis of a stretch of a session's time: idle waits (for a person, or nobody knows for what, between calls) are
    shortened where together they are longer than all that is not idle."""
    waits: list[tuple[int, int]] = []
    for at in segments:
        if at.part not in _IDLE or at.turn_id is not None or at.span_key is not None:
            continue
        if waits and waits[-1][1] == at.start_ns:
            waits[-1] = waits[-1][0], at.end_ns
        else:
            waits.append((at.start_ns, at.end_ns))
    idle = sum(end - start for start, end in waits)
    busy = end_ns - start_ns - idle
    drawn = busy // _SHARE
    if idle <= busy or not drawn:
        return Axis(zero_ns, start_ns, end_ns)
    longest = sorted((wait for wait in waits if wait[1] - wait[0] > drawn), key=lambda wait: wait[0] - wait[1])
    gaps = sorted(Break(start, end, drawn) for start, end in longest[:_MOST_BREAKS])
    return Axis(zero_ns, start_ns, end_ns, tuple(gaps))
