"""Development data for the pages about a period: a day of two applications, with tools, tasks, late turns, fetches that
cost more than they gave, suspicions and the processes that reported.

``python -m tests.app.period_sample FOLDER`` writes a store to look at.
"""

from __future__ import annotations

import random
import sys
from typing import Any, Final

from tests.app.sample import BYTES_PER_TOKEN, HOLD_TTL, MS, SECOND, START
from turnscope.measures.sessions import summarise
from turnscope.model import AgentSpan, HoldRecord, ProcessRecord, Skew, Turn
from turnscope.semconv import turn_key
from turnscope.store import StoreWriter

SESSIONS: Final = 120
TURNS: Final = 6
_APPLICATIONS: Final = (("shop-assistant", "2.4.0"), ("shop-assistant", "2.5.0"), ("code-reviewer", "0.9.1"))
_TOOLS: Final = {"search_orders": 0.4, "read_file": 0.05, "run_tests": 14.0, "web_search": 1.6, "send_mail": 0.8}
_REASONS: Final = ("no_handle_from_decode", "prefix_diverged", "transfer_failed", "holder_lost")
"""Beside that the limit has passed, which pauses decide."""


def rows(names: str = "") -> tuple[list[Turn], list[HoldRecord], list[AgentSpan]]:
    """The same rows at every call. ``names`` is put before every name that comes from outside."""
    rng = random.Random(11)
    turns: list[Turn] = []
    holds: list[HoldRecord] = []
    spans: list[AgentSpan] = []
    for number in range(SESSIONS):
        at = START + number * 720 * SECOND
        application, version = _APPLICATIONS[number % len(_APPLICATIONS)]
        previous: Turn | None = None
        kept: HoldRecord | None = None
        for index in range(1, TURNS + 1):
            asks = index not in (3, 6)
            turn, hold = _turn(rng, f"{names}{application}-{number:03d}", index, at, previous, asks=asks)
            turn.model = f"{names}{'qwen3-coder' if application == 'code-reviewer' else 'qwen3-32b'}"
            turn.prefill_engine = f"{names}prefill-{number % 2}"
            turns.append(turn)
            holds.append(hold)
            if kept is not None:
                _ends(kept, turn)
            ended = turn.ended_ns or at
            at = ended + _pause_s(rng, asks=asks) * SECOND // 1000
            if asks and number % 4:
                tool = rng.choice(sorted(_TOOLS))
                lasted = round(_TOOLS[tool] * SECOND * rng.uniform(0.5, 2.0))
                spans.append(_span(names, turn, tool, application, version, ended, lasted, failed=rng.random() < 0.08))
                at = ended + lasted + 20 * MS
            previous, kept = turn, hold
    return turns, holds, spans


def _pause_s(rng: random.Random, *, asks: bool) -> int:
    """Milliseconds until the next turn: a tool's, or a person's, who is sometimes away for long."""
    if asks:
        return round(rng.lognormvariate(7.5, 1.2))
    return round(rng.lognormvariate(11.6, 1.6))


def _turn(
    rng: random.Random, session_id: str, index: int, at: int, previous: Turn | None, *, asks: bool
) -> tuple[Turn, HoldRecord]:
    request = f"{session_id}-{index}"
    turn_id = turn_key("prefill", request).hex()
    prompt = 6_000 * index
    late = previous is not None and at - (previous.ended_ns or at) > HOLD_TTL
    reason = "first_turn" if previous is None else "declined_expired" if late else "none"
    if previous is not None and not late and rng.random() < 0.18:
        reason = rng.choice(_REASONS)
    fetched = 6_000 * (index - 1) if reason == "none" else 0
    again = 0 if reason in ("none", "first_turn") else 6_000 * (index - 1)
    fetch_ns = 18 * MS + fetched * 5_000 + rng.randrange(60) * MS if fetched else None
    spared = fetched * 14_000
    failed = reason == "transfer_failed" and rng.random() < 0.4
    suspect = fetched > 0 and rng.random() < 0.02
    ttft = 60 * MS + (prompt - fetched) * 14_000 + (fetch_ns or 0)
    duration = ttft + rng.randrange(800, 4_000) * MS
    turn = Turn(
        turn_id=turn_id,
        session_id=session_id,
        session_source="body.conversation_id",
        turn_index=index,
        previous_turn_id=previous.turn_id if previous else None,
        started_ns=at,
        ended_ns=at + duration,
        decode_engine="decode-0",
        path="reverse_fetch" if fetched else "recompute",
        reason=reason,
        status="error" if failed else "ok",
        stage="prefill" if failed else None,
        finish_reason="tool_calls" if asks else "stop",
        tool_calls=1 if asks else 0,
        last_role="user" if index in (1, 4) else "tool",
        suspicions=["kv_mismatch"] if suspect else [],
        mismatch_evidence="digests" if suspect else None,
        suspect_tokens=640 if suspect else None,
        diverged_after=fetched - 640 if suspect else None,
        diverged_before=fetched - 624 if suspect else None,
        diverged_message=2 if suspect else None,
        diverged_role="assistant" if suspect else None,
        diverged_kind="reasoning_stripped" if suspect else None,
        diverged_chars_before=2_310 if suspect else None,
        diverged_chars=412 if suspect else None,
        diverged_evidence="digests" if suspect else None,
        continuity_evidence="first_turn" if previous is None else "digests",
        prompt_tokens=prompt,
        local_hit_tokens=0,
        fetched_tokens=fetched,
        external_tokens=0,
        computed_tokens=prompt - fetched,
        recomputed_tokens=again,
        new_tokens=prompt - fetched - again,
        output_tokens=180,
        fetched_bytes=fetched * BYTES_PER_TOKEN if fetched else None,
        fetch_ns=fetch_ns,
        fetch_reads=1 if fetched else None,
        net_gain_ns=spared - (fetch_ns or 0) if fetched else None,
        net_gain_low_ns=spared * 8 // 10 - (fetch_ns or 0) if fetched else None,
        net_gain_high_ns=spared * 12 // 10 - (fetch_ns or 0) if fetched else None,
        recompute_ns=again * 14_000 if again else None,
        recompute_low_ns=again * 11_000 if again else None,
        recompute_high_ns=again * 17_000 if again else None,
        refetch_ns=18 * MS + again * 5_000 if again else None,
        refetch_low_ns=18 * MS if again else None,
        refetch_high_ns=60 * MS + again * 5_000 if again else None,
        refetch_basis="measured" if again else None,
        wasted_bytes=again * BYTES_PER_TOKEN if failed else None,
        prefill_ns=ttft - 20 * MS,
        ttft_ns=ttft,
        duration_ns=duration,
        streamed=True,
        used_hold_id=previous.left_hold_id if previous and fetched else None,
        left_hold_id=f"{int(turn_id, 16) ^ 1:032x}",
        has_prefill=True,
        has_decode=True,
        has_attempt=True,
    )
    return turn, HoldRecord(
        hold_id=turn.left_hold_id or "",
        kind="hold",
        engine="decode-0",
        engine_id="decode-a",
        generation="1f",
        request_id=request,
        session_id=session_id,
        turn_id=turn_id,
        tokens=prompt + 180,
        bytes=(prompt + 180) * BYTES_PER_TOKEN,
        started_ns=at + duration,
        ttl_ns=HOLD_TTL,
        ended_ns=at + duration + HOLD_TTL,
        held_ns=HOLD_TTL,
        outcome="ttl",
    )


