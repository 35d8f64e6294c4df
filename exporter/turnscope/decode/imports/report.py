"""What reading a file came to, beside its rows: what was left out or broken, by number and never by text."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

MAX_NAMED: Final = 20
"""Broken records that are named by their numbers; the others are only counted."""


class Line(NamedTuple):
    """One line of a file, without knowledge of what it holds."""

    number: int
    """From 1; of a JSON array, the element's."""
    text: bytes


class BadRecord(ValueError):
    """A record that cannot be imported: why, in words that quote nothing of it."""


class Broken(msgspec.Struct, frozen=True):
    """One broken record."""

    number: int
    why: str


class Report(msgspec.Struct):
    """Filled while a file is read; complete when its generator is exhausted."""

    records: int = 0
    """Looked at, broken ones included."""
    other: int = 0
    """Of the right kind, and about nothing that is stored."""
    broken: int = 0
    named: list[Broken] = []
    """The first of them."""
    notes: list[str] = []
    """One sentence for each thing that stays unknown and could have been known."""

    def refuse(self, number: int, why: str) -> None:
        """Count a broken record."""
        self.broken += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(Broken(number, why))

    def add(self, other: Report, where: str) -> None:
        """Take in what reading one of several files came to; ``where`` names it beside the numbers."""
        self.records += other.records
        self.other += other.other
        self.notes += other.notes
        for one in other.named:
            self.refuse(one.number, f"{one.why}, in {where}")
        self.broken += other.broken - len(other.named)
