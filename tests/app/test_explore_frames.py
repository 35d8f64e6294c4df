"""Frames and charts, with numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tests.app import sample
from tests.store.rows import NOON, SECOND, fill, hold, turn
from turnscope.model import HoldRecord, Turn
from turnscope.store import StoreReader
from turnscope.store.totals import Totals
from turnscope_app import charts, columns, frames, stories, words

MS = 1_000_000


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreReader]:
    url = str(tmp_path_factory.mktemp("store"))
    sample.write(url)
    reader = StoreReader(url)
    yield reader
    reader.close()


def _turns(tmp_path: Path, *rows: Turn | HoldRecord) -> tuple[pa.Table, pa.Table]:
    fill(tmp_path, *rows)
    reader = StoreReader(str(tmp_path))
    try:
        return reader.turns("s1").table, reader.holds("s1").table
    finally:
        reader.close()


def _row(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = dict.fromkeys(Turn.__struct_fields__)
    base |= {"suspicions": [], "status": "ok", "reason": "none", "hold_seen": False, "hold_outcome": None}
    base |= {"hold_tokens": None, "hold_held_ns": None}
    return base | changes


def test_every_column_of_a_frame_has_a_heading_and_a_help(reader: StoreReader) -> None:
    made = {
        "sessions": frames.sessions(reader.sessions().table),
        "turns": frames.turns(reader.turns("coding-agent-7f3a").table),
        "words": frames.vocabulary(words.REASONS, {}, 0),
        "holds": frames.vocabulary(words.HOLD_OUTCOMES, {}, 0),
        "coverage": frames.coverage(reader.totals()),
    }
    assert set(made) == set(columns.TABLES)
    for name, frame in made.items():
        assert set(frame.columns) == set(columns.TABLES[name]), name
        assert all(column.heading and column.help.endswith(".") for column in columns.TABLES[name].values()), name


def test_units_stand_in_the_headings_of_numbers() -> None:
    unit = {columns.Kind.TOKENS: "(tokens)", columns.Kind.MS: "(ms)", columns.Kind.SECONDS: "(s)"}
    unit |= {columns.Kind.BYTES: "(bytes)", columns.Kind.TIME: "(UTC)"}
    for table in columns.TABLES.values():
        for column in table.values():
            assert unit.get(column.kind, "") in column.heading


def test_a_session_row_in_screen_units(reader: StoreReader) -> None:
    frame = frames.sessions(reader.sessions().table).set_index("session")
    row = frame.loc["support-chat-4711"]
    assert (row["turns"], row["prompt_tokens"], row["fetched_tokens"]) == (4, 4682, 2999)
    assert row["reused"] == pytest.approx(100 * 2999 / 4682)
    assert row["fetched_bytes"] == 2999 * 1024
    assert row["reason"] == "Nothing"
    assert frame.loc["compacting-agent", "warnings"] == "⚠ 2 possibly wrong"
    assert frame.loc["flaky-network", "warnings"] == "✕ 2 not answered"
    assert frame.loc["no-proxy-hook", "ttft"] is pd.NA
    assert frame.loc["Turns without a session id", "turns"] == 2


def test_a_turn_row_in_screen_units(tmp_path: Path) -> None:
    table, _ = _turns(
        tmp_path,
        turn(1, prompt_tokens=100, ttft_ns=12_500_000, fetch_ns=0, left_hold_id="h", suspicions=["kv_mismatch"]),
        hold(1, hold_id="h", outcome="read", held_ns=1_500_000_000),
    )
    row = frames.turns(table).iloc[0]
    assert (row["turn"], row["prompt_tokens"], row["ttft"], row["fetch"]) == (1, 100, 12.5, 0.0)
    assert (row["kept"], row["kept_for"], row["mark"]) == ("Fetched by the next turn (read)", 1.5, "⚠")
    assert row["started"] == pd.Timestamp("2026-11-30 12:00:01", tz="UTC")


def test_what_was_not_measured_is_missing_and_never_zero(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, ended_ns=None))
    row = frames.turns(table).iloc[0]
    for name in ("prompt_tokens", "fetched_tokens", "fetched_bytes", "ttft", "prefill", "kept_for"):
        assert row[name] is pd.NA, name
    assert charts.tokens_frame(table).empty
    assert charts.times_frame(table).empty
    assert charts.bytes_frame(table).empty


def test_reused_is_unknown_unless_every_source_is() -> None:
    row = {"prompt_tokens": 200, "local_hit_tokens": 10, "fetched_tokens": 40, "external_tokens": 0}
    assert frames.reused_percent(row) == 25.0
    assert frames.reused_percent({**row, "external_tokens": None}) is None
    assert frames.reused_percent({**row, "prompt_tokens": 0}) is None


@pytest.mark.parametrize(
    ("indexes", "offset", "numbers"),
    [([1, 2, 3], 0, [1, 2, 3]), ([5, 7], 0, [5, 7]), ([1, 1], 0, [1, 2]), ([None, 2], 1000, [1001, 1002])],
)
def test_turns_are_numbered_by_their_index_or_else_by_their_place(
    indexes: list[int | None], offset: int, numbers: list[int]
) -> None:
    assert frames.numbers([{"turn_index": i} for i in indexes], offset) == numbers


@pytest.mark.parametrize(
    ("turn_", "shown"),
    [
        ({"left_hold_id": None}, "Nothing kept"),
        ({"left_hold_id": "h", "hold_seen": False}, None),
        ({"left_hold_id": "h", "hold_seen": True, "hold_outcome": None}, "Still held (held)"),
        ({"left_hold_id": "h", "hold_seen": True, "hold_outcome": "ttl"}, "Nobody came in time (ttl)"),
    ],
)
def test_nothing_kept_still_held_and_not_reported_are_told_apart(turn_: dict[str, Any], shown: str | None) -> None:
    assert frames.hold_shown(turn_) == shown


def test_absurd_times_do_not_break_a_frame(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, started_ns=2**63 - 1, ended_ns=None), turn(2, started_ns=-(2**63)))
    assert len(frames.turns(table)) == 2


def test_the_vocabulary_lists_every_word_the_frequent_first() -> None:
    frame = frames.vocabulary(words.PATHS, {"mixed": 3, "recompute": 1}, 4)
    assert list(frame["term"])[:2] == ["mixed", "recompute"]
    assert (list(frame["turns"])[:3], list(frame["share"])[:3]) == ([3, 1, 0], [75.0, 25.0, 0.0])
    assert len(frame) == len(words.PATHS)


def test_coverage_of_an_empty_store_has_no_shares() -> None:
    assert frames.coverage(Totals())["share"].isna().all()


# --- charts ---------------------------------------------------------------------------------------
def test_computed_tokens_are_split_only_where_there_is_evidence(tmp_path: Path) -> None:
    table, _ = _turns(
        tmp_path,
        turn(1, local_hit_tokens=0, fetched_tokens=40, computed_tokens=60, recomputed_tokens=10, new_tokens=50),
        turn(2, local_hit_tokens=30, fetched_tokens=0, computed_tokens=70, suspicions=["kv_mismatch"]),
    )
    frame = charts.tokens_frame(table)
    assert frame[["turn", "source", "tokens", "suspicious"]].values.tolist() == [
        [1, "Fetched back", 40, False],
        [1, "Computed again", 10, False],
        [1, "New text", 50, False],
        [2, "Already there", 30, True],
        [2, "Computed", 70, True],
    ]


def test_times_and_bytes_are_in_milliseconds_and_megabytes(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, ttft_ns=30 * MS, prefill_ns=20 * MS, fetch_ns=0, fetched_bytes=786_432))
    assert charts.times_frame(table).values.tolist() == [[1, "First token", 30], [1, "Prefill", 20], [1, "Fetch", 0]]
    assert charts.bytes_frame(table).values.tolist() == [[1, "Fetched back", 0.786432]]


def test_a_hold_lasts_as_long_as_its_holder_measured(tmp_path: Path) -> None:
    table, holds = _turns(
        tmp_path,
        turn(1, left_hold_id="a"),
        turn(2, left_hold_id="b"),
        turn(3, left_hold_id="c"),
        turn(4, left_hold_id="gone"),
        hold(
            1, hold_id="a", started_ns=NOON + 2 * SECOND, held_ns=3 * SECOND, ended_ns=NOON + 9 * SECOND, outcome="read"
        ),
        hold(2, hold_id="b", started_ns=NOON + 3 * SECOND, ended_ns=NOON + 7 * SECOND, outcome="aborted"),
        hold(3, hold_id="c", started_ns=NOON + 4 * SECOND),
    )
    frame = charts.holds_frame(table, holds)
    assert frame[["turn", "outcome", "start_s", "end_s"]].values.tolist() == [
        [1, "Fetched by the next turn", 1, 4],
        [2, "Other", 2, 6],
        [3, "Still held", 3, 8],
    ]
    assert frame["kept_s"].tolist()[:2] == [3, 4]
    assert pd.isna(frame["kept_s"].iloc[2])


def test_every_chart_is_a_valid_specification(reader: StoreReader) -> None:
    for session_id in ("coding-agent-7f3a", "compacting-agent", "no-proxy-hook", None):
        table, holds = reader.turns(session_id).table, reader.holds(session_id).table
        numbers = frames.numbers(table.to_pylist())
        for chart in (
            charts.tokens(charts.tokens_frame(table), numbers),
            charts.times(charts.times_frame(table), numbers),
            charts.transferred(charts.bytes_frame(table), numbers),
            charts.holds(charts.holds_frame(table, holds), numbers),
        ):
            assert "$schema" in chart.to_dict()


def test_a_turn_that_was_not_measured_leaves_a_gap_and_no_line_over_it(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, ttft_ns=10 * MS), turn(2), turn(3, ttft_ns=30 * MS))
    spec = charts.times(charts.times_frame(table), [1, 2, 3]).to_dict()
    assert spec["encoding"]["x"]["scale"]["domain"] == [1, 2, 3]
    (points,) = spec["datasets"].values()
    assert [(p["turn"], p["ms"]) for p in points] == [(1, 10), (2, None), (3, 30)]


# --- stories --------------------------------------------------------------------------------------
def test_the_story_of_a_turn_adds_up() -> None:
    told = stories.prompt(
        _row(
            prompt_tokens=1250, local_hit_tokens=128, fetched_tokens=896, computed_tokens=226, recomputed_tokens=6,
            new_tokens=220, fetched_bytes=786_432, fetch_ns=12 * MS,
        )
    )  # fmt: skip
    assert told == (
        "Of the prompt's 1,250 tokens, 128 were already in the prefill worker's cache, 896 were fetched back from the "
        "decode worker (786.4 kB in 12.0 ms) and 226 were computed (6 of them had been computed before)."
    )


def test_the_story_says_when_nothing_was_measured() -> None:
    assert "not measured" in stories.prompt(_row())
    assert "not measured" in stories.prompt(_row(prompt_tokens=10))


def test_the_story_says_how_a_turn_ended_and_what_was_kept() -> None:
    assert stories.ending(_row(status="error", stage="prefill")) == "The turn ended with an error (at: prefill)."
    assert stories.kept(_row(left_hold_id="h", hold_seen=True, hold_tokens=952, hold_held_ns=6 * SECOND,
                             hold_outcome="ttl")) == (
        "Blocks of 952 tokens were kept on the decode worker for 6.00 s. "
        "No turn asked before the time limit: memory was kept for nothing."
    )  # fmt: skip
    assert stories.kept(_row()).startswith("No blocks were kept")


def test_where_a_request_diverges_is_told_with_its_evidence() -> None:
    edited = _row(
        diverged_message=0,
        diverged_role="system",
        diverged_kind="edited",
        diverged_chars_before=1200,
        diverged_chars=1240,
        diverged_evidence="digests",
    )
    assert stories.parted(edited) == (
        "The request diverges from the turn before in message 0, system (edited; 1,200 characters before, 1,240 now)."
    )
    assert stories.parted(edited) in stories.whole(edited)
    added = _row(diverged_role="tools", diverged_kind="inserted", diverged_chars=310, diverged_evidence="lengths")
    assert "in the tools (put in; 0 characters before, 310 now). Only lengths" in stories.parted(added)
    model = _row(diverged_role="model", diverged_kind="edited", diverged_evidence="names")
    assert stories.parted(model) == "The request diverges from the turn before in the model (edited)."
    assert stories.parted(_row()) == ""


def test_an_unknown_word_does_not_break_a_story() -> None:
    odd = _row(
        reason="brand_new", status="odd", suspicions=["odd"], left_hold_id="h", hold_seen=True, hold_outcome="odd"
    )
    assert "brand_new" in " ".join(stories.whole(odd))
    assert stories.warning(odd) == "odd."


def test_the_turn_told_first_is_the_one_to_look_at() -> None:
    fine, failed, suspicious = _row(), _row(status="error"), _row(suspicions=["kv_mismatch"])
    assert stories.most_telling([fine, failed, suspicious]) == 2
    assert stories.most_telling([fine, failed, fine]) == 1
    assert stories.most_telling([fine, fine]) == 1
