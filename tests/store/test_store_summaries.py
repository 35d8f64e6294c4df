"""Sessions' summaries in the store: as new as their rows, whatever comes late, moves away, or was there before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, span, turn
from turnscope.model import SessionSummary
from turnscope.semconv import Part
from turnscope.store import StoreReader, SummarisingWriter
from turnscope.store.session_queries import SummaryFilter, SummarySort


def writer(url: Path, clock: Clock) -> SummarisingWriter:
    return SummarisingWriter(str(url), writer_id="w1", now=clock, clock_s=lambda: clock.ns / SECOND)


def summaries(url: Path, where: SummaryFilter | None = None, **order: Any) -> list[SessionSummary]:
    reader = StoreReader(str(url))
    found, total = reader.summaries(where or SummaryFilter(), **order)
    reader.close()
    assert total == len(found)
    return found


def settle(store: SummarisingWriter, clock: Clock) -> None:
    """A minute goes by: what was added is flushed, summed up, and flushed again."""
    for _ in range(2):
        clock.forward(61 * SECOND)
        store.maintain()


def test_sessions_of_turns_alone_and_of_spans_alone_both_have_a_summary(tmp_path: Path) -> None:
    clock = Clock()
    store = writer(tmp_path, clock)
    store.add_turn(turn(1, session_id="turns"))
    store.add_span(span(1, session_id="spans", kind="tool"))
    settle(store, clock)
    found = {s.session_id: s for s in summaries(tmp_path)}
    assert found.keys() == {"turns", "spans"}
    assert found["spans"].tool_wait_ns == found["spans"].wall_ns == SECOND
    assert (found["turns"].turns, found["spans"].spans) == (1, 1)
    store.close()


def test_a_late_span_makes_its_sessions_summary_anew(tmp_path: Path) -> None:
    clock = Clock()
    store = writer(tmp_path, clock)
    store.add_turn(turn(1))
    settle(store, clock)
    store.add_span(span(5, kind="tool"))
    settle(store, clock)
    (found,) = summaries(tmp_path)
    assert (found.turns, found.spans, found.wall_ns) == (1, 1, 5 * SECOND)
    store.close()


def test_a_turn_that_moves_to_another_session_makes_both_anew_and_an_empty_one_disappears(tmp_path: Path) -> None:
    clock = Clock()
    store = writer(tmp_path, clock)
    store.add_turn(turn(1, session_id="before"))
    settle(store, clock)
    store.add_turn(turn(1, session_id="after", revision=2))
    settle(store, clock)
    assert [s.session_id for s in summaries(tmp_path)] == ["after"]
    store.close()


def test_what_a_stopped_sidecar_did_not_sum_up_is_made_up_for_at_the_next_start(tmp_path: Path) -> None:
    fill(tmp_path, turn(1), turn(2), span(1, session_id="other"))
    clock = Clock(NOON + HOUR)
    writer(tmp_path, clock).close()
    assert {s.session_id: (s.turns, s.spans) for s in summaries(tmp_path)} == {"s1": (2, 0), "other": (0, 1)}
    fill(tmp_path, turn(3))
    writer(tmp_path, clock).close()
    assert {s.session_id: s.turns for s in summaries(tmp_path)} == {"s1": 3, "other": 0}


def test_turns_without_a_session_id_make_no_summary(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, session_id=None), turn(2, session_id=""))
    writer(tmp_path, Clock()).close()
    assert summaries(tmp_path) == []


def test_compaction_keeps_the_newest_summary(tmp_path: Path) -> None:
    clock = Clock()
    store = writer(tmp_path, clock)
    for number in (1, 2, 3):
        store.add_turn(turn(number))
        settle(store, clock)
    clock.forward(2 * HOUR)
    for _ in range(5):
        store.maintain()
    (found,) = summaries(tmp_path)
    assert found.turns == 3
    reader = StoreReader(str(tmp_path))
    assert len(reader.known(["s1"])["s1"][0]) == 3
    reader.close()
    store.close()


def test_no_reader_is_open_while_nothing_is_to_be_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_now: set[StoreReader] = set()

    class Watched(StoreReader):
        def __init__(self, url: str, **options: Any) -> None:
            super().__init__(url, **options)
            open_now.add(self)

        def close(self) -> None:
            super().close()
            open_now.discard(self)

    monkeypatch.setattr("turnscope.store.summaries.StoreReader", Watched)
    clock = Clock()
    store = writer(tmp_path, clock)
    for number in (1, 2):
        store.add_turn(turn(number))
        settle(store, clock)
        assert store.due == 0
        assert not open_now
    assert summaries(tmp_path)[0].turns == 2
    store.close()


def test_a_round_is_bounded_and_the_next_goes_on(tmp_path: Path) -> None:
    fill(tmp_path, *(turn(n, session_id=f"s{n:02d}") for n in range(1, 121)))
    ticks = iter(range(10_000))
    store = SummarisingWriter(str(tmp_path), writer_id="w1", now=Clock(), clock_s=lambda: 0.3 * next(ticks))
    for _ in range(10):
        store.maintain()
        if store.due:
            break
    assert 0 < store.due < 120
    while store.due:
        store.maintain()
    store.close()
    assert len(summaries(tmp_path, limit=500)) == 120


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Sessions that mostly wait for a tool, for a model, and for nothing known."""
    fill(
        tmp_path,
        span(1, session_id="tool", kind="tool", service_name="shop", service_version="2", agent_name="buyer"),
        span(3, session_id="model", kind="model_call", time_to_first_token_ns=SECOND // 2, model="m1"),
        span(5, session_id="dark", kind="model_call", ended_ns=NOON + 9 * SECOND),
    )
    writer(tmp_path, Clock()).close()
    return tmp_path


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({}, ["dark", "model", "tool"]),
        ({"text": "OO"}, ["tool"]),
        ({"application": "Shop"}, ["tool"]),
        ({"agent": "buyer"}, ["tool"]),
        ({"model": "m1"}, ["model"]),
        ({"part": Part.TOOL_WAIT, "share": 0.5}, ["tool"]),
        ({"part": Part.GENERATION, "share": 0.6}, []),
        ({"part": Part.GENERATION}, ["model"]),
        ({"outcome": "completed"}, []),
        ({"since_ns": NOON + 5 * SECOND}, ["dark"]),
        ({"until_ns": NOON + 2 * SECOND}, ["tool"]),
    ],
)
def test_sessions_can_be_filtered(three: Path, where: dict[str, Any], found: list[str]) -> None:
    assert [s.session_id for s in summaries(three, SummaryFilter(**where))] == found


