"""Sessions that have everything a session can have: agents, tools beside each other, subagents, holds with deadlines,
a late turn, a wrong answer. ``python -m tests.app.agent_session FOLDER`` writes a store to look at."""

from __future__ import annotations

import sys
from typing import Any, Final

from tests.store.rows import NOON, SECOND, fill, hold, span, turn
from turnscope.model import AgentSpan, HoldRecord, Turn
from turnscope.semconv import SpanKind

MS: Final = 1_000_000
TTL: Final = 30 * SECOND
Rows = list[Turn | HoldRecord | AgentSpan]


def at(seconds: float) -> int:
    """Unix nanoseconds."""
    return NOON + round(seconds * SECOND)


def call(
    number: int,
    begin: float,
    end: float,
    first: float,
    tokens: tuple[int, int, int, int] = (0, 0, 0, 500),
    kept: tuple[str | None, float] | None = ("read", 4.0),
    session: str = "desk-agent",
    **more: Any,
) -> Rows:
    """A streamed turn from ``begin`` to ``end`` s with its first word after ``first`` s, and the hold that it left:
    ``tokens`` already there, fetched, recomputed and new; ``kept``: the hold's outcome, and for how long."""
    local, fetched, again, new = tokens
    ttft = round(first * SECOND)
    fetch = fetched * 8_000
    rest = ttft - 30 * MS - fetch
    values: dict[str, Any] = {
        "session_id": session,
        "turn_index": number,
        "previous_turn_id": f"{number - 1:032x}" if number > 1 else None,
        "started_ns": at(begin),
        "ended_ns": at(end),
        "duration_ns": at(end) - at(begin),
        "model": "tiny-qwen3",
        "prefill_engine": "prefill-0",
        "decode_engine": "decode-0",
        "path": "reverse_fetch" if fetched else "recompute",
        "reason": "first_turn" if number == 1 else "none",
        "prompt_tokens": local + fetched + again + new,
        "local_hit_tokens": local,
        "fetched_tokens": fetched,
        "external_tokens": 0,
        "computed_tokens": again + new,
        "recomputed_tokens": again,
        "new_tokens": new,
        "output_tokens": 60,
        "fetched_bytes": fetched * 1_024 or None,
        "fetch_ns": fetch or None,
        "handoff_bytes": (local + fetched + again + new) * 1_024,
        "handoff_ns": 12 * MS,
        "prefill_queue_ns": 5 * MS,
        "prefill_ns": ttft - 20 * MS,
        "decode_ns": at(end) - at(begin) - ttft,
        "ttft_ns": ttft,
        "ttft_proxy_ns": 2 * MS,
        "ttft_queue_ns": 5 * MS,
        "ttft_fetch_ns": fetch or None,
        "ttft_prefill_ns": rest,
        "ttft_handoff_ns": 12 * MS,
        "ttft_first_step_ns": 9 * MS,
        "ttft_unattributed_ns": 2 * MS,
        "recompute_ns": again * 55_000,
        "recompute_low_ns": again * 45_000,
        "recompute_high_ns": again * 65_000,
        "refetch_ns": again * 8_000,
        "refetch_low_ns": again * 6_000,
        "refetch_high_ns": again * 12_000,
        "refetch_basis": "measured",
        "net_gain_ns": fetched * 47_000 if fetched else None,
        "streamed": True,
        "tool_calls": 1,
        "last_role": "user" if number == 1 else "tool",
        "has_prefill": True,
        "has_decode": True,
        "has_attempt": True,
        "left_hold_id": f"{number:032x}" if kept else None,
    }
    one = turn(number, **{**values, **more})
    if kept is None:
        return [one]
    outcome, seconds = kept
    return [
        one,
        hold(
            number,
            session_id=session,
            turn_id=one.turn_id,
            tokens=one.prompt_tokens,
            started_ns=one.ended_ns,
            ttl_ns=TTL,
            deadline_ns=(one.ended_ns or 0) + TTL,
            ended_ns=(one.ended_ns or 0) + round(seconds * SECOND) if outcome else None,
            held_ns=round(seconds * SECOND) if outcome else None,
            outcome=outcome,
        ),
    ]


