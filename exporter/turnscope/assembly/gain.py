"""What a fetch was worth: the compute it spared, less the time it took. Signed, with an interval."""

from __future__ import annotations

from collections.abc import Iterable

from turnscope.assembly.ranks import lasted_ns
from turnscope.assembly.rate import Estimate, Rate, spared
from turnscope.assembly.state import Read
from turnscope.model import Turn
from turnscope.semconv import Suspicion


def net_gain(rate: Rate | None, *, local: int, fetched: int, suspect: int, spent_ns: int) -> Estimate | None:
    """Of ``fetched`` tokens behind ``local`` ones. Tokens that may be wrong spare nothing; time is spent all the same.

    None while the engine's rate is not known; of a fetch that brought nothing the loss is known without it.
    """
    good = max(0, fetched - suspect)
    if good == 0:
        return Estimate(-spent_ns, -spent_ns, -spent_ns)
    saved = spared(rate, local, good) if rate is not None else None
    return None if saved is None else Estimate(*(value - spent_ns for value in saved))


def worth(row: Turn, rate: Rate | None, reads: Iterable[Read]) -> Estimate | None:
    """Of the turn's fetch. None where there was none, or what it took or spared is not known."""
    spent_ns = lasted_ns(reads)
    if spent_ns is None or row.fetched_tokens is None or row.local_hit_tokens is None:
        return None
    suspect = suspect_tokens(row)
    return net_gain(rate, local=row.local_hit_tokens, fetched=row.fetched_tokens, suspect=suspect, spent_ns=spent_ns)


def suspect_tokens(row: Turn) -> int:
    """Of the fetched ones, how many may be wrong. Digests number those of other text only: under any other suspicion,
    whatever they say, it may be all of them."""
    if set(row.suspicions) - {Suspicion.KV_MISMATCH} or (row.suspicions and row.suspect_tokens is None):
        return row.fetched_tokens or 0
    return row.suspect_tokens or 0
