"""Frames and charts, with numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tests.app import sample
from tests.measures.test_verdict import figures
from tests.store.rows import NOON, SECOND, fill, hold, turn
from turnscope.model import HoldRecord, Turn
from turnscope.semconv import Part
from turnscope.store import StoreReader
from turnscope.store.summing import fresh
from turnscope.store.totals import Counts, Totals
from turnscope.store.whole import read
from turnscope_app import about_frames, cards, charts, colours, columns, fields, frames, stories, words
from turnscope_app.columns import Column, Kind

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
        return reader.turns("s1").table, reader.holds([f"{n:032x}" for n in range(100)])
    finally:
        reader.close()


def _listed(reader: StoreReader) -> pa.Table:
    return reader.listed(fresh=fresh(reader, NOON, 100)[0]).table


def _row(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = dict.fromkeys(Turn.__struct_fields__)
    base |= {"suspicions": [], "status": "ok", "reason": "none", "hold_seen": False, "hold_fate": None}
    base |= {"hold_tokens": None, "hold_held_ns": None, "hold_pause_ns": None}
    return base | changes


def test_every_column_of_a_frame_has_a_heading_and_a_help(reader: StoreReader) -> None:
    made = (
        (columns.SESSIONS, frames.sessions(_listed(reader))),
        (fields.TURNS, frames.turns(reader.turns("coding-agent-7f3a").table.to_pylist(), list(range(1, 7)))),
    )
    for shown, frame in made:
        assert list(frame.columns) == [column.key for column in shown]
        assert all(column.heading and column.help.endswith(".") for column in shown)
        assert len({column.heading for column in shown}) == len(shown)


def test_units_stand_in_the_headings_of_numbers() -> None:
    by_key = {column.key: column for column in (*columns.SESSIONS, *fields.TURNS)}
    assert by_key["fetched_tokens"].heading == "Reused, fetched back (tokens)"
    assert by_key["fetched_bytes"].heading == "Fetched back (bytes)"
    assert by_key["ttft"].heading == "First token (ms)"
    assert by_key["hold_held"].heading == "Kept for (s)"
    assert by_key["started"].heading == "Started (UTC)"


def test_every_field_of_a_turn_is_shown_or_says_why_not(reader: StoreReader) -> None:
    shown = {column.name for group in fields.GROUPS for column in (*group.listed, *group.more)}
    known = set(reader.turns("coding-agent-7f3a").table.column_names) - {"hold_outcome", "hold_seen"}
    assert set(Turn.__struct_fields__) <= known
    assert known - shown - set(fields.ELSEWHERE) == {"hold_used_by_turn_id"}
    assert shown <= known
    assert not shown & set(fields.ELSEWHERE)


def test_a_session_row_in_screen_units(reader: StoreReader) -> None:
    frame = frames.sessions(_listed(reader)).set_index("session")
    row = frame.loc["support-chat-4711"]
    assert (row["turns"], row["prompt_tokens"], row["fetched_tokens"]) == (4, 4682, 2999)
    assert row["reused"] == pytest.approx(100 * 2999 / 4682)
    assert row["fetched_bytes"] == 2999 * 1024
    assert row["main_reason"] == "Nothing"
    assert frame.loc["coding-agent-7f3a", "main_reason"] == "Nothing"
    assert frame.loc["slow-reader", "main_reason"] == "Too late, declined (declined expired)"
    assert frame.loc["compacting-agent", "warnings"] == "⚠ 2 possibly wrong"
    assert frame.loc["flaky-network", "warnings"] == "✕ 2 not answered"
    assert frame.loc["no-proxy-hook", "ttft_median"] is pd.NA
    (loose,) = frames.sessions(reader.unattributed()).to_dict("records")
    assert (loose["session"], loose["turns"]) == ("Turns without a session id", 2)


def test_a_session_too_large_to_be_taken_apart_says_so_in_the_list(
    reader: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnscope.store.summing.MOST_ROWS", 0)
    row = frames.sessions(_listed(reader)).set_index("session").loc["support-chat-4711"]
    assert row["warnings"] == "too large to be taken apart"
    assert row["turns"] == 4
    assert pd.isna(row[["most", "main_reason"]]).all()


def test_a_turn_row_in_screen_units(tmp_path: Path) -> None:
    table, _ = _turns(
        tmp_path,
        turn(
            1,
            prompt_tokens=100,
            ttft_ns=12_540_000,
            prefill_ns=1_719_800_000,
            fetch_ns=0,
            left_hold_id="h",
            suspicions=["kv_mismatch"],
        ),
        hold(1, hold_id="h", outcome="read", held_ns=1_500_000_000),
    )
    row = frames.turns(table.to_pylist(), [1]).iloc[0]
    assert (row["number"], row["prompt_tokens"], row["ttft"], row["fetch"], row["prefill"]) == (1, 100, 12.5, 0, 1720)
    assert (row["hold_fate"], row["hold_held"], row["mark"]) == ("Fetched by the next turn (read)", 1.5, "⚠")
    assert row["started"] == pd.Timestamp("2026-11-30 12:00:01", tz="UTC")


def test_what_was_not_measured_is_missing_and_never_zero(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, ended_ns=None))
    row = frames.turns(table.to_pylist(), [1]).iloc[0]
    for name in ("prompt_tokens", "fetched_tokens", "fetched_bytes", "ttft", "prefill", "hold_held"):
        assert row[name] is pd.NA, name
    assert charts.tokens_frame(table, [1]).empty
    assert charts.times_frame(table, [1]).empty
    assert charts.ttft_frame(table, [1]).empty
    assert charts.context_frame(table, [1]).empty
    assert charts.bytes_frame(table, [1]).empty


@pytest.mark.parametrize(
    ("indexes", "offset", "numbers"),
    [([1, 2, 3], 0, [1, 2, 3]), ([5, 7], 0, [5, 7]), ([1, 1], 0, [1, 2]), ([None, 2], 1000, [1001, 1002])],
)
def test_turns_are_numbered_by_their_index_or_else_by_their_place(
    indexes: list[int | None], offset: int, numbers: list[int]
) -> None:
    assert stories.numbers(indexes, offset) == numbers


@pytest.mark.parametrize(
    ("turn_", "shown"),
    [
        ({"left_hold_id": None}, "Nothing kept"),
        ({"left_hold_id": "h"}, "not measured"),
        ({"left_hold_id": "h", "hold_fate": "held"}, "Still kept (held)"),
        ({"left_hold_id": "h", "hold_fate": "not_continued"}, "Nobody came back (ttl)"),
        ({"left_hold_id": "h", "hold_fate": "too_late"}, "Let go before the next turn (ttl)"),
    ],
)
def test_nothing_kept_still_held_and_not_reported_are_told_apart(turn_: dict[str, Any], shown: str) -> None:
    assert _details(_row(**turn_))["Kept for the next turn"] == shown


def _details(turn_: dict[str, Any]) -> dict[str, str]:
    """What the details of a turn say, by label; the Markdown's escapes are taken away."""
    made = [frames.details(turn_, group) for group in fields.GROUPS]
    return {r["what"]: r["value"].replace("\\", "") for frame in made for r in frame.to_dict("records")}


