"""The pages about a period with an empty, a normal, a filtered, a huge, a hostile and a broken store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import turnscope_app
from tests.app import period_sample, sample
from tests.store.rows import Clock, fill, turn, writer
from turnscope.shipped import STORE_VARIABLE
from turnscope.store import SummarisingWriter
from turnscope_app import data

MAIN = Path(turnscope_app.__file__).with_name("main.py")
PAGES = ("reuse", "retention", "tools", "suspicions", "about")
HOSTILE = (
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=document.title='pwned'>",
    "\u202egnirts \u2067rtl",
    "\x00\x07\x1b[31m",
    "**b** $x$ :smile: [a](http://x)",
    "x" * 10_000,
)


def _open(page: str, url: Path, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.setenv(STORE_VARIABLE, str(url))
    at = AppTest.from_file(str(MAIN), default_timeout=60)
    # Home is not what is looked at: it is left before it has asked the store.
    at.switch_page(f"views/{page}.py")
    for name, value in query.items():
        at.query_params[f"{page}_{name}"] = value
    return at.run()


def _said(at: AppTest) -> str:
    kinds = (at.title, at.markdown, at.info, at.warning, at.error, at.success, at.caption, at.text, at.subheader)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def _tables(at: AppTest) -> list[pd.DataFrame]:
    return [table.value for table in at.dataframe]


def _cards(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    period_sample.write(str(path))
    return path


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_missing_store_says_what_to_do(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = _open(page, tmp_path / "none", monkeypatch)
    assert not at.exception
    assert "There is no turnscope store at" in _said(at)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_broken_store_names_what_is_broken(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, turn(1))
    next(tmp_path.rglob("*.parquet")).write_bytes(b"no parquet")
    at = _open(page, tmp_path, monkeypatch)
    assert not at.exception
    assert "cannot be read" in at.error[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_an_empty_store_says_so(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer(tmp_path).close()
    at = _open(page, tmp_path, monkeypatch)
    assert not at.exception
    assert "The store is there, and it has no turns yet." in at.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_period_has_its_figures_with_what_they_mean(
    page: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(page, store, monkeypatch, period="All")
    assert not at.exception
    assert at.metric
    assert all(metric.help for metric in at.metric)
    assert "not measured" not in _cards(at).values()


@pytest.mark.parametrize("page", PAGES)
def test_a_link_with_filters_reopens_the_same_view(page: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = _open(page, store, monkeypatch, period="All")
    at = _open(page, store, monkeypatch, period="All", application="code-reviewer 0.9.1", model="qwen3-coder")
    assert not at.exception
    assert at.selectbox(key=f"{page}_application").value == "code-reviewer 0.9.1"
    assert (_cards(at), _said(at)) != (_cards(every), _said(every))
    again = _open(page, store, monkeypatch, period="Last hour")
    assert "Last hour" in [box.value for box in again.selectbox]
    assert not again.exception


@pytest.mark.parametrize("page", PAGES)
def test_filters_that_nothing_meets_say_so(page: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = _open(page, store, monkeypatch, period="All", application="code-reviewer 0.9.1", model="qwen3-32b")
    assert not at.exception
    assert "Clear one of them" in at.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_store_of_turns_alone_leaves_no_page_without_a_word(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, turn(1, session_id=None), turn(2, session_id=None))
    at = _open(page, tmp_path, monkeypatch)
    assert not at.exception
    assert at.info or at.success


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_outside_are_text_and_nothing_else(
    page: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(period_sample, "SESSIONS", 12)
    period_sample.write(str(tmp_path), names=name)
    at = _open(page, tmp_path, monkeypatch, period="All")
    assert not at.exception
    shown = [_said(at), *(str(option) for box in at.selectbox for option in box.options)]
    shown += [str(cell) for frame in at.dataframe for cell in frame.value.to_numpy().ravel()]
    for text in shown:
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert "x" * 200 not in text
    markdown = "\n".join(str(element.value) for kind in (at.markdown, at.subheader, at.warning) for element in kind)
    markdown = re.sub(r"\\.", "", markdown)  # what is escaped is shown as it is
    assert "<script>" not in markdown
    assert "<img" not in markdown
    assert "**b**" not in markdown


@pytest.mark.parametrize("page", PAGES)
def test_names_that_are_empty_are_said_to_be_missing(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, holds, spans = period_sample.rows()
    out = writer(tmp_path)
    for one in turns[:30]:
        one.model = one.prefill_engine = ""
        out.add_turn(one)
    for held in holds[:30]:
        out.add_hold(held)
    for span in spans[:30]:
        span.tool_name = span.service_name = ""
        out.add_span(span)
    out.close()
    at = _open(page, tmp_path, monkeypatch, period="All")
    assert not at.exception


def test_every_table_has_headings_with_units_and_sends_a_thousand_rows_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, *(turn(n, suspicions=["kv_mismatch"], net_gain_ns=-n) for n in range(1, 1_203)))
    for page, what in (("suspicions", "turns"), ("reuse", "turns")):
        at = _open(page, tmp_path, monkeypatch, period="All")
        assert max(len(frame.value) for frame in at.dataframe) == data.LIMIT
        assert f"1,000 of 1,202 {what} are shown." in _said(at)


def test_what_speaks_against_an_answer_is_told_and_leads_to_its_turn(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open("suspicions", store, monkeypatch, period="All")
    said = _said(at).replace("\\", "")
    for sentence in (
        "Reused memory of other text (kv mismatch)",
        "Proven: the prompt's text is not the one that the memory was made of",
        "The request diverges from the turn before in message 2, assistant",
        "2,310 characters before, 412 now",
        "left on decode-0 at",
        "up to 640 of the prompt's tokens, in what was fetched back",
        "What to do.",
    ):
        assert sentence in said
    assert at.title[0].value == "Suspicions"


def test_failures_are_no_suspicions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, turn(1, status="error"), turn(2))
    at = _open("suspicions", tmp_path, monkeypatch)
    assert _cards(at) == {"Possibly wrong answers": "none"}
    assert "No answer of this period is suspected." in at.success[0].value
    assert "1 turn of this period failed" in _said(at)


def test_without_spans_of_an_agent_the_page_says_how_to_send_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.write(str(tmp_path))
    at = _open("tools", tmp_path, monkeypatch)
    assert "No agent tells of its tools here" in _said(at)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in at.code[0].value


def test_first_tokens_stand_beside_whole_tasks_by_turn_and_by_length_of_the_prompt_once_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"has_attempt": True, "streamed": True, "last_role": "user", "tool_calls": 0}
    first = turn(1, turn_index=1, prompt_tokens=1500, ttft_ns=100_000_000, **told)
    fill(tmp_path, first, turn(2, turn_index=2, prompt_tokens=3000, ttft_ns=300_000_000, **told))
    SummarisingWriter(str(tmp_path), writer_id="w1", now=Clock(), clock_s=lambda: 0.0).close()
    assert [frame for frame in _tables(_open("tools", tmp_path, monkeypatch, period="All")) if "ttft" in frame] == []
    found = [
        frame
        for frame in _tables(_open("tools", tmp_path, monkeypatch, period="All", places="true"))
        if "ttft" in frame
    ]
    assert [frame["ttft"].tolist() for frame in found] == [[100, 300], [100, 300]]
    assert [frame[name].tolist() for frame, name in zip(found, ("turn_index", "context_tokens"), strict=True)] == [
        [1, 2],
        [1024, 2048],
    ]
    assert [frame["tasks"].tolist() for frame in found] == [[1, 1], [1, 1]]


def test_a_longer_pause_than_the_limit_is_said_to_be_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample.write(str(tmp_path))
    at = _open("retention", tmp_path, monkeypatch, period="All")
    assert _cards(at)["Next turns in time"] == "90 %"
    assert "2 turns came too late" in _said(at)


def test_a_process_that_fell_silent_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = _open("about", store, monkeypatch, period="All")
    assert "Decode engine decode" in at.warning[0].value
    assert _cards(at)["Clocks apart, at most"] == "3.4 ms"
    assert _cards(at)["Hooks seen"] == "4"


def test_every_widget_has_a_key_of_its_page(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in PAGES:
        at = _open(page, store, monkeypatch, period="All")
        widgets: list[Any] = [*at.selectbox, *at.button_group]
        assert widgets
        for widget in widgets:
            assert str(widget.key).startswith(f"{page}_")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_a_million_turns_in_fifty_thousand_sessions_are_shown(
    page: str, huge_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(page, huge_store, monkeypatch, period="All")
    assert not at.exception
    assert at.metric
    assert all(len(frame.value) <= data.LIMIT for frame in at.dataframe)
    if page == "about":
        assert "1,000,000 turns" in _said(at)
