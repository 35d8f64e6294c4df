"""The session page with every kind of session."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app import agent_session
from tests.app.agent_session import call
from tests.app.pages import opened, said
from tests.store.rows import fill, span, turn
from turnscope.shipped import LABELS_VARIABLE, LINKS_VARIABLE, TRACE_LINK_VARIABLE
from turnscope_app.zoom import View


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    agent_session.write(str(folder))
    return folder


def _links(at: AppTest) -> list[str]:
    return [element.proto.url for element in at.get("link_button")]


def test_what_matters_to_a_product_manager_comes_first(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("session", store, monkeypatch, id="desk-agent")
    assert not at.exception
    first, _, *steps = [m.value for m in at.markdown]
    assert first.startswith("**It took 1 min 10 s: 69 % of the time it waited for tools")
    assert "Reuse would make it about 860 ms shorter" in first
    assert steps[0].startswith(":violet-badge[for the application's team] Ask again, in a new session")
    assert steps[1].startswith(":blue-badge[for those who run the model servers] Until it is explained")
    assert at.warning[0].value.startswith("**1 turn may have a wrong answer**")
    assert [s.value for s in at.subheader][:2] == ["What happened when", "The story"]
    assert at.caption[0].value.startswith("application desk 3, agent critic")


def test_a_line_of_the_story_leads_to_its_turn_and_from_there_to_the_turn_before(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("session", store, monkeypatch, id="desk-agent")
    assert at.selectbox(key="session_turn").value == 6
    line = next(button for button in at.button if "18,204 tokens" in button.label)
    line.click().run()
    assert at.selectbox(key="session_turn").value == 3
    assert at.query_params["session_turn"] in ("3", ["3"])
    assert "18,704 were computed" in said(at)
    at.button(key="session_previous").click().run()
    assert at.selectbox(key="session_turn").value == 2
    assert not at.exception


def test_the_timelines_buttons_say_which_part_of_it_is_shown(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("session", store, monkeypatch, id="long-runner")
    for button in ("zoom_in", "zoom_in", "arrow_forward"):
        at.button(key=f"session_zoom_{button}").click().run()
    assert at.session_state["session_view"] == ("long-runner 1", View(0.5, 0.75))
    at.number_input(key="session_page").set_value(2).run()
    at.button(key="session_zoom_zoom_in").click().run()
    assert at.session_state["session_view"] == ("long-runner 2", View(0.25, 0.75))
    assert not at.exception


def test_a_turn_links_to_its_trace_where_somebody_said_where_traces_are(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _links(opened("session", store, monkeypatch, id="one-turn")) == []
    monkeypatch.setenv(TRACE_LINK_VARIABLE, "https://tempo.example/t/{trace_id}")
    assert _links(opened("session", store, monkeypatch, id="one-turn")) == [f"https://tempo.example/t/03{1:030x}"]
    monkeypatch.setenv(TRACE_LINK_VARIABLE, "javascript:alert({trace_id})")
    assert _links(opened("session", store, monkeypatch, id="one-turn")) == []


def test_an_applications_own_label_and_link_stand_on_its_session(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LABELS_VARIABLE, '{"desk": "Ticket {session}"}')
    monkeypatch.setenv(LINKS_VARIABLE, '{"desk": "https://traces.example/{session}"}')
    at = opened("session", store, monkeypatch, id="desk-agent")
    assert at.title[0].value == r"Ticket desk\-agent"
    assert "https://traces.example/desk-agent" in _links(at)


def test_4000_turns_come_a_hundred_at_a_time_and_a_link_to_one_opens_its_page(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened("session", store, monkeypatch, id="long-runner")
    assert not at.exception
    assert at.number_input(key="session_page").value == 1
    assert "Page of 100 turns, of 40" in at.number_input(key="session_page").label
    assert "100 of 4,000 turns are shown." in said(at)
    at = opened("session", store, monkeypatch, id="long-runner", session_turn="2350")
    assert at.number_input(key="session_page").value == 24
    assert at.selectbox(key="session_turn").value == 2350
    assert list(at.dataframe[-1].value["number"]) == list(range(2_301, 2_401))
    at.button(key="session_previous").click().run()
    assert at.selectbox(key="session_turn").value == 2349
    next(button for button in at.button if "80 turns" in button.label).click().run()
    assert not at.exception
    assert at.selectbox(key="session_turn").value % 50 == 0


def test_one_turn_and_half_a_day_of_waiting_are_shown_as_any(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("session", store, monkeypatch, id="one-turn")
    assert not at.exception
    assert "1 turn. Click one" in said(at)
    at = opened("session", store, monkeypatch, id="over-night")
    assert not at.exception
    assert "Long waits (⋯) are drawn shorter" in said(at)
    assert "tools or application, not separated" in next(e.label for e in at.expander)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in at.code[0].value


def test_a_session_of_an_agents_spans_alone_is_shown_without_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, span(1, kind="tool", tool_name="search"), turn(1, session_id="other"))
    at = opened("session", tmp_path, monkeypatch, id="s1")
    assert not at.exception
    assert "none of its model calls passed an engine" in said(at)
    assert not at.dataframe


def test_turns_that_belong_to_no_session_come_a_hundred_at_a_time_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, *(turn(n, session_id=None, turn_index=None) for n in range(1, 131)))
    at = opened("session", tmp_path, monkeypatch, unattributed="1", session_page="2")
    assert not at.exception
    assert list(at.dataframe[0].value["number"]) == list(range(101, 131))
    assert "30 of 130 turns are shown." in said(at)


def test_a_senseless_link_to_a_turn_opens_the_session(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted in ("9999999", "-1", "x", "²"):
        at = opened("session", store, monkeypatch, id="long-runner", session_turn=wanted)
        assert not at.exception, wanted
        assert at.number_input(key="session_page").value == 1


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\u202egnirts", "**b** $x$ :smile:", "x" * 10_000])
def test_hostile_names_of_agents_tools_and_models_are_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = call(1, 0, 2, 0.5, session="s1", model=name, status=name, stage=name, reason=name, suspicions=[name])
    tool = agent_session.ran(1, "tool", 2, 3, session="s1", tool_name=name, service_name=name)  # type: ignore[arg-type]
    fill(tmp_path, *rows, tool, agent_session.ran(2, "agent", 0, 4, session="s1", agent_name=name))  # type: ignore[arg-type]
    at = opened("session", tmp_path, monkeypatch, id="s1")
    assert not at.exception
    shown = said(at) + "".join(button.label for button in at.button)
    for raw in ("<script>", "\u202e", "**b**", "$x$", "x" * 300):
        assert raw not in shown
