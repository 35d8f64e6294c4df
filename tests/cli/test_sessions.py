"""``turnscope sessions`` and ``turnscope show``: the same numbers as the store's, in words and as JSON."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from tests.measures.scripted import scripted
from tests.measures.session_rows import MS, T0, span, turn
from tests.store.rows import Clock, fill
from turnscope.cli.errors import Sorry
from turnscope.cli.session_words import PARTS, bar, ceiling_sentences, duration, share
from turnscope.cli.sessions import sessions
from turnscope.cli.show import show
from turnscope.measures.sessions import summarise
from turnscope.semconv import Part, SpanKind
from turnscope.store import SummarisingWriter

RECOMPUTED: dict[str, Any] = {
    "ttft": 900,
    "session_id": "chat-lost",
    "recomputed_tokens": 1200,
    "prompt_tokens": 1500,
    "recompute_ns": 800 * MS,
    "recompute_low_ns": 600 * MS,
    "recompute_high_ns": 900 * MS,
    "refetch_ns": 100 * MS,
    "refetch_low_ns": 50 * MS,
    "refetch_high_ns": 200 * MS,
    "refetch_basis": "assumed",
    "reason": "no_handle_from_decode",
    "last_role": "user",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An agent that mostly waits for its tools, a chat that computes again, and spans alone, summed up or not yet."""
    told = scripted(3)
    rows = [*told.turns, *told.spans]
    for row in rows:
        row.session_id = "agent-scripted"
    fill(tmp_path, *rows, turn("l", 0, 1000, **RECOMPUTED))
    SummarisingWriter(str(tmp_path), writer_id="w2", now=Clock()).close()
    fill(tmp_path, span("z", SpanKind.TOOL, 0, 700, session_id="spans-only", deployment="prod"))
    return tmp_path


def run(command: Callable[..., None], *arguments: str, columns: int = 140) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def words(text: str) -> str:
    return " ".join(text.split())


def ids(text: str) -> list[str]:
    return [one["session_id"] for one in json.loads(text)["sessions"]]


def test_sessions_are_listed_the_last_first_also_those_not_summed_up_yet(store: Path) -> None:
    assert ids(run(sessions, "--store", str(store), "--json")) == ["agent-scripted", "chat-lost", "spans-only"]
    shown = run(sessions, "--store", str(store))
    assert shown.index("agent-scripted") < shown.index("chat-lost") < shown.index("spans-only")
    assert "input processing: waiting for the model's first token" in words(shown)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--spent", "tools:90"], ["spans-only"]),
        (["--spent", "input:50"], ["chat-lost"]),
        (["--text", "AGENT"], ["agent-scripted"]),
        (["--agent", "main"], ["agent-scripted"]),
        (["--deployment", "prod"], ["spans-only"]),
        (["--outcome", "completed"], ["agent-scripted", "chat-lost"]),
        (["--sort", "tools", "--ascending"], ["chat-lost", "spans-only", "agent-scripted"]),
        (["--sort", "ceiling", "--limit", "1"], ["chat-lost"]),
        (["--sort", "tools-share", "--limit", "1"], ["spans-only"]),
        (["--model", "none of that name"], []),
    ],
)
def test_filters_and_orders_apply(store: Path, arguments: list[str], found: list[str]) -> None:
    assert ids(run(sessions, "--store", str(store), "--json", *arguments)) == found


@pytest.mark.parametrize("columns", [60, 80, 100, 140, 200])
def test_no_meaning_of_a_mark_is_broken_between_lines(store: Path, columns: int) -> None:
    shown = run(sessions, "--store", str(store), columns=columns)
    for word in PARTS.values():
        assert f"{word.mark} {word.plain.lower()}: {word.meaning}" in shown
    assert max(cell_len(line.rstrip()) for line in shown.splitlines()) <= columns


def test_latencies_of_sessions_without_turns_say_what_is_missing(tmp_path_factory: Any) -> None:
    only_spans = tmp_path_factory.mktemp("spans")
    fill(only_spans, span("z", SpanKind.TOOL, 0, 700, session_id="spans-only"))
    shown = words(run(sessions, "--latency", "--store", str(only_spans)))
    assert "this session has no turn that engines or a proxy told of" in shown
    assert "run your proxy under 'turnscope run'" in shown
    assert "First token" not in shown


