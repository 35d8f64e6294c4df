"""The counters, and what scrapers are shown of them."""

from __future__ import annotations

import pytest

from turnscope.catalog import Kind, Label, Metric
from turnscope.model import Contribution, Sample
from turnscope.outputs.metrics import MetricState, Point

TURNS = Metric(name="turnscope_x_total", kind=Kind.COUNTER, unit="x", help="X.", labels=(Label("path"),))
TIMES = Metric(name="turnscope_y_seconds", kind=Kind.HISTOGRAM, unit="seconds", help="Y.", buckets=(0.1, 1.0))
HELD = Metric(name="turnscope_z", kind=Kind.GAUGE, unit="x", help="Z.", labels=(Label("engine"),))
READS = Metric(
    name="turnscope_r_total", kind=Kind.COUNTER, unit="x", help="R.", labels=(Label("direction", ("here", "there")),)
)
METRICS = {m.name: m for m in (TURNS, TIMES, HELD, READS)}


class Clock:
    """Seconds, set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(state: MetricState, scraper: str | None, metric: Metric = TURNS) -> dict[tuple[str, ...], float]:
    points = next(points for m, points in state.points(scraper) if m == metric)
    return {p.labels: p.value for p in points}


@pytest.fixture
def clock() -> Clock:
    """The clock that ``state`` runs by."""
    return Clock()


@pytest.fixture
def state(clock: Clock) -> MetricState:
    """No series yet."""
    return MetricState(METRICS, now_s=clock)


def test_a_new_series_is_shown_at_0_for_one_scrape(state: MetricState) -> None:
    state.add(TURNS.name, ("mixed",), 3)
    assert shown(state, "prometheus") == {("mixed",): 0}
    assert shown(state, "prometheus") == {("mixed",): 3}
    state.add(TURNS.name, ("mixed",), 1)
    assert shown(state, "prometheus") == {("mixed",): 4}


def test_a_declared_series_that_was_scraped_at_0_is_not_held_back(state: MetricState) -> None:
    state.declare(TURNS.name, [("mixed",)])
    assert shown(state, "prometheus") == {("mixed",): 0}
    state.add(TURNS.name, ("mixed",), 1)
    assert shown(state, "prometheus") == {("mixed",): 1}


def test_whoever_does_not_scrape_is_shown_the_true_value_and_changes_nothing(state: MetricState) -> None:
    state.add(TURNS.name, ("mixed",), 3)
    assert shown(state, None) == {("mixed",): 3}
    assert shown(state, "prometheus") == {("mixed",): 0}


def test_every_regular_scraper_sees_the_0_first(state: MetricState, clock: Clock) -> None:
    for _ in range(2):
        shown(state, "a"), shown(state, "b")
    state.add(TURNS.name, ("mixed",), 3)
    assert shown(state, "a") == {("mixed",): 0}
    clock.now += 15
    assert shown(state, "a") == {("mixed",): 0}
    assert shown(state, "b") == {("mixed",): 0}
    clock.now += 15
    assert shown(state, "a") == {("mixed",): 3}
    assert shown(state, "b") == {("mixed",): 3}


def test_one_who_asked_once_is_not_waited_for(state: MetricState) -> None:
    shown(state, "curl")
    state.add(TURNS.name, ("mixed",), 3)
    assert shown(state, "prometheus") == {("mixed",): 0}
    assert shown(state, "prometheus") == {("mixed",): 3}


def test_a_regular_scraper_that_went_away_is_not_waited_for(state: MetricState, clock: Clock) -> None:
    for _ in range(2):
        shown(state, "gone")
    clock.now += 61
    state.add(TURNS.name, ("mixed",), 3)
    shown(state, "prometheus")
    assert shown(state, "prometheus") == {("mixed",): 3}


def test_nothing_is_held_back_for_more_than_60_seconds(state: MetricState, clock: Clock) -> None:
    state.add(TURNS.name, ("mixed",), 3)
    clock.now += 60
    assert shown(state, "prometheus") == {("mixed",): 3}


def test_a_histogram_is_cumulative_and_its_bounds_are_inclusive(state: MetricState) -> None:
    for value in (0.05, 0.1, 0.2, 5.0):
        state.add(TIMES.name, (), value)
    (point,) = next(points for m, points in state.points() if m == TIMES)
    assert point == Point((), 5.35, (2, 3, 4))


def test_a_histogram_is_held_back_whole(state: MetricState) -> None:
    state.add(TIMES.name, (), 0.2)
    (point,) = next(points for m, points in state.points("prometheus") if m == TIMES)
    assert point == Point((), 0.0, (0, 0, 0))


def test_gauges_of_assembly_are_replaced_and_our_own_stay(state: MetricState) -> None:
    state.gauge(HELD.name, ("own",), 1)
    state.sample([Sample(HELD.name, ("p-0",), 5)])
    state.sample([Sample(HELD.name, ("p-1",), 6)])
    assert shown(state, "prometheus", HELD) == {("own",): 1, ("p-1",): 6}


def test_contributions_add_up(state: MetricState) -> None:
    state.add_all([Contribution(TURNS.name, ("a",), 1), Contribution(TURNS.name, ("b",), 2)] * 2)
    assert shown(state, None) == {("a",): 2, ("b",): 4}
    assert (state.total(TURNS.name), state.total(TURNS.name, "b")) == (6, 4)


def test_contributions_that_cannot_be_are_passed_over_and_told(state: MetricState) -> None:
    refused = state.add_all(
        [
            Contribution(TURNS.name, ("a",), 1),
            Contribution(TURNS.name, ("b",), -1),
            Contribution("nope_total", (), 1),
            Contribution(TURNS.name, ("a",), 1),
        ]
    )
    assert refused == [
        "turnscope_x_total{path=b} would go back, or nowhere, by -1",
        "nope_total is not in the catalogue",
    ]
    assert shown(state, None) == {("a",): 2}


def test_a_value_outside_a_labels_vocabulary_is_refused(state: MetricState) -> None:
    with pytest.raises(ValueError, match="not in the catalogue with direction=sideways"):
        state.add(READS.name, ("sideways",), 1)
    assert shown(state, None, READS) == {}


def test_what_the_catalogue_does_not_know_is_refused(state: MetricState) -> None:
    for metric, labels in (("nope_total", ()), (TURNS.name, ()), (TURNS.name, ("a", "b")), (HELD.name, ("a",))):
        with pytest.raises(ValueError, match=r"catalogue|not a counter"):
            state.add(metric, labels, 1)
    with pytest.raises(ValueError, match="catalogue"):
        state.sample([Sample(HELD.name, (), 1)])
    assert shown(state, None) == {}


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_counter_and_a_histograms_sum_never_go_back(state: MetricState, value: float) -> None:
    state.add(TURNS.name, ("a",), 1)
    with pytest.raises(ValueError, match="would go back"):
        state.add(TIMES.name, (), value)
    assert shown(state, None, TIMES) == {}
    with pytest.raises(ValueError, match="would go back"):
        state.add(TURNS.name, ("a",), value)
    assert shown(state, None) == {("a",): 1}


def test_an_observation_can_name_the_trace_of_its_turn(state: MetricState) -> None:
    for value, trace in ((0.05, "aa"), (0.07, "bb"), (5.0, "cc")):
        contributions = [Contribution(TIMES.name, (), value), Contribution(TURNS.name, ("mixed",), 1)]
        state.add_all(contributions)
        state.exemplify(contributions, trace)
    (point,) = next(points for m, points in state.points() if m == TIMES)
    assert dict(point.exemplars) == {0: ("bb", 0.07), 2: ("cc", 5.0)}


def test_a_histogram_that_is_held_back_names_no_trace(state: MetricState) -> None:
    contributions = [Contribution(TIMES.name, (), 0.05)]
    state.add_all(contributions)
    state.exemplify(contributions, "aa")
    (point,) = next(points for m, points in state.points("prometheus") if m == TIMES)
    assert (point.cumulative, point.exemplars) == ((0, 0, 0), ())


def test_what_one_source_samples_leaves_the_gauges_of_another_alone(state: MetricState) -> None:
    state.sample([Sample(HELD.name, ("p",), 1.0)])
    state.sample([Sample(HELD.name, ("d",), 2.0)], "engine d")
    state.sample([])
    assert shown(state, None, HELD) == {("d",): 2.0}
