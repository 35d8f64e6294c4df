"""What a period's pages ask of the store, with figures worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, hold, read_turns, span, turn, writer
from turnscope.model import ProcessRecord, Skew
from turnscope.store import (
    StoreReader,
    process_queries,
    retention_queries,
    reuse_queries,
    suspicion_queries,
    tool_queries,
)
from turnscope.store.scope import Scope
from turnscope.store.summing import fresh

MS = 1_000_000
EVERY = Scope()


@contextmanager
def _reader(url: Path, *rows: Any) -> Iterator[StoreReader]:
    fill(url, *rows)
    reader = StoreReader(str(url))
    try:
        yield reader
    finally:
        reader.close()


def _asked(reader: StoreReader, query: Any, *args: Any) -> list[dict[str, Any]]:
    summed, _ = fresh(reader, NOON, 1_000)
    found: list[dict[str, Any]] = reader.ask(lambda src: query(src, *args), summed).to_pylist()
    return found


def _paged(reader: StoreReader, query: Any, *args: Any, limit: int = 100) -> tuple[list[dict[str, Any]], int]:
    summed, _ = fresh(reader, NOON, 1_000)
    page = reader.page(lambda src: query(src, *args), limit=limit, fresh=summed)
    return page.table.to_pylist(), page.total


# --- reuse --------------------------------------------------------------------------------------------------
def test_turns_are_counted_in_the_step_in_which_they_began(tmp_path: Path) -> None:
    rows = (
        turn(1, path="recompute", reason="first_turn", started_ns=NOON),
        turn(2, path="reverse_fetch", reason="none", started_ns=NOON + HOUR - 1),
        turn(3, path="reverse_fetch", reason="none", started_ns=NOON + HOUR),
    )
    with _reader(tmp_path, *rows) as reader:
        assert _asked(reader, reuse_queries.course, EVERY, HOUR) == [
            {"at_ns": NOON, "path": "recompute", "reason": "first_turn", "turns": 1},
            {"at_ns": NOON, "path": "reverse_fetch", "reason": "none", "turns": 1},
            {"at_ns": NOON + HOUR, "path": "reverse_fetch", "reason": "none", "turns": 1},
        ]


def test_what_was_computed_again_is_ranked_by_reason_model_and_application(tmp_path: Path) -> None:
    late = {"reason": "declined_expired", "model": "small"}
    rows = (
        turn(1, **late, recomputed_tokens=100, recompute_ns=50 * MS, refetch_ns=20 * MS, refetch_basis="measured"),
        turn(2, **late, recomputed_tokens=200, recompute_ns=10 * MS, refetch_ns=20 * MS, refetch_basis="assumed"),
        turn(3, reason="holder_lost", model="big", session_id="s2", recomputed_tokens=400),
        turn(4, reason="none", model="big", session_id="s2", recomputed_tokens=0, recompute_ns=0),
        span(1, kind="tool", service_name="shop", service_version="2"),
    )
    with _reader(tmp_path, *rows) as reader:
        found = _asked(reader, reuse_queries.avoidable, EVERY)
    told = {(r["axis"], r["name"]): (r["turns"], r["tokens"], r["recompute_ns"], r["spared_ns"]) for r in found}
    assert told == {
        ("reason", "holder_lost"): (1, 400, None, None),
        ("reason", "declined_expired"): (2, 300, 60 * MS, 30 * MS),
        ("model", "big"): (1, 400, None, None),
        ("model", "small"): (2, 300, 60 * MS, 30 * MS),
        ("application", None): (1, 400, None, None),
        ("application", "shop 2"): (2, 300, 60 * MS, 30 * MS),
    }
    assert [r["name"] for r in found if r["axis"] == "reason"] == ["holder_lost", "declined_expired"]
    assert {r["assumed_turns"] for r in found if r["name"] == "declined_expired"} == {1}


def test_fetches_that_cost_time_stand_beside_those_that_saved_it(tmp_path: Path) -> None:
    rows = (
        turn(1, fetched_tokens=10, fetched_bytes=1_000, net_gain_ns=5 * MS, net_gain_high_ns=6 * MS),
        turn(2, fetched_tokens=20, fetched_bytes=2_000, net_gain_ns=-3 * MS, net_gain_high_ns=MS),
        turn(3, fetched_tokens=30, fetched_bytes=3_000, net_gain_ns=-4 * MS, net_gain_high_ns=-MS, suspect_tokens=7),
        turn(4, fetched_tokens=0, reason="transfer_failed", wasted_bytes=900),
        turn(5),
    )
    with _reader(tmp_path, *rows) as reader:
        every, *engines = _asked(reader, reuse_queries.balance, EVERY)
        worst, total = _paged(reader, reuse_queries.worst, EVERY)
    assert every["every"] is True
    assert (every["turns"], every["fetches"], every["fetched_tokens"], every["fetched_bytes"]) == (5, 3, 60, 6_000)
    assert (every["judged"], every["gained_fetches"], every["gained_ns"]) == (3, 1, 5 * MS)
    assert (every["lost_fetches"], every["lost_ns"], every["surely_lost"]) == (2, 7 * MS, 1)
    assert (every["failed_reads"], every["wasted_turns"], every["wasted_bytes"]) == (1, 1, 900)
    assert (every["suspect_turns"], every["suspect_tokens"]) == (1, 7)
    assert [engine["prefill_engine"] for engine in engines] == [None]
    assert [row["turn_index"] for row in worst] == [3, 2, 4]
    assert total == 3


def test_what_nobody_measured_is_missing_and_not_zero(tmp_path: Path) -> None:
    with _reader(tmp_path, turn(1), turn(2)) as reader:
        every = _asked(reader, reuse_queries.balance, EVERY)[0]
        assert _asked(reader, reuse_queries.avoidable, EVERY) == []
    assert every["judged"] == 0
    assert {
        every[name]
        for name in ("gained_fetches", "gained_ns", "lost_fetches", "lost_ns", "wasted_bytes", "suspect_tokens")
    } == {None}


@pytest.mark.parametrize(
    ("scope", "turns"),
    [
        (Scope(), 3),
        (Scope(since_ns=NOON + 2 * SECOND), 2),
        (Scope(until_ns=NOON + 2 * SECOND), 1),
        (Scope(model="big"), 1),
        (Scope(application="shop 2"), 2),
        (Scope(application="shop"), 0),
        (Scope(model="none such"), 0),
    ],
)
def test_a_scope_keeps_turns_of_its_period_model_and_application(tmp_path: Path, scope: Scope, turns: int) -> None:
    rows = (
        turn(1),
        turn(2),
        turn(3, session_id="s2", model="big"),
        span(1, kind="tool", service_name="shop", service_version="2"),
    )
    with _reader(tmp_path, *rows) as reader:
        assert _asked(reader, reuse_queries.balance, scope)[0]["turns"] == turns
        assert reader.totals(scope, fresh(reader, NOON, 10)[0]).turns == turns


# --- retention ----------------------------------------------------------------------------------------------
def _kept(number: int, start_s: int, end_s: int, **changes: Any) -> Any:
    """A turn from ``start_s`` to ``end_s`` after noon, answered, that left the hold of its number."""
    values = {"started_ns": NOON + start_s * SECOND, "ended_ns": NOON + end_s * SECOND, "tool_calls": 0}
    return turn(number, **{**values, "left_hold_id": f"{number:032x}", **changes})


def _held(number: int, start_s: int, held_s: int | None, outcome: str | None, **changes: Any) -> Any:
    """A hold of 100 tokens and 1,000 bytes with a limit of 60 s."""
    held = None if held_s is None else held_s * SECOND
    values = {"started_ns": NOON + start_s * SECOND, "held_ns": held, "outcome": outcome, "ttl_ns": 60 * SECOND}
    return hold(number, **{**values, "tokens": 100, "bytes": 1_000, **changes})


def _retention(reader: StoreReader, scope: Scope, step_ns: int, newest_ns: int, what: str) -> list[dict[str, Any]]:
    rows = _asked(reader, retention_queries.retention, scope, step_ns, newest_ns)
    return [row for row in rows if row["what"] == what]


def test_what_followed_a_turn_is_worked_out_anew_when_something_new_is_stored(tmp_path: Path) -> None:
    with _reader(tmp_path, _kept(1, 0, 10), _held(1, 10, 60, "ttl")) as reader:
        assert _retention(reader, EVERY, HOUR, NOON + HOUR, retention_queries.GAPS) == []
        fill(tmp_path, _kept(2, 30, 40))
        (whole, *_) = _retention(reader, EVERY, HOUR, NOON + HOUR, retention_queries.GAPS)
        assert (whole["turns"], whole["median_ns"]) == (1, 20 * SECOND)
        (kept,) = _retention(reader, EVERY, HOUR, NOON + HOUR, retention_queries.FATES)
        assert kept["fate"] == "not_asked"


def test_pauses_are_told_by_what_filled_them_and_held_against_the_limit(tmp_path: Path) -> None:
    rows = (
        _kept(1, 0, 10, tool_calls=1, last_role="user"),
        _kept(2, 20, 30, last_role="tool"),  # 10 s of a tool, in time
        _kept(3, 130, 140, last_role="user"),  # 100 s of a person, too late
        _kept(4, 160, 170, last_role="tool", left_hold_id=None),  # 20 s: a tool's result that nobody had asked for
        _kept(5, 200, 210, last_role="user"),  # 30 s of a person; nothing had been kept
        _held(1, 10, 10, "read"),
        _held(2, 30, 60, "ttl"),
        _held(3, 140, 20, "read"),
        _held(5, 210, 60, "ttl"),
    )
    with _reader(tmp_path, *rows) as reader:
        gaps = _retention(reader, EVERY, HOUR, NOON + HOUR, retention_queries.GAPS)
    whole = {row["filled"]: row for row in gaps if row["slot"] is None}
    counts = ("turns", "in_time", "too_late", "not_kept", "no_limit")
    assert {filled: tuple(row[name] for name in counts) for filled, row in whole.items()} == {
        "tool_wait": (1, 1, 0, 0, 0),
        "user_wait": (2, 0, 1, 1, 0),
        "unknown": (1, 1, 0, 0, 0),
        None: (4, 2, 1, 1, 0),
    }
    assert (whole[None]["median_ns"], whole[None]["p95_ns"]) == (20 * SECOND, 100 * SECOND)
    assert (whole["user_wait"]["median_ns"], whole["user_wait"]["p95_ns"]) == (30 * SECOND, 100 * SECOND)
    assert {row["ttl_high_ns"] for row in whole.values()} == {60 * SECOND}
    slots = {(row["filled"], row["slot"]) for row in gaps if row["slot"] is not None}
    assert slots == {("tool_wait", 13), ("unknown", 17), ("user_wait", 19), ("user_wait", 26)}
    for seconds, slot in ((10, 13), (20, 17), (30, 19), (100, 26)):
        assert retention_queries.slot_begin_s(slot) <= seconds < retention_queries.slot_begin_s(slot + 1)


def test_a_hold_that_is_not_in_the_store_has_no_known_limit(tmp_path: Path) -> None:
    with _reader(tmp_path, _kept(1, 0, 10), _kept(2, 20, 30)) as reader:
        (row, *_) = _retention(reader, EVERY, HOUR, NOON + HOUR, retention_queries.GAPS)
    assert (row["turns"], row["in_time"], row["too_late"], row["no_limit"]) == (1, 0, 0, 1)


def test_memory_is_summed_up_by_what_became_of_it(tmp_path: Path) -> None:
    rows = (
        _kept(1, 0, 10),
        _kept(2, 20, 30),
        _kept(3, 200, 210),
        _held(1, 10, 10, "read"),
        _held(2, 30, 60, "ttl"),
        _held(3, 210, None, None),
        _held(9, 210, 5, "lease", kind="lease"),
    )
    with _reader(tmp_path, *rows) as reader:
        fates = _retention(reader, EVERY, HOUR, NOON + HOUR, retention_queries.FATES)
        counted = reader.counts()
    told = {row["fate"]: (row["holds"], row["tokens"], row["token_seconds"], row["byte_seconds"]) for row in fates}
    assert told == {
        "read": (1, 100, 1_000.0, 10_000.0),
        "too_late": (1, 100, 6_000.0, 60_000.0),
        "held": (1, 100, None, None),
    }
    assert counted.by_hold_fate == {fate: told[fate][0] for fate in told}


def test_what_is_held_is_averaged_over_each_step(tmp_path: Path) -> None:
    # 100 tokens from 0:00 to 0:15 and from 0:10 to 0:40; steps of 20 s.
    rows = (_kept(1, 0, 0), _held(1, 0, 15, "read"), _kept(2, 5, 10), _held(2, 10, 30, "read"))
    with _reader(tmp_path, *rows) as reader:
        course = _retention(reader, EVERY, 20 * SECOND, NOON + HOUR, retention_queries.COURSE)
    assert [row["at_ns"] for row in course] == [NOON, NOON + 20 * SECOND, NOON + 40 * SECOND]
    assert [row["level_tokens"] for row in course] == pytest.approx([125.0, 100.0, 0.0])
    assert [row["level_bytes"] for row in course] == pytest.approx([1_250.0, 1_000.0, 0.0])


def test_what_is_still_held_reaches_its_limit_or_the_newest_moment(tmp_path: Path) -> None:
    rows = (_kept(1, 0, 0), _held(1, 0, None, None))
    with _reader(tmp_path, *rows) as reader:
        until_limit = _retention(reader, EVERY, 60 * SECOND, NOON + HOUR, retention_queries.COURSE)
        until_now = _retention(reader, EVERY, 60 * SECOND, NOON + 30 * SECOND, retention_queries.COURSE)
    assert [row["level_tokens"] for row in until_limit] == pytest.approx([100.0, 0.0])
    assert [row["level_tokens"] for row in until_now] == pytest.approx([50.0])
    assert {row["outcome"] for row in until_now} == {"held"}


def test_a_hold_that_reaches_into_the_period_is_seen_from_its_begin_on(tmp_path: Path) -> None:
    rows = (_kept(1, 0, 0), _held(1, 0, 60, "ttl"), _kept(2, 50, 55, left_hold_id=None))
    with _reader(tmp_path, *rows) as reader:
        scope = Scope(since_ns=NOON + 40 * SECOND)
        course = _retention(reader, scope, 20 * SECOND, NOON + HOUR, retention_queries.COURSE)
        assert _retention(reader, scope, 20 * SECOND, NOON + HOUR, retention_queries.FATES) == []
    assert [(row["at_ns"], row["level_tokens"]) for row in course] == [
        (NOON + 40 * SECOND, pytest.approx(100.0)),
        (NOON + 60 * SECOND, pytest.approx(0.0)),
    ]


# --- tools and tasks ----------------------------------------------------------------------------------------
def _tool(number: int, seconds: int, **changes: Any) -> Any:
    at = NOON + number * 10 * SECOND
    values = {"kind": "tool", "tool_name": "grep", "status": "ok", "service_name": "shop", "service_version": "2"}
    return span(number, **{**values, "started_ns": at, "ended_ns": at + seconds * SECOND, **changes})


def test_tools_are_told_by_name_and_application_with_their_errors(tmp_path: Path) -> None:
    rows = (
        _tool(1, 1),
        _tool(2, 3, status="error", error_type="timeout"),
        _tool(3, 2, status="unset"),
        _tool(4, 4, service_version="3"),
        _tool(5, 8, kind="retrieval", tool_name=None, service_name=None, service_version=None, timing="inferred"),
        _tool(6, 5, kind="agent"),
    )
    with _reader(tmp_path, *rows) as reader:
        found, total = _paged(reader, tool_queries.called, EVERY)
        only, _ = _paged(reader, tool_queries.called, Scope(application="shop 3"))
    told = [
        (r["tool"], r["application"], r["calls"], r["errors"], r["unsaid"], r["total_ns"] // SECOND, r["error_type"])
        for r in found
    ]
    assert told == [
        (None, None, 1, 0, 0, 8, None),
        ("grep", "shop 2", 3, 1, 1, 6, "timeout"),
        ("grep", "shop 3", 1, 0, 0, 4, None),
    ]
    assert total == 3
    assert {row["all_ns"] for row in found} == {18 * SECOND}
    assert (found[1]["median_ns"], found[1]["p95_ns"]) == (2 * SECOND, 3 * SECOND)
    assert (found[0]["kind"], found[0]["inferred"]) == ("retrieval", 1)
    assert [(row["calls"], row["application"]) for row in only] == [(1, "shop 3")]


def test_tasks_are_told_by_application_with_first_token_beside_the_whole(tmp_path: Path) -> None:
    asked = {"last_role": "user", "finish_reason": "stop", "tool_calls": 0, "ttft_ns": SECOND // 2}
    rows = (
        turn(1, **asked),
        turn(2, **asked, status="error"),
        turn(3, session_id="s2", **asked),
        _tool(1, 1, session_id="s1"),
    )
    with _reader(tmp_path, *rows) as reader:
        found, total = _paged(reader, tool_queries.applications, EVERY)
        (step,) = _asked(reader, tool_queries.course, EVERY, HOUR)
    assert total == 3
    every, *applications = found
    assert (every["every"], every["sessions"], every["tasks"], every["completed"], every["failed"]) == (
        True,
        2,
        3,
        2,
        1,
    )
    assert (every["first_token_median_ns"], every["latency_median_ns"]) == (SECOND // 2, SECOND)
    assert {row["application"]: (row["sessions"], row["tasks"], row["tools"]) for row in applications} == {
        None: (1, 1, None),
        "shop 2": (1, 2, 1),
    }
    assert (step["at_ns"], step["tasks"], step["first_token_ns"], step["latency_ns"]) == (NOON, 3, SECOND // 2, SECOND)


def test_evaluations_are_told_by_name_and_label(tmp_path: Path) -> None:
    rows = (
        _tool(1, 1, evaluation_name="helpful", evaluation_score=0.5),
        _tool(2, 1, evaluation_name="helpful", evaluation_score=1.0),
        _tool(3, 1, evaluation_name="safe", evaluation_label="pass", session_id="s2"),
    )
    with _reader(tmp_path, *rows) as reader:
        found, total = _paged(reader, tool_queries.evaluated, EVERY)
    told = [(r["name"], r["label"], r["results"], r["sessions"], r["mean"], r["lowest"], r["highest"]) for r in found]
    assert told == [("helpful", None, 2, 1, 0.75, 0.5, 1.0), ("safe", "pass", 1, 1, None, None, None)]
    assert total == 2


# --- suspicions ---------------------------------------------------------------------------------------------
def test_a_suspicion_comes_with_what_the_turn_reused_and_what_was_before_it(tmp_path: Path) -> None:
    rows = (
        turn(1, left_hold_id="a" * 32),
        turn(2, previous_turn_id=f"{1:032x}", used_hold_id="a" * 32, suspicions=["kv_mismatch"], diverged_before=64),
        turn(3, suspicions=["stale_handle", "duplicate_handle"], status="error", mismatch_evidence="digests"),
        turn(4, status="error"),
        hold(1, hold_id="a" * 32, turn_id=f"{1:032x}", tokens=50, outcome="read"),
    )
    with _reader(tmp_path, *rows) as reader:
        found, total = _paged(reader, suspicion_queries.listed, EVERY, None)
        stale, stales = _paged(reader, suspicion_queries.listed, EVERY, "stale_handle")
        counted = _asked(reader, suspicion_queries.counted, EVERY)
    assert [row["turn_index"] for row in found] == [3, 2]
    assert total == 2
    assert (found[1]["previous_index"], found[1]["held_engine"], found[1]["held_turn_index"]) == (1, "decode-0", 1)
    assert (found[1]["held_tokens"], found[1]["diverged_before"]) == (50, 64)
    assert (found[0]["previous_index"], found[0]["held_engine"]) == (None, None)
    assert ([row["turn_index"] for row in stale], stales) == ([3], 1)
    every, *kinds = counted
    assert (every["kind"], every["turns"], every["judged"], every["sessions"], every["failed"]) == (None, 2, 4, 1, 2)
    assert (every["answered"], every["proven"]) == (1, 1)
    assert {row["kind"]: row["turns"] for row in kinds} == {"kv_mismatch": 1, "stale_handle": 1, "duplicate_handle": 1}


def test_no_more_rows_are_sent_than_asked_for_and_the_true_number_is_told(tmp_path: Path) -> None:
    with _reader(tmp_path, *(turn(n, suspicions=["kv_mismatch"]) for n in range(1, 8))) as reader:
        found, total = _paged(reader, suspicion_queries.listed, EVERY, None, limit=3)
    assert (len(found), total) == (3, 7)


# --- processes ----------------------------------------------------------------------------------------------
def _process(revision: int, **changes: Any) -> ProcessRecord:
    values: dict[str, Any] = {"process_id": "p", "kind": "engine", "started_ns": NOON, "ended_ns": NOON + revision}
    return ProcessRecord(revision=revision, **{**values, **changes})


def test_the_newest_row_of_a_process_is_the_truth(tmp_path: Path) -> None:
    out = writer(tmp_path)
    out.add_process(_process(1, received=5))
    out.flush()
    out.add_process(_process(2, received=9, skews=[Skew(host="b", skew_ns=-3, error_ns=1)]))
    out.add_process(_process(1, process_id="q", kind="proxy"))
    out.close()
    with _reader(tmp_path) as reader:
        found, total = _paged(reader, process_queries.heard)
    assert [(row["process_id"], row["received"]) for row in found] == [("p", 9), ("q", 0)]
    assert found[0]["skews"] == [{"host": "b", "skew_ns": -3, "error_ns": 1}]
    assert total == 2


def test_a_store_of_an_older_turnscope_has_no_processes_and_is_read_all_the_same(tmp_path: Path) -> None:
    with _reader(tmp_path, turn(1)) as reader:
        assert _paged(reader, process_queries.heard) == ([], 0)


def test_keys_that_come_again_are_found_in_files_that_came_meanwhile(tmp_path: Path) -> None:
    clock = Clock()
    with _reader(tmp_path, turn(1, prompt_tokens=1)) as reader:
        assert reader.totals().prompt_tokens == 1
        fill(tmp_path, turn(1, revision=2, prompt_tokens=5), clock=clock)
        assert reader.totals().turns == 1
        assert reader.totals().prompt_tokens == 5
    assert len(read_turns(tmp_path)) == 1


def test_every_question_is_answered_of_an_empty_store(tmp_path: Path) -> None:
    writer(tmp_path).close()
    reader = StoreReader(str(tmp_path))
    try:
        for query in (
            partial(reuse_queries.course, scope=EVERY, step_ns=HOUR),
            partial(reuse_queries.avoidable, scope=EVERY),
            partial(retention_queries.retention, scope=EVERY, step_ns=HOUR, newest_ns=NOON),
            partial(tool_queries.course, scope=EVERY, step_ns=HOUR),
        ):
            assert reader.ask(query).num_rows == 0
        for query in (
            partial(reuse_queries.worst, scope=EVERY),
            partial(tool_queries.called, scope=EVERY),
            partial(tool_queries.evaluated, scope=EVERY),
            partial(suspicion_queries.listed, scope=EVERY, kind=None),
        ):
            assert reader.page(query, limit=10).total == 0
        assert reader.ask(partial(suspicion_queries.counted, scope=EVERY)).to_pylist()[0]["turns"] == 0
    finally:
        reader.close()
