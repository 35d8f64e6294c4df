"""Alerts around what runbooks say that stops the harm."""

from __future__ import annotations

from live.remedies import Calmed, judge

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
