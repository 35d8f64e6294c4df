"""Every page with an empty, a normal, a filtered and a broken store."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from alerts.build import alerts
from alerts.rule import Alert
from tests.app import sample
from tests.app.pages import opened, said
from tests.store.rows import fill, turn, writer
from turnscope_app import data, fields, words

VIEWS = ("home", "sessions", "session", "about")
"""Those that show the store."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    sample.write(str(path))
    return path


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_of_a_missing_store_says_what_to_do(view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(view, tmp_path / "none", monkeypatch, id="x")
    assert not at.exception
    assert "There is no turnscope store at" in said(at)
    assert "turnscope serve" in said(at)


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_of_a_broken_store_names_what_is_broken(
    view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, turn(1))
    (tmp_path / "manifests/w1.json").write_text("{")
    at = opened(view, tmp_path, monkeypatch, id="s1")
    assert not at.exception
    assert "w1.json cannot be read" in said(at)


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_of_an_empty_store_says_so(view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer(tmp_path).close()
    at = opened(view, tmp_path, monkeypatch, id="s1")
    assert not at.exception
    assert not at.error
    assert "The store" in at.info[0].value


def test_the_list_shows_every_session_and_the_totals(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", store, monkeypatch)
    assert not at.exception
    assert "8 sessions." in said(at)
    frame: Any = at.dataframe[0].value
    assert list(frame["session"])[:2] == ["slow-reader", "cancelled-mid-answer"]
    assert {m.label: m.value for m in at.metric} == {
        "Sessions": "8",
        "Turns": "31",
        "Prompt tokens reused": "50 %",
        "Tokens fetched back": "8,961",
        "Possibly wrong answers": "2",
    }


def test_turns_without_a_session_id_stand_apart_and_are_explained(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", store, monkeypatch)
    assert "Turns without a session id" in [s.value for s in at.subheader]
    assert "2 turns came without a session id." in said(at)
    assert "1 of them did not come through the proxy" in said(at)
    at = opened("sessions", store, monkeypatch, sessions_check="Possibly wrong")
    assert "Turns without a session id" not in [s.value for s in at.subheader]


def test_every_place_names_the_same_number_of_sessions(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, about = (opened(view, store, monkeypatch) for view in ("sessions", "about"))
    card = {m.label: m.value for m in listed.metric}["Sessions"]
    assert card == str(len(listed.dataframe[0].value))
    assert f"\n{card} sessions." in said(listed)
    assert f"31 turns in {card} sessions, and 2 turns without a session id" in said(about)


def test_a_link_with_filters_opens_the_filtered_list(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(
        "sessions", store, monkeypatch, sessions_path=words.PATHS["mixed"].shown, sessions_check="Possibly wrong"
    )
    assert list(at.dataframe[0].value["session"]) == ["compacting-agent"]
    assert "1 session." in said(at)


def test_choosing_a_filter_narrows_the_list(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", store, monkeypatch)
    at.selectbox(key="sessions_reason").select("stuck").run()
    assert list(at.dataframe[0].value["session"]) == ["flaky-network"]


def test_a_page_shows_what_came_since_it_was_last_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, turn(1))
    assert opened("sessions", tmp_path, monkeypatch).metric[1].value == "1"
    fill(tmp_path, turn(2))
    data._version.clear()  # as after FRESH_SECONDS
    at = opened("sessions", tmp_path, monkeypatch)
    assert at.metric[1].value == "2"
    assert list(at.dataframe[0].value["turns"]) == [2]


def test_a_filter_that_nothing_meets_says_so(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", store, monkeypatch, sessions_text="no such session")
    assert "Clear one of them" in at.info[0].value
    assert not at.dataframe


def test_a_link_with_a_senseless_filter_opens_the_whole_list(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", store, monkeypatch, sessions_path="nonsense", sessions_sort="nonsense")
    assert not at.exception
    assert len(at.dataframe[-1].value) == 8


def test_one_session_is_told_turn_by_turn(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("session", store, monkeypatch, id="compacting-agent")
    assert not at.exception
    assert at.title[0].value == r"compacting\-agent"
    figures = {m.label: m.value for m in at.metric}
    assert {name: figures[name] for name in ("Turns", "Prompt tokens reused", "Tokens fetched back")} == {
        "Turns": "4",
        "Prompt tokens reused": "59 %",
        "Tokens fetched back": "2,426",
    }
    assert (figures["Tokens computed again"], figures["First token, median"]) == ("0", "68.9 ms")
    assert figures["Possibly wrong answers"] == "2"
    assert at.warning[0].value.startswith("**2 turns may have a wrong answer**")
    lines = [b.label.replace("\\", "") for b in at.button if str(b.key).startswith("session_line")]
    assert [line.split(":")[0] for line in lines[:2]] == [
        "Turn 3 may have a wrong answer",
        "Turn 4 may have a wrong answer",
    ]
    assert list(at.dataframe[-1].value["mark"]) == ["", "", "⚠", "⚠"]
    assert at.selectbox(key="session_turn").value == 3
    assert "853 tokens" in said(at)


def test_a_link_to_a_turn_tells_that_turn(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("session", store, monkeypatch, id="support-chat-4711", session_turn="2")
    assert at.selectbox(key="session_turn").value == 2
    assert "716 were fetched back" in said(at)


def test_every_figure_of_a_turn_is_there_with_its_unit_and_what_it_means(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"id": "support-chat-4711", "session_turn": "2"}
    assert not opened("session", store, monkeypatch, **query).table
    at = opened("session", store, monkeypatch, **query, session_details="true")
    told = {row["what"]: row for table in at.table for row in table.value.to_dict("records")}
    assert told["Fetched back"]["value"] == r"733\.2 kB"
    assert told["Prompt"]["value"] == "1,026 tokens"
    assert told["Kept for the next turn"]["value"] == r"Fetched by the next turn \(read\)"
    assert len(at.table) == len(fields.GROUPS)
    assert all(row["help"] for row in told.values())


def test_a_last_turns_hold_is_no_fault_and_one_that_ended_too_early_says_so(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("session", store, monkeypatch, id="slow-reader", session_turn="3")
    assert "This is normal: every session has a last turn." in said(at).replace("\\", "")
    at.selectbox(key="session_turn").select(2).run()
    assert "3 min 40 s too late" in said(at)
    assert list(at.dataframe[-1].value["hold_fate"]) == [
        "Let go before the next turn (ttl)",
        "Let go before the next turn (ttl)",
        "Nobody came back (ttl)",
    ]


def test_turns_without_a_session_id_have_a_page_that_says_what_to_do(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("session", store, monkeypatch, unattributed="1")
    assert at.title[0].value == "Turns without a session id"
    assert "X-Session-ID" in at.info[0].value
    assert len(at.dataframe[-1].value) == 2


@pytest.mark.parametrize("query", [{}, {"id": ""}, {"id": "nobody"}])
def test_a_session_page_without_a_session_leads_to_the_list(
    query: dict[str, str], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("session", store, monkeypatch, **query)
    assert not at.exception
    assert len(at.info) == 1
    assert not at.dataframe


@pytest.mark.parametrize("session_id", ["<script>alert(1)</script>", "\u202egnirts", "**b** $x$ :smile:", "x" * 10_000])
def test_a_hostile_session_id_is_text_and_nothing_else(
    session_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, turn(1, session_id=session_id, prompt_tokens=5, model=session_id))
    at = opened("sessions", tmp_path, monkeypatch)
    assert not at.exception
    at = opened("session", tmp_path, monkeypatch, id=session_id)
    assert not at.exception
    assert "Of the prompt's 5 tokens" in said(at) or "prompt had 5 tokens" in said(at)
    title = at.title[0].value
    assert "<script>" not in title
    assert "\u202e" not in title
    assert "**b**" not in title
    assert len(title) < 250


def test_the_about_page_tells_what_is_covered_and_explains_every_word(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("about", store, monkeypatch)
    assert not at.exception
    assert "33 turns: 31 turns in 8 sessions, and 2 turns without a session id" in said(at)
    coverage, *vocabularies = [table.value for table in at.table]
    assert "Why the others lack it" in coverage
    named = "\n".join(word for frame in vocabularies for word in frame.iloc[:, 0])
    for word in (w for table in (words.PATHS, words.REASONS, words.SUSPICIONS, words.FATES) for w in table.values()):
        assert f"**{word.plain}**  \n`{word.value}`" in named


def test_at_most_a_thousand_rows_are_sent_and_the_true_total_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, *(turn(n, session_id="long", prompt_tokens=1) for n in range(1, 1_203)))
    at = opened("session", tmp_path, monkeypatch, id="long")
    assert len(at.dataframe[-1].value) == 100
    assert "100 of 1,202 turns are shown." in said(at)
    at = opened("session", tmp_path, monkeypatch, id="long", session_page="13")
    assert list(at.dataframe[-1].value["number"]) == [1_201, 1_202]


def test_every_widget_has_a_key_of_its_page(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for view, query in {"sessions": {}, "session": {"id": "support-chat-4711"}}.items():
        at = opened(view, store, monkeypatch, **query)
        widgets = [*at.selectbox, *at.text_input, *at.button_group]
        assert widgets
        for widget in widgets:
            assert str(widget.key).startswith(f"{view}_")


def test_an_alerts_address_opens_its_runbook_whatever_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "TurnscopeKvMismatch.md"
    address = Alert(name=name[:-3], severity="", expr="", wait="", wait_reason="", summary="", description="")
    (asked,) = parse_qs(urlsplit(address.runbook_url).query).items()
    at = opened("runbooks", tmp_path / "none", monkeypatch, **{asked[0]: asked[1][0]})
    assert not at.exception
    assert urlsplit(address.runbook_url).path == "/runbooks"
    assert at.markdown[0].value.startswith("# TurnscopeKvMismatch")
    assert "](/sessions?sessions_period=Last+hour&sessions_suspicion=Reused+memory" in at.markdown[0].value
    assert "127.0.0.1:8501" not in at.markdown[0].value


def test_without_an_alert_the_runbooks_are_there_to_choose_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("runbooks", tmp_path / "none", monkeypatch)
    assert not at.exception
    assert {alert.name for alert in alerts()} == set(at.selectbox[0].options)
    assert "Choose the alert that fired" in said(at)
    listed = at.markdown[-1].value
    assert all(f"[{alert.name}](/runbooks?runbooks_file={alert.name}.md): " in listed for alert in alerts())


def test_a_runbook_that_is_not_there_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("runbooks", tmp_path / "none", monkeypatch, runbooks_file="TurnscopeBogus*.md")
    assert "There is no runbook TurnscopeBogus\\*" in at.warning[0].value
    assert at.selectbox[0].value is None


def test_a_period_that_is_not_there_is_said_so(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for view in ("home", "sessions", "reuse"):
        at = opened(view, store, monkeypatch, **{f"{view}_period": "bogus"})
        assert any("no period bogus" in warning.value for warning in at.warning), view
