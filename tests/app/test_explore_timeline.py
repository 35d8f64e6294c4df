"""The timeline: lanes, bars and an axis, with places worked out by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app import agent_session
from tests.app.agent_session import at, call, ran
from tests.app.told import drawn, numbers, whole
from tests.store.rows import NOON, SECOND, span
from turnscope.model import Segment
from turnscope.semconv import Evidence, Part, SpanKind
from turnscope_app import charts, lanes, timeline, timeline_chart
from turnscope_app.axis import Axis, shortened
from turnscope_app.lanes import Bar
from turnscope_app.timeline import Timeline
from turnscope_app.zoom import View


def places(found: Timeline, lane: str) -> list[tuple[str, float, float]]:
    """(kind, from, to) of a lane's bars, in seconds since noon."""
    bars = [*found.bars, *found.holds]
    return [(b.kind, (b.start_ns - NOON) / SECOND, (b.end_ns - NOON) / SECOND) for b in bars if b.lane == lane]


# --- lanes ----------------------------------------------------------------------------------------
def test_agents_calls_tools_and_kept_memory_have_lanes_of_their_own(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.desk_agent(), "desk-agent"))
    assert found.lanes == [
        "Waited for",
        "Agent desk",
        "Agent researcher",
        "Agent critic",
        "Model calls: desk",
        "Model calls: researcher",
        "Model calls: critic",
        "Tools",
        "Tools (2)",
        "Kept memory",
        "Kept memory (2)",
    ]
    assert places(found, "Model calls: critic") == [("input_processing", 61.0, 61.9), ("generation", 61.9, 64.0)]
    assert not found.merged


def test_two_tools_at_once_are_beside_each_other_and_one_that_follows_is_not(tmp_path: Path) -> None:
    found = drawn(
        whole(
            tmp_path,
            [
                ran(1, SpanKind.TOOL, 0, 4, tool_name="a"),
                ran(2, SpanKind.TOOL, 1, 2, tool_name="b"),
                ran(3, SpanKind.TOOL, 4, 6, tool_name="c"),
            ],
            "desk-agent",
        )
    )
    assert places(found, "Tools") == [("tool_wait", 0, 4), ("tool_wait", 4, 6)]
    assert places(found, "Tools (2)") == [("tool_wait", 1, 2)]


def test_the_first_lane_covers_the_whole_session_once(tmp_path: Path) -> None:
    held = whole(tmp_path, agent_session.desk_agent(), "desk-agent")
    bars = [b for b in drawn(held).bars if b.lane == timeline.WAITED_FOR]
    assert (bars[0].start_ns, bars[-1].end_ns) == (held.summary.started_ns, held.summary.ended_ns)
    assert all(left.end_ns == right.start_ns for left, right in itertools.pairwise(bars))


def test_many_agents_share_a_lane_beyond_the_busiest(tmp_path: Path) -> None:
    rows = [ran(n, SpanKind.AGENT, 10 * n, 10 * n + 1 + n % 7, agent_name=f"agent {n}") for n in range(1, 30)]
    found = drawn(whole(tmp_path, [*rows], "desk-agent"))
    assert "Agent: others" in found.lanes
    assert len(found.lanes) == 8


def test_what_failed_and_whose_it_was_is_said(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.desk_agent(), "desk-agent"))
    said = {bar.what for bar in found.bars}
    assert {"Tool search, failed", "Turn 3: reading the prompt", "Agent critic"} <= said


# --- kept memory ----------------------------------------------------------------------------------
def test_a_hold_says_what_became_of_it_and_until_when_it_might_have_been_kept(tmp_path: Path) -> None:
    rows = [*call(1, 0, 2, 0.5), *call(2, 6, 50, 0.5, kept=("ttl", 30.0)), *call(3, 90, 92, 0.5, kept=None)]
    found = drawn(whole(tmp_path, rows, "desk-agent"))
    kept, lost = found.holds
    assert kept[1:5] == ("read", at(2), at(6), "Left by turn 1: fetched by the next turn after 4.00 s")
    assert (kept.deadline_ns, lost.deadline_ns) == (at(32), at(80))
    assert (lost.kind, lost.end_ns) == ("too_late", at(80))