@pytest.mark.parametrize("sort", SummarySort)
def test_sessions_can_be_sorted_by_everything_that_is_offered(three: Path, sort: SummarySort) -> None:
    assert len(summaries(three, sort=sort)) == 3
    if sort in (SummarySort.UNKNOWN, SummarySort.UNKNOWN_SHARE):
        assert summaries(three, sort=sort)[0].session_id == "dark"


def test_sums_cover_all_sessions_that_match(three: Path) -> None:
    reader = StoreReader(str(three))
    every = reader.summed()
    tools = reader.summed(SummaryFilter(part=Part.TOOL_WAIT))
    nothing = reader.summed(SummaryFilter(text="no such id"))
    reader.close()
    assert (every.sessions, every.wall_ns) == (3, 6 * SECOND)
    assert every.wall_ns == sum(getattr(every, f"{part}_ns") for part in Part)
    assert (tools.sessions, tools.wall_ns, tools.tool_wait_ns) == (1, SECOND, SECOND)
    assert (nothing.sessions, nothing.wall_ns, nothing.fetched_ns) == (0, 0, None)


def test_latencies_stand_side_by_side_per_turn_and_per_length_of_prompt(tmp_path: Path) -> None:
    told = {"has_attempt": True, "streamed": True, "last_role": "user", "tool_calls": 0}
    rows = [
        turn(1, session_id="a", turn_index=1, prompt_tokens=1500, ttft_ns=100, **told),
        turn(2, session_id="a", turn_index=2, prompt_tokens=3000, ttft_ns=300, **told),
        turn(3, session_id="b", turn_index=1, prompt_tokens=2000, ttft_ns=120, status="error", **told),
    ]
    fill(tmp_path, *rows)
    writer(tmp_path, Clock()).close()
    reader = StoreReader(str(tmp_path))
    found = reader.latencies()
    reader.close()
    by_turn = {
        one.turn_index: (one.turns, one.ttft_ns, one.tasks, one.failed_tasks, one.task_latency_ns) for one in found[:2]
    }
    assert by_turn == {1: (2, 100, 2, 1, SECOND), 2: (1, 300, 1, 0, SECOND)}
    assert {one.context_tokens: (one.turns, one.ttft_ns, one.completed_tasks) for one in found[2:]} == {
        1024: (2, 100, 1),
        2048: (1, 300, 1),
    }


