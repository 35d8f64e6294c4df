"""Why P did not find in its own prefix cache what the session had computed before: one table, first match wins.

It asks of the first whole block past the local hit: was it ever here, elsewhere, or only on D?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from turnscope.semconv import LocalMiss


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one prompt and P's cache. Tokens from the prompt's beginning; None: nothing tells."""

    prompt: int
    local: int | None
    """P's local hit."""
    before: int | None
    """Computed before in the session, by whichever engine."""
    here: int = 0
    """Computed before by this start of this P."""
    elsewhere: int = 0
    """Computed before by another P, or by this one before it was restarted."""
    block: int | None
    """Tokens of a block: a cache finds whole ones only, and never the prompt's last token."""
    caching: bool | None
    """Whether P looks for this request in its prefix cache."""

    def missed(self, tokens: int) -> bool:
        """Whether whole blocks among the first ``tokens`` are past the local hit."""
        block = self.block or 1
        return (self.local or 0) < min(tokens, self.prompt - 1) // block * block


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    cause: LocalMiss
    when: Callable[[Lookup], bool]


TABLE: Final[tuple[Row, ...]] = (
    Row(LocalMiss.UNKNOWN, lambda at: at.local is None),
    Row(LocalMiss.NONE, lambda at: at.before is not None and not at.missed(at.before)),
    Row(LocalMiss.CACHING_OFF, lambda at: at.caching is False),
    Row(LocalMiss.UNKNOWN, lambda at: at.before is None or at.block is None),
    Row(LocalMiss.EVICTED, lambda at: at.missed(at.here)),
    Row(LocalMiss.OTHER_WORKER, lambda at: at.missed(at.elsewhere)),
)
"""In the order in which they are asked; what is left was ``never_here``."""


def local_miss(lookup: Lookup) -> LocalMiss:
    """The first row that matches."""
    return next((row.cause for row in TABLE if row.when(lookup)), LocalMiss.NEVER_HERE)
