"""What engines hold now for finished requests."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import HoldState, State
from turnscope.assembly.turns import turn_id
from turnscope.semconv import HoldKind


class Held(msgspec.Struct, kw_only=True):
    """Of one engine, or of several that share a name, and one kind."""

    requests: int = 0
    tokens: int = 0
    blocks: int = 0
    bytes: int = 0
    oldest_ns: int = 0
    overdue: int = 0


def held_now(
    state: State, settings: AssemblySettings, now_ns: int, label: Callable[[str], str] = str
) -> dict[tuple[str, str], Held]:
    """By what ``label`` makes of the engine's id, and kind; nothing where nothing is held."""
    sums: dict[tuple[str, str], Held] = {}
    for hold in state.holds.values():
        if hold.held_ns is None or hold.complete or hold.lost_wall_ns is not None:
            continue
        held = sums.setdefault((label(hold.engine_id), str(hold.kind)), Held())
        held.requests += 1
        held.tokens += hold.tokens or 0
        held.blocks += hold.blocks or 0
        held.bytes += hold.bytes or 0
        held.oldest_ns = max(held.oldest_ns, now_ns - hold.held_ns)
        held.overdue += _overdue(state, settings, hold, now_ns)
    return sums


def _overdue(state: State, settings: AssemblySettings, hold: HoldState, now_ns: int) -> bool:
    """Past its deadline. A lease's counts only from when its D leg has ended: until then D renews it."""
    if hold.ttl_ns is None or hold.held_ns is None:
        return False
    begin = hold.held_ns
    if hold.kind is HoldKind.LEASE:
        key = turn_id(hold.engine_id, hold.request_id)
        turn = state.turns.get(key)
        if turn is not None and not turn.decodes:
            return False
        if turn is None and key not in state.old_turns:
            return False
        begin = turn.last_ns if turn is not None else state.old_turns[key][0]
    return now_ns - begin > hold.ttl_ns + settings.overdue_ns
