"""Making digests of token sequences, in slices that are short."""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from bisect import insort
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from turnscope.marks.layout import DIGEST_BYTES, LONGEST, SHORTEST, TAIL, ends, positions
from turnscope.model import Digest
from turnscope.semconv import Leg

SLICE: Final = 512
"""Tokens taken in at once; half of it where marks are made. Either takes ten to twenty microseconds."""
_CLASS: Final = 36
"""Of 256 byte values, by and large. A chunk ends after three tokens whose low bytes fall, in turn, into three such
classes: one place in 360."""
_CUT: Final = b"\1\2\3"
_WIDTH: Final = len(_CUT)
_EARLIEST: Final = SHORTEST - _WIDTH
_CLASS_OF: Final = bytes(n // _CLASS + 1 if n < _CLASS * _WIDTH else 0 for n in range(256))
_STOPS: Final = 4
"""The class of the low bytes that ids in ``stops`` have."""
_VERSION: Final = b"1"


class Media(NamedTuple):
    """An image or the like: ``tokens`` placeholders from ``offset`` on; ``identifier`` tells what they stand for."""

    offset: int
    tokens: int
    identifier: str


def fingerprint(secret: bytes) -> str:
    """Names a secret without telling it: 16 hex digits."""
    name: str = _keyed(hashlib.sha256(secret).digest(), b"name", b"", 8).hexdigest()
    return name


def _keyed(key: bytes, what: bytes, data: bytes, size: int) -> Any:
    return hashlib.blake2b(data, digest_size=size, key=key, person=what)


class Keys:
    """What a secret is made into, once. ``stops``: ids that end a message; chunks end before each of them, too.

    ``id`` names secret and rules without telling them, 16 hex digits: digests compare only where it is the same.
    """

    def __init__(self, secret: bytes, stops: Collection[int] = ()) -> None:
        self._key = hashlib.sha256(secret).digest()
        self.stops = frozenset(pack([stop]) for stop in stops)
        self.id: str = _keyed(self._key, b"id", b"".join((_VERSION, *sorted(self.stops))), 8).hexdigest()
        self.classes = self._classes()

    def begin(self, seed: bytes) -> Any:
        """A hash to feed with a chunk."""
        return _keyed(self._key, b"chunk", len(seed).to_bytes(4, "little") + seed, DIGEST_BYTES)

    def _classes(self) -> bytes:
        """A token's low byte to its class."""
        drawn = b"".join(_keyed(self._key, b"cut", bytes((part,)), 64).digest() for part in range(4))
        table = bytearray(drawn.translate(_CLASS_OF))
        for stop in self.stops:
            table[stop[0]] = _STOPS
        return bytes(table)


def slices(tokens: int, anchor_tokens: int | None) -> Iterator[tuple[int, int]]:
    """From where to where to feed a ``Marker``, so that no slice takes long."""
    at = 0
    for end in ends(tokens, anchor_tokens):
        for limit, size in ((end - TAIL, SLICE), (end, SLICE // 2)):
            while at < limit:
                yield at, min(at + size, limit)
                at = min(at + size, limit)


class Marker:
    """Takes a sequence in slices and makes its marks and chunks. Beginning one costs microseconds."""

    def __init__(
        self, keys: Keys, seed: bytes, tokens: int, anchor_tokens: int | None, media: Collection[Media] = ()
    ) -> None:
        self._keys = keys
        self._base = keys.begin(seed)
        self._places = deque((*positions(tokens, anchor_tokens), tokens + 1))
        self._marks = bytearray()
        self._digests = bytearray()
        self._lengths = array("H")
        self._media = sorted(media)
        self._forced = sorted({tokens + 1}.union(*((m.offset, m.offset + m.tokens) for m in media)))
        """Where chunks end whatever their content, as far as it is known."""
        # Of the open chunk: where it begins, what it holds, its hash, and how much of it that has taken in.
        self._start = 0
        self._packed = self._classes = b""
        self._hash = self._begun(0)
        self._hashed = 0

    def feed(self, ids: Sequence[int]) -> None:
        """The next ids. Raises ``OverflowError`` or ``TypeError`` where one is no token id."""
        packed = pack(ids)
        buffer, classes = self._packed + packed, self._classes + packed[::4].translate(self._keys.classes)
        self._find_stops(buffer, classes)
        first, size, find, copy = self._start, len(classes), classes.find, self._base.copy
        start, chunk, hashed = 0, self._hash, self._hashed
        place, edge = self._places[0] - first, self._edge(first) - first
        while True:
            found = find(_CUT, start + _EARLIEST)
            stop = found + _WIDTH if found >= 0 else size + 1
            if stop - start > LONGEST:
                stop = start + LONGEST
            if stop > edge:
                stop = edge
            while place <= stop and place <= size:
                chunk.update(buffer[4 * hashed : 4 * place])
                self._marks += chunk.copy().digest()
                hashed = place
                self._places.popleft()
                place = self._places[0] - first
            if stop > size:
                break
            chunk.update(buffer[4 * hashed : 4 * stop])
            self._digests += chunk.digest()
            self._lengths.append(stop - start)
            start = hashed = stop
            chunk = self._begun(first + stop) if self._media else copy()
            if edge == stop:
                edge = self._edge(first + stop) - first
        self._start, self._hash, self._hashed = first + start, chunk, hashed - start
        self._packed, self._classes = buffer[4 * start :], classes[start:]

    def _edge(self, at: int) -> int:
        """The next place after ``at`` where a chunk must end, as far as it is known."""
        while self._forced[0] <= at:
            del self._forced[0]
        return self._forced[0]

    def result(self) -> tuple[bytes, bytes]:
        """Marks and chunks, packed, once everything is fed."""
        if self._classes:
            self._hash.update(self._packed[4 * self._hashed :])
            self._digests += self._hash.digest()
            self._lengths.append(len(self._classes))
            self._packed = self._classes = b""
        return bytes(self._marks), bytes(self._digests) + _lengths_packed(self._lengths)

    def _begun(self, at: int) -> Any:
        """The hash of a chunk that begins at ``at``."""
        begun = self._base.copy()
        for medium in self._media:
            if medium.offset <= at < medium.offset + medium.tokens:
                begun.update(_told(medium, at - medium.offset))
        return begun

    def _find_stops(self, buffer: bytes, classes: bytes) -> None:
        """Remember each of the rules' stops among the new tokens: chunks end before it."""
        stops = self._keys.stops
        at = classes.find(_STOPS, len(self._classes)) if stops else -1
        while at >= 0:
            if buffer[4 * at : 4 * at + 4] in stops:
                insort(self._forced, self._start + at)
            at = classes.find(_STOPS, at + 1)


def _lengths_packed(lengths: array[int]) -> bytes:
    if sys.byteorder != "little":
        lengths.byteswap()
    return lengths.tobytes()


_NO_TOKEN: Final = b"\xff\xff\xff\xff"


def _told(medium: Media, reached: int) -> bytes:
    """What is hashed for a medium where ``reached`` of its tokens have passed; no token looks like its beginning."""
    name = medium.identifier.encode("utf-8", "surrogatepass")
    return _NO_TOKEN + reached.to_bytes(8, "little") + len(name).to_bytes(4, "little") + name


def pack(ids: Sequence[int]) -> bytes:
    """Four bytes an id, little end first. Raises ``OverflowError`` or ``TypeError`` for what is no token id."""
    packed = array("I", ids)
    if packed.itemsize != 4 or sys.byteorder != "little":
        return struct.pack(f"<{len(ids)}I", *ids)
    return packed.tobytes()


def seed(*parts: str | None) -> bytes:
    """What makes equal tokens different KV, as one value: the parts in their order, a missing one unlike an empty."""
    told = [b"" if part is None else b"=" + part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(4, "little") + part for part in told)


def digest(
    ids: Sequence[int],
    keys: Keys,
    *,
    request_id: str,
    leg: Leg,
    input_tokens: int,
    anchor_tokens: int | None = None,
    seed: bytes = b"",
    media: Collection[Media] = (),
) -> Digest:
    """The digest of ``ids`` at once; hooks feed a ``Marker`` in slices instead."""
    marker = Marker(keys, seed, len(ids), anchor_tokens, media)
    for start, end in slices(len(ids), anchor_tokens):
        marker.feed(ids[start:end])
    marks, chunks = marker.result()
    return Digest(
        request_id=request_id,
        leg=leg,
        tokens=len(ids),
        input_tokens=input_tokens,
        key_id=keys.id,
        marks=marks,
        anchor_tokens=anchor_tokens,
        chunks=chunks,
    )
