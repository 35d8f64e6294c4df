"""The text round the place where two requests part, for the terminal of the person who has them."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from rich.text import Text

from turnscope.measures.why import Place

_LEFT_SHARE: Final = 0.6
"""Of a line's width, for what stands before the place."""
_MARGIN: Final = 5
_CUT: Final = "..."
_CHARACTERS: Final = 2_000
"""Looked at on each side: more never fits a line."""


def lines(place: Place, width: int) -> list[Text]:
    """Both texts in one line each, the place below a caret; ``width`` columns."""
    room = max(20, width - _MARGIN)
    before = place.before_text[max(0, place.char - _CHARACTERS) : place.char]
    left = _last(before, int(room * _LEFT_SHARE), cut=place.char > len(before))
    shown = []
    for name, text, style in (("A", place.before_text, "red"), ("B", place.now_text, "green")):
        rest = text[place.char : place.char + _CHARACTERS]
        right = _first(rest, room - cell_len(left), cut=len(text) - place.char > len(rest))
        shown.append(Text.assemble((f"  {name}  ", "bold"), (left, "dim"), (right or "(ends here)", style)))
    return [*shown, Text(" " * (_MARGIN + cell_len(left)) + "^", "bold")]


def _visible(character: str) -> str:
    """Line ends, control characters and the like as escapes: a text must not drive the terminal."""
    if character == "\n":
        return "\\n"
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _first(text: str, room: int, *, cut: bool) -> str:
    out, used = "", 0
    for number, character in enumerate(text):
        seen = _visible(character)
        more = number < len(text) - 1 or cut
        if used + cell_len(seen) > room - (len(_CUT) if more else 0):
            return out + _CUT
        out, used = out + seen, used + cell_len(seen)
    return out + _CUT if cut else out


def _last(text: str, room: int, *, cut: bool) -> str:
    out, used = "", 0
    for number in range(len(text) - 1, -1, -1):
        seen = _visible(text[number])
        if used + cell_len(seen) > room - (len(_CUT) if number or cut else 0):
            return _CUT + out
        out, used = seen + out, used + cell_len(seen)
    return _CUT + out if cut else out
