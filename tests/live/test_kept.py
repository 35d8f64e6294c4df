"""What is judged of the blocks that D kept: by what the client did next."""

from __future__ import annotations

from typing import Any

import pytest

from live.driver import TurnTruth
from live.kept import judge
from tests.live.test_verdict import row, truth

TO_THE_END = {"uncached"}


def told(outcome: str | None, act: str, *users: dict[str, Any], waited_for: set[str] | None = None) -> list[str]:
    """Of turn 1, which left a hold that ended with ``outcome``; ``users``: turns that were given it, the first one
    after ``act``."""
    done: list[TurnTruth] = [truth(1)]
    rows = [row(1, hold_outcome=outcome)]
    for number, fields in enumerate(users, 2):
        failed = fields.get("status") == "error"
        done.append(truth(number, act=act if number == 2 else "none", outcome="error" if failed else "ok"))
        rows.append(row(number, used_hold_id="h1", hold_outcome="ttl", left_hold_id=None if failed else "x", **fields))
    return judge(done, rows, TO_THE_END if waited_for is None else waited_for)


FETCH: dict[str, Any] = {"path": "reverse_fetch", "reason": "none"}
LITTLE = {"path": "local_hit", "reason": "below_threshold"}
DECLINED = {"path": "unknown", "reason": "declined_expired", "status": "error"}
LOST = {"path": "unknown", "reason": "holder_lost", "status": "error"}


@pytest.mark.parametrize(
    ("outcome", "act", "users"),
    [
        ("read", "none", [FETCH]),
        ("read", "give_again", [FETCH, FETCH]),
        ("notified", "none", [LITTLE]),
        ("ttl", "wait_past_ttl", [DECLINED]),
        ("ttl", "none", [DECLINED]),
        ("ttl", "late_without_expiry", [FETCH]),
        ("holder_lost", "none", [LOST]),
        ("ttl", "none", []),
    ],
)
def test_a_hold_ends_as_what_the_client_did_next_says(outcome: str, act: str, users: list[dict[str, Any]]) -> None:
    assert told(outcome, act, *users) == []
    for other in {"read", "notified", "ttl", "holder_lost", None} - {outcome}:
        assert told(other, act, *users) == [f"uncached plain turn 1: its hold ended as {other}, expected {outcome}"]


def test_a_hold_that_nobody_waited_for_is_still_held() -> None:
    assert told(None, "none", waited_for=set()) == []
    assert told("ttl", "none", waited_for=set()) != []


def test_only_a_turn_that_was_answered_leaves_a_hold() -> None:
    assert judge([truth(1, outcome="left")], [row(1, left_hold_id=None)], TO_THE_END) == []
    assert judge([truth(1, outcome="left")], [row(1)], TO_THE_END) == [
        "uncached plain turn 1: the client saw left, and the hold it left is h1"
    ]
    assert judge([truth(1)], [row(1, left_hold_id=None)], TO_THE_END) == [
        "uncached plain turn 1: the client saw ok, and the hold it left is None"
    ]


def test_what_a_decode_engine_held_when_it_ended_is_lost() -> None:
    before, after = [("uncached", 1)], [("uncached", 1 << 62)]
    for lost, outcome in ((before, None), ([("cached", 1 << 62)], None), (after, "holder_lost")):
        assert judge([truth(1)], [row(1, hold_outcome=outcome)], set(), lost) == []
        assert judge([truth(1)], [row(1, hold_outcome="read")], set(), lost) == [
            f"uncached plain turn 1: its hold ended as read, expected {outcome}"
        ]


def test_a_handle_that_a_given_up_attempt_had_was_not_read() -> None:
    done, given_up = [truth(1), truth(2)], {"used_hold_id": "h1", "reason": "handle_consumed_by_retry"}
    rows = [row(1, hold_outcome="holder_lost"), row(2, path="recompute", hold_outcome=None, **given_up)]
    assert judge(done, rows, set(), [("uncached", 1 << 62)]) != [], "the second turn's hold is lost as well"
    rows[1]["hold_outcome"] = "holder_lost"
    assert judge(done, rows, set(), [("uncached", 1 << 62)]) == []


def test_a_decode_engine_with_the_feature_off_holds_nothing() -> None:
    assert judge([truth(1, holds=False)], [row(1, left_hold_id=None)], set()) == []
    assert judge([truth(1, holds=False)], [row(1)], set()) == [
        "uncached plain turn 1: the client saw ok, and the hold it left is h1"
    ]