def test_one_session_is_not_all_of_them(tmp_path_factory: Any) -> None:
    only = tmp_path_factory.mktemp("one")
    fill(only, turn("l", 0, 1000, **RECOMPUTED))
    shown = words(run(sessions, "--store", str(only)))
    assert "One session: 1.00 s" in shown
    assert "Reuse could spare it about" in shown


DOUBTFUL: dict[str, Any] = {
    "ttft": 300,
    "session_id": "doubtful",
    "path": "reverse_fetch",
    "reason": "none",
    "suspicions": ["kv_mismatch"],
    "prefill_engine": "prefill-1",
    "decode_engine": "decode-1",
    "net_gain_ns": -MS,
    "rewritten_tokens": 8,
}
LATE: dict[str, Any] = {
    "session_id": "late",
    "path": "unknown",
    "reason": "declined_expired",
    "status": "stuck",
    "decode_engine": "decode-1",
    "transport": "tcp",
    "rewritten_tokens": 0,
}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--path", "reverse_fetch"], ["doubtful"]),
        (["--reason", "declined_expired"], ["late"]),
        (["--suspicion", "any"], ["doubtful"]),
        (["--suspicion", "kv_mismatch"], ["doubtful"]),
        (["--suspicion", "stale_handle"], []),
        (["--status", "stuck"], ["late"]),
        (["--engine", "prefill-1"], ["doubtful"]),
        (["--engine", "decode-1"], ["doubtful", "late"]),
        (["--transport", "tcp"], ["late"]),
        (["--first-token", "900ms"], ["chat-lost"]),
        (["--first-token", "1s"], []),
        (["--rewritten"], ["doubtful"]),
        (["--lost"], ["doubtful"]),
        # Both meet one of the two, and neither has a turn that meets both.
        (["--reason", "declined_expired", "--path", "reverse_fetch"], []),
        (["--reason", "declined_expired", "--text", "DOUBT"], []),
    ],
)
def test_conditions_on_turns_find_the_sessions_that_have_one_that_meets_them_all(
    store: Path, arguments: list[str], found: list[str]
) -> None:
    fill(store, turn("m", 0, 1000, **DOUBTFUL), turn("n", 0, 1000, **LATE))
    told = json.loads(run(sessions, "--store", str(store), "--json", *arguments))
    assert sorted(one["session_id"] for one in told["sessions"]) == found
    assert told["sums"]["sessions"] == len(found)


def test_the_turn_that_is_looked_for_must_have_begun_within_the_time(tmp_path: Path) -> None:
    """A session that goes on is not listed for what went wrong in it yesterday."""
    hour, now = 3_600_000, (time.time_ns() - T0) // MS
    old, new = now - 5 * hour, now - hour
    fill(
        tmp_path,
        turn("old", old, old + 1, session_id="goes-on", status="error"),
        turn("new", new, new + 1, session_id="goes-on"),
    )
    asked = ["--store", str(tmp_path), "--json", "--status", "error"]
    assert ids(run(sessions, *asked, "--since", "2h")) == []
    assert ids(run(sessions, *asked, "--since", "6h")) == ["goes-on"]


def test_no_session_is_said_in_a_sentence(store: Path, tmp_path_factory: Any) -> None:
    assert "No session meets these conditions." in run(sessions, "--store", str(store), "--text", "nothing of this")
    empty = tmp_path_factory.mktemp("empty")
    fill(empty)
    assert "No sessions yet" in run(sessions, "--store", str(empty))