def _ends(hold: HoldRecord, then: Turn) -> None:
    """What becomes of a turn's blocks by the next turn: those that it fetches end at its fetch, as do a lost worker's;
    what it does not ask for, or asks for too late, reaches its time limit."""
    if not then.fetched_tokens and then.reason != "holder_lost":
        return
    hold.outcome = "read" if then.fetched_tokens else "holder_lost"
    hold.ended_ns = then.started_ns + (then.fetch_ns or 0)
    hold.held_ns = hold.ended_ns - hold.started_ns


def _span(
    names: str, turn: Turn, tool: str, application: str, version: str, began: int, lasted: int, *, failed: bool
) -> AgentSpan:
    trace, span = turn.turn_id, turn.turn_id[:16]
    graded = tool == "run_tests"
    return AgentSpan(
        span_key=f"{trace}-{span}",
        trace_id=trace,
        span_id=span,
        session_id=turn.session_id,
        kind="retrieval" if tool == "web_search" else "tool",
        service_name=f"{names}{application}",
        service_version=version,
        tool_name=f"{names}{tool}",
        started_ns=began,
        ended_ns=began + lasted,
        status="error" if failed else "ok",
        error_type=f"{names}TimeoutError" if failed else None,
        evaluation_name=f"{names}tests_pass" if graded else None,
        evaluation_label=f"{names}{'fail' if failed else 'pass'}" if graded else None,
        evaluation_score=(0.0 if failed else 1.0) if graded else None,
    )


def processes(names: str = "") -> list[ProcessRecord]:
    """Two prefill engines, a decode engine that fell silent, and a proxy that lost some."""
    newest = START + SESSIONS * 720 * SECOND
    facts: dict[str, dict[str, Any]] = {
        "p0": {"kind": "engine", "role": "prefill", "engine": "prefill-0", "host": "gpu-1", "received": 90_211},
        "p1": {"kind": "engine", "role": "prefill", "engine": "prefill-1", "host": "gpu-1", "received": 88_014},
        "d0": {"kind": "engine", "role": "decode", "engine": "decode-0", "host": "gpu-2", "received": 101_450},
        "x0": {"kind": "proxy", "host": "edge-1", "received": 50_301, "missing": 42, "dropped": 11, "errors": 1},
    }
    skews = [Skew(host=f"{names}gpu-2", skew_ns=-3_400_000, error_ns=600_000)]
    return [
        ProcessRecord(
            process_id=f"{name:0>16}",
            revision=newest,
            started_ns=START - 60 * SECOND,
            ended_ns=newest - (3_600 * SECOND if name == "d0" else 0),
            version="0.1.0",
            model=None if fact["kind"] == "proxy" else f"{names}qwen3-32b",
            vllm_version=None if fact["kind"] == "proxy" else "0.32.0",
            connector=None if fact["kind"] == "proxy" else "NixlConnector",
            clock_offset_ns=850_000,
            skews=skews if name == "p0" else [],
            **{**fact, "host": f"{names}{fact['host']}", "engine": fact.get("engine") and f"{names}{fact['engine']}"},
        )
        for name, fact in facts.items()
    ]


def write(url: str, names: str = "", writer_id: str = "period") -> None:
    """Write a store at ``url`` with all of it, summed up by session."""
    turns, holds, spans = rows(names)
    out = StoreWriter(url, writer_id=writer_id, now=lambda: START + SESSIONS * 720 * SECOND)
    for turn in turns:
        out.add_turn(turn)
    for hold in holds:
        out.add_hold(hold)
    for span in spans:
        out.add_span(span)
    for process in processes(names):
        out.add_process(process)
    for session_id in {turn.session_id or "": None for turn in turns}:
        told = summarise(
            session_id,
            [t for t in turns if t.session_id == session_id],
            [s for s in spans if s.session_id == session_id],
        )
        if told is not None:
            out.add_session(told.summary)
    out.close()


if __name__ == "__main__":
    write(sys.argv[1])
