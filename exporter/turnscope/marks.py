"""Keyed digests of token sequences: how two of them tell where they part, without any token leaving its process.

A *mark* is 8 bytes of everything up to a position, chained, so that equal marks mean equal beginnings. Marks stand at
coarse strides, finer over the last tokens before the end and before the anchor, and at both of these exactly. A *chunk*
is the digest of a stretch that ends where its own content says, so that what moved is found again at another place.

Both are keyed by a secret and seeded by what makes equal tokens different KV; media are mixed in where they stand.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from turnscope.model import Digest
from turnscope.semconv import Leg

STRIDE: Final = 256
"""Tokens from one coarse mark to the next."""
FINE: Final = 16
"""Tokens between the marks over the last ``TAIL`` before the end and before the anchor."""
TAIL: Final = 512
MARK_BYTES: Final = 8

SHORTEST: Final = 16
"""A chunk ends by its content after this many tokens at the earliest; shorter ones are no sign of anything moved."""
LONGEST: Final = 1024
"""And at the latest after this many."""
CHUNK_BYTES: Final = 8
"""Of which the last two are the chunk's length."""
_LENGTH_BYTES: Final = 2
_CUTS: Final = 256 // 64
"""Values of a window's byte that end a chunk: one position in 64."""
_WINDOW: Final = 4
"""Tokens that decide whether a chunk ends."""


class Media(NamedTuple):
    """An image or the like: ``tokens`` placeholders from ``offset`` on; ``identifier`` tells what they stand for."""

    offset: int
    tokens: int
    identifier: str


class Shared(NamedTuple):
    """How far two sequences are known to agree: the first ``low`` tokens are equal, the first ``high`` are not.

    The first that differs stands at a position from ``low`` to ``high - 1``. ``high`` is None where nothing is known
    to differ.
    """

    low: int
    high: int | None


class Chunk(NamedTuple):
    """The tokens from ``start`` to ``end - 1``; equal digests and lengths mean equal tokens."""

    start: int
    end: int
    digest: bytes


# --- comparing ----------------------------------------------------------------------------------------
def positions(tokens: int, anchor_tokens: int | None) -> list[int]:
    """Where the marks of ``tokens`` ids stand, ascending; an anchor beyond them is taken as their end."""
    found = set(range(STRIDE, tokens + 1, STRIDE))
    for end in {tokens, min(tokens, anchor_tokens or 0)}:
        first = max(0, end - TAIL) // FINE + 1
        found.update(range(first * FINE, end + 1, FINE), (end,))
    return sorted(found - {0})


def marks_of(digest: Digest) -> dict[int, bytes]:
    """Position to mark; empty when there are none or they do not fit the positions."""
    places = positions(digest.tokens, digest.anchor_tokens)
    if digest.unverifiable is not None or len(digest.marks) != MARK_BYTES * len(places):
        return {}
    return {place: digest.marks[n * MARK_BYTES : (n + 1) * MARK_BYTES] for n, place in enumerate(places)}


def chunks_of(digest: Digest) -> Iterator[Chunk]:
    """The chunks, in order and without gaps; none where there are no digests."""
    start = 0
    for at in range(0, len(digest.chunks), CHUNK_BYTES):
        entry = digest.chunks[at : at + CHUNK_BYTES]
        end = start + int.from_bytes(entry[-_LENGTH_BYTES:], "little")
        yield Chunk(start, end, entry[:-_LENGTH_BYTES])
        start = end


def comparable(one: Digest, other: Digest) -> bool:
    """Whether anything can be said at all: both have marks, under one key."""
    verifiable = one.unverifiable is None and other.unverifiable is None
    return verifiable and bool(one.key_id) and one.key_id == other.key_id


def common_prefix(held: Digest, prompt: Digest) -> Shared | None:
    """How far ``prompt`` is known to continue ``held``; None when the two cannot be compared.

    Marks bound it from both sides. Chunks that stand at the same place narrow it: equal ones carry ``low`` on from
    where it is, different ones lower ``high``.
    """
    if not comparable(held, prompt):
        return None
    ours, theirs = marks_of(held), marks_of(prompt)
    both = sorted(ours.keys() & theirs.keys())
    high = next((place for place in both if ours[place] != theirs[place]), None)
    low = max((place for place in both if high is None or place < high), default=0)
    standing = {(chunk.start, chunk.end): chunk.digest for chunk in chunks_of(held)}
    for start, end, digest in chunks_of(prompt):
        known = standing.get((start, end))
        if known is None or (high is not None and start >= high):
            continue
        if known != digest:
            high = end if high is None else min(high, end)
        elif start <= low < end and (high is None or end < high):
            low = end
    return Shared(low, high)


def seen_elsewhere(prompt: Digest, earlier: Iterable[Digest], *, start: int = 0, end: int | None = None) -> int:
    """Tokens of ``prompt`` past the beginning that it shares with any of ``earlier``, seen there at another place.

    Only those from ``start`` to before ``end`` count. Whole chunks only, each as often as it was seen past what the two
    share: what still stands in its place was not displaced. Digests that cannot be compared count for nothing.
    """
    shared = start
    displaced: Counter[tuple[int, bytes]] = Counter()
    for digest in earlier:
        both = common_prefix(digest, prompt)
        if both is not None:
            shared = max(shared, both.low)
            displaced |= Counter(
                (chunk.end - chunk.start, chunk.digest) for chunk in chunks_of(digest) if chunk.end > both.low
            )
    found = 0
    for chunk in chunks_of(prompt):
        size = chunk.end - chunk.start
        if chunk.end > shared and size >= SHORTEST and displaced[size, chunk.digest] > 0:
            displaced[size, chunk.digest] -= 1
            last = chunk.end if end is None else min(chunk.end, end)
            found += max(0, last - max(chunk.start, shared))
    return found