@pytest.mark.parametrize(
    ("command", "arguments", "complaint"),
    [
        (sessions, ["--spent", "lunch"], "--spent: 'lunch' names no part"),
        (sessions, ["--spent", "tools:many"], "--spent: 'many' is not a number"),
        (sessions, ["--since", "yesterday"], "--since: 'yesterday' is no time span"),
        (sessions, ["--first-token", "slow"], "--first-token: 'slow' is no time span: write it like 500ms or 2s"),
        (sessions, ["--limit", "0"], "--limit: '0' is not a number from 1"),
        (show, ["nobody"], "there is no session 'nobody'"),
        (show, ["a"], "3 ids contain it"),
        (show, ["chat-lost", "--limit", "x"], "--limit"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    store: Path, command: Callable[..., None], arguments: list[str], complaint: str
) -> None:
    with pytest.raises(Sorry, match=re.escape(complaint)):
        run(command, *arguments, "--store", str(store))


@pytest.mark.parametrize("command", [sessions, show])
def test_a_store_that_is_not_there_is_said_so(tmp_path: Path, command: Callable[..., None]) -> None:
    arguments = ["x"] if command is show else []
    with pytest.raises(Sorry, match="there is no turnscope store"):
        run(command, *arguments, "--store", str(tmp_path / "none"))


def test_all_sessions_are_summed_up_below_the_list_whatever_is_shown(store: Path) -> None:
    text = words(run(sessions, "--store", str(store), "--limit", "1"))
    assert "All 3 sessions:" in text
    assert "Reuse could spare them about 700 ms" in text
    assert "between 400 ms and 850 ms, in part assuming what a fetch takes" in text
    assert "Shown: 1 of them" in text


def test_first_tokens_stand_beside_completed_tasks(store: Path) -> None:
    told = json.loads(run(sessions, "--store", str(store), "--latency", "--json"))["latencies"]
    (prompt,) = [one for one in told if one["context_tokens"] is not None]
    assert (prompt["context_tokens"], prompt["ttft_ns"], prompt["task_latency_ns"]) == (1024, 900 * MS, 1000 * MS)
    assert "900 ms 1.00 s" in words(run(sessions, "--store", str(store), "--latency"))


def test_show_tells_the_parts_the_ceiling_the_tasks_and_the_turns(store: Path) -> None:
    text = words(run(show, "chat-lost", "--store", str(store)))
    assert "# Input processing 900 ms 90%" in text
    assert "Reuse would make it about 700 ms shorter (70% of its working time; estimated: nine times in" in text
    assert "nine times in ten between 400 ms and 850 ms), had what was computed again" in text
    assert "Had it cost nothing:" in text
    assert "if fetching takes what it took in the published reference: not measured here yet" in text
    assert "1 completed 900 ms 1.00 s" in text
    assert "no handle from decode" in text


def test_a_session_that_waits_for_tools_says_so_beside_the_ceiling() -> None:
    session = summarise("s", [turn("l", 0, 1000, **RECOMPUTED)], [span("x", SpanKind.TOOL, 1000, 11_000)])
    assert session is not None
    first, *_, last = ceiling_sentences(session.summary)
    assert first.startswith("Reuse would make it about 700 ms shorter (6% of its working time;")
    assert last == "Most of the time it waited for tools (91%), which no reuse can shorten."


def test_a_recompute_that_was_cheaper_than_a_fetch_is_said_to_be_no_loss() -> None:
    cheap = {"recompute_ns": MS, "recompute_low_ns": MS, "recompute_high_ns": 2 * MS}
    session = summarise("s", [turn("l", 0, 1000, **{**RECOMPUTED, **cheap})], [])
    assert session is not None
    assert ceiling_sentences(session.summary)[0].startswith("Reuse would not help: to fetch what was computed again")


def test_a_part_of_an_id_that_only_one_session_has_opens_it(store: Path) -> None:
    assert run(show, "scripted", "--store", str(store)).startswith("agent-scripted")
    assert run(show, "only", "--store", str(store)).startswith("spans-only")


def test_model_calls_whose_first_token_nobody_timed_are_told_apart_from_other_unknown_time(
    tmp_path_factory: Any,
) -> None:
    folder = tmp_path_factory.mktemp("dark")
    fill(folder, span("c", SpanKind.MODEL_CALL, 0, 600), span("d", SpanKind.MODEL_CALL, 900, 1000))
    text = words(run(show, "s", "--store", str(folder)))
    assert "2 model calls" in text
    assert "? Unknown 1.00 s 100% nothing tells in model calls 700 ms" in text
    assert "70% was in model calls whose first token nobody timed" in text
    assert "30% of the time is unknown: neither its requests nor spans tell what it was." in text


def test_what_is_inferred_is_said_to_be(store: Path, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("proxy")
    fill(folder, *scripted(3).turns)
    text = words(run(show, "s", "--store", str(folder)))
    assert "of the time is inferred from what came before and after it: tool wait" in text
    assert "upper bounds: the application's own work is in them" in text
    assert "inferred" not in words(run(show, "chat-lost", "--store", str(store))).lower().replace("inferred what", "")


def test_the_json_of_show_has_segments_that_sum_to_the_summary(store: Path) -> None:
    told = json.loads(run(show, "agent-scripted", "--store", str(store), "--json"))
    wall = sum(segment["end_ns"] - segment["start_ns"] for segment in told["segments"])
    assert wall == told["summary"]["wall_ns"] == sum(told["summary"][f"{part}_ns"] for part in Part)
    assert len(told["turns"]) == told["summary"]["turns"] == 16
    assert len(told["spans"]) == told["summary"]["spans"]


@pytest.mark.parametrize("columns", [80, 140])
def test_nothing_is_wider_than_the_window(store: Path, columns: int) -> None:
    for text in (
        run(sessions, "--store", str(store), columns=columns),
        run(show, "agent-scripted", "--store", str(store), columns=columns),
    ):
        assert max(map(cell_len, text.splitlines())) <= columns


@pytest.mark.parametrize("width", [6, 7, 40, 100])
def test_a_bar_is_as_wide_as_it_shall_be_and_shows_every_part_that_took_time(width: int) -> None:
    told = scripted(1)
    session = summarise("s", told.turns, told.spans)
    assert session is not None
    shown = bar(session.summary, width).plain
    assert len(shown) == width
    assert set(shown) == set("#=ta.")


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (10_000, "<0.1 ms"),
        (1_500_000, "1.5 ms"),
        (40 * MS, "40 ms"),
        (999_600_000, "1.00 s"),
        (12_340 * MS, "12.3 s"),
        (200_000 * MS, "3 min 20 s"),
        (3_599_700 * MS, "1 h 0 min"),
        (7_260_000 * MS, "2 h 1 min"),
    ],
)
def test_durations_are_read_at_a_glance(ns: int | None, shown: str) -> None:
    assert duration(ns) == shown


def test_a_share_is_none_or_all_only_where_it_is() -> None:
    assert [share(part, 1000) for part in (0, 1, 500, 999, 1000)] == ["0%", "<1%", "50%", ">99%", "100%"]


def test_a_session_too_large_to_be_taken_apart_says_so_in_both_commands(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnscope.store.summing.MOST_ROWS", 0)
    shown = words(run(show, "spans-only", "--store", str(store)))
    assert "It has 1 turns and spans, more than the 0 that are taken apart at once" in shown
    assert "What reuse could still spare is not known, since it was not taken apart." in shown
    listed = json.loads(run(sessions, "--store", str(store), "--json", "--text", "spans-only"))["sessions"]
    assert [(one["too_large"], one["unknown_ns"]) for one in listed] == [(True, 700 * MS)]


def test_show_says_what_the_reasons_of_its_turns_mean(tmp_path: Path) -> None:
    fill(
        tmp_path,
        turn("a", 0, 100, session_id="s", status="error", reason="none"),
        turn("b", 200, 300, session_id="s", reason="previous_turn_aborted"),
        turn("c", 400, 500, session_id="s", reason="of_a_newer_turnscope"),
    )
    text = run(show, "s", "--store", str(tmp_path))
    assert text.endswith("\n\nprevious turn aborted: The previous turn failed or was broken off.\n")


def test_the_list_says_what_stands_under_what_reuse_could_spare(store: Path) -> None:
    text = words(run(sessions, "--store", str(store)))
    for mark in ("; nothing: no turn", "; -: its turns could not", "; +: some of them could not"):
        assert mark in text