def test_the_details_of_a_turn_have_units_and_words(tmp_path: Path) -> None:
    table, _ = _turns(
        tmp_path,
        turn(
            1, prompt_tokens=1_250, fetch_ns=12_500_000, handoff_bytes=786_432, suspicions=["kv_mismatch", "odd"],
            streamed=True, late=False, model="<b>\u202e", path="mixed",
        ),
    )  # fmt: skip
    said = _details(table.to_pylist()[0])
    assert (said["Prompt"], said["Fetch"], said["Handed over"]) == ("1,250 tokens", "12.5 ms", "786.4 kB")
    assert said["Possibly wrong"] == "Reused memory of other text (kv mismatch), odd"
    assert (said["Streamed"], said["Late facts"], said["Answer"]) == ("yes", "no", "not measured")
    assert (said["Model"], said["Reuse"]) == ("<b>u202e", "Partly own, partly fetched (mixed)")
    assert said["Offered"] == "nothing was offered"


def test_a_store_of_an_older_turnscope_lacks_fields_and_they_are_not_measured() -> None:
    old = {k: v for k, v in _row(prompt_tokens=5).items() if k != "preemptions"}
    assert _details(old)["Pushed out"] == "not measured"


def test_absurd_times_do_not_break_a_frame(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, started_ns=2**63 - 1, ended_ns=None), turn(2, started_ns=-(2**63)))
    assert len(frames.turns(table.to_pylist(), [1, 2])) == 2


