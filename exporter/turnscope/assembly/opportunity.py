"""Whether a turn that continues another could have fetched: D held more of it than P had."""

from __future__ import annotations

from turnscope.assembly.kept import find_hold
from turnscope.assembly.ledger import one
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import HoldState, Past, State, TurnState
from turnscope.model import Contribution, Turn


def followup(state: State, settler: Settler, turn: TurnState, row: Turn) -> list[Contribution]:
    """What a turn adds to the counters of turns that continue another; nothing for one that continues none."""
    past = settler.previous(turn)
    if past is None or row.prefill_engine is None:
        return []
    found = _opportunity(state, past, row)
    out = [one("turnscope_followup_turns_total", row.prefill_engine, found)]
    gap_ns = settler.since_ns(past, turn)
    if gap_ns is not None:
        out.append(one("turnscope_turn_gap_seconds", found, value=max(0, gap_ns) / 1e9))
    return out


def _opportunity(state: State, past: Past, row: Turn) -> str:
    if row.fetched_tokens:
        return "taken"
    if row.fetched_tokens is None or row.local_hit_tokens is None or row.prompt_tokens is None:
        return "unknown"
    if past.left_hold is None:
        # D's hook is heard, and told of no hold.
        return "none" if past.decode_bidirectional is not None else "unknown"
    hold = find_hold(state, past.left_hold)
    if hold is None or hold.held_ns is None or hold.tokens is None:
        return "unknown"
    if _gone(hold, row.started_ns):
        return "none"
    agrees = row.prompt_tokens if row.diverged_after is None else row.diverged_after
    useful = min(hold.tokens, row.prompt_tokens, agrees) - row.local_hit_tokens
    return "missed" if useful >= max(1, row.threshold_tokens or 0) else "none"


def _gone(hold: HoldState, wall_ns: int) -> bool:
    """By wall clocks, which two hosts may read a little differently: what ended just then may be taken for either."""
    ended = hold.ended_wall_ns if hold.complete or hold.lost_wall_ns is not None else None
    return ended is not None and ended <= wall_ns