def test_fresh_summaries_stand_for_older_ones_that_are_stored(three: Path) -> None:
    reader = StoreReader(str(three))
    stored, _ = reader.summaries(SummaryFilter(text="tool"))
    newer = [msgspec.structs.replace(stored[0], revision=stored[0].revision + 1, turns=7)]
    found, total = reader.summaries(fresh=newer)
    reader.close()
    assert total == 3
    assert {one.session_id: one.turns for one in found}["tool"] == 7


def test_a_turn_that_took_its_callers_session_is_in_that_sessions_summary(tmp_path: Path) -> None:
    clock = Clock()
    store = writer(tmp_path, clock)
    store.add_turn(turn(1, session_id=None))
    settle(store, clock)
    assert summaries(tmp_path) == []
    store.add_turn(turn(1, session_id="s", session_source="span", revision=2))
    settle(store, clock)
    (found,) = summaries(tmp_path)
    assert (found.session_id, found.turns) == ("s", 1)
    store.close()


def test_a_session_that_is_too_large_is_not_taken_apart_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnscope.store.summing.MOST_ROWS", 3)
    fill(tmp_path, *(span(n, kind="tool", session_id="large") for n in range(1, 5)), turn(9, session_id="large"))
    fill(tmp_path, *(span(n, kind="tool", session_id=f"s{n}") for n in range(10, 16)))
    store = writer(tmp_path, Clock(NOON + HOUR))
    store.close()
    found = {s.session_id: s for s in summaries(tmp_path)}
    assert {name: s.too_large for name, s in found.items()} == {
        "large": True,
        **{f"s{n}": False for n in range(10, 16)},
    }
    large = found["large"]
    assert (large.turns, large.spans, large.wall_ns) == (1, 4, large.unknown_ns)
    assert large.wall_ns == large.ended_ns - large.started_ns > 0
    assert all(found[f"s{n}"].tool_wait_ns == SECOND for n in range(10, 16))
    reader = StoreReader(str(tmp_path))
    assert reader.outdated() == []
    reader.close()


def test_no_more_is_read_at_once_than_is_taken_apart_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnscope.store.summing.MOST_ROWS", 3)
    fill(tmp_path, *(span(n, kind="tool", session_id=f"s{n // 2}") for n in range(2, 12)))
    read: list[int] = []
    known = StoreReader.known

    def counting(self: StoreReader, ids: list[str]) -> Any:
        found = known(self, ids)
        read.append(sum(len(spans) for _, spans in found.values()))
        return found

    monkeypatch.setattr(StoreReader, "known", counting)
    writer(tmp_path, Clock(NOON + HOUR)).close()
    assert max(read) <= 3
    assert [s.spans for s in summaries(tmp_path)] == [2] * 5
