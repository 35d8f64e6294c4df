"""Alerts around what runbooks say that stops the harm."""

from __future__ import annotations

import pytest

from live.remedies import BELOW_THRESHOLD, FEATURE_OFF, GIVES_UP_S, Calmed, judge, judge_unseen
from tests.live.test_verdict import SECOND, row, truth

TRIED = Calmed(("TurnscopeKvMismatch",), "troubled", since_s=1000.0, begin_s=1100.5, end_s=1150.0)


class Shows:
    """In which what is asked at some times has a series."""

    def __init__(self, *fires_at: float) -> None:
        self.fires_at = fires_at
        self.asked: list[str] = []

    def __call__(self, expression: str, at_s: float) -> list[object]:
        self.asked.append(expression)
        return [object()] if at_s in self.fires_at else []


def test_an_alert_that_fired_before_and_is_quiet_with_its_remedy_is_right() -> None:
    prometheus = Shows(1100.5)
    assert list(judge([TRIED], prometheus)) == []
    before, after = prometheus.asked
    # The alert's own expression, over just the time before and the time since.
    assert before == 'increase(turnscope_suspicions_total{kind="kv_mismatch"}[102s]) > 0'
    assert after == before.replace("102s", "51s")


def test_an_alert_that_had_not_fired_shows_nothing_of_its_remedy() -> None:
    assert list(judge([TRIED], Shows())) == ["troubled, TurnscopeKvMismatch: had not fired before its remedy"]


def test_an_alert_that_goes_on_is_told() -> None:
    (said,) = judge([TRIED], Shows(1100.5, 1150.0))
    assert said == "troubled, TurnscopeKvMismatch: fires in spite of its remedy"


@pytest.mark.parametrize("name", [BELOW_THRESHOLD, FEATURE_OFF])
def test_of_an_alert_with_several_causes_one_is_asked(name: str) -> None:
    prometheus = Shows(1100.5)
    assert list(judge([Calmed((name,), "restarted", 1000.0, 1100.5, 1150.0)], prometheus)) == []
    (expression,) = {asked.replace("102s", "").replace("51s", "") for asked in prometheus.asked}
    assert ("below_threshold" in expression) == (name == BELOW_THRESHOLD)
    assert ("bidirectional" in expression) == (name == FEATURE_OFF)


@pytest.mark.parametrize(
    ("reason", "seconds", "outcome", "stored", "said"),
    [
        ("first_turn", 0.5, "ok", False, None),
        ("handle_consumed_by_retry", GIVES_UP_S + 0.5, "ok", False, None),
        ("handle_consumed_by_retry", 0.5, "ok", False, "ok after 0.5 s"),
        ("first_turn", GIVES_UP_S + 0.5, "ok", False, "ok after 3.5 s"),
        ("first_turn", 0.5, "error", False, "error after 0.5 s"),
        ("first_turn", 0.5, "ok", True, "is in the store"),
    ],
)
def test_with_hooks_off_turns_go_on_as_before_and_are_not_told(
    reason: str, seconds: float, outcome: str, stored: bool, said: str | None
) -> None:
    done = truth(1, reasons=(reason,), total_ns=int(seconds * SECOND), outcome=outcome)
    rows = [row(1 if stored else 2)]
    expected = [] if said is None else [f"uncached, hooks off, plain turn 1: {said}"]
    assert list(judge_unseen([done], rows)) == expected