def test_the_vocabulary_lists_every_word_the_frequent_first() -> None:
    frame = frames.vocabulary(words.PATHS, {"mixed": 3, "local_hit": 1}, 4, "Turns")
    assert frame.iloc[0].tolist()[:2] == [
        "**Partly own, partly fetched**  \n`mixed`",
        "3\N{NO-BREAK SPACE}(75\N{NO-BREAK SPACE}%)",
    ]
    assert frame.iloc[1, 0] == "**Own memory**  \n`local_hit`"
    assert len(frame) == len(words.PATHS)


def test_coverage_says_why_turns_lack_a_measurement_only_where_some_do() -> None:
    def row(**sums: int) -> list[str]:
        frame = about_frames.coverage(Totals(turns=4, **sums), Counts()).set_index("What")
        return frame.loc["Computed tokens split into again and new"].tolist()

    nothing, some, everything = row(), row(split_turns=3), row(split_turns=4)
    assert nothing[0] == "0\N{NO-BREAK SPACE}(0\N{NO-BREAK SPACE}%)"
    assert "digests" in nothing[1]
    assert nothing[1] == some[1]
    assert everything == ["4\N{NO-BREAK SPACE}(100\N{NO-BREAK SPACE}%)", "Nothing is missing."]


def test_turns_that_never_came_to_a_decode_engine_are_not_held_against_its_hook(tmp_path: Path) -> None:
    fill(
        tmp_path,
        turn(1, has_decode=True),
        turn(2, has_decode=True),
        turn(3, has_decode=False, status="error", stage="prefill"),
    )
    reader = StoreReader(str(tmp_path))
    totals = reader.totals()
    reader.close()
    row = (
        about_frames.coverage(totals, Counts())
        .set_index("What")
        .loc["Reported by a server that writes answers (decode engine)"]
    )
    assert row.tolist() == [
        "2\N{NO-BREAK SPACE}(100\N{NO-BREAK SPACE}%)",
        "Nothing is missing. 1 turn ended before one was reached, and is not counted here.",
    ]
    lacking = about_frames.coverage(Totals(turns=3, decode_turns=1, undecoded_turns=1), Counts()).set_index("What")
    assert (
        lacking.loc["Reported by a server that writes answers (decode engine)"].iloc[1].startswith("The hook has to be")
    )


def test_a_bar_has_the_colour_of_its_part_and_room_for_its_whole_heading() -> None:
    reading = next(column for column in columns.SESSIONS if column.label == "Reading the prompt")
    assert reading.colour == colours.PARTS[Part.INPUT_PROCESSING]
    assert (reading.pixels or 0) >= 7 * len(reading.label) + 40


def test_most_of_a_sessions_work_is_a_share_of_its_work() -> None:
    most = next(column for column in columns.SESSIONS if column.key == "most")
    waited = {
        "wall_ns": 40 * SECOND,
        "user_wait_ns": 39 * SECOND,
        "generation_ns": SECOND * 3 // 4,
        "unknown_ns": SECOND // 4,
    }
    assert most.of(waited) == "Writing the answer, 75 %"


def test_small_times_and_amounts_are_not_rounded_to_nothing() -> None:
    shown = (Column("took_ns", "Took", "", Kind.SECONDS), Column("cost", "Cost", "", Kind.AMOUNT))
    rows = [
        {"took_ns": ns, "cost": cost} for ns, cost in ((117_000_000, 0.42), (4_200_000, 0.0123), (1_720_400_000_000, 0))
    ]
    frame = frames.of(rows, shown)
    assert frame["took"].tolist() == [0.117, 0.0042, 1720]
    assert frame["cost"].tolist() == [0.42, 0.0123, 0]


def test_coverage_of_an_empty_store_has_no_shares() -> None:
    assert set(about_frames.coverage(Totals(), Counts())["Turns that have it"]) == {"0"}


# --- cards ----------------------------------------------------------------------------------------
def test_how_much_was_computed_again_is_a_card_only_where_it_was_measured(reader: StoreReader) -> None:
    def labels(session_id: str) -> dict[str, cards.Card]:
        found = read(reader, session_id, NOON)
        assert found is not None
        return {card.label: card for card in cards.session(found.summary, found.turns)}

    assert labels("support-chat-4711")["Tokens computed again"].value == "37"
    assert labels("support-chat-4711")["Tokens computed again"].help.endswith("wasted work.")
    assert labels("no-proxy-hook")["Tokens computed again"].help.endswith("Measured for 1 of 3 turns.")
    assert labels("no-proxy-hook")["Prompt tokens reused"].value == "60 %"