def test_a_hold_that_outlasts_the_session_is_drawn_a_little_further_and_then_cut(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, call(1, 0, 12, 0.5, kept=("ttl", 30.0)), "desk-agent"))
    (hold,) = found.holds
    assert (hold.start_ns, hold.end_ns) == (at(12), at(13))
    assert found.axis.end_ns == at(13)


def test_a_hold_that_is_still_held_goes_on_to_its_deadline(tmp_path: Path) -> None:
    rows = [*call(1, 0, 2, 0.5, kept=(None, 0)), *call(2, 40, 42, 0.5, kept=None)]
    (hold,) = drawn(whole(tmp_path, rows, "desk-agent")).holds
    assert (hold.kind, hold.start_ns, hold.end_ns) == ("held", at(2), at(32))


# --- too much to draw -----------------------------------------------------------------------------
def test_a_session_of_4000_turns_is_never_more_than_a_thousand_rows(tmp_path: Path) -> None:
    held = whole(tmp_path, agent_session.many(), "long-runner")
    found = drawn(held)
    assert found.merged
    assert len(found.bars) + len(found.holds) <= timeline.MOST
    assert {bar.lane for bar in found.bars} == {"Waited for", "Model calls"}
    assert "Mostly" in found.bars[0].what
    every = numbers(held)
    page = held.turns.slice(1_900, 100)
    one = timeline.build(held, page.to_pylist(), every[1_900:2_000], first=False, last=False)
    assert not one.merged
    assert len(one.bars) + len(one.holds) <= timeline.MOST
    assert (one.axis.start_ns, one.axis.end_ns) == (at(9 * 1_901), at(9 * 2_000 + 4))
    frames = (
        charts.tokens_frame(page, every[1_900:2_000]),
        charts.ttft_frame(page, every[1_900:2_000]),
        charts.context_frame(held.turns, every),
        charts.overview_frame(held, every, 100),
    )
    assert [len(frame) <= 1_000 for frame in frames] == [True] * 4


def test_what_took_most_of_a_stretch_stands_for_it() -> None:
    found = {"l": [Bar("l", kind, 10 * n, 10 * n + ns, "", "measured") for n, (kind, ns) in enumerate(
        [("generation", 3), ("tool_wait", 9), ("generation", 9), ("generation", 9)]
    )]}  # fmt: skip
    bars, merged = lanes.at_most(found, 2, 0, 40)
    assert merged
    assert [(b.kind, b.start_ns, b.end_ns, b.what) for b in bars] == [
        ("tool_wait", 0, 20, "Mostly waiting for tools"),
        ("generation", 20, 40, "Mostly writing the answer"),
    ]


def test_the_overview_of_a_long_session_has_all_of_its_time(tmp_path: Path) -> None:
    held = whole(tmp_path, agent_session.many(250), "long-runner")
    frame = charts.overview_frame(held, numbers(held), 100)
    assert frame["turns"].unique().tolist() == ["1 to 100", "101 to 200", "201 to 250"]
    assert frame["seconds"].sum() == pytest.approx(held.summary.wall_ns / 1e9)
    assert "$schema" in charts.overview(frame).to_dict()


# --- the axis -------------------------------------------------------------------------------------
def _idle(start: int, end: int, part: Part = Part.USER_WAIT) -> Segment:
    return Segment(start * SECOND, end * SECOND, part, evidence=Evidence.INFERRED)


def _busy(start: int, end: int) -> Segment:
    return Segment(start * SECOND, end * SECOND, Part.GENERATION, turn_id="t")


def test_half_a_day_of_waiting_is_drawn_as_an_eighth_of_what_happened() -> None:
    axis = shortened([_busy(0, 4), _idle(4, 43_204), _busy(43_204, 43_208)], 0, 0, 43_208 * SECOND)
    (gap,) = axis.breaks
    assert (gap.drawn_ns, gap.label) == (SECOND, "12 h 00 min")
    assert [axis.place(s * SECOND) for s in (0, 4, 4 + 21_600, 43_204, 43_208)] == [0, 4, 4.5, 5, 9]
    assert axis.length == 9


