"""Can prompts be compared with what came before them, and did a mismatch leave something behind?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.model import SystemStatus
from turnscope.semconv import ContinuityEvidence

TOLERATED: Final = 0.1
"""Share of turns whose digests do not compare below which nothing is said."""


def digests_unlike(status: SystemStatus) -> Iterator[Finding]:
    """Digests come, and many do not compare: a mismatch would not be seen."""
    turns = status.assembly.continuity
    unlike = turns.get(ContinuityEvidence.UNVERIFIABLE, 0)
    total = sum(turns.values())
    if not unlike or TOLERATED * total > unlike:
        return
    yield Finding(
        severity=Severity.WARNING,
        check="digests_unlike",
        where="turns",
        what=f"Of {total} turns {unlike} have digests that do not compare with those of the turn before them: what was "
        "computed twice, and what is of other text, is unknown.",
        fix="Behind a collector, or with more than one sidecar, set the same TURNSCOPE_DIGEST_KEY on all engines. "
        "Else prompts are embeddings, too long, or more than the hook keeps up with.",
    )


def prefix_cache_spoiled(status: SystemStatus) -> Iterator[Finding]:
    """One finding per engine whose prefix cache may hold KV of other text."""
    for engine in status.assembly.engines:
        if engine.spoiled_prefixes:
            yield Finding(
                severity=Severity.ERROR,
                check="prefix_cache_spoiled",
                where=engine.name,
                what=f"After mismatches its prefix cache may hold wrong KV under the beginnings of "
                f"{engine.spoiled_prefixes} prompts: later turns, of other sessions too, find it as plain local hits.",
                fix="Restart the engine to empty its cache, once nothing gives handles to prompts that do not continue "
                "them (see the turns with kv_mismatch).",
            )
