"""The list of sessions: every filter narrows it, every order orders it, a page at a time."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from dashboards.reading import panels
from tests.app.pages import opened, said
from tests.app.test_explore_home import filled, session
from tests.store.rows import SECOND
from turnscope import shipped
from turnscope.semconv import Part
from turnscope.shipped import LABELS_VARIABLE, LINKS_VARIABLE
from turnscope_app import filters, opted, words


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(
        tmp_path_factory.mktemp("store"),
        session(1, 0),
        session(
            2,
            9,
            wall_ns=90 * SECOND,
            tool_wait_ns=80 * SECOND,
            applications=["desk 2"],
            agents=["planner"],
            models=["big"],
            deployments=["prod"],
            engines=["p0"],
            paths=["mixed"],
            reasons=["stuck"],
            suspicions=["kv_mismatch"],
            suspicious_turns=1,
            failed_turns=1,
            errors=3,
        ),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "S2"),
        ("applications", "desk 2"),
        ("agents", "planner"),
        ("period", "Last hour"),
        ("check", "Possibly wrong"),
        ("check", "Not answered"),
        ("check", "Errors"),
        ("path", words.PATHS["mixed"].shown),
        ("reason", words.REASONS["stuck"].shown),
        ("suspicion", words.SUSPICIONS["kv_mismatch"].shown),
        ("longer", "1 min"),
        ("models", "big"),
        ("deployments", "prod"),
        ("engines", "p0"),
    ],
)
def test_a_link_with_a_filter_opens_the_narrowed_list(
    name: str, value: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(opened("sessions", store, monkeypatch).dataframe[0].value["session"]) == ["s2", "s1"]
    at = opened("sessions", store, monkeypatch, **{f"sessions_{name}": value})
    assert not at.exception
    assert list(at.dataframe[0].value["session"]) == ["s2"]
    assert "1 session." in said(at)
    assert at.expander[0].proto.expanded == (name in filters.MORE)


OF_PANELS = {
    link["url"].removeprefix("${explorer}/sessions?")
    for _, panel in panels()
    for link in panel.get("links", [])
    if link["url"].startswith("${explorer}/")
}
OF_RUNBOOKS = {
    link.partition("?")[2]
    for book in shipped.runbooks().values()
    for link in re.findall(rf"<{shipped.EXPLORER}/sessions[^>]+", book)
}
LINKS = sorted(OF_PANELS | OF_RUNBOOKS)
"""To this list."""


def test_runbooks_and_panels_lead_here() -> None:
    assert len(OF_RUNBOOKS) > 10
    assert len(OF_PANELS) > 4


@pytest.mark.parametrize("link", LINKS)
def test_a_link_from_a_panel_or_a_runbook_sets_filters_that_the_list_has(
    link: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {name: value for name, (value,) in parse_qs(link, strict_parsing=True).items()}
    at = opened("sessions", store, monkeypatch, **query)
    assert not at.exception
    assert not at.warning
    plain = opened("sessions", store, monkeypatch)
    for name, value in query.items():
        # What is chosen, or the value that it stands for; as it was without the link where that is chosen anyway.
        assert at.session_state[name] == value or at.session_state[name] != plain.session_state[name]


def test_a_share_of_a_part_narrows_the_list(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"sessions_part": words.PARTS[Part.TOOL_WAIT].plain, "sessions_share": "75 %"}
    assert list(opened("sessions", store, monkeypatch, **query).dataframe[0].value["session"]) == ["s2"]


@pytest.mark.parametrize("sort", filters.SORTS)
def test_every_order_is_drawn(sort: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", store, monkeypatch, sessions_sort=sort)
    assert not at.exception
    assert list(at.dataframe[0].value["session"]) == (["s1", "s2"] if sort in _FIRST_IS_FIRST else ["s2", "s1"])


_FIRST_IS_FIRST = {
    "Oldest first",
    "Slowest task",
    "Slowest first token",
    "Most turns",
    "Most that reuse would save",
    "Most prompt tokens",
    "Most tokens computed again",
    "Most tokens fetched back",
    "Largest share of reading prompts",
    "Largest share of writing answers",
}
"""In these the two are equal, and go by id, or the first has more."""


def test_applications_and_agents_come_before_ids(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = list(opened("sessions", store, monkeypatch).dataframe[0].value.columns)
    assert columns[:3] == ["applications", "agents", "session"]


def test_an_application_that_opted_in_has_its_label_and_its_link(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LABELS_VARIABLE, '{"desk": "Ticket {session}"}')
    monkeypatch.setenv(LINKS_VARIABLE, '{"desk": "https://traces.example/s/{session}"}')
    frame = opened("sessions", store, monkeypatch).dataframe[0].value.set_index("session")
    assert list(frame.loc["s2", ["label", "link"]]) == ["Ticket s2", "https://traces.example/s/s2"]
    assert frame.loc["s1", ["label", "link"]].isna().all()


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("https://t.example/{session}", "https://t.example/a%2F%3Cb%3E%20%22"),
        ("http://t.example/{session}", None),
        ("javascript:{session}", None),
    ],
)
def test_a_link_is_https_with_the_id_escaped(template: str, made: str | None) -> None:
    assert opted.link({"desk": template}, ["desk 2"], 'a/<b> "') == made
    assert opted.link({"desk": template}, ["desktop 2"], "a") is None
    assert opted.link({"desk": template}, ["desk"], None) is None


def test_a_list_without_names_has_no_empty_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", filled(tmp_path, session(1, 0, applications=[])), monkeypatch)
    assert next(iter(at.dataframe[0].value.columns)) == "session"
    assert "deployments" not in at.dataframe[0].value.columns
    assert "sessions_applications" not in [box.key for box in at.selectbox]


def test_a_huge_list_comes_a_page_at_a_time_with_its_true_total(
    huge_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened("sessions", huge_store, monkeypatch)
    assert len(first.dataframe[0].value) == 1_000
    assert "1,000 of 50,000 sessions are shown." in said(first)
    last = opened("sessions", huge_store, monkeypatch, sessions_page="50")
    assert len(last.dataframe[0].value) == 1_000
    assert not set(last.dataframe[0].value["session"]) & set(first.dataframe[0].value["session"])
    assert not opened("sessions", huge_store, monkeypatch, sessions_page="5000").exception


def test_narrowing_a_list_leaves_a_page_that_is_no_more(huge_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened("sessions", huge_store, monkeypatch, sessions_page="50")
    at.text_input(key="sessions_text").input("agent-0000").run()
    assert not at.exception
    assert "100 sessions." in said(at)
    at.text_input(key="sessions_text").input("agent-00").run()
    assert not at.exception
    assert "1,000 of 10,000 sessions are shown." in said(at)
