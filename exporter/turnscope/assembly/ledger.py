"""What is handed out: every key contributes once."""

from __future__ import annotations

from turnscope.model import Contribution, Fact, Final, HoldRecord, Revision, Turn


def one(metric: str, *labels: str, value: float = 1) -> Contribution:
    """``value`` more (default: one), or one observation of ``value``."""
    return Contribution(metric, labels, value)


class Ledger:
    """Collects facts until they are taken."""

    def __init__(self, counted: dict[str, int]) -> None:
        self._counted = counted
        self._facts: list[Fact] = []

    def count(
        self, key: str, contributions: list[Contribution], *, turn: Turn | None = None, hold: HoldRecord | None = None
    ) -> None:
        """Count an entity; of one whose key is in the journal already only its row is handed out again."""
        if key not in self._counted:
            self._facts.append(Final(key=key, contributions=contributions, turn=turn, hold=hold))
        elif turn is not None or hold is not None:
            self._facts.append(Revision(turn=turn, hold=hold))

    def revise(self, *, turn: Turn | None = None, hold: HoldRecord | None = None) -> None:
        """A newer row."""
        self._facts.append(Revision(turn=turn, hold=hold))

    def take(self) -> list[Fact]:
        """Everything since the last call."""
        facts, self._facts = self._facts, []
        return facts
