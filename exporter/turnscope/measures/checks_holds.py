"""What is held, and what was read when it no longer was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.model import SystemStatus
from turnscope.semconv import HoldKind

CROWDED: Final = 0.8
"""Share of an engine's KV blocks held for finished requests from which on new ones may have to wait."""


def read_after_release(status: SystemStatus) -> Iterator[Finding]:
    """Blocks that were given up before their reader was done with them: the longest it took is what to wait for."""
    for engine in status.assembly.engines:
        for kind, held in engine.held.items():
            if not held.read_late:
                continue
            lease = kind == HoldKind.LEASE
            limit_ns = engine.engine.lease_ns if lease else engine.engine.hold_ttl_ns
            limit = f" after {limit_ns / 1e9:g} s" if limit_ns is not None else ""
            latest = f", the latest at +{held.latest_read_s:.0f} s" if held.latest_read_s else ""
            yield Finding(
                severity=Severity.ERROR,
                check="read_after_release",
                where=engine.name,
                what=f"{held.read_late} of {held.ended} {'leases' if lease else 'holds'} "
                f"({held.read_late / max(1, held.ended):.0%}) were given up{limit} and read all the same{latest}: "
                "those answers may be made from other requests' KV.",
                fix=f"Raise kv_lease_duration here above {held.latest_read_s:.0f} s, and see why D comes that late."
                if lease
                else "Let the proxy forget a handle at least 5 s before decoder_kv_blocks_ttl, and pass on "
                "remote_blocks_expiry_time, by which P declines what comes too late.",
            )


def retention_pressure(status: SystemStatus) -> Iterator[Finding]:
    """Memory that finished turns keep, while the engine's queue gauges say idle."""
    for engine in status.assembly.engines:
        blocks, held = engine.engine.num_blocks, engine.held.values()
        kept = sum(h.blocks for h in held)
        if not blocks or kept < CROWDED * blocks:
            continue
        ttl = engine.engine.hold_ttl_ns
        ends = f" Unread, a hold ends after {ttl / 1e9:g} s." if ttl is not None else ""
        yield Finding(
            severity=Severity.WARNING,
            check="retention_pressure",
            where=engine.name,
            what=f"{kept} of its {blocks} KV blocks ({kept / blocks:.0%}) are held for {sum(h.requests for h in held)} "
            f"finished requests, the oldest for {max(h.oldest_s for h in held):.0f} s: a request that needs more than "
            f"the other {max(0, blocks - kept)} waits, although nothing seems to run.{ends}",
            fix="Lower decoder_kv_blocks_ttl towards the usual pause between turns, or give the engine more KV memory.",
        )
