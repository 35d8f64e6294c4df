"""The home page: the period's answer from an empty, a normal, a narrowed and a huge store."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.app import sample
from tests.app.pages import opened, said
from tests.store.rows import HOUR, NOON, SECOND, fill, span, turn, writer
from turnscope.model import Ceiling, SessionSummary
from turnscope.shipped import DEMO_VARIABLE

HOSTILE = ["<script>alert(1)</script>", "\u202egnirts", "**b** $x$ :smile:", "x" * 10_000, "a\x00b", " "]


def session(number: int, hours: float, **changes: Any) -> SessionSummary:
    """It ended so many hours after noon: 10 s of waiting for tools, 6 of writing, 4 of reading."""
    ended = NOON + int(hours * HOUR)
    values: dict[str, Any] = {
        "session_id": f"s{number}",
        "started_ns": ended - 20 * SECOND,
        "ended_ns": ended,
        "wall_ns": 20 * SECOND,
        "tool_wait_ns": 10 * SECOND,
        "generation_ns": 6 * SECOND,
        "input_processing_ns": 4 * SECOND,
        "input_prefill_ns": 4 * SECOND,
        "turns": 5,
        "spans": 5,
        "tools": 5,
        "applications": ["shop 1"],
        "sources": ["otlp", "proxy"],
        "prompt_tokens": 1_000,
        "source_tokens": 1_000,
        "reused_tokens": 500,
        "recomputed_tokens": 90,
        "paths": ["recompute"],
        "reasons": ["declined_expired"],
        "task_latency_median_ns": 20 * SECOND,
        "ceiling": Ceiling(
            free_ns=SECOND,
            fetched_ns=SECOND // 2,
            fetched_low_ns=SECOND // 4,
            fetched_high_ns=SECOND,
            judged_turns=5,
            transfer="measured",
        ),
    }
    return SessionSummary(**{**values, **changes})


def filled(url: Path, *sessions: SessionSummary) -> Path:
    """A store of these summaries, each with turns and spans to show for it."""
    out = writer(url)
    number = 0
    for one in sessions:
        out.add_session(one)
        for _ in range(one.turns):
            number += 1
            out.add_turn(turn(number, session_id=one.session_id, started_ns=one.started_ns, ended_ns=one.ended_ns))
        for _ in range(one.spans):
            number += 1
            out.add_span(span(number, session_id=one.session_id, started_ns=one.started_ns, ended_ns=one.ended_ns))
    out.close()
    return url


def cards(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def test_the_answer_is_three_sentences_computed_from_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("home", filled(tmp_path, session(1, 0), session(2, 1)), monkeypatch)
    assert not at.exception
    assert [m.value for m in at.markdown[:3]] == [
        "40.00 s of session time: **50 % waiting for tools**, 30 % writing the answer, 20 % reading the prompt.",
        "**9 % of the input was read again** although it had been read before (180 tokens, recomputed). That took 5 % "
        "of the agents' working time, and fetching it back would have saved 50 % of that.",
        "**Fetching back all of that would save about 2 % of the agents' working time** (estimated: nine times in ten "
        "between 1 % and 5 %): 1.0 s in all.",
    ]


def test_the_verdict_names_its_owner_and_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(opened("home", filled(tmp_path, session(1, 0, suspicious_turns=1)), monkeypatch))
    assert "**1. Some answers may be wrong.**" in text
    assert ":blue-badge[for those who run the model servers] Read the evidence of one of them." in text
    assert "**2. Tools are where the time goes.**" in text
    assert ":orange-badge[for the tools' owners] Make the slowest tools faster." in text
    assert ":violet-badge[for the application's team] Let tools that do not need each other run" in text
    assert "1 turn may have a **wrong answer**.  \n:blue-badge[for those who run the model servers]" in text
    assert ":orange-badge[Perhaps] It would save about 2 % of the agents' working time" in text


def test_what_reuse_would_save_is_one_number_on_one_base_wherever_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gain = Ceiling(
        free_ns=3 * SECOND,
        fetched_ns=2 * SECOND,
        fetched_low_ns=SECOND,
        fetched_high_ns=3 * SECOND,
        judged_turns=5,
        transfer="measured",
    )
    waited = session(1, 0, wall_ns=40 * SECOND, user_wait_ns=20 * SECOND, ceiling=gain)
    at = opened("home", filled(tmp_path, waited), monkeypatch)
    text = said(at)
    assert cards(at)["Could be saved, about"] == "10 %"
    assert text.count("about 10 % of the agents' working time") == 3
    assert text.count("nine times in ten between 5 % and 15 %") == 3
    assert text.count("5 % of all session time") == 1


def test_the_engines_of_doubtful_answers_are_named_and_reuse_waits_for_their_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gain = Ceiling(free_ns=SECOND, fetched_ns=SECOND, fetched_low_ns=SECOND, fetched_high_ns=SECOND, judged_turns=5)
    doubtful = session(1, 0, suspicious_turns=1, failed_turns=1, failed_tasks=2)
    doubtful.ceiling, doubtful.engines = gain, ["prefill-0", "decode-0"]
    at = opened("home", filled(tmp_path, doubtful), monkeypatch)
    text = said(at)
    assert "in the worst session\\. It was served by prefill\\-0 and decode\\-0" in text
    assert "**3. Tasks failed.** 2 tasks of" in text
    first = next(link.proto for link in at.get("page_link") if link.proto.label == "Begin there")
    assert parse_qs(first.query_string)["suspicions_session"] == [doubtful.session_id]
    assert "**4. Reuse would help, once step 1 is explained.**" in text
    assert "First finish step 1" in text
    assert "1 turn got **no answer**: failed, cancelled or stuck.  \n:blue-badge[" in text
    assert "2 tasks **failed**.  \n:violet-badge[for the application's team] Open one" in text


def test_turns_without_an_answer_come_before_slowness_and_the_step_opens_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [session(number, 0) for number in range(1, 9)] + [session(9, 0, failed_turns=1)]
    store = filled(tmp_path, *failing)
    at = opened("home", store, monkeypatch, home_application="shop 1")
    told = said(at)
    assert told.index("**1. Turns are not answered.**") < told.index("**2. Tools are where the time goes.**")
    narrowed = {"sessions_period": ["All"], "sessions_applications": ["shop 1"], "sessions_check": ["Not answered"]}
    narrowed["sessions_sort"] = ["Most not answered"]
    first = next(link.proto for link in at.get("page_link") if link.proto.label == "Begin there")
    assert (first.page, parse_qs(first.query_string)) == ("sessions", narrowed)
    opened_by_it = opened("sessions", store, monkeypatch, **{key: one for key, [one] in narrowed.items()})
    assert "1 session." in said(opened_by_it)


def test_sessions_without_an_application_are_accounted_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = session(2, 0, applications=[], spans=0)
    text = said(opened("home", filled(tmp_path, session(1, 0), nameless), monkeypatch))
    assert "1 of 2 sessions is in no row: no spans of an agent came" in text


def test_every_part_has_a_card_with_what_it_is_and_how_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("home", filled(tmp_path, session(1, 0)), monkeypatch)
    assert cards(at)["Waiting for tools (tool wait)"] == "50 %"
    assert cards(at)["Reading the prompt (input processing)"] == "20 %"
    assert all("Measured" in metric.help for metric in at.metric if "(" in metric.label)
    assert not any("apart" in expander.label for expander in at.expander)


def test_without_spans_tools_and_application_are_not_separated_and_it_says_how_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inferred = session(1, 0, spans=0, tools=None, tool_wait_inferred_ns=10 * SECOND, inferred_ns=10 * SECOND)
    at = opened("home", filled(tmp_path, inferred), monkeypatch)
    assert cards(at)["Outside the model: tools or application (tool wait, not separated)"] == "50 %"
    known = next(caption for caption in at.caption if "inferred" in caption.value)
    assert known.value.startswith("All of this time was clocked. For 50 % of it, what it was spent on is told by")
    assert "a tool's result or a person's message" in known.help
    assert [expander.label for expander in at.expander] == [
        "Tools or application? Four lines of the agent's environment tell them apart"
    ]
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=" in at.code[0].value
    assert ":violet-badge[for the application's team] Send the agent's spans here" in said(at)


def test_the_period_and_the_application_narrow_the_answer_and_are_in_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path, session(1, 0), session(2, 5, applications=["desk 2"]), session(3, 5))
    assert "3 sessions, 15 turns" in said(opened("home", store, monkeypatch, home_period="All"))
    assert "2 sessions, 10 turns" in said(opened("home", store, monkeypatch, home_period="Last hour"))
    narrowed = opened("home", store, monkeypatch, home_period="Last hour", home_application="desk 2")
    assert "1 session, 5 turns" in said(narrowed)


def test_a_period_is_compared_with_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slower = session(2, 1.5, task_latency_median_ns=40 * SECOND)
    alone = opened("home", filled(tmp_path / "alone", slower), monkeypatch, home_period="Last hour")
    assert "No session ended in the period before" in said(alone)
    at = opened("home", filled(tmp_path / "both", session(1, 0), slower), monkeypatch, home_period="Last hour")
    changes = {metric.label: metric.delta for metric in at.metric if metric.delta}
    assert changes["Whole task, median"] == "+100 %"
    assert changes["Sessions"] == "no change"


def test_the_sessions_to_open_are_named_by_application_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("home", filled(tmp_path, session(1, 0, agents=["planner"])), monkeypatch)
    links = [link.proto.label for link in at.get("page_link")]
    assert r"shop 1 · planner · s1" in links
    assert "The slowest session" in said(at)
    assert "The worst session" not in said(at)


def test_the_recorded_sample_has_an_answer_without_summaries_or_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.write(str(tmp_path))
    at = opened("home", tmp_path, monkeypatch)
    assert not at.exception
    assert "8 sessions, 31 turns" in said(at)
    assert "Some answers may be wrong" in said(at)


def test_turns_without_a_session_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, turn(1, session_id=None), turn(2, session_id=""))
    at = opened("home", tmp_path, monkeypatch)
    assert not at.exception
    assert "2 turns came, none of them with a session id" in at.info[0].value
    assert "X-Session-ID" in at.info[0].value


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_and_nothing_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = session(1, 0, session_id=name, applications=[name], agents=[name], models=[name], suspicious_turns=1)
    at = opened("home", filled(tmp_path, hostile), monkeypatch)
    assert not at.exception
    text = said(at)
    assert "<script>" not in text
    links = [link.proto.label for link in at.get("page_link")]
    for shown in (*links, text):
        assert "\u202e" not in shown
        assert "\x00" not in shown
    assert max(map(len, links)) < 400


def test_demo_data_say_so_and_others_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path, session(1, 0))
    assert "Demo data" not in said(opened("home", store, monkeypatch))
    monkeypatch.setenv(DEMO_VARIABLE, "Recorded.")
    assert opened("home", store, monkeypatch).info[0].value == "**Demo data.** Recorded."


def test_every_page_says_what_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path, session(1, 0))
    for view in ("home", "sessions", "about"):
        assert "not how good they are" in said(opened(view, store, monkeypatch))


def test_a_huge_store_is_answered_from_its_summaries(huge_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("home", huge_store, monkeypatch, home_period="All")
    assert not at.exception
    assert "50,000 sessions, 1,000,000 turns" in said(at)
    assert len(at.dataframe[0].value) == 10


def test_absurd_times_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absurd = session(1, 0, started_ns=-(2**63), ended_ns=2**63 - 1, wall_ns=2**63 - 1, generation_ns=2**63 - 1)
    at = opened("home", filled(tmp_path, absurd, session(2, 0)), monkeypatch)
    assert not at.exception
