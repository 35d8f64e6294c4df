"""What is handed out: every key contributes once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf

from turnscope.catalog import METRICS
from turnscope.model import AgentSpan, Contribution, Fact, Final, HoldRecord, Revision, Turn


def one(metric: str, *labels: str, value: float = 1) -> Contribution:
    """``value`` more (default: one), or one observation of ``value``."""
    return Contribution(metric, labels, value)


@lru_cache(maxsize=16_384)
def _is_known(metric: str, labels: tuple[str, ...]) -> bool:
    """Whether the catalogue has the label set: looked up anew for each contribution it is a tenth of a turn's cost."""
    known = METRICS.get(metric)
    return known is not None and known.refusal(labels, 0) is None


def _refusal(c: Contribution) -> str | None:
    metric = METRICS.get(c.metric)
    return metric.refusal(c.labels, c.value) if metric is not None else f"{c.metric} is not in the catalogue"


class Ledger:
    """Collects facts until they are taken. ``hear`` is told of every row of a turn."""

    def __init__(self, counted: dict[str, int]) -> None:
        self._counted = counted
        self._facts: list[Fact] = []
        self.hear: Callable[[Turn], None] = lambda _: None

    def count(
        self, key: str, contributions: list[Contribution], *, turn: Turn | None = None, hold: HoldRecord | None = None
    ) -> None:
        """Count an entity; of one whose key is in the journal already only its row is handed out again.

        A contribution that cannot be (no label set of the catalogue, a number below zero) is left out and told.
        """
        if key not in self._counted:
            sound = [c for c in contributions if _is_known(c.metric, c.labels) and 0 <= c.value < inf]
            suspect = contributions if len(sound) < len(contributions) else []
            refused = [refusal for refusal in map(_refusal, suspect) if refusal is not None]
            self._facts.append(Final(key=key, contributions=sound, refused=refused, turn=turn, hold=hold))
        elif turn is not None or hold is not None:
            self._facts.append(Revision(turn=turn, hold=hold))
        if turn is not None:
            self.hear(turn)

    def revise(
        self, *, turn: Turn | None = None, hold: HoldRecord | None = None, span: AgentSpan | None = None
    ) -> None:
        """A newer row."""
        self._facts.append(Revision(turn=turn, hold=hold, span=span))
        if turn is not None:
            self.hear(turn)

    def take(self) -> list[Fact]:
        """Everything since the last call."""
        facts, self._facts = self._facts, []
        return facts