def ran(
    number: int,
    kind: SpanKind,
    begin: float,
    end: float,
    parent: int | None = None,
    session: str = "desk-agent",
    **more: Any,
) -> AgentSpan:
    """A span of the agent."""
    values: dict[str, Any] = {
        "session_id": session,
        "kind": kind,
        "started_ns": at(begin),
        "ended_ns": at(end),
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "service_name": "desk",
        "service_version": "3",
    }
    return span(number, **{**values, **more})


def desk_agent() -> Rows:
    """An agent that asks two tools at once, then a subagent beside a tool, comes back too late once, and is answered
    from memory of other text once."""
    return [
        *call(1, 0.2, 3.0, 0.7, (0, 0, 0, 9_000)),
        *call(2, 8.0, 10.5, 0.4, (0, 9_000, 0, 800), kept=("ttl", 30.0)),
        *call(
            3,
            52.5,
            56.0,
            1.4,
            (0, 0, 18_204, 500),
            path="recompute",
            reason="declined_expired",
            late_by_ns=12 * SECOND,
            late_by_error_ns=0,
        ),
        *call(4, 60.0, 62.0, 0.5, (0, 18_000, 0, 900), agent_id="researcher", kept=None),
        *call(5, 61.0, 64.0, 0.9, (8_000, 0, 0, 6_000), agent_id="critic", kept=None),
        *call(
            6,
            66.5,
            69.0,
            0.5,
            (0, 19_000, 0, 400),
            suspicions=["kv_mismatch"],
            suspect_tokens=643,
            tool_calls=0,
            kept=("ttl", 30.0),
        ),
        ran(1, SpanKind.AGENT, 0.0, 69.5, agent_name="desk"),
        ran(2, SpanKind.TOOL, 3.2, 7.8, 1, tool_name="search"),
        ran(3, SpanKind.TOOL, 3.3, 6.0, 1, tool_name="read_file"),
        ran(4, SpanKind.TOOL, 10.8, 52.0, 1, tool_name="run_tests"),
        ran(5, SpanKind.AGENT, 59.0, 62.5, 1, agent_name="researcher"),
        ran(6, SpanKind.AGENT, 60.5, 65.0, 1, agent_name="critic"),
        ran(7, SpanKind.TOOL, 59.0, 63.5, 1, tool_name="search", status="error"),
        ran(8, SpanKind.RETRIEVAL, 65.2, 66.0, 1, tool_name="handbook"),
    ]


def idle(hours: float = 12.0) -> Rows:
    """Two questions with half a day between them, seen by the proxy's hook alone."""
    later = 3_600 * hours
    chat = {"session": "over-night", "tool_calls": 0, "last_role": "user"}
    return [
        *call(1, 0.0, 3.0, 0.5, kept=("ttl", 30.0), **chat),
        *call(2, later, later + 4, 1.2, (0, 0, 520, 60), kept=("ttl", 30.0), reason="proxy_entry_expired", **chat),
    ]


def many(count: int = 4_000, session: str = "long-runner") -> Rows:
    """An agent that goes on and on."""
    rows: Rows = []
    for n in range(1, count + 1):
        context = 500 + 40 * (n % 400)
        late = n % 50 == 0
        rows += call(
            n,
            9.0 * n,
            9.0 * n + 4,
            0.4 + 0.2 * (n % 5),
            (0, 0, context, 60) if late else (0, context, 0, 60),
            kept=("read", 5.0),
            session=session,
            reason="declined_expired" if late else "none",
        )
    return rows


def write(url: str) -> None:
    """All of them, ids made their own."""
    for number, rows in enumerate((desk_agent(), idle(), many(), call(1, 0, 2, 0.5, session="one-turn"))):
        fill(url, *(apart(row, number) for row in rows))


def apart(row: Turn | HoldRecord | AgentSpan, number: int) -> Turn | HoldRecord | AgentSpan:
    """The row with ids that no other session's rows have."""
    mark = f"{number:02x}"
    for name in ("turn_id", "hold_id", "previous_turn_id", "left_hold_id", "used_hold_id"):
        value = getattr(row, name, None)
        if value is not None:
            setattr(row, name, mark + value[2:])
    return row


if __name__ == "__main__":
    write(sys.argv[1])
