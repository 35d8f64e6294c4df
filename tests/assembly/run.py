"""Feeds events to an assembler and adds up what comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tests.builders import MS, SECOND
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.model import Event, Fact, Final, HoldRecord, Turn

ROUNDING = 6


class Run:
    """One assembler; arrival time is each event's own time plus 1 ms unless said otherwise."""

    def __init__(self, settings: AssemblySettings | None = None) -> None:
        self.settings = settings or AssemblySettings()
        self.assembler = Assembler(self.settings)
        self.facts: list[Fact] = []
        self.now_ns = 0

    def feed(self, events: Iterable[Event], *, at_ms: int | None = None) -> Run:
        """In order of their own times, or all at ``at_ms``."""
        for event in events if at_ms is not None else sorted(events, key=lambda e: e.mono_ns):
            self.now_ns = max(self.now_ns, at_ms * MS if at_ms is not None else event.mono_ns + MS)
            self.assembler.feed(event, self.now_ns)
        return self

    def feed_moved(self, events: Iterable[Event], move: Callable[[Event], Event]) -> Run:
        """In order of their own times, each as ``move`` makes it: the same events, told by other clocks."""
        for event in sorted(events, key=lambda e: e.mono_ns):
            self.now_ns = max(self.now_ns, event.mono_ns + MS)
            self.assembler.feed(move(event), self.now_ns)
        return self

    def wait(self, seconds: float = 10) -> Run:
        """Let time pass, and take the facts."""
        self.now_ns += int(seconds * SECOND)
        self.assembler.tick(self.now_ns)
        self.facts += self.assembler.take()
        return self

    @property
    def finals(self) -> list[Final]:
        return [fact for fact in self.facts if isinstance(fact, Final)]

    @property
    def keys(self) -> list[str]:
        return [final.key for final in self.finals]

    def counters(self) -> dict[tuple[str, ...], float]:
        """(metric, labels...) to the sum of what was contributed."""
        return totals(self.facts)

    def count(self, metric: str, *labels: str) -> float:
        """Of one label set; with fewer labels than the metric has, the sum over those that begin so."""
        key = (f"turnscope_{metric}", *labels)
        return round(sum(v for k, v in self.counters().items() if k[: len(key)] == key), ROUNDING)

    def turns(self) -> dict[str, Turn]:
        """Newest row of every turn that readers see, by P's request (D's or the proxy's id where there is none)."""
        return {row.prefill_request_id or row.decode_request_id or row.turn_id: row for row in stored(self.facts)}

    def holds(self) -> dict[str, HoldRecord]:
        """Newest row of every hold and lease, by its request."""
        return {fact.hold.request_id: fact.hold for fact in self.facts if fact.hold is not None}

    def sample(self, metric: str, *labels: str) -> float:
        """The present value of a gauge."""
        found = {(s.metric, s.labels): s.value for s in self.assembler.samples(self.now_ns)}
        return found[f"turnscope_{metric}", labels]


def stored(facts: Iterable[Fact]) -> list[Turn]:
    """The turns that readers of the store see."""
    rows: dict[str, Turn] = {}
    for turn in (fact.turn for fact in facts if fact.turn is not None):
        held = rows.get(turn.turn_id)
        rows[turn.turn_id] = turn if held is None or turn.revision >= held.revision else held
    return [row for row in rows.values() if not row.withdrawn]


def totals(facts: Iterable[Fact]) -> dict[tuple[str, ...], float]:
    """(metric, labels...) to the sum of what was contributed."""
    out: Counter[tuple[str, ...]] = Counter()
    for fact in facts:
        if isinstance(fact, Final):
            for add in fact.contributions:
                out[add.metric, *add.labels] += add.value  # type: ignore[assignment]
    return {key: round(value, ROUNDING) for key, value in out.items()}
