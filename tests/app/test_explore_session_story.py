"""A session in sentences, with figures worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.app import agent_session
from tests.app.agent_session import MS, Rows, call, ran
from tests.app.told import numbers, whole
from tests.store.rows import SECOND, span, turn
from turnscope.measures.verdict import Verdict
from turnscope.model import Turn
from turnscope.semconv import NO_OBSTACLE, Reason, SpanKind
from turnscope.store.whole import Whole
from turnscope_app import cards, links, session_answer, session_story, text
from turnscope_app.advice import Owner
from turnscope_app.because import CLAUSES, because


def story(found: Whole) -> list[str]:
    rows = found.turns.select(session_story.READS).to_pylist()
    return [line.said for line in session_story.lines(rows, numbers(found), found.segments)[0]]


def _row(**changes: Any) -> dict[str, Any]:
    return {**dict.fromkeys(Turn.__struct_fields__), "reason": "none", **changes}


# --- why ------------------------------------------------------------------------------------------
def test_every_reason_that_stands_in_the_way_has_a_clause_and_no_other_has() -> None:
    quiet = {*NO_OBSTACLE, Reason.OTHER, Reason.UNKNOWN} - {Reason.BELOW_THRESHOLD}
    assert set(CLAUSES) == set(Reason) - quiet
    assert all(clause[0].islower() and not clause.endswith(".") for clause in CLAUSES.values())


@pytest.mark.parametrize(
    ("turn_", "said"),
    [
        (
            {"reason": "declined_expired", "late_by_ns": 12 * SECOND},
            "its handle had expired 12.00 s before",
        ),
        (
            {"reason": "declined_expired", "late_by_ns": -3 * SECOND, "late_by_error_ns": 5 * MS},
            "its handle was to expire within 3.00 s (give or take 5.0 ms)",
        ),
        ({"reason": "declined_expired"}, "its handle had expired, or was about to"),
        (
            {"reason": "prefix_diverged", "diverged_role": "user", "diverged_message": 3},
            "its history was not that of the turn before any more, from message 3 on (the client changed it)",
        ),
        ({"reason": "none"}, ""),
        ({"reason": "of a newer turnscope"}, ""),
    ],
)
def test_the_clause_has_the_turns_own_figures(turn_: dict[str, Any], said: str) -> None:
    assert because(_row(**turn_)) == said


# --- what happened --------------------------------------------------------------------------------
def test_the_story_tells_what_mattered_in_order_of_time(tmp_path: Path) -> None:
    assert story(whole(tmp_path, agent_session.desk_agent(), "desk-agent")) == [
        "Turn 2 fetched 9,000 tokens back in 72 ms, which saved about 420 ms.",
        "Between turn 2 and turn 3 it waited for tools for 41.20 s.",
        "Turn 3 read 18,204 tokens again (recomputed) because its handle had expired 12.00 s before; "
        "fetching would have saved about 860 ms (600 ms to 1.1 s).",
        "Turn 4 fetched 18,000 tokens back in 140 ms, which saved about 850 ms.",
        "Turn 6 may have a wrong answer (643 tokens): reused memory of other text (kv mismatch).",
    ]


def test_many_turns_with_one_obstacle_are_told_together_and_lead_to_the_costliest(tmp_path: Path) -> None:
    found = whole(tmp_path, agent_session.many(200), "long-runner")
    rows = found.turns.select(session_story.READS).to_pylist()
    lines, more = session_story.lines(rows, numbers(found), found.segments)
    assert [line.said.split(",")[0] for line in lines] == [
        "196 turns (1",
        "Turns 50",
    ]
    assert (lines[1].turn, more) == (200, 0)
    assert "read 22,000 tokens again (recomputed) because each time its handle had expired" in lines[1].said


def test_a_story_is_short_and_says_how_much_more_there_is(tmp_path: Path) -> None:
    reasons = [reason for reason in CLAUSES if reason != Reason.BELOW_THRESHOLD]
    rows: Rows = []
    for n, reason in enumerate(reasons, 1):
        rows += call(n, 5.0 * n, 5.0 * n + 2, 0.5, (0, 0, 100 * n, 50), kept=None, reason=reason)
    found = whole(tmp_path, rows, "desk-agent")
    lines, more = session_story.lines(
        found.turns.select(session_story.READS).to_pylist(), numbers(found), found.segments
    )
    assert (len(lines), more) == (session_story.LINES, len(reasons) - session_story.LINES)
    assert [line.turn for line in lines] == list(range(len(reasons) - session_story.LINES + 1, len(reasons) + 1))


def test_what_computing_cost_is_not_made_up(tmp_path: Path) -> None:
    rows = [
        *call(1, 0, 2, 0.5, kept=None),
        turn(2, session_id="desk-agent", reason="handle_not_given", recomputed_tokens=900, computed_tokens=950),
        turn(3, session_id="desk-agent", reason="no_handle_from_decode", computed_tokens=400),
    ]
    said = story(whole(tmp_path, rows, "desk-agent"))
    cause = "the proxy did not pass its handle on"
    assert f"Turn 2 read 900 tokens again (recomputed) because {cause}; what that cost is not known." in said
    assert any(line.endswith("how many of them once more is not known.") for line in said)


def test_an_obstacle_that_cost_nothing_is_not_told(tmp_path: Path) -> None:
    rows = [*call(1, 0, 2, 0.5, kept=None), *call(2, 4, 6, 0.5, (0, 0, 0, 900), kept=None, reason="handle_not_given")]
    assert not any(line.startswith("Turn 2 ") for line in story(whole(tmp_path, rows, "desk-agent")))


def test_a_turn_after_a_cancelled_one_names_it_and_what_reading_again_took(tmp_path: Path) -> None:
    rows = [
        turn(1, turn_index=1),
        turn(2, turn_index=2, status="cancelled", stage="decode", suspicions=["kv_mismatch"], suspect_tokens=611),
        turn(
            3,
            turn_index=3,
            previous_turn_id=turn(2).turn_id,
            reason="previous_turn_aborted",
            recomputed_tokens=1_197,
            computed_tokens=1_197,
            ttft_prefill_ns=43 * MS,
            suspicions=["kv_mismatch"],
            mismatch_evidence="inferred",
            suspect_tokens=0,
            prompt_tokens=1_197,
            handoff_tokens=45,
            decode_computed_tokens=0,
            diverged_after=531,
        ),
    ]
    said = story(whole(tmp_path, rows, "s1"))
    assert "Turn 2 may have a wrong answer (611 tokens): reused memory of other text (kv mismatch)." in said
    assert "Turn 2 was broken off: the client went away, at decode." in said
    assert (
        "Turn 3 read 1,197 tokens again (recomputed) because turn 2 was cancelled and left nothing to fetch; reading "
        "its whole prompt took 43 ms." in said
    )
    assert (
        "Turn 3 may have a wrong answer: reused memory of other text (kv mismatch), by the server that writes answers "
        "(decode engine) from its own memory." in said
    )


def test_up_to_ten_turns_of_one_line_are_all_named(tmp_path: Path) -> None:
    ten = [turn(n, turn_index=n, status="error") for n in range(1, 11)]
    (said,) = story(whole(tmp_path / "ten", ten, "s1"))
    assert said == "Turns 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10 each ended with an error."
    (said,) = story(whole(tmp_path / "more", [*ten, turn(11, turn_index=11, status="error")], "s1"))
    assert said == "11 turns (1, 2, 3 and 8 more) each ended with an error."


def test_tokens_computed_again_at_an_unknown_cost_are_said_and_nothing_is_spared_of_them(tmp_path: Path) -> None:
    rows = [turn(1), turn(2, reason="previous_turn_aborted", recomputed_tokens=1_197, recompute_ns=None)]
    summary = whole(tmp_path, rows, "s1").summary
    assert session_answer.ceiling(summary) == (
        "What reuse could still spare is not known: 1,197 tokens were computed again, and no engine was measured often "
        "enough to tell what that cost."
    )
    card = next(card for card in cards.session(summary, whole(tmp_path, rows, "s1").turns) if "spare" in card.label)
    assert card.value == "not measured"


def test_a_fetch_that_lost_time_says_so(tmp_path: Path) -> None:
    rows = call(1, 0, 2, 0.5, (0, 100, 0, 5), kept=None, net_gain_ns=-30 * MS)
    assert story(whole(tmp_path, rows, "desk-agent")) == [
        "Turn 1 fetched 100 tokens back in 800 µs: computing them would have been about 30 ms faster."
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("error", "Turn 1 ended with an error, at prefill."),
        ("stuck", "Turn 1 waits for something that will never come (stuck), at prefill."),
        ("odd\u202e", r"Turn 1 ended as odd\u202e, at prefill."),
    ],
)
def test_a_turn_without_an_answer_says_how_it_ended(status: str, said: str, tmp_path: Path) -> None:
    assert story(whole(tmp_path, [turn(1, status=status, stage="prefill")], "s1")) == [said]


def test_waits_nobody_can_tell_of_are_no_story(tmp_path: Path) -> None:
    assert story(whole(tmp_path, [turn(1), turn(9)], "s1")) == []


# --- the answer -----------------------------------------------------------------------------------
def test_the_answer_names_the_three_largest_parts(tmp_path: Path) -> None:
    summary = whole(tmp_path, agent_session.desk_agent(), "desk-agent").summary
    assert session_answer.answer(summary) == (
        "It took 1 min 10 s: 69 % of the time it waited for tools, 15 % the model wrote, 10 % the agent's own program "
        "worked."
    )


def test_the_ceiling_has_its_range_and_what_it_rests_on(tmp_path: Path) -> None:
    summary = whole(tmp_path, agent_session.desk_agent(), "desk-agent").summary
    assert session_answer.ceiling(summary) == (
        "Reuse would make it about 860 ms shorter (1 % of its working time; estimated: nine times in ten between 600 "
        "ms and 1.1 s), had what was computed again (18,204 tokens) been fetched back instead, by what fetching took "
        "on these engines."
    )


@pytest.mark.parametrize(
    ("rows", "begins"),
    [
        ([span(1, kind="tool")], "What reuse could still spare is not known: none of its model calls passed"),
        ([turn(1)], "What reuse could still spare is not known: of 1 turn nobody can tell what was computed"),
        (call(1, 0, 2, 0.5, session="s1"), "Reuse would not help: nothing was computed twice."),
        (
            call(1, 0, 2, 0.5, (0, 0, 500, 0), session="s1", recompute_high_ns=MS, recompute_ns=MS, recompute_low_ns=0),
            "Reuse would not help: to fetch what was computed again (500 tokens) would have taken as long",
        ),
    ],
)
def test_the_ceiling_says_when_reuse_would_not_help_or_nobody_knows(rows: Rows, begins: str, tmp_path: Path) -> None:
    assert session_answer.ceiling(whole(tmp_path, rows, "s1").summary).startswith(begins)


def test_what_is_inferred_or_unknown_is_said(tmp_path: Path) -> None:
    assert session_answer.doubts(whole(tmp_path, agent_session.desk_agent(), "desk-agent").summary) == []
    inferred, *_ = session_answer.doubts(whole(tmp_path / "2", agent_session.idle(), "over-night").summary)
    assert inferred.startswith("All of this time was clocked. For over 99 % of it")
    (dark, between) = session_answer.doubts(whole(tmp_path / "3", [turn(1), turn(9)], "s1").summary)
    assert "whose first word nobody timed" in dark
    assert "it takes the proxy's hook, or the agent's spans" in between


def test_a_session_too_large_to_be_taken_apart_says_so_and_nothing_that_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = agent_session.desk_agent()
    monkeypatch.setattr("turnscope.store.summing.MOST_ROWS", len(rows) - 20)
    found = whole(tmp_path, rows, "desk-agent")
    assert (found.summary.too_large, found.activities, found.turns.num_rows) == (True, [], 6)
    assert session_answer.answer(found.summary) == "It took 1 min 10 s, and is too large to be taken apart."
    assert session_answer.ceiling(found.summary) == (
        "What reuse could still spare is not known, since it was not taken apart."
    )
    (doubt,) = session_answer.doubts(found.summary)
    assert f"more than the {len(rows) - 20} that are taken apart at once" in doubt
    (step,) = session_answer.next_steps(found.summary)
    assert step.owner is Owner.APPLICATION
    assert step.said.startswith("Give every run of the agent a session of its own")


def test_tools_and_application_are_said_to_be_separated_only_by_the_agents_spans(tmp_path: Path) -> None:
    assert session_answer.separated(whole(tmp_path, agent_session.desk_agent(), "desk-agent").summary)
    assert not session_answer.separated(whole(tmp_path / "2", agent_session.idle(), "over-night").summary)


# --- what to do -----------------------------------------------------------------------------------
def test_every_verdict_on_a_session_has_a_next_step() -> None:
    assert set(session_answer.STEPS) == set(Verdict) - {Verdict.REUSE_WOULD_HELP}


def test_the_next_step_has_an_owner(tmp_path: Path) -> None:
    ask, switch = session_answer.next_steps(whole(tmp_path, agent_session.desk_agent(), "desk-agent").summary)
    assert (ask.owner, ask.said[:28]) == (Owner.APPLICATION, "Ask again, in a new session,")
    assert switch.owner is Owner.SERVING
    assert switch.said.endswith("on this session's engines (decode-0 and prefill-0).")
    lost = call(1, 0, 2, 1.5, (0, 0, 18_000, 50), kept=None, reason="handle_not_given")
    (step,) = session_answer.next_steps(whole(tmp_path / "2", lost, "desk-agent").summary)
    assert step.said.startswith("Remove what is in the way of reuse. The proxy had seen a handle")
    tools = [ran(1, SpanKind.TOOL, 0, 60, tool_name="x")]
    first, *_ = session_answer.next_steps(whole(tmp_path / "3", [*tools], "desk-agent").summary)
    assert first.owner is Owner.TOOLS


# --- numbers and links ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (None, "not measured"),
        (0, "0 µs"),
        (855_588_000, "860 ms"),
        (1_070_000_000, "1.1 s"),
        (999_600_000, "1.0 s"),
        (41_200_000_000, "41 s"),
        (72_000_000, "72 ms"),
        (1_234_000, "1.2 ms"),
        (56_000, "56 µs"),
        (90_000_000_000, "1 min 30 s"),
    ],
)
def test_an_estimate_has_two_digits(ns: int | None, said: str) -> None:
    assert text.about(ns) == said


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert('{trace_id}')",
        "ftp://x/{trace_id}",
        "https://x/",
        "https://{trace_id}/",
        "https:///{trace_id}",
        "//x/{trace_id}",
        "https://x/{trace_id}\n",
        'https://x/"{trace_id}',
        "https://[x/{trace_id}",
        "",
    ],
)
def test_a_template_that_is_no_address_is_refused_and_never_becomes_a_link(template: str) -> None:
    with pytest.raises(ValueError, match="it "):
        links.checked(template)
    assert links.filled(template, "abc") is None


def test_a_link_has_the_id_escaped() -> None:
    assert (
        links.filled("https://tempo.example/t/{trace_id}?x=1", "a/b&<c>")
        == "https://tempo.example/t/a%2Fb%26%3Cc%3E?x=1"
    )
    assert links.filled(None, "abc") is None
    assert links.filled("https://x/{trace_id}", None) is None
