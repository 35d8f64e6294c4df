"""What a turn's verdict says of its prompt's tokens, as the row has it."""

from __future__ import annotations

from typing import NamedTuple

from turnscope.assembly.local_miss import Lookup, local_miss
from turnscope.assembly.state import Mismatch, TurnState, Verdict
from turnscope.assembly.tokens import Split
from turnscope.marks import Shared
from turnscope.model import Engine
from turnscope.semconv import ContinuityEvidence, LocalMiss, MismatchEvidence


class Provenance(NamedTuple):
    """Fields of ``Turn``; None: not known."""

    recomputed: int | None = None
    new: int | None = None
    rewritten: int | None = None
    suspect: int | None = None
    mismatch_evidence: MismatchEvidence | None = None
    evidence: ContinuityEvidence = ContinuityEvidence.UNKNOWN
    after: int | None = None
    before: int | None = None
    local_miss: LocalMiss = LocalMiss.UNKNOWN


def provenance(turn: TurnState, split: Split | None, engine: Engine | None) -> Provenance:
    """recomputed + new = computed, or neither is known. ``engine``: P's."""
    verdict = turn.verdict or Verdict()
    wrong = verdict.mismatch
    recomputed, new = _split_computed(verdict, split)
    where = _where(verdict, wrong)
    return Provenance(
        recomputed=recomputed,
        new=new,
        rewritten=verdict.rewritten if new is not None else None,
        suspect=_suspect(verdict, wrong, split),
        mismatch_evidence=wrong.evidence if wrong is not None else None,
        evidence=verdict.evidence,
        after=where.low if where is not None else None,
        before=where.high if where is not None else None,
        local_miss=_local_miss(turn, verdict, split, engine),
    )


def _split_computed(verdict: Verdict, split: Split | None) -> tuple[int | None, int | None]:
    """Recomputed and new: what was computed is the prompt's end, what had been computed before its beginning."""
    if verdict.before is None or split is None or split.computed is None:
        return None, None
    recomputed = min(split.computed, max(0, verdict.before - (split.prompt - split.computed)))
    return recomputed, split.computed - recomputed


def _where(verdict: Verdict, wrong: Mismatch | None) -> Shared | None:
    known = verdict.continues
    if known is not None and known.high is not None:
        return known
    return wrong.on_decode if wrong is not None else None


def _suspect(verdict: Verdict, wrong: Mismatch | None, split: Split | None) -> int | None:
    if wrong is not None:
        return wrong.suspect
    if split is None or split.fetched is None:
        return None
    agreed = verdict.continues.low if verdict.continues is not None and verdict.of_hold else 0
    return 0 if not split.fetched or agreed >= (split.local or 0) + split.fetched else None


def _local_miss(turn: TurnState, verdict: Verdict, split: Split | None, engine: Engine | None) -> LocalMiss:
    if split is None or turn.prefill is None:
        return LocalMiss.UNKNOWN
    caching = engine.prefix_caching if engine is not None else None
    return local_miss(
        Lookup(
            prompt=split.prompt,
            local=split.local,
            before=verdict.before,
            here=verdict.here,
            elsewhere=verdict.elsewhere,
            block=engine.block_size if engine is not None else None,
            caching=False if turn.prefill.request.skip_cache else caching,
        )
    )