def test_waits_that_are_shorter_than_what_happened_are_drawn_as_long_as_they_were() -> None:
    axis = shortened([_busy(0, 10), _idle(10, 19), _busy(19, 20)], 0, 0, 20 * SECOND)
    assert axis.breaks == ()
    assert axis.length == 20


def test_a_long_tool_is_never_shortened() -> None:
    tool = Segment(SECOND, 4_000 * SECOND, Part.TOOL_WAIT, span_key="x")
    assert shortened([_busy(0, 1), tool], 0, 0, 4_000 * SECOND).breaks == ()


def test_a_session_that_only_waits_is_drawn_as_it_is() -> None:
    assert shortened([_idle(0, 100)], 0, 0, 100 * SECOND).length == 100


@given(st.lists(st.tuples(st.integers(1, 10**14), st.booleans()), min_size=1, max_size=40), st.data())
def test_what_comes_later_is_never_drawn_before(stretches: list[tuple[int, bool]], data: st.DataObject) -> None:
    segments, now = [], 0
    for ns, idle in stretches:
        part = Part.USER_WAIT if idle else Part.GENERATION
        segments.append(Segment(now, now + ns, part, turn_id=None if idle else "t"))
        now += ns
    axis = shortened(segments, 0, 0, now)
    first, second = sorted(data.draw(st.tuples(st.integers(0, now), st.integers(0, now))))
    assert 0 <= axis.place(first) <= axis.place(second) <= axis.length + 1e-9
    assert axis.length <= now / 1e9 + 1e-9


# --- the chart ------------------------------------------------------------------------------------
def test_the_chart_has_a_row_for_each_bar_in_places_of_the_drawing(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.idle(), "over-night"))
    frame = timeline_chart.frame(found, found.bars)
    assert len(frame) == len(found.bars)
    reading = frame[(frame["turn"] == 2) & (frame["lane"] == "Model calls")].iloc[0]
    assert reading["what"] == "Turn 2: reading the prompt"
    assert (reading["lasted"], reading["begins"]) == ("1.20 s", "after 12 h 00 min")
    assert reading["end"] - reading["start"] == pytest.approx(1.2)
    assert found.axis.length < 20


def test_a_chart_zooms_with_shift_and_the_wheel_and_says_so(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.desk_agent(), "desk-agent"))
    spec = timeline_chart.chart(found).to_dict()
    (zoom,) = [p for p in spec["params"] if p["name"] == "session_zoom"]
    assert (zoom["bind"], zoom["select"]["encodings"], zoom["select"]["zoom"]) == (
        "scales",
        ["x"],
        "wheel![event.shiftKey]",
    )
    assert "Shift and the wheel zoom" in timeline_chart.reading(found)
    assert "time limit" in timeline_chart.reading(found)


def test_labels_behind_a_shortened_wait_tell_the_true_time(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.idle(), "over-night"))
    spec: Any = timeline_chart.chart(found).to_dict()
    bars = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "bar")
    label = bars["encoding"]["x"]["axis"]["labelExpr"]
    (gap,) = found.axis.breaks
    shift = (gap.end_ns - gap.start_ns - gap.drawn_ns) / 1e9
    assert f"datum.value >= {found.axis.place(gap.end_ns)} ? floor((datum.value + {shift}) / 3600)" in label
    assert bars["encoding"]["x"]["title"].endswith("(h:mm:ss)")
    assert "drawn shorter" in timeline_chart.reading(found)


def test_a_session_without_any_length_has_a_chart_all_the_same(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, [span(1, kind="tool", ended_ns=None)], "s1"))
    assert isinstance(found.axis, Axis)
    assert "$schema" in timeline_chart.chart(found).to_dict()


def test_the_nearer_it_is_looked_at_the_more_turns_have_their_number(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.many(100), "long-runner"))
    wide: Any = timeline_chart.chart(found).to_dict()
    near: Any = timeline_chart.chart(found, View(0.5, 0.51)).to_dict()

    def numbered(spec: Any) -> int:
        texts = [
            layer["data"]["name"] for layer in spec["layer"] if layer["mark"]["type"] == "text" and "data" in layer
        ]
        return sum(len(spec["datasets"][name]) for name in texts)

    assert numbered(near) > numbered(wide)
    assert near["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == pytest.approx(found.axis.length / 2)
