"""JSON with halves of characters: JavaScript cuts text between the two and writes what is left as an escape.

No encoding of Unicode has such a half, so no strict reader takes the text that it stands in. Mostly that is content
which nobody here reads, and the record around it is sound.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")
_SOUND: Final = re.compile(
    rb"""(?: [^\\]++
           | \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}   # both halves
           | \\(?!u[dD][89a-fA-F][0-9a-fA-F]{2}).                          # any other escape
         )*+""",
    re.VERBOSE | re.DOTALL,
)
_INSTEAD: Final = rb"\ufffd"
"""The replacement character: as long as what it stands for."""


def mended(text: bytes) -> bytes:
    """``text`` with a replacement character for every half; the same object if there is none."""
    parts: list[bytes] = []
    at = 0
    while (found := _SOUND.match(text, at)) is not None and found.end() < len(text) - 1:
        parts += (found.group(), _INSTEAD)
        at = found.end() + len(_INSTEAD)
    return b"".join((*parts, text[at:])) if parts else text


def reading(decode: Callable[[Any], T]) -> Callable[[Any], T]:
    """``decode``, a decoder of JSON, that also reads text with halves; raises as it does."""

    def read(text: Any) -> T:
        try:
            return decode(text)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            given = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
            whole = mended(given)
            if whole is given:
                raise
            return decode(whole)

    return read
