"""Can prompts be compared with what came before them, and did a mismatch leave something behind?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.measures.processes import place, present
from turnscope.model import EmitterStatus, SystemStatus
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


def digest_keys_differ(status: SystemStatus) -> Iterator[Finding]:
    """Processes whose digests are to be compared make them under different keys: engines with engines, proxies with
    proxies."""
    for what, proxies in (("engines", False), ("proxies", True)):
        keys: dict[str, list[EmitterStatus]] = {}
        for source in present(status):
            if source.digest_key_id and (source.emitter.kind == "proxy") is proxies:
                keys.setdefault(source.digest_key_id, []).append(source)
        if len(keys) > 1:
            ones = "; ".join(place(sources[0]) for sources in keys.values())
            yield Finding(
                severity=Severity.WARNING,
                check="digest_keys_differ",
                where=what,
                what=f"Digests made under {len(keys)} keys do not compare: how a prompt continues one that another of "
                f"these {what} saw is unknown. One of each: {ones}.",
                fix="Each sidecar makes a key of its own: copy one digest.key to all of them, or set the same "
                "TURNSCOPE_DIGEST_KEY for all hooks, and restart those that had another.",
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
                fix="Once nothing gives handles to prompts that do not continue them (see the turns with kv_mismatch), "
                "empty its cache (POST /reset_prefix_cache, with VLLM_SERVER_DEV_MODE=1) or restart it.",
            )
