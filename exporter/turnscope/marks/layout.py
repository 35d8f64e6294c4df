"""Where marks and chunks stand in a sequence, which both who makes and who compares digests must know."""

from __future__ import annotations

from typing import Final

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


def positions(tokens: int, anchor_tokens: int | None) -> list[int]:
    """Where the marks of ``tokens`` ids stand, ascending; an anchor beyond them is taken as their end."""
    places = []
    at = 0
    for end in ends(tokens, anchor_tokens):
        at = max(at, end - TAIL)
        places += [*range((at // FINE + 1) * FINE, end, FINE), end]
        at = end
    return places


def ends(tokens: int, anchor_tokens: int | None) -> list[int]:
    """Of what is marked finely before it: the anchor, if it is among the tokens, and the last token."""
    return sorted({tokens, min(tokens, anchor_tokens or 0)} - {0})
