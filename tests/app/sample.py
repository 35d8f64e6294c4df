"""Development data for the explorer: eight sessions, and turns without one, as a store would hold them.

``python -m tests.app.sample FOLDER`` writes a store to look at.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from turnscope.model import HoldRecord, Turn
from turnscope.semconv import turn_key
from turnscope.store import StoreWriter

MS: Final = 1_000_000
SECOND: Final = 1_000_000_000
START: Final = 1_796_040_000 * SECOND
"""2026-11-30 12:00 UTC."""
BYTES_PER_TOKEN: Final = 1024
HOLD_TTL: Final = 480 * SECOND

# session: (seconds after START, source of the id, turns); a turn: (local, fetched, computed, new of it, extras)
_PLAN: Final[dict[str | None, tuple[int, str | None, list[tuple[int, int, int, int | None, dict[str, Any]]]]]] = {
    "support-chat-4711": (
        0,
        "body.conversation_id",
        [
            (0, 0, 716, 716, {"reason": "first_turn"}),
            (0, 716, 310, 300, {"reason": "none"}),
            (0, 999, 322, 310, {"reason": "none"}),
            (0, 1284, 335, 320, {"reason": "none"}),
        ],
    ),
    "coding-agent-7f3a": (
        40,
        "header.x-session-id",
        [
            (0, 0, 2200, 2200, {"reason": "first_turn", "tool_calls": 2}),
            (1920, 256, 900, 880, {"reason": "none", "tool_calls": 1}),
            (2944, 128, 420, 400, {"reason": "none", "tool_calls": 3}),
            (3200, 0, 63, 63, {"reason": "below_threshold", "tool_calls": 1}),
            (3328, 0, 210, 210, {"reason": "local_hit_covers"}),
            (3456, 128, 1500, 1450, {"reason": "none"}),
        ],
    ),
    "streamed-no-handle": (
        90,
        "body.conversation_id",
        [
            (0, 0, 640, 640, {"reason": "first_turn", "streamed": True, "hold": "ttl"}),
            (0, 0, 980, 330, {"reason": "no_handle_from_decode", "streamed": True, "hold": "ttl"}),
            (0, 0, 1310, 320, {"reason": "no_handle_from_decode", "streamed": True, "hold": None}),
            (0, 0, 1660, 340, {"reason": "no_handle_from_decode", "streamed": True, "hold": None}),
        ],
    ),
    "compacting-agent": (
        130,
        "body.session_id",
        [
            (0, 0, 1400, 1400, {"reason": "first_turn"}),
            (0, 1399, 300, 300, {"reason": "none"}),
            (0, 643, 210, None, {"reason": "none", "suspicions": ["kv_mismatch"]}),
            (512, 384, 120, None, {"reason": "none", "suspicions": ["kv_mismatch", "duplicate_handle"]}),
        ],
    ),
    "slow-reader": (
        180,
        "body.conversation_id",
        [
            (0, 0, 800, 800, {"reason": "first_turn", "hold": "ttl"}),
            (0, 0, 1150, 330, {"reason": "declined_expired", "hold": "ttl", "gap": 500}),
            (0, 0, 1500, 340, {"reason": "proxy_entry_expired", "hold": "ttl", "gap": 700}),
        ],
    ),
    "flaky-network": (
        240,
        "body.conversation_id",
        [
            (0, 0, 900, 900, {"reason": "first_turn"}),
            (0, None, None, None, {"reason": "transfer_failed", "status": "error", "stage": "prefill", "hold": None}),
            (0, 0, 1290, 300, {"reason": "previous_turn_aborted"}),
            (0, 0, 1600, 280, {"reason": "stuck", "status": "stuck", "stage": "prefill", "hold": None}),
        ],
    ),
    "no-proxy-hook": (
        300,
        "chained",
        [
            (0, 0, 1000, 1000, {"reason": "first_turn", "bare": True}),
            (0, 1024, 260, None, {"reason": "none", "bare": True}),
            (0, 1280, 270, None, {"reason": "none", "bare": True, "hold": "held"}),
        ],
    ),
    "cancelled-mid-answer": (
        350,
        "body.conversation_id",
        [
            (0, 0, 720, 720, {"reason": "first_turn"}),
            (0, 720, 300, 300, {"reason": "none", "status": "cancelled", "stage": "decode", "hold": None}),
            (0, 0, 1360, 310, {"reason": "previous_turn_aborted", "hold": "notified"}),
        ],
    ),
    None: (
        400,
        None,
        [
            (0, 0, 350, None, {"reason": "no_session_id", "hold": None, "bare": True}),
            (0, 0, 410, None, {"reason": "no_session_id", "hold": "ttl"}),
        ],
    ),
}


def rows() -> tuple[list[Turn], list[HoldRecord]]:
    """The same turns and holds at every call; the token law holds wherever all terms are known."""
    turns: list[Turn] = []
    holds: list[HoldRecord] = []
    for session_id, (offset, source, plan) in _PLAN.items():
        at = START + offset * SECOND
        previous: Turn | None = None
        for index, (local, fetched, computed, new, extras) in enumerate(plan, 1):
            at += extras.get("gap", 6) * SECOND
            last = {"hold": "ttl"} if index == len(plan) else {}
            turn, hold = _turn(session_id, source, index, at, (local, fetched, computed, new), last | extras, previous)
            turns.append(turn)
            if hold is not None:
                holds.append(hold)
            previous = turn if session_id is not None else None
            at = turn.ended_ns or at
    return turns, holds


def _turn(
    session_id: str | None,
    source: str | None,
    index: int,
    at: int,
    tokens: tuple[int, int | None, int | None, int | None],
    extras: dict[str, Any],
    previous: Turn | None,
) -> tuple[Turn, HoldRecord | None]:
    local, fetched, computed, new = tokens
    request = f"chatcmpl-{session_id or 'anonymous'}-{index}"
    turn_id = turn_key("prefill-a", request).hex()
    prompt = None if fetched is None or computed is None else local + fetched + computed
    output = 0 if extras.get("status") in ("error", "stuck") else 60 + 13 * index
    fetch_ns = 4 * MS + fetched * 9_000 if fetched else None
    prefill_ns = None if computed is None else 15 * MS + computed * 110_000 + (fetch_ns or 0)
    decode_ns = output * 11 * MS if output else None
    ttft_ns = None if prefill_ns is None or not output or "bare" in extras else prefill_ns + 21 * MS
    stuck = extras.get("status") == "stuck"
    duration = None if stuck else (prefill_ns or 90 * MS) + (decode_ns or 0) + 25 * MS
    outcome = extras.get("hold", "read")
    turn = Turn(
        turn_id=turn_id,
        session_id=session_id,
        session_source=source,
        turn_index=index if session_id is not None else None,
        previous_turn_id=previous.turn_id if previous else None,
        started_ns=at,
        ended_ns=None if duration is None else at + duration,
        model="tiny-qwen3",
        prefill_engine="prefill-0",
        decode_engine="decode-0" if output else None,
        prefill_engine_id="prefill-a",
        prefill_request_id=request,
        decode_engine_id="decode-a" if output else None,
        path=_path(local, fetched, computed),
        reason=extras["reason"],
        status=extras.get("status", "ok"),
        stage=extras.get("stage"),
        finish_reason="stop" if output else None,
        suspicions=extras.get("suspicions", []),
        prompt_tokens=prompt,
        local_hit_tokens=local if prompt is not None else None,
        fetched_tokens=fetched,
        external_tokens=0 if prompt is not None else None,
        computed_tokens=computed,
        recomputed_tokens=computed - new if computed is not None and new is not None else None,
        new_tokens=new,
        output_tokens=output,
        threshold_tokens=64,
        offered_tokens=fetched or None,
        handoff_tokens=prompt if output else None,
        fetched_bytes=fetched * BYTES_PER_TOKEN if fetched else None,
        fetch_ns=fetch_ns,
        fetch_reads=1 if fetched else None,
        handoff_bytes=prompt * BYTES_PER_TOKEN if prompt and output else None,
        handoff_ns=6 * MS if output else None,
        handoff_reads=1 if output else None,
        prefill_queue_ns=2 * MS if prefill_ns else None,
        prefill_ns=prefill_ns,
        decode_ns=decode_ns,
        ttft_ns=ttft_ns,
        duration_ns=None if "bare" in extras else duration,
        streamed=None if "bare" in extras else extras.get("streamed", False),
        tool_calls=None if "bare" in extras else extras.get("tool_calls", 0),
        used_hold_id=previous.left_hold_id if previous and fetched else None,
        left_hold_id=None if outcome is None else f"{int(turn_id, 16) ^ 1:032x}",
        has_prefill=prompt is not None,
        has_decode=bool(output),
        has_attempt="bare" not in extras,
        join="inferred" if session_id is None else "exact",
    )
    if outcome is None or turn.left_hold_id is None:
        return turn, None
    ended = turn.ended_ns or at
    held = {"held": None, "ttl": HOLD_TTL}.get(outcome, 6 * SECOND + 20 * MS)
    hold = HoldRecord(
        hold_id=turn.left_hold_id,
        kind="hold",
        engine="decode-0",
        engine_id="decode-a",
        generation="1f",
        request_id=request,
        session_id=session_id,
        turn_id=turn_id,
        tokens=(prompt or 0) + output,
        bytes=((prompt or 0) + output) * BYTES_PER_TOKEN,
        started_ns=ended,
        ttl_ns=HOLD_TTL,
        ended_ns=None if held is None else ended + held,
        held_ns=held,
        outcome=None if outcome == "held" else outcome,
    )
    return turn, hold


def _path(local: int, fetched: int | None, computed: int | None) -> str:
    if fetched is None or computed is None:
        return "unknown"
    if local and fetched:
        return "mixed"
    if fetched:
        return "reverse_fetch"
    return "local_hit" if local else "recompute"


def write(url: str, turns: list[Turn] | None = None, holds: list[HoldRecord] | None = None) -> None:
    """Write a store at ``url`` with these rows; without any, with ``rows()``."""
    if turns is None:
        turns, holds = rows()
    out = StoreWriter(url, writer_id="sample", now=lambda: START + 3600 * SECOND)
    for turn in turns:
        out.add_turn(turn)
    for hold in holds or []:
        out.add_hold(hold)
    out.close()


if __name__ == "__main__":
    write(sys.argv[1])
