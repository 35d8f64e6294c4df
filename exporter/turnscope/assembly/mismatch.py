"""Reused KV that is of other text than the prompt: what speaks for it, from where on, how many tokens it concerns."""

from __future__ import annotations

from turnscope.assembly.state import Mismatch, Verdict
from turnscope.assembly.tokens import Split
from turnscope.marks import Shared
from turnscope.semconv import MismatchEvidence


def mismatch(verdict: Verdict, split: Split | None, offered: int | None) -> Mismatch | None:
    """None where nothing speaks for one. ``offered``: what the given handle stands for.

    Fetched tokens are taken by position from a hold. They are wrong past where the prompt is seen to part from it, or,
    where that cannot be seen, past where it is last known to agree with a hold longer than the prompt; and past where
    the hold itself is wrong. Local hits are wrong past where an earlier mismatch had filed them.
    """
    local, fetched = (split.local or 0, split.fetched or 0) if split is not None else (0, 0)
    end = local + fetched
    fetches: list[tuple[MismatchEvidence, Shared]] = []
    if split is not None and fetched:
        known = verdict.continues if verdict.of_hold else None
        agreed = known.low if known is not None else 0
        if known is not None and known.high is not None:
            fetches.append((MismatchEvidence.DIGESTS, known))
        elif offered is not None and split.prompt < offered and agreed < end:
            fetches.append((MismatchEvidence.LENGTHS, Shared(agreed, None)))
        if verdict.wrong_hold is not None and verdict.wrong_hold.low < end:
            fetches.append((MismatchEvidence.INFERRED, verdict.wrong_hold))
    # What P had itself is not of the hold.
    fetches = [(evidence, _from(local, where)) for evidence, where in fetches]
    prefill = [where for _, where in fetches]
    if verdict.wrong_hit is not None:
        prefill.append(verdict.wrong_hit)
    decode = [*prefill, verdict.wrong_decode] if verdict.wrong_decode is not None else prefill
    if not decode:
        return None
    suspect = end - min(where.low for _, where in fetches) if fetches else 0
    if verdict.wrong_hit is not None:
        suspect += max(0, local - verdict.wrong_hit.low)
    evidence = fetches[0][0] if fetches else MismatchEvidence.INFERRED
    return Mismatch(evidence, min(prefill, key=_first, default=None), min(decode, key=_first), max(0, suspect))


def _from(start: int, where: Shared) -> Shared:
    """No earlier than ``start``: the token there is the first that can be wrong."""
    if where.low >= start:
        return where
    return Shared(start, max(where.high, start + 1) if where.high is not None else None)


def _first(where: Shared) -> tuple[int, float]:
    return where.low, where.high if where.high is not None else float("inf")
