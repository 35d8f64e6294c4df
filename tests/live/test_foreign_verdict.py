"""What is judged of turns that no proxy's hook saw: that they came out, and that nothing was made up."""

from __future__ import annotations

from typing import Any

import pytest

from live.conversations import Tells
from live.driver import TurnTruth
from live.foreign import UNKNOWN, judge
from live.fronts import Front
from live.verdict import Verdict
from tests.live.test_verdict import row, truth

PLAIN: dict[str, Any] = {"path": "recompute", "reason": "unknown", "fetched_tokens": 0, "computed_tokens": 1000}


def done(turn: int, front: Front, tells: Tells, **fields: Any) -> TurnTruth:
    given = {"reasons": UNKNOWN, "answer_id": f"chatcmpl-{turn}", **fields}
    return truth(turn, front=front, tells=tells, **given)


def stored(turn: int, **fields: Any) -> dict[str, Any]:
    ours = {"turn_id": f"t{turn}", "decode_request_id": f"chatcmpl-{turn}-ab", "output_tokens": 48, "session_id": None}
    return row(turn, caller_trace_id=None, has_prefill=True, has_decode=True, **{**ours, **fields})


def problems(turns: list[TurnTruth], rows: list[dict[str, Any]]) -> list[str]:
    verdict = Verdict()
    judge(turns, rows, verdict)
    return verdict.problems


def test_a_turn_behind_the_router_belongs_to_no_session() -> None:
    turns = [done(1, Front.ROUTER, Tells.HEADER)]
    assert problems(turns, [stored(1, **PLAIN)]) == []
    (said,) = problems(turns, [stored(1, **PLAIN, turn_index=1)])
    assert said == "uncached router plain turn 1: turn_index is 1, expected None"


@pytest.mark.parametrize(("front", "tells"), [(Front.ROUTER, Tells.BODY), (Front.BARE, Tells.HEADER)])
def test_a_session_that_engines_heard_of_is_named_and_its_turns_are_in_order(front: Front, tells: Tells) -> None:
    turns = [done(1, front, tells, reasons=("first_turn",)), done(2, front, tells)]
    session: dict[str, Any] = {"session_id": "s", "session_source": "engine"}
    first = stored(1, **{**PLAIN, "reason": "first_turn"}, **session, turn_index=1)
    second = stored(2, **PLAIN, **session, turn_index=2, previous_turn_id="t1")
    assert problems(turns, [first, second]) == []
    assert problems(turns, [first, {**second, "previous_turn_id": None}])
    assert problems(turns, [first, {**second, "session_id": None}])


def test_handles_chain_turns_of_a_session_that_nobody_named() -> None:
    turns = [done(1, Front.BARE, Tells.PROXY), done(2, Front.BARE, Tells.PROXY, reasons=("none",))]
    session: dict[str, Any] = {"session_id": "chain", "session_source": "chained"}
    first = stored(1, **PLAIN, **session, turn_index=1)
    second = stored(2, **session, turn_index=2, previous_turn_id="t1")
    assert problems(turns, [first, second]) == []
    assert problems(turns, [first, {**second, "session_id": "another"}])
    (said,) = problems(turns[:1], [{**first, "session_id": "s"}])
    assert "engines never heard a name" in said


@pytest.mark.parametrize(
    "made_up",
    [
        {"ttft_ns": 5},
        {"ttft_queue_ns": 0},
        {"duration_ns": 5},
        {"streamed": True},
        {"tool_calls": 0},
        {"caller_trace_id": "c"},
        {"reason": "first_turn"},
        {"join": "inferred"},
        {"has_attempt": True},
        {"suspicions": ["stale_handle"]},
        {"output_tokens": 47},
        {"fetched_tokens": 1},
    ],
)
def test_what_engines_cannot_know_or_did_not_do_is_a_problem(made_up: dict[str, Any]) -> None:
    turns = [done(1, Front.ROUTER, Tells.HEADER)]
    assert problems(turns, [{**stored(1, **PLAIN), **made_up}])


def test_a_turn_that_did_not_come_out_or_came_out_twice_is_a_problem() -> None:
    turns = [done(1, Front.ROUTER, Tells.HEADER)]
    assert problems(turns, []) == ["uncached router plain turn 1: 0 turns in the store, not one"]
    assert problems(turns, [stored(1, **PLAIN)] * 2) == ["uncached router plain turn 1: 2 turns in the store, not one"]
