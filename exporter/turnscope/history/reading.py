"""A request's body read in short steps, however long it is and however long a text in it.

A JSON library decodes in one call, which holds the interpreter for all of a long text. So texts are first left where
they stand, found by looking for quotes, and a short mark is put in the place of each long one; what is then left of a
message is decoded as ever; and the long text is decoded in windows, as somebody asks for it. What comes out is what
decoding the whole would give, of any encoding of it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from turnscope.history.pieces import PROMPT

LONG: Final = 512
"""Bytes of a text, as it is encoded, that is left where it stands."""
WINDOW: Final = 8_192
"""Bytes that are looked at, or decoded, without a pause."""
_ESCAPED: Final = 2_048
"""Bytes of a text with escapes in it that are looked at without one."""
_IDS: Final = 1_024
"""Bytes of a list of token ids that are decoded without one: each makes an object and a line."""
_SHORT: Final = 16_384
"""Bytes of a body that is decoded as a whole."""
_SPLIT: Final = frozenset(("messages", "input", "tools", "functions"))
"""Fields whose entries are decoded one by one."""

_ID: Final = re.compile(rb"[0-9, \t\n\r]*+")
_BLANKS: Final = re.compile(rb"[ \t\n\r]*")
_BRACKET: Final = re.compile(rb'["{}\[\]]')
_SCALAR: Final = re.compile(rb"[^\s,\]}]+")
_UNITS: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_UNIT: Final = 12
"""Bytes of the longest escape: a surrogate pair."""
_HIGH: Final = re.compile(rb"\\u[dD][89abAB]")

Pause = Callable[[], None]


def _no_pause() -> None:
    return None


class Reading:
    """Of one body. ``fields`` for ``pieces``, and ``windows`` of each text that they give."""

    def __init__(self, body: bytes, pause: Pause = _no_pause) -> None:
        self._body = body
        self._pause = pause
        self._at = 0
        self._spans: list[tuple[int, int]] = []
        self._ids: tuple[int, int] | None = None
        self._mark = f"<{secrets.token_hex(16)} "
        """A mark's beginning, which nobody's text has in it; the text's number and ``>`` follow."""

    # --- the texts ------------------------------------------------------------------------------------
    def windows(self, text: str) -> Iterator[str]:
        """A piece's text as it was in the body, part after part. Raises DecodeError for what is no text."""
        before, *marked = text.split(self._mark)
        yield before
        for part in marked:
            number, _, after = part.partition(">")
            alone = len(marked) == 1 and not before and not after
            for window in self._decoded(*self._spans[int(number)]):
                # Beside other signs it stands in JSON that was printed.
                yield window if alone else msgspec.json.encode(window).decode()[1:-1]
            yield after

    def _decoded(self, start: int, end: int) -> Iterator[str]:
        if (start, end) == self._ids:
            yield from self._lines(start, end)
            return
        while start < end:
            raw = self._body[start : min(start + WINDOW, end)]
            if start + WINDOW < end:
                raw = raw[: whole_units(raw)]
            start += len(raw)
            yield msgspec.json.decode(b'"%b"' % raw, type=str)
            self._pause()

    def _lines(self, start: int, end: int) -> Iterator[str]:
        while start < end:
            stop = self._body.rfind(b",", start, start + _IDS) if end - start > _IDS else end
            if stop < 0:  # blanks, and many of them
                stop = end
            ids = msgspec.json.decode(b"[%b]" % self._body[start:stop], type=list[int])
            yield "".join(f"{token}\n" for token in ids)
            start = stop + 1
            self._pause()

    # --- the fields -----------------------------------------------------------------------------------
    def fields(self) -> dict[str, Any]:
        """Each field, still encoded: ``msgspec.Raw``, or a list of these. Raises DecodeError for what is no object."""
        if len(self._body) <= _SHORT:
            return msgspec.json.decode(self._body, type=dict[str, msgspec.Raw])
        found: dict[str, Any] = {}
        self._expect(b"{")
        while not self._took(b"}"):
            if found:
                self._expect(b",")
            key = msgspec.json.decode(self._raw(), type=str)
            self._expect(b":")
            found[key] = self._field(key)
        if self._next():
            raise msgspec.DecodeError("more than one value")
        return found

    def _field(self, key: str) -> msgspec.Raw | list[msgspec.Raw]:
        if self._next() == b"[":
            if key in _SPLIT:
                return list(self._entries())
            if key == PROMPT and self._took_ids():
                return msgspec.Raw(f'"{self._mark}{len(self._spans) - 1}>"'.encode())
        return msgspec.Raw(self._raw())

    def _took_ids(self) -> bool:
        """Whether a long list of nothing but token ids comes next. It becomes a text, of one id a line, as pieces have
        it."""
        start = end = self._at + 1
        while (found := _ID.match(self._body, end, end + WINDOW)) is not None and found.end() > end:
            end = found.end()
            self._pause()
        if self._body[end : end + 1] != b"]" or end - start < LONG:
            return False
        self._at = end + 1
        self._ids = (start, end)
        self._spans.append(self._ids)
        return True

    def _entries(self) -> Iterator[msgspec.Raw]:
        self._expect(b"[")
        first = True
        while not self._took(b"]"):
            if not first:
                self._expect(b",")
            first = False
            yield msgspec.Raw(self._raw())
            self._pause()

    def _next(self) -> bytes:
        """The next byte that is no blank; b"" at the end."""
        while True:
            found = _BLANKS.match(self._body, self._at, self._at + WINDOW)
            assert found is not None, "no blanks are blanks too"
            self._at = found.end()
            if found.end() - found.start() < WINDOW:
                return self._body[self._at : self._at + 1]
            self._pause()

    def _took(self, sign: bytes) -> bool:
        took = self._next() == sign
        self._at += took
        return took

    def _expect(self, sign: bytes) -> None:
        if not self._took(sign):
            raise msgspec.DecodeError(f"{sign!r} is missing at {self._at}")

    def _raw(self) -> bytes:
        """The next value as it is encoded, but for long texts, which have marks in their place."""
        parts: list[bytes] = []
        begun, depth = self._at, 0
        opened = self._next()
        if opened not in (b'"', b"{", b"["):
            scalar = _SCALAR.match(self._body, self._at)
            if scalar is None:
                raise msgspec.DecodeError(f"a value is missing at {self._at}")
            self._at = scalar.end()
            return scalar.group()
        while True:
            found = _BRACKET.search(self._body, self._at, self._at + WINDOW)
            if found is None:
                self._at += WINDOW
                if self._at >= len(self._body):
                    raise msgspec.DecodeError("it ends in the middle")
                self._pause()
                continue
            self._at = found.end()
            sign = found.group()
            if sign == b'"':
                start, end = self._at, self._text_end()
                self._pause()
                if end - start >= LONG and self._next() != b":":
                    parts += (self._body[begun:start], f"{self._mark}{len(self._spans)}>".encode())
                    self._spans.append((start, end))
                    begun = end
                    self._at = end + 1
            else:
                depth += 1 if sign in b"{[" else -1
            if depth <= 0:
                return b"".join((*parts, self._body[begun : self._at]))

    def _text_end(self) -> int:
        """Where the quote stands that ends the text which has begun; reading goes on behind it."""
        body, at = self._body, self._at
        while at < len(body) - 1:
            limit = at + WINDOW
            quote = body.find(b'"', at, limit)
            slash = body.find(b"\\", at, quote if quote >= 0 else limit)
            if slash >= 0:
                at = _units_end(body, slash, slash + _ESCAPED)
                quote = at if body[at : at + 1] == b'"' else -1
            else:
                at = limit
            if quote >= 0:
                self._at = quote + 1
                return quote
            self._pause()
        raise msgspec.DecodeError("a text has no end")


def _units_end(body: bytes, start: int, limit: int) -> int:
    """Where the characters and escapes from ``start`` on end: at a quote, or at ``limit``, or within an escape."""
    found = _UNITS.match(body, start, limit)
    return start if found is None else found.end()


def _slashes(raw: bytes, end: int) -> int:
    """How many backslashes stand in a row before ``end``."""
    return end - len(raw[:end].rstrip(b"\\"))


def whole_units(raw: bytes) -> int:
    """How many bytes of an encoded text that begins here, and goes on behind, end with a whole character."""
    slash = raw.find(b"\\", max(0, len(raw) - _UNIT))
    if slash < 0:
        end = len(raw)
        while raw[end - 1] & 0xC0 == 0x80:  # the rest of a character
            end -= 1
        return end - (raw[end - 1] >= 0xC0)
    slash -= _slashes(raw, slash) % 2
    high = slash - _UNIT // 2
    if high >= 0 and _HIGH.match(raw, high) and _slashes(raw, high) % 2 == 0:
        return high  # what begins at ``slash`` is the other half of it
    return slash