# --- computing ----------------------------------------------------------------------------------------
class Keys:
    """What a secret is made into, once."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(secret).digest()
        self.id = self._hash(b"id", b"", 8).hexdigest()
        """Names the key without telling it: 16 hex digits."""
        self.windows = [self._shuffled(n) for n in range(_WINDOW)]

    def begin(self, what: bytes, seed: bytes, size: int) -> Any:
        """A hash to feed, of ``size`` bytes."""
        return self._hash(what, len(seed).to_bytes(4, "little") + seed, size)

    def _hash(self, what: bytes, data: bytes, size: int) -> Any:
        return hashlib.blake2b(data, digest_size=size, key=self._key, person=what)

    def _shuffled(self, number: int) -> bytes:
        """All bytes, each once."""
        drawn = [self._hash(b"cut", bytes((number, value)), 8).digest() for value in range(256)]
        return bytes(sorted(range(256), key=drawn.__getitem__))


class Marker:
    """Takes a sequence in slices and makes its marks and chunks. Beginning one costs microseconds."""

    def __init__(
        self, keys: Keys, seed: bytes, tokens: int, anchor_tokens: int | None, media: Collection[Media] = ()
    ) -> None:
        self._windows = keys.windows
        self._places = positions(tokens, anchor_tokens)
        self._chain = keys.begin(b"chain", seed, MARK_BYTES)
        self._marks: list[bytes] = []
        self._at = 0
        self._chunk_base = keys.begin(b"chunk", seed, CHUNK_BYTES - _LENGTH_BYTES)
        self._chunk = self._chunk_base.copy()
        self._chunks: list[bytes] = []
        self._chunk_start = 0
        self._before = bytes(_WINDOW - 1)
        self._media = sorted(media)
        self._edges = sorted({0}.union(*((m.offset, m.offset + m.tokens) for m in media)))
        self._mix_in()

    def feed(self, ids: Sequence[int]) -> None:
        """The next ids. Raises ``OverflowError`` or ``TypeError`` where one is no token id."""
        packed = pack(ids)
        first, end = self._at, self._at + len(ids)
        ends = self._ends(packed)
        while self._at < end:
            edge = min((e for e in self._edges if e > self._at), default=end) if self._media else end
            self._go_on(packed, ends, first, min(edge, end))
            if edge <= end and self._media:
                self._close_chunk()
                self._mix_in()

    def result(self) -> tuple[bytes, bytes]:
        """Marks and chunks, packed, once everything is fed."""
        self._close_chunk()
        return b"".join(self._marks), b"".join(self._chunks)

    def _go_on(self, packed: bytes, ends: bytes, first: int, to: int) -> None:
        """Take in what lies between where we are and ``to``, with no media's edge in it."""
        at = self._at
        places, marks, chain = self._places, self._marks, self._chain
        while len(marks) < len(places) and (place := places[len(marks)]) <= to:
            chain.update(packed[4 * (at - first) : 4 * (place - first)])
            marks.append(chain.copy().digest())
            at = place
        chain.update(packed[4 * (at - first) : 4 * (to - first)])
        at = self._at
        while True:
            earliest = self._chunk_start + SHORTEST - 1 - first
            found = ends.find(1, max(earliest, at - first), to - first)
            stop = min(first + found + 1 if found >= 0 else to + 1, self._chunk_start + LONGEST)
            if stop > to:
                break
            self._chunk.update(packed[4 * (at - first) : 4 * (stop - first)])
            self._at = at = stop
            self._close_chunk()
        self._chunk.update(packed[4 * (at - first) : 4 * (to - first)])
        self._at = to

    def _ends(self, packed: bytes) -> bytes:
        """1 at each token after which a chunk may end: where the last few tokens' low bytes, mixed, come out low."""
        low = self._before + packed[::4]
        self._before = low[1 - _WINDOW :]
        size = len(low) - len(self._before)
        mixed = 0
        for n, table in enumerate(self._windows):
            mixed ^= int.from_bytes(low[n : n + size].translate(table), "little")
        return mixed.to_bytes(size, "little").translate(_IS_END)

    def _close_chunk(self) -> None:
        size = self._at - self._chunk_start
        if size:
            self._chunks.append(self._chunk.digest() + size.to_bytes(_LENGTH_BYTES, "little"))
            self._chunk_start = self._at
            self._chunk = self._chunk_base.copy()
            for medium in self._media:
                if medium.offset < self._at < medium.offset + medium.tokens:
                    self._chunk.update(_told(medium, self._at - medium.offset))

    def _mix_in(self) -> None:
        """Media that begin here, before their tokens."""
        for medium in self._media:
            if medium.offset == self._at:
                told = _told(medium, 0)
                self._chain.update(told)
                self._chunk.update(told)


_IS_END: Final = bytes(1 if value < _CUTS else 0 for value in range(256))
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
    marker.feed(ids)
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