def test_what_was_reused_is_a_share_of_the_tokens_whose_source_is_known_as_in_the_list(tmp_path: Path) -> None:
    known = turn(1, prompt_tokens=100, local_hit_tokens=30, fetched_tokens=20, external_tokens=0, computed_tokens=50)
    fill(tmp_path, known, turn(2, prompt_tokens=100))
    reader = StoreReader(str(tmp_path))
    found = read(reader, "s1", NOON)
    reader.close()
    assert found is not None
    (card,) = (card for card in cards.session(found.summary, found.turns) if card.label == "Prompt tokens reused")
    assert card.value == "50 %"
    assert card.help.endswith("Of 100 tokens together. Measured for 1 of 2 turns.")


def test_a_session_of_which_nothing_was_measured_has_no_figures_made_up(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    reader = StoreReader(str(tmp_path))
    found = read(reader, "s1", NOON)
    reader.close()
    assert found is not None
    values = {card.label: card.value for card in cards.session(found.summary, found.turns)}
    assert "Tokens computed again" not in values
    assert {values[name] for name in ("Reuse could spare", "Prompt tokens reused", "Tokens fetched back")} == {
        "not measured"
    }


def test_the_cards_count_turns_without_a_session_apart() -> None:
    found = {card.label: card for card in cards.all_sessions(figures(sessions=8, turns=31), 2)}
    assert (found["Sessions"].value, found["Turns"].value) == ("8", "31")
    assert found["Turns"].help.endswith(" 2 turns without a session id stand apart, below.")


# --- charts ---------------------------------------------------------------------------------------
def test_computed_tokens_are_split_only_where_there_is_evidence(tmp_path: Path) -> None:
    table, _ = _turns(
        tmp_path,
        turn(1, local_hit_tokens=0, fetched_tokens=40, computed_tokens=60, recomputed_tokens=10, new_tokens=50),
        turn(2, local_hit_tokens=30, fetched_tokens=0, computed_tokens=70, suspicions=["kv_mismatch"]),
    )
    frame = charts.tokens_frame(table, [1, 2])
    assert frame[["turn", "source", "tokens", "suspicious"]].values.tolist() == [
        [1, "Fetched back", 40, False],
        [1, "Computed again", 10, False],
        [1, "New text", 50, False],
        [2, "Own memory", 30, True],
        [2, "Computed", 70, True],
    ]


def test_times_and_bytes_are_in_milliseconds_and_megabytes(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, ttft_ns=30 * MS, prefill_ns=20 * MS, fetch_ns=0, fetched_bytes=786_432))
    assert charts.times_frame(table, [1]).values.tolist() == [
        [1, "Prefill", 20],
        [1, "Fetch", 0],
    ]
    assert charts.bytes_frame(table, [1]).values.tolist() == [[1, "Fetched back", 0.786432]]


def test_every_chart_is_a_valid_specification(reader: StoreReader) -> None:
    for session_id in ("coding-agent-7f3a", "compacting-agent", "no-proxy-hook", None):
        table = reader.turns(session_id).table
        numbers = stories.numbers(table["turn_index"].to_pylist())
        for chart in (
            charts.tokens(charts.tokens_frame(table, numbers), numbers),
            charts.times(charts.times_frame(table, numbers), numbers),
            charts.transferred(charts.bytes_frame(table, numbers), numbers),
            charts.ttft(charts.ttft_frame(table, numbers), numbers),
            charts.context(charts.context_frame(table, numbers)),
        ):
            assert "$schema" in chart.to_dict()


def test_the_time_to_the_first_word_is_told_by_its_parts_and_not_explained_where_none_was_measured(
    tmp_path: Path,
) -> None:
    table, _ = _turns(
        tmp_path,
        turn(1, ttft_ns=30 * MS, ttft_queue_ns=10 * MS, ttft_prefill_ns=20 * MS, ttft_fetch_ns=0),
        turn(2, ttft_ns=40 * MS),
        turn(3),
    )
    frame = charts.ttft_frame(table, [1, 2, 3])
    assert frame[["turn", "what", "ms"]].values.tolist() == [
        [1, "In queues", 10],
        [1, "Computing the prompt", 20],
        [2, "Not explained", 40],
    ]


def test_the_context_of_a_long_session_is_told_by_the_longest_of_turns_in_a_row(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, *(turn(n, prompt_tokens=n, output_tokens=5) for n in range(1, 1_001)))
    frame = charts.context_frame(table, list(range(1, 1_001)))
    assert len(frame) == 500
    assert frame.iloc[0].tolist() == [1, 4, "Prompt (context)", 4]
    assert frame.iloc[-2].tolist() == [997, 1_000, "Prompt (context)", 1_000]


