"""What the pages about a period show, without a browser: frames and sentences with figures worked out by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.store.rows import NOON
from turnscope import shipped
from turnscope.semconv import Suspicion
from turnscope.store.retention_queries import slot_begin_s
from turnscope_app import (
    about_frames,
    columns,
    doubt,
    period_charts,
    retention_frames,
    reuse_frames,
    steps,
    suspicion_frames,
    tool_frames,
)

HOUR = 3_600_000_000_000
_SHOWN = (
    reuse_frames.AVOIDABLE,
    reuse_frames.ENGINES,
    reuse_frames.WORST,
    retention_frames.GAPS,
    retention_frames.FATES,
    tool_frames.TOOLS,
    tool_frames.APPLICATIONS,
    tool_frames.BY_TURN,
    tool_frames.BY_PROMPT,
    tool_frames.EVALUATIONS,
    suspicion_frames.LISTED,
    about_frames.PROCESSES,
)


@pytest.mark.parametrize("shown", _SHOWN)
def test_every_column_has_a_heading_of_its_own_and_a_sentence(shown: tuple[columns.Column, ...]) -> None:
    assert all(column.heading and column.help.endswith(".") for column in shown)
    assert len({column.heading for column in shown}) == len(shown)
    assert len({column.key for column in shown}) == len(shown)


@pytest.mark.parametrize(
    ("hours", "step", "named"),
    [(0.01, 1e9, "1 second"), (1, 60e9, "1 minute"), (24, 3_600e9, "1 hour"), (24 * 7, 3 * 3_600e9, "3 hours")],
)
def test_a_period_is_drawn_in_steps_that_people_count_in(hours: float, step: float, named: str) -> None:
    assert steps.length(0, round(hours * HOUR)) == step
    assert steps.named(round(step)) == named


def test_a_period_of_centuries_is_drawn_in_the_longest_steps() -> None:
    assert steps.named(steps.length(0, 2**62)) == "28 days"


def test_steps_are_stacked_in_order_with_their_shares() -> None:
    frame = period_charts.steps([(0, "a", 1.0), (0, "b", 3.0), (HOUR, "b", 2.0)], HOUR)
    assert list(frame["low"]) == [0.0, 1.0, 0.0]
    assert list(frame["high"]) == [1.0, 4.0, 2.0]
    assert list(frame["share"]) == [0.25, 0.75, 1.0]


def test_times_outside_the_calendar_are_drawn_at_its_end() -> None:
    assert period_charts.moment(2**62).year < 10_000
    assert period_charts.moment(-5).year == 1970


def _course(*rows: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"at_ns": 0, "path": p, "reason": r, "turns": n} for p, r, n in rows])


def test_obstacles_leave_out_what_was_in_nobodys_way_and_name_the_frequent_ones() -> None:
    rows = [("recompute", f"newer_reason_{n}", n) for n in range(1, 9)]
    frame = reuse_frames.obstacles(_course(("mixed", "none", 50), *rows), HOUR)
    assert list(frame["what"]) == [
        *(f"newer_reason_{n}: {n} turns" for n in range(8, 2, -1)),
        f"{reuse_frames.OTHERS}: 3 turns",
    ]
    assert list(frame["turns"]) == [8, 7, 6, 5, 4, 3, 3]
    assert set(frame["most"]) == {8}


def test_what_ended_kept_memory_the_same_way_is_one_thing_over_time() -> None:
    rows = [{"at_ns": 0, "outcome": outcome, "level_tokens": 2.0} for outcome in ("lease", "aborted", "read", "ttl")]
    frame = retention_frames.held(pa.Table.from_pylist(rows), "level_tokens", HOUR)
    assert dict(zip(frame["what"], frame["value"], strict=True)) == {
        "Fetched by the next turn": 2.0,
        "Let go at the time limit": 2.0,
        "Missed or lost": 4.0,
    }


def test_a_path_of_a_newer_turnscope_is_drawn_as_unknown() -> None:
    frame = reuse_frames.paths(_course(("mixed", "none", 1), ("teleported", "none", 2), ("unknown", "none", 3)), HOUR)
    assert dict(zip(frame["what"], frame["value"], strict=True)) == {"Partly own, partly fetched": 1, "Unknown": 5}


def _gaps(*rows: tuple[str | None, int | None, int]) -> pa.Table:
    """Of (filled, slot, turns): all in time."""
    base: dict[str, Any] = {"too_late": 0, "not_kept": 0, "no_limit": 0, "ttl_low_ns": HOUR, "ttl_high_ns": 2 * HOUR}
    return pa.Table.from_pylist(
        [{**base, "filled": f, "slot": s, "turns": n, "in_time": n, "median_ns": 1, "p95_ns": 2} for f, s, n in rows]
    )


def test_the_curve_says_which_share_had_come_by_the_end_of_each_slot() -> None:
    gaps = _gaps(
        ("tool_wait", None, 4), ("tool_wait", 0, 1), ("tool_wait", 4, 3), ("unknown", None, 4), ("unknown", 4, 4)
    )
    frame = retention_frames.arrived(gaps)
    every = frame[frame["what"] == retention_frames.EVERY]
    assert list(every["share"]) == [0.0, 1 / 8, 1.0]
    assert list(every["seconds"]) == [1.0, slot_begin_s(1), slot_begin_s(5)]
    tools = frame[frame["what"] == "A tool ran"]
    assert list(tools["turns"]) == [0, 1, 4]
    assert retention_frames.limits(gaps) == [3_600.0, 7_200.0]


def test_all_pauses_together_stand_first() -> None:
    rows = retention_frames.by_filling(
        _gaps(("unknown", None, 4), ("tool_wait", None, 2), ("tool_wait", 3, 2), (None, None, 6))
    )
    assert [(row["name"], row["turns"]) for row in rows] == [("All pauses", 6), ("A tool ran", 2), ("Unknown", 4)]


def test_what_is_held_is_never_below_nothing() -> None:
    course = pa.Table.from_pylist(
        [{"at_ns": 0, "outcome": "read", "level_tokens": -1e-9}, {"at_ns": 0, "outcome": "ttl", "level_tokens": 5.0004}]
    )
    assert list(retention_frames.held(course, "level_tokens", HOUR)["value"]) == [0.0, 5.0]


def test_every_kind_of_suspicion_has_what_to_do_and_a_runbook() -> None:
    assert set(suspicion_frames.STEPS) == set(suspicion_frames.RUNBOOKS) == set(Suspicion)
    assert set(suspicion_frames.RUNBOOKS.values()) <= set(shipped.runbooks())


def _suspected(**changes: Any) -> dict[str, Any]:
    names = (
        *("turn_index", "session_id", "previous_turn_id", "previous_index", "prefill_engine", "decode_engine"),
        *("mismatch_evidence", "suspect_tokens", "prompt_tokens", "diverged_after", "diverged_before"),
        *("diverged_message", "diverged_role", "diverged_kind", "diverged_chars_before", "diverged_chars"),
        *("diverged_evidence", "late_by_ns", "late_by_error_ns", "held_engine", "held_started_ns", "held_held_ns"),
        *("held_outcome", "held_tokens", "held_late_notices", "held_late_notice_ns", "held_turn_index"),
        *("held_session_id", *doubt.READS, "stage"),
    )
    return {**dict.fromkeys(names), "started_ns": NOON, "status": "ok", "suspicions": ["kv_mismatch"], **changes}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({}, "Nothing that is in the store any more."),
        ({"previous_turn_id": "p", "previous_index": 4}, "The prompt and the answer of turn 4;"),
        ({"held_engine": "d0", "held_started_ns": 0, "held_turn_index": 2}, "What turn 2 left on d0 at 1970-01-01"),
        (
            {"held_engine": "d0", "held_started_ns": 0, "held_session_id": "other", "session_id": "mine"},
            "What an earlier turn of other left on d0",
        ),
        ({"diverged_after": 32, "diverged_before": 48}, "after its first 32 tokens: at position 48 at the latest."),
        ({"diverged_after": 0, "diverged_before": 16}, "from its first token on: at position 16 at the latest."),
        ({"diverged_message": 3, "diverged_role": "tool", "diverged_kind": "edited"}, "in message 3, tool (edited"),
        (
            {"late_by_ns": 2_000_000_000, "late_by_error_ns": 1_000_000},
            "2.00 s after what it is for was let go, give or take 1.0 ms",
        ),
        ({"held_late_notices": 2, "held_late_notice_ns": HOUR}, "2 readers' notices came after"),
        ({"suspicions": ["newer_kind"]}, "A newer turnscope knows what it is."),
        ({"mismatch_evidence": "lengths"}, "the prompt is shorter than what was kept for it"),
        ({"mismatch_evidence": "digests"}, "Proven: the prompt's text is not the one that the memory was made of"),
        ({"mismatch_evidence": "inferred"}, "Suspected (inferred): an earlier turn had put memory of another text"),
        ({"suspicions": ["stale_handle"]}, "Suspected: the order of events allows it."),
        ({"status": "ok"}, "The whole answer."),
        ({"status": "cancelled"}, "The client went away before the answer was complete."),
        (
            {"suspect_tokens": 611, "fetched_tokens": 1_142, "local_hit_tokens": 0},
            "up to 611 of the prompt's tokens, in what was fetched back from the server that writes answers",
        ),
        (
            {"suspect_tokens": 9, "fetched_tokens": 0, "local_hit_tokens": 16},
            "up to 9 of the prompt's tokens, in the own memory of the server that reads prompts",
        ),
        (
            {"suspect_tokens": 0, "prompt_tokens": 1_197, "handoff_tokens": 45, "diverged_after": 531},
            "The prompt was read anew, but the server that writes answers (decode engine) took the prompt's first "
            "1,152 tokens from its own memory. Up to 621 of them, from position 531 on,",
        ),
        ({"suspect_tokens": 0}, "Which memory it is about was not measured."),
    ],
)
def test_the_evidence_is_told_in_sentences(row: dict[str, Any], sentence: str) -> None:
    told = " ".join(said for _, said in suspicion_frames.evidence(_suspected(**row)))
    assert sentence in told


def test_what_doubt_means_is_said_with_how_sure_it_is_and_how_many_answers_were_given() -> None:
    said = suspicion_frames.meaning({"turns": 9, "answered": 7, "proven": 4})
    assert said.startswith("**7 of these answers were given to clients**; the other 2 failed or were broken off")
    assert "may rest on another text's memory" in said
    assert "For 4 of the 9 turns it is **proven**" in said
    assert "for the other 5 **suspected**" in said
    assert "**What to do:** ask again" in said
    sure = suspicion_frames.meaning({"turns": 9, "answered": 9, "proven": 9})
    assert "For all of the 9 turns" in sure
    assert "the other" not in sure


def test_a_session_says_how_many_answers_in_doubt_were_given_and_how_sure_it_is() -> None:
    shown = doubt.in_short(
        [
            _suspected(mismatch_evidence="digests", status="ok"),
            _suspected(mismatch_evidence="inferred", status="cancelled"),
            _suspected(suspicions=[], status="ok"),
        ]
    )
    assert shown.startswith("**2 turns may have a wrong answer**")
    assert "(proven for 1, suspected for 1). 1 of these answers" in shown


def test_processes_that_fell_silent_are_those_that_say_they_run_and_were_not_heard_of_late() -> None:
    base = {"kind": "engine", "role": "decode", "engine": "d0", "state": "started", "replayed": False}
    rows = [
        {**base, "engine": "d0", "ended_ns": 2 * HOUR},
        {**base, "engine": "d1", "ended_ns": HOUR},
        {**base, "engine": "d2", "ended_ns": HOUR, "state": "stopping"},
        {**base, "engine": "d3", "ended_ns": HOUR, "replayed": True},
    ]
    assert about_frames.silent(rows) == ["Decode engine d1"]


def test_versions_that_differ_are_pointed_out() -> None:
    rows = [{"vllm_version": "0.31", "version": "0.1"}, {"vllm_version": "0.32", "version": "0.1"}]
    vllm, hook = about_frames.versions(rows)
    assert vllm == "vLLM 0.31, 0.32. Several at once: figures may differ between them."
    assert hook == "turnscope's hook 0.1."


def test_what_could_be_changed_is_more_than_a_longer_limit() -> None:
    base: dict[str, Any] = {"too_late": 0, "p95_ns": 1_000_000_000}
    gaps = [
        {**base, "name": retention_frames.EVERY, "too_late": 5},
        {**base, "name": "A tool ran", "too_late": 3},
        {**base, "name": "A person was waited for", "too_late": 2},
    ]
    kept: dict[str, Any] = {"token_seconds": None, "all_byte_seconds": 10}
    fates = [
        {**kept, "fate": "read", "holds": 1, "byte_seconds": 3},
        {**kept, "fate": "no_session", "holds": 4, "byte_seconds": 7},
    ]
    longer, tools, people, shorter, nameless = retention_frames.remedies(gaps, [480.0], fates)
    assert "`decoder_kv_blocks_ttl`" in longer.said
    assert "70 % of memory and time went unread" in longer.said
    assert (tools.owner, "3 turns" in tools.said) == ("tools", True)
    assert (people.owner, "2 turns" in people.said) == ("application", True)
    assert "95 of 100 next turns came within 1.0 s, and memory is kept for 8 min 00 s" in shorter.said
    assert "4 times" in nameless.said
    assert retention_frames.remedies([{**base, "name": retention_frames.EVERY}], [1.5], []) == []


def test_nothing_of_doubtful_answers_is_counted_twice_in_the_figures_beside_each_other() -> None:
    every = {"turns": 128, "judged": 701, "sessions": 25, "answered": 108, "proven": 83}
    assert {card.label: card.value for card in suspicion_frames.counted(every)} == {
        "Possibly wrong answers": "128 turns",
        "Given to clients": "108 turns",
        "Proven": "83 turns",
        "Suspected": "45 turns",
    }


def test_a_kind_of_suspicion_is_text_and_nothing_else() -> None:
    kinds = suspicion_frames.kinds([{"kind": None}, {"kind": "**x**\u202e", "turns": 2}])
    assert list(kinds.values()) == ["\\*\\*x\\*\\*\\\\u202e\\: 2"]
