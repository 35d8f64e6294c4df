"""Keyed digests of token sequences: how two of them tell where they part, without any token leaving its process.

A sequence falls into *chunks*, which end where their own content says, so that what moved is found again at another
place, and each has a digest. Between their ends stand *marks*: digests of what lies between the last chunk's end and a
place, at coarse strides, finer over the last tokens before the end and before the anchor, and at both of these exactly.
Chunks in their order chain everything: equal chunks and an equal mark after them mean an equal beginning.

All of it is keyed by a secret and seeded by what makes equal tokens different KV; media are mixed in where they stand.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from turnscope.model import Digest
from turnscope.semconv import Leg

FINE: Final = 16
"""Tokens from one mark to the next, over the last ``TAIL`` before the end and before the anchor."""
TAIL: Final = 512
DIGEST_BYTES: Final = 6
"""Of a mark, and of a chunk's digest."""

SHORTEST: Final = 16
"""Tokens after which a chunk may end by its content; shorter ones are no sign of anything moved."""
LONGEST: Final = 1024
"""Tokens after which it ends at the latest."""
CHUNK_BYTES: Final = DIGEST_BYTES + 2
"""With its length. All digests stand first, then all lengths."""


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
    places = []
    at = 0
    for end in _ends(tokens, anchor_tokens):
        at = max(at, end - TAIL)
        places += [*range((at // FINE + 1) * FINE, end, FINE), end]
        at = end
    return places


def _ends(tokens: int, anchor_tokens: int | None) -> list[int]:
    return sorted({tokens, min(tokens, anchor_tokens or 0)} - {0})


def chunks_of(digest: Digest, *, past: int = 0) -> Iterator[Chunk]:
    """The chunks that end past a position, in order and without gaps; none where there are no digests."""
    packed, lengths = digest.chunks, _lengths_of(digest)
    ends = list(accumulate(lengths))
    for n in range(bisect_right(ends, past), len(ends)):
        yield Chunk(ends[n] - lengths[n], ends[n], packed[n * DIGEST_BYTES : (n + 1) * DIGEST_BYTES])


def _lengths_of(digest: Digest) -> tuple[int, ...]:
    count = len(digest.chunks) // CHUNK_BYTES
    return struct.unpack_from(f"<{count}H", digest.chunks, count * DIGEST_BYTES)


def _equal_chunks(one: Digest, other: Digest) -> int:
    """How many chunks the two have alike from the beginning. Halves its way there: prompts have hundreds."""
    ours, theirs = len(one.chunks) // CHUNK_BYTES * DIGEST_BYTES, len(other.chunks) // CHUNK_BYTES * DIGEST_BYTES
    low, high = 0, min(ours, theirs) // DIGEST_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        digests, lengths = middle * DIGEST_BYTES, middle * (CHUNK_BYTES - DIGEST_BYTES)
        alike = one.chunks[:digests] == other.chunks[:digests]
        if alike and one.chunks[ours : ours + lengths] == other.chunks[theirs : theirs + lengths]:
            low = middle
        else:
            high = middle - 1
    return low


def marks_of(digest: Digest) -> dict[int, bytes]:
    """Position to what stands for everything before it: equal ones mean equal beginnings. Ascending.

    Besides the marks, the ends of all chunks but the last are there: whoever shares the beginning past one has it too.
    Empty when there are none or they do not fit their positions.
    """
    marks = _marks_since(digest)
    if not marks:
        return {}
    found = {}
    chained = hashlib.blake2b(digest_size=8)
    places = deque(marks)
    for chunk in chunks_of(digest):
        while places and places[0] <= chunk.end:
            place = places.popleft()
            whole = chained.copy()
            whole.update(marks[place])
            found[place] = whole.digest()
        chained.update(chunk.digest)
        found[chunk.end] = chained.digest()
    return found


def _marks_since(digest: Digest) -> dict[int, bytes]:
    """Position to the mark as it was sent: of what lies between the last chunk's end and there."""
    places = positions(digest.tokens, digest.anchor_tokens)
    if digest.unverifiable is not None or len(digest.marks) != DIGEST_BYTES * len(places):
        return {}
    return {place: digest.marks[n * DIGEST_BYTES : (n + 1) * DIGEST_BYTES] for n, place in enumerate(places)}


def comparable(one: Digest, other: Digest) -> bool:
    """Whether anything can be said at all: both have marks, under one key."""
    verifiable = one.unverifiable is None and other.unverifiable is None
    return verifiable and bool(one.key_id) and one.key_id == other.key_id


def common_prefix(held: Digest, prompt: Digest) -> Shared | None:
    """How far ``prompt`` is known to continue ``held``; None when the two cannot be compared.

    Chunks tell where the two part to within one of them, the marks in that one more exactly.
    """
    if not comparable(held, prompt):
        return None
    alike, ours, theirs = _equal_chunks(held, prompt), _lengths_of(held), _lengths_of(prompt)
    low = sum(ours[:alike])
    if alike in (len(ours), len(theirs)):
        return Shared(low, None)
    return _within(held, prompt, low, low + ours[alike], low + theirs[alike])


def _within(held: Digest, prompt: Digest, low: int, ours: int, theirs: int) -> Shared:
    """Both go on at ``low`` with a chunk, to ``ours`` and to ``theirs``, and these are not the same."""
    mine, yours = _marks_since(held), _marks_since(prompt)
    for place in sorted(p for p in mine.keys() & yours.keys() if low < p <= min(ours, theirs)):
        if mine[place] != yours[place]:
            return Shared(low, place)
        low = place
    if ours == theirs:
        return Shared(low, ours)
    first, tokens = (ours, held.tokens) if ours < theirs else (theirs, prompt.tokens)
    # Its content, or the token that follows it, has ended the shorter one, but not the longer: there they differ. Only
    # where the whole sequence ends with it, nothing follows from its end.
    return Shared(low, first + 1 if first < tokens else None)


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
            displaced |= Counter((chunk.end - chunk.start, chunk.digest) for chunk in chunks_of(digest, past=both.low))
    found = 0
    for chunk in chunks_of(prompt, past=shared):
        size = chunk.end - chunk.start
        if size >= SHORTEST and displaced[size, chunk.digest] > 0:
            displaced[size, chunk.digest] -= 1
            last = chunk.end if end is None else min(chunk.end, end)
            found += max(0, last - max(chunk.start, shared))
    return found


# --- computing ----------------------------------------------------------------------------------------
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
    for end in _ends(tokens, anchor_tokens):
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