def test_a_turn_that_was_not_measured_leaves_a_gap_and_no_line_over_it(tmp_path: Path) -> None:
    table, _ = _turns(tmp_path, turn(1, prefill_ns=10 * MS), turn(2), turn(3, prefill_ns=30 * MS))
    spec = charts.times(charts.times_frame(table, [1, 2, 3]), [1, 2, 3]).to_dict()
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
        "Of the prompt's 1,250 tokens, 128 were in the own memory of the server that reads prompts (prefill engine), "
        "896 were fetched back (786.4 kB in 12.0 ms) from the server that writes answers (decode engine) and 226 were "
        "computed (6 of them had been computed before)."
    )


def test_the_story_says_when_nothing_was_measured() -> None:
    assert "not measured" in stories.prompt(_row())
    assert "not measured" in stories.prompt(_row(prompt_tokens=10))


def test_the_story_says_how_a_turn_ended_and_what_was_kept() -> None:
    assert stories.ending(_row(status="error", stage="prefill")) == "The turn ended with an error (at: prefill)."
    assert stories.kept(_row()).startswith("No memory was kept")


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


def _kept(fate: str, **changes: Any) -> str:
    left: dict[str, Any] = {"left_hold_id": "h", "hold_seen": True, "hold_tokens": 952, "hold_held_ns": 30 * SECOND}
    return stories.kept(_row(**{**left, "hold_fate": fate, **changes}))


def test_a_hold_that_nobody_came_back_for_is_said_to_be_normal() -> None:
    assert _kept("not_continued") == (
        "Memory of 952 tokens was kept by the server that writes answers (decode engine) for 30.00 s. No later turn of "
        "the session has come, so the memory was let go at its time limit. This is normal: every session has a last "
        "turn."
    )


def test_a_hold_that_ended_before_the_next_turn_says_by_how_much() -> None:
    assert _kept("too_late", hold_pause_ns=42 * SECOND).endswith(
        "The next turn came after 42.00 s, 12.00 s too late: with a longer decoder_kv_blocks_ttl it could have fetched "
        "it back."
    )
    assert _kept("too_late", hold_pause_ns=42 * SECOND, hold_held_ns=None).endswith(words.FATES["too_late"].story)


def test_a_hold_that_the_next_turn_did_not_ask_for_says_so() -> None:
    assert "came after 2.00 s, in time, and did not fetch it" in _kept("not_asked", hold_pause_ns=2 * SECOND)


def test_a_hold_that_is_still_kept_or_was_not_reported_says_so() -> None:
    assert _kept("held").endswith("is still kept by the server that writes answers (decode engine) for the next turn.")
    assert "has not been reported" in stories.kept(_row(left_hold_id="h"))


@pytest.mark.parametrize(
    ("attempts", "proxy_reports", "said"),
    [
        (3, True, None),
        (1, True, "2 of them did not come through the proxy"),
        (0, True, "None of them came through the proxy"),
        (0, False, None),
    ],
)
def test_turns_past_the_proxy_are_explained_where_a_proxy_reports(
    attempts: int, proxy_reports: bool, said: str | None
) -> None:
    told = stories.unattributed({"turns": 3, "attempt_turns": attempts}, proxy_reports=proxy_reports)
    assert told.startswith("3 turns came without a session id.")
    assert ("through the proxy" in told) == (said is not None)
    assert said is None or said in told


def test_an_unknown_word_does_not_break_a_story() -> None:
    odd = _row(
        reason="brand_new", status="odd", suspicions=["odd"], left_hold_id="h", hold_seen=True, hold_outcome="odd"
    )
    assert "brand_new" in " ".join(stories.whole(odd))
    assert stories.warning(odd).startswith("odd. Suspected:")


def test_the_turn_told_first_is_the_one_to_look_at() -> None:
    fine, failed, suspicious = _row(), _row(status="error"), _row(suspicions=["kv_mismatch"])
    again, more = _row(recomputed_tokens=5), _row(recomputed_tokens=9)
    for turns, position, why in (
        ([more, failed, suspicious, suspicious], 2, "may be wrong"),
        ([more, failed, failed], 1, "not answered"),
        ([again, more, fine], 1, "read most again"),
        ([fine, fine], 1, "the last"),
    ):
        first = stories.most_telling(turns)
        assert (first.position, why in first.why) == (position, True)
