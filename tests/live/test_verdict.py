"""What is judged of a live run's turns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from live.driver import TurnTruth
from live.verdict import judge
from turnscope.model import Turn

SECOND = 1_000_000_000


def truth(turn: int = 2, at_s: int = 10, **fields: Any) -> TurnTruth:
    defaults: dict[str, Any] = {
        "configuration": "uncached",
        "hold_ttl_s": 30,
        "conversation": "plain",
        "session_id": "s",
        "turn": turn,
        "act": "none",
        "reasons": ("none",),
        "streamed": True,
        "handle_in_stream": True,
        "traceparent": f"00-{turn:032x}-{1:016x}-01",
        "status": 200,
        "outcome": "ok",
        "started_wall_ns": at_s * SECOND,
        "ttft_ns": SECOND,
        "total_ns": 2 * SECOND,
        "prompt_tokens": 1000,
        "output_tokens": 48,
    }
    return TurnTruth(**{**defaults, **fields})


def row(turn: int = 2, **fields: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "turn_id": "t",
        "started_ns": 0,
        "session_id": "s",
        "caller_trace_id": f"{turn:032x}",
        "path": "reverse_fetch",
        "reason": "none",
        "prompt_tokens": 1000,
        "local_hit_tokens": 0,
        "fetched_tokens": 716,
        "external_tokens": 0,
        "computed_tokens": 284,
        "left_hold_id": f"h{turn}",
    }
    hold = {"hold_outcome": fields.pop("hold_outcome", None)}
    return msgspec.structs.asdict(Turn(**{**defaults, **fields})) | hold


def test_a_turn_that_is_as_it_was_done_is_right() -> None:
    verdict = judge([truth()], [row()])
    assert (verdict.problems, verdict.judged, verdict.shown) == ([], 1, {"none"})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"fetched_tokens": 700}, "do not make 1000"),
        ({"fetched_tokens": None}, "tokens unknown"),
        ({"local_hit_tokens": -1, "fetched_tokens": 717}, "token law broken"),
        ({"prompt_tokens": 999, "computed_tokens": 283}, "usage said 1000"),
        ({"recomputed_tokens": 100, "new_tokens": 100}, "do not make 284"),
        ({"path": "recompute", "reason": "below_threshold"}, "expected none"),
        ({"path": "recompute"}, "path recompute with reason none"),
        ({"status": "error"}, "client saw ok"),
        ({"session_id": "other"}, "called it s"),
        ({"suspicions": ["kv_mismatch"]}, "suspected of kv_mismatch"),
        ({"caller_trace_id": None}, "0 turns in the store"),
    ],
)
def test_each_thing_that_is_wrong_is_said(fields: dict[str, Any], problem: str) -> None:
    verdict = judge([truth()], [row(**fields)])
    assert any(problem in said for said in verdict.problems), verdict.problems


def test_one_turn_stored_as_two_is_wrong() -> None:
    assert "2 turns" in judge([truth()], [row(), row()]).problems[0]


@pytest.mark.parametrize(
    ("local", "reason"),
    [(1016, "none"), (1017, "below_threshold"), (1079, "below_threshold"), (1080, "local_hit_covers")],
)
def test_what_prefill_has_itself_may_leave_too_little_to_fetch(local: int, reason: str) -> None:
    fetched = 1080 - local if reason == "none" else 0
    stored = row(
        prompt_tokens=1200,
        local_hit_tokens=local,
        fetched_tokens=fetched,
        computed_tokens=1200 - local - fetched,
        offered_tokens=1080,
        threshold_tokens=64,
        path="mixed" if fetched else "local_hit",
        reason=reason,
    )
    done = truth(prompt_tokens=1200)
    assert judge([done], [stored]).problems == []
    stored["reason"], stored["path"] = ("other", "local_hit")
    assert judge([done], [stored]).problems


def test_on_a_machine_too_slow_for_the_hold_only_tokens_are_judged() -> None:
    turns = [truth(turn=1, at_s=0, reasons=("first_turn",)), truth(turn=2, at_s=26)]
    rows = [row(1, path="recompute", reason="first_turn"), row(2, path="recompute", reason="declined_expired")]
    verdict = judge(turns, rows)
    assert (verdict.problems, verdict.judged, verdict.too_slow) == ([], 1, 1)
    in_time = judge([turns[0], truth(turn=2, at_s=20)], rows)
    assert in_time.problems == ["uncached plain turn 2: reason declined_expired, expected none (path recompute)"]


def test_what_must_be_suspected_and_is_not_is_a_problem_and_so_is_the_opposite() -> None:
    wrong = truth(suspicions=("kv_mismatch",), perhaps=("stale_handle",))
    assert judge([wrong], [row(suspicions=["kv_mismatch"])]).problems == []
    assert judge([wrong], [row(suspicions=["kv_mismatch", "stale_handle"])]).problems == []
    (missed,) = judge([wrong], [row()]).problems
    assert "not suspected of kv_mismatch" in missed
    (too_much,) = judge([truth()], [row(suspicions=["kv_mismatch"])]).problems
    assert "suspected of kv_mismatch, and that was not wrong" in too_much


def test_a_turn_that_was_never_answered_is_found_by_its_session_and_must_be_stuck() -> None:
    lost = truth(outcome="unanswered", reasons=("stuck",), prompt_tokens=None)
    fields: dict[str, Any] = {"caller_trace_id": None, "path": "unknown", "reason": "stuck", "status": "stuck"}
    tokens = dict.fromkeys(("local_hit_tokens", "fetched_tokens", "external_tokens", "computed_tokens"))
    assert judge([lost], [row(**fields, **tokens)]).problems == []
    assert judge([lost], [row(**{**fields, "status": "ok"}, **tokens)]).problems
    assert judge([lost], [row(**{**fields, "session_id": "other"}, **tokens)]).problems
