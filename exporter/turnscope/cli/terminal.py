"""A console for texts that others chose: ids of sessions, names of tools, models, hosts and runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment


class Terminal(Console):
    """Prints without markup. Characters that are none to read, such as those that drive a terminal or turn the
    direction of a line, are shown as U+FFFD, before anything is measured."""

    def __init__(self, *, highlight: bool = False, **settings: Any) -> None:
        super().__init__(markup=False, highlight=highlight, **settings)

    def render(self, *what: Any, **settings: Any) -> Iterable[Segment]:
        """As of ``Console``: everything printed comes by, also what stands in cells."""
        for segment in super().render(*what, **settings):
            yield segment if segment.control else Segment(readable(segment.text), segment.style)


def readable(text: str) -> str:
    """``text`` with a mark for each character that is not to be read; line ends and blanks of any kind stay."""
    return "".join(character if _reads(character) else "\N{REPLACEMENT CHARACTER}" for character in text)


def _reads(character: str) -> bool:
    return character.isprintable() or character == "\n" or (character > "\x9f" and character.isspace())
