"""Sessions are counted once each, when they have come to rest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, span, turn
from turnscope.model import Contribution
from turnscope.store import StoreReader, SummarisingWriter
from turnscope.store.resting import Resting

REST_S = 1800


class Metrics:
    """What was added, by metric and labels."""

    def __init__(self) -> None:
        self.added: Counter[tuple[str, ...]] = Counter()

    def add(self, contributions: list[Contribution]) -> None:
        for one in contributions:
            self.added[one.metric, *one.labels] += one.value

    @property
    def sessions(self) -> float:
        return self.added["turnscope_sessions_total",]

    @property
    def seconds(self) -> float:
        return sum(value for key, value in self.added.items() if key[0] == "turnscope_session_seconds_total")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def writer(url: Path, clock: Clock, metrics: Metrics, writer_id: str = "w1") -> SummarisingWriter:
    return SummarisingWriter(
        str(url),
        writer_id=writer_id,
        now=clock,
        count=metrics.add,
        rest_s=REST_S,
        clock_s=lambda: clock.ns / SECOND,
    )


def after(store: SummarisingWriter, clock: Clock, seconds: float) -> None:
    """So much time goes by, looked at every minute as the sidecar does more often."""
    for _ in range(int(seconds // 61) + 1):
        clock.forward(61 * SECOND)
        store.maintain()


def test_a_session_is_counted_once_when_it_has_come_to_rest(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool"))
    after(store, clock, REST_S - 180)
    assert not metrics.added
    after(store, clock, 600)
    assert metrics.added == {
        ("turnscope_sessions_total",): 1,
        ("turnscope_session_seconds_total", "tool_wait", "measured"): 1,
    }
    after(store, clock, 2 * REST_S)
    store.close()
    assert (metrics.sessions, metrics.seconds) == (1, 1)


def test_whatever_comes_meanwhile_puts_it_off(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    for number in range(5):
        store.add_span(span(1 + 2 * number, kind="tool"))
        after(store, clock, REST_S / 2)
    assert not metrics.added
    after(store, clock, REST_S)
    assert (metrics.sessions, metrics.seconds) == (1, 9)
    store.close()


def test_one_that_goes_on_later_adds_only_what_is_new(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool"))
    after(store, clock, 2 * REST_S)
    store.add_span(span(7, kind="tool"))
    after(store, clock, 2 * REST_S)
    store.close()
    assert (metrics.sessions, metrics.seconds) == (1, 7)


def test_late_facts_of_what_was_counted_add_nothing(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool"))
    store.add_span(span(7, kind="tool"))
    after(store, clock, 2 * REST_S)
    counted = dict(metrics.added)
    store.add_span(span(3, kind="model_call", time_to_first_token_ns=SECOND // 2))
    after(store, clock, 2 * REST_S)
    store.close()
    assert metrics.added == counted


def test_a_restart_neither_loses_nor_repeats_a_session(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool"))
    after(store, clock, 120)
    store.close()
    store = writer(tmp_path, clock, metrics)
    after(store, clock, 2 * REST_S)
    assert (metrics.sessions, metrics.seconds) == (1, 1)
    store.close()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool"))  # as a replayed journal does
    after(store, clock, 2 * REST_S)
    store.close()
    assert (metrics.sessions, metrics.seconds) == (1, 1)


def test_what_another_sidecar_on_the_same_store_counted_is_not_counted_again(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool"))
    after(store, clock, 2 * REST_S)
    other = writer(tmp_path, clock, metrics, "w2")
    other.add_turn(turn(1))
    after(other, clock, 2 * REST_S)
    other.close()
    store.close()
    assert (metrics.sessions, metrics.seconds) == (1, 1)


def test_imported_sessions_are_summed_up_and_never_counted(tmp_path: Path, metrics: Metrics) -> None:
    fill(tmp_path, span(1, kind="tool"))
    clock = Clock(NOON + HOUR)
    for _ in range(2):
        store = writer(tmp_path, clock, metrics)
        after(store, clock, 2 * REST_S)
        store.close()
    assert not metrics.added
    reader = StoreReader(str(tmp_path))
    assert [s.counted_until_ns for s in reader.summaries()[0]] == [None]
    reader.close()


def test_a_session_that_everything_left_is_not_counted(tmp_path: Path, metrics: Metrics) -> None:
    clock = Clock()
    store = writer(tmp_path, clock, metrics)
    store.add_span(span(1, kind="tool", session_id="before"))
    after(store, clock, 120)
    store.add_span(span(1, kind="tool", session_id="after", revision=2))
    after(store, clock, 2 * REST_S)
    store.close()
    assert (metrics.sessions, metrics.seconds) == (1, 1)


def test_the_longest_silent_come_to_rest_first() -> None:
    resting = Resting(10)
    resting.heard(["a", "b"], 0)
    resting.heard(["a"], 5)
    assert resting.due(9) == set()
    assert resting.due(10) == {"b"}
    assert resting.due(10) == set()
    assert "a" in resting
    assert "b" not in resting
    assert resting.due(15) == {"a"}
