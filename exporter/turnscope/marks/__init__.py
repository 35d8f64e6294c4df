"""Keyed digests of token sequences: how two of them tell where they part, without any token leaving its process.

A sequence falls into *chunks*, which end where their own content says, so that what moved is found again at another
place, and each has a digest. Between their ends stand *marks*: digests of what lies between the last chunk's end and a
place, at coarse strides, finer over the last tokens before the end and before the anchor, and at both of these exactly.
Chunks in their order chain everything: equal chunks and an equal mark after them mean an equal beginning.

All of it is keyed by a secret and seeded by what makes equal tokens different KV; media are mixed in where they stand.
"""

from turnscope.marks.comparing import Chunk, Shared, chunks_of, common_prefix, comparable, marks_of, seen_elsewhere
from turnscope.marks.layout import FINE, LONGEST, SHORTEST, TAIL, positions
from turnscope.marks.making import SLICE, Keys, Marker, Media, digest, fingerprint, pack, seed, slices

__all__ = [
    "FINE",
    "LONGEST",
    "SHORTEST",
    "SLICE",
    "TAIL",
    "Chunk",
    "Keys",
    "Marker",
    "Media",
    "Shared",
    "chunks_of",
    "common_prefix",
    "comparable",
    "digest",
    "fingerprint",
    "marks_of",
    "pack",
    "positions",
    "seed",
    "seen_elsewhere",
    "slices",
]
