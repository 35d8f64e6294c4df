"""Codex's rollout files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.decode.imports.sample import MS, lines, read, sample, seconds
from turnscope.decode.imports import codex
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind

META = {"timestamp": "2026-10-12T09:00:00Z", "type": "session_meta", "payload": {"id": "s"}}


def spans(kind: SpanKind) -> list[AgentSpan]:
    return [span for span in read(codex.read, sample("codex.jsonl"))[0] if span.kind == kind]


def event(second: float, type_: str, **payload: Any) -> dict[str, Any]:
    return _line(second, "event_msg", {"type": type_, **payload})


def item(second: float, type_: str, **payload: Any) -> dict[str, Any]:
    return _line(second, "response_item", {"type": type_, **payload})


def usage(second: float, total: int, last: int) -> dict[str, Any]:
    counts = ({"input_tokens": n, "output_tokens": 1} for n in (total, last))
    return event(second, "token_count", info=dict(zip(("total_token_usage", "last_token_usage"), counts, strict=True)))


def _line(second: float, type_: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": f"2026-10-12T09:00:{second:06.3f}Z", "type": type_, "payload": payload}


def test_a_task_is_measured_from_its_two_events() -> None:
    first, second = spans(SpanKind.AGENT)
    assert (seconds(first), first.timing, first.status) == ((0.1, 8.1), "measured", "ok")
    assert first.time_to_first_token_ns == 1900 * MS
    assert (seconds(second), second.status, second.error_type) == ((38.1, 41.0), "error", "interrupted")


def test_a_model_call_goes_from_the_newest_input_to_its_usage() -> None:
    first, second, third = spans(SpanKind.MODEL_CALL)
    assert (seconds(first), first.timing, first.model) == ((0.13, 3.5), "inferred", "model-c")
    assert (first.input_tokens, first.cached_tokens, first.output_tokens, first.tool_calls) == (9000, 6000, 150, 2)
    assert (seconds(second), second.input_tokens, second.tool_calls) == ((5.6, 8.05), 9500, 0)
    assert (seconds(third), third.input_tokens, third.tool_calls) == ((38.13, 40.0), None, 1)


def test_a_usage_that_is_told_again_is_no_further_call() -> None:
    assert [call.input_tokens for call in spans(SpanKind.MODEL_CALL)] == [9000, 9500, None]


def test_a_usage_that_comes_after_the_tools_answers_belongs_to_the_call_before_them() -> None:
    given = [
        META,
        event(1, "user_message"),
        item(3, "function_call", call_id="c", name="shell"),
        item(8, "function_call_output", call_id="c"),
        usage(8.5, 70, 70),
        item(9, "message", role="assistant"),
        usage(9.5, 150, 80),
    ]
    calls = [span for span in read(codex.read, lines(given))[0] if span.kind == SpanKind.MODEL_CALL]
    assert [(seconds(call), call.input_tokens) for call in calls] == [((1.0, 3.0), 70), ((8.0, 9.5), 80)]


def test_a_command_that_tells_its_duration_is_measured_and_any_other_tool_inferred() -> None:
    patch, command, unfinished = spans(SpanKind.TOOL)
    assert (seconds(command), command.timing, command.status) == ((3.6, 5.0), "measured", "error")
    assert (seconds(patch), patch.timing, patch.status) == ((3.2, 5.6), "inferred", "ok")
    assert (unfinished.tool_name, unfinished.ended_ns, unfinished.timing) == ("local_shell", None, "unknown")


@pytest.mark.parametrize("duration", [{"secs": 99, "nanos": 0}, {"secs": -1, "nanos": 0}, 34, None])
def test_a_duration_that_cannot_be_is_not_used(duration: object) -> None:
    given = [
        META,
        item(1, "function_call", call_id="c", name="shell"),
        event(3, "exec_command_end", call_id="c", duration=duration),
        item(4, "function_call_output", call_id="c"),
    ]
    tool = next(span for span in read(codex.read, lines(given))[0] if span.kind == SpanKind.TOOL)
    assert (seconds(tool), tool.timing) == ((1.0, 4.0), "inferred")


def test_the_user_is_waited_for_between_two_tasks() -> None:
    (wait,) = spans(SpanKind.USER_WAIT)
    assert seconds(wait) == (8.1, 38.1)


def test_calls_and_tools_stand_in_their_task_and_all_in_their_parents_session() -> None:
    found, _ = read(codex.read, sample("codex.jsonl"))
    tasks = [span.span_id for span in found if span.kind == SpanKind.AGENT]
    inner = [span.parent_span_id for span in found if span.kind in (SpanKind.MODEL_CALL, SpanKind.TOOL)]
    assert set(inner) == set(tasks)
    assert {span.parent_session_id for span in found} == {"c0de0000-0000-7000-8000-000000000000"}


def test_a_task_that_the_file_does_not_end_has_no_duration() -> None:
    given = [META, event(1, "task_started", turn_id="a"), event(5, "task_started", turn_id="b")]
    found, _ = read(codex.read, lines(given))
    assert [(span.ended_ns, span.timing) for span in found] == [(None, "unknown"), (None, "unknown")]


def test_of_a_forks_two_metas_the_first_is_its_own() -> None:
    given = [META, {**META, "payload": {"id": "parent"}}, event(1, "task_started", turn_id="a")]
    assert [span.session_id for span in read(codex.read, lines(given))[0]] == ["s"]


def test_the_same_file_gives_the_same_keys_and_a_grown_one_newer_revisions() -> None:
    whole = sample("codex.jsonl")
    before = {span.span_key: span.revision for span in read(codex.read, whole[:8])[0]}
    after = {span.span_key: span.revision for span in read(codex.read, whole)[0]}
    assert before.keys() < after.keys()
    assert all(after[key] > revision for key, revision in before.items())


def test_what_comes_before_the_sessions_meta_or_is_broken_is_counted_and_left_out() -> None:
    given = [
        event(1, "task_started", turn_id="a"),
        META,
        "{",
        {**event(2, "task_started"), "timestamp": None},
        {**event(2, "task_started"), "timestamp": "0001-01-01T00:00:00Z"},
        {"type": "event_msg", "timestamp": "2026-10-12T09:00:00Z", "payload": {"type": 7}},
        event(3, "task_started", turn_id="b"),
        event(4, "task_complete", turn_id="b"),
    ]
    found, report = read(codex.read, lines(given))
    assert [seconds(span) for span in found] == [(3.0, 4.0)]
    assert [one.number for one in report.named] == [1, 3, 4, 5, 6]


def test_clocks_that_go_back_give_no_negative_duration() -> None:
    given = [
        META,
        event(9, "task_started", turn_id="a"),
        item(5, "function_call", call_id="c", name="x"),
        item(2, "function_call_output", call_id="c"),
        event(1, "task_complete", turn_id="a"),
    ]
    found, _ = read(codex.read, lines(given))
    assert all(span.ended_ns is None or span.ended_ns >= span.started_ns for span in found)


def test_tools_that_never_answer_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "MAX_WAITING", 3)
    calls = [item(n / 100, "function_call", call_id=f"c{n}", name="x") for n in range(50)]
    found, _ = read(codex.read, lines([META, *calls]))
    assert len({span.span_key for span in found if span.kind == SpanKind.TOOL}) == 50
