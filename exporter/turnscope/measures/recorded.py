"""Which processes are known from a recording: their silence, clocks and versions say nothing of now."""

from __future__ import annotations

from typing import Final

from turnscope.model import EmitterStatus, SystemStatus

CLOCK_S: Final = 2.0
"""More than a batch may take on its way; times of turns are off by as much."""
REPLAYED_S: Final = 600.0
"""Events as old as this on arrival were recorded, whoever sends them."""


def recorded(status: SystemStatus) -> frozenset[str]:
    """Ids of emitters whose events are a recording's: sent by ``turnscope replay``; or so old when they came that no
    clock explains it, and with them the others of that host whose events were not of that moment either."""
    sources = status.assembly.emitters
    old = [s for s in sources if s.emitter.replayed or _delay_s(s) > REPLAYED_S]
    hosts = {s.emitter.host for s in old if not s.emitter.replayed}
    beside = [s for s in sources if s.emitter.host in hosts and _delay_s(s) > CLOCK_S]
    return frozenset(s.emitter.id for s in (*old, *beside))


def _delay_s(source: EmitterStatus) -> float:
    return source.clock_offset_s or 0.0
