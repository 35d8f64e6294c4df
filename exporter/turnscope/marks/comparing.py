"""Comparing digests: how far two sequences agree, and what of one was seen in others at another place."""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from turnscope.marks.layout import CHUNK_BYTES, DIGEST_BYTES, SHORTEST, positions
from turnscope.model import Digest


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
