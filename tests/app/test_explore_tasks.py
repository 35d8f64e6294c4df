"""The tasks of a session, as its page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.app import agent_session
from tests.app.pages import opened, said
from tests.store.rows import SECOND, fill, span
from turnscope.model import Evaluation, Task
from turnscope_app import task_table


def task(number: int = 1, **changes: Any) -> Task:
    values: dict[str, Any] = {
        "number": number,
        "started_ns": 1_796_040_000 * SECOND,
        "outcome": "completed",
        "first_token_ns": SECOND // 2,
        "latency_ns": 60 * SECOND,
        "tool_wait_ns": 45 * SECOND,
        "generation_ns": 15 * SECOND,
    }
    return Task(**{**values, **changes})


def test_the_first_token_stands_beside_the_whole_task_and_its_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, *agent_session.desk_agent())
    at = opened("session", tmp_path, monkeypatch, id="desk-agent")
    assert not at.exception
    (one,) = at.dataframe[0].value.to_dict("records")
    assert (one["outcome"], one["first_token"], one["latency"]) == ("completed", 0.9, 69.5)
    assert (one["turns"], one["tools"], one["errors"], one["recomputed_tokens"]) == (6, 5, 1, 18_204)
    assert "evaluations" not in one
    assert one["mostly"] == "Waiting for tools, 69 %"
    cards = [metric.label for metric in at.metric]
    assert cards.index("Whole task, median") == cards.index("First token, median") + 1


def test_an_evaluation_and_the_deployment_are_shown_of_a_session_of_spans_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"evaluation_name": "solved", "evaluation_label": "no", "evaluation_score": 0.25}
    fill(tmp_path, span(1, kind="agent", deployment="prod", **told))
    at = opened("session", tmp_path, monkeypatch, id="s1")
    assert at.dataframe[0].value["evaluations"].tolist() == ["solved: no"]
    assert "in prod, from" in said(at)


def test_an_agent_whose_spans_came_is_not_asked_for_them_but_for_the_first_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, span(1, kind="agent"), span(2, kind="model_call", started_ns=span(1).started_ns))
    at = opened("session", tmp_path, monkeypatch, id="s1")
    assert "Send the agent's spans" not in said(at)
    assert "tells when the first word came" in said(at)


def test_of_an_evaluation_what_there_is_is_said() -> None:
    results = [Evaluation(name="quality", score=0.25), Evaluation(label="good"), Evaluation(name="tone", label="kind")]
    frame = task_table.frame([task(evaluations=results), task(2)])
    assert frame["evaluations"].tolist() == ["quality: 0.25, good, tone: kind", ""]


def test_what_was_not_measured_is_missing_and_of_many_tasks_the_first_are_shown() -> None:
    frame = task_table.frame([task(n, first_token_ns=None, latency_ns=None) for n in range(1, 1_200)])
    assert len(frame) == task_table.MOST
    assert frame["first_token"].isna().all()
    assert frame["latency"].isna().all()


def test_names_that_somebody_gave_an_evaluation_are_harmless() -> None:
    frame = task_table.frame([task(evaluations=[Evaluation(name="a\u202eb", label="x")])])
    assert "\u202e" not in frame["evaluations"][0]
