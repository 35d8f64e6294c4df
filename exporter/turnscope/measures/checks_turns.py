"""Can engines read from each other, and is there evidence for what turns did?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.model import SystemStatus, plural

IN_A_ROW: Final = 3
"""Failed reads of one pair, without one that succeeded, that are no accident."""
UNEXPLAINED: Final = 0.01
"""Share of turns with both hooks whose reason may be unknown."""


def pair_fails(status: SystemStatus) -> Iterator[Finding]:
    """One engine cannot read from another."""
    for engine in status.assembly.engines:
        for holder, failed in sorted(engine.failing.items()):
            if failed >= IN_A_ROW:
                yield Finding(
                    severity=Severity.ERROR,
                    check="pair_fails",
                    where=f"{engine.name} reading from {holder}",
                    what=f"The last {plural(failed, 'read')} of this pair failed. Other pairs are not concerned.",
                    fix=f"If {holder} was restarted, {engine.name} may keep stale addresses of it: restart it as well. "
                    "Otherwise see that it reaches the other's side channel (VLLM_NIXL_SIDE_CHANNEL_HOST and _PORT).",
                )


def unexplained(status: SystemStatus) -> Iterator[Finding]:
    """Turns that both hooks told of, and still no reason."""
    explained, unknown = (status.assembly.explained.get(f"both {known}", 0) for known in ("yes", "no"))
    if unknown > UNEXPLAINED * (explained + unknown):
        yield Finding(
            severity=Severity.WARNING,
            check="unexplained",
            where="turns",
            what=f"Of {plural(explained + unknown, 'turn')} seen by engine and proxy hooks, {unknown} have no known "
            "reason.",
            fix="Usual causes: conversations that began before the sidecar, events that were lost (see above), and a "
            "hook that is missing in one of the engines.",
        )
