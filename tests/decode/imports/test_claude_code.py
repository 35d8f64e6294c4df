"""Claude Code's session files."""

from __future__ import annotations

import pytest

from tests.decode.imports.sample import NINE_NS, lines, read, sample, seconds
from turnscope.decode.imports import claude_code
from turnscope.decode.imports.report import BadRecord, Broken
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind

SESSION = {"sessionId": "s", "version": "2.1"}


def spans(kind: SpanKind) -> list[AgentSpan]:
    return [span for span in read(claude_code.read, sample("claude-code.jsonl"))[0] if span.kind == kind]


def said(second: float, **changes: object) -> dict[str, object]:
    """A line of the main agent, so many seconds after nine."""
    return {**SESSION, "timestamp": f"2026-10-12T09:00:{second:06.3f}Z", **changes}


def user(second: float, content: object, **changes: object) -> dict[str, object]:
    return said(second, type="user", message={"role": "user", "content": content}, uuid=f"u{second}", **changes)


def assistant(second: float, request: str, content: list[object] | None = None, **usage: int) -> dict[str, object]:
    message = {"id": f"m-{request}", "model": "m", "content": content or [], "usage": usage}
    return said(second, type="assistant", requestId=request, message=message, uuid=f"a{second}")


def test_lines_that_repeat_a_requests_usage_are_one_model_call_with_the_last_of_it() -> None:
    first = spans(SpanKind.MODEL_CALL)[0]
    assert seconds(first) == (0.0, 5.0)
    assert (first.input_tokens, first.cached_tokens, first.output_tokens) == (21_003, 20_000, 120)
    assert (first.tool_calls, first.finish_reason, first.model, first.timing) == (2, "tool_use", "model-a", "inferred")


def test_a_model_call_begins_with_the_newest_input_before_it() -> None:
    assert [seconds(call) for call in spans(SpanKind.MODEL_CALL)] == [
        (0.0, 5.0),
        (6.0, 11.0),  # the subagent's
        (11.5, 14.0),  # after the last result, not the first
        (74.0, 80.0),
        (74.0, 84.0),
    ]


def test_a_tool_lasts_from_its_call_to_its_result_and_says_that_this_is_inferred() -> None:
    bash, task, unfinished = spans(SpanKind.TOOL)
    assert (seconds(bash), bash.timing, bash.tool_name, bash.status) == ((4.5, 9.0), "inferred", "Bash", "error")
    assert (unfinished.ended_ns, unfinished.timing, unfinished.status) == (None, "unknown", "unset")
    assert task.tool_call_id == "toolu_2"


def test_a_result_that_tells_its_duration_is_measured() -> None:
    task = spans(SpanKind.TOOL)[1]
    assert (seconds(task), task.timing) == ((6.3, 11.5), "measured")


def test_a_result_that_was_cut_within_a_character_is_a_result() -> None:
    asked = assistant(1, "r", [{"type": "tool_use", "id": "t", "name": "Bash"}])
    cut = user(4, [{"type": "tool_result", "tool_use_id": "t", "content": "a face: \ud83d"}])
    found, report = read(claude_code.read, lines([asked, cut]))
    tool = next(span for span in found if span.kind == SpanKind.TOOL)
    assert (seconds(tool), report.broken) == ((1.0, 4.0), 0)


@pytest.mark.parametrize("told", [{"durationMs": 9e9}, {"durationMs": -1}, {"durationMs": "x"}, "text", None])
def test_a_duration_that_cannot_be_is_not_used(told: object) -> None:
    given = lines(
        [
            assistant(1, "r", [{"type": "tool_use", "id": "t", "name": "Grep"}]),
            user(4, [{"type": "tool_result", "tool_use_id": "t"}], toolUseResult=told),
        ]
    )
    tool = next(span for span in read(claude_code.read, given)[0] if span.kind == SpanKind.TOOL)
    assert (seconds(tool), tool.timing) == ((1.0, 4.0), "inferred")


def test_the_user_is_waited_for_from_an_answer_without_tools_to_the_next_prompt() -> None:
    (wait,) = spans(SpanKind.USER_WAIT)
    assert (seconds(wait), wait.timing) == ((14.0, 74.0), "inferred")


def test_a_subagents_spans_carry_its_id_and_its_session() -> None:
    calls = spans(SpanKind.MODEL_CALL)
    assert [call.agent_id for call in calls] == [None, "ag-77", None, None, None]
    assert len({call.session_id for call in calls}) == 1


def test_an_error_of_the_api_is_named_by_its_word_and_not_by_its_message() -> None:
    failed = [call for call in spans(SpanKind.MODEL_CALL) if call.status == "error"]
    assert [(call.error_type, call.model) for call in failed] == [("rate_limit", None)]
    odd = {**assistant(1, "r"), "isApiErrorMessage": True, "error": {"message": "CANARY"}}
    (call,) = read(claude_code.read, lines([odd]))[0]
    assert (call.status, call.error_type) == ("error", "api_error")


def test_without_an_input_before_it_a_models_call_has_no_duration() -> None:
    (call,) = read(claude_code.read, lines([assistant(2, "r", output_tokens=5)]))[0]
    assert (seconds(call), call.timing, call.output_tokens) == ((2.0, None), "unknown", 5)


def test_the_same_file_gives_the_same_keys_and_a_grown_one_newer_revisions() -> None:
    whole = sample("claude-code.jsonl")
    before = {span.span_key: span.revision for span in read(claude_code.read, whole[:4])[0]}
    after = {span.span_key: span.revision for span in read(claude_code.read, whole)[0]}
    again = {span.span_key: span.revision for span in read(claude_code.read, whole)[0]}
    assert after == again
    assert before.keys() < after.keys()
    assert all(after[key] > revision for key, revision in before.items())


def test_a_broken_line_costs_only_itself_and_is_named_by_number() -> None:
    given = lines(
        [
            user(0, "hi"),
            '{"type":"assistant","sessionId":',
            b'\xff\xfe{"type"',
            "[]",
            '{"type":5}',
            said(1, type="assistant"),
            {"type": "user", "message": {"role": "user"}, "timestamp": "2026-10-12T09:00:01Z"},
            user(1, [{"type": "tool_result", "tool_use_id": 7}]),
            {**user(1, "x"), "timestamp": "9999-12-31T23:59:59Z"},
            {**user(1, "x"), "timestamp": "1969-12-31T23:59:59Z"},
            {**user(1, "x"), "timestamp": "yesterday"},
            "[" * 100_000,
            assistant(3, "r", output_tokens=9),
        ]
    )
    found, report = read(claude_code.read, given)
    assert [(seconds(call), call.output_tokens) for call in found] == [((0.0, 3.0), 9)]
    assert (report.records, report.broken) == (13, 11)
    assert [one.number for one in report.named] == list(range(2, 13))
    assert Broken(2, "not JSON") in report.named
    assert Broken(9, "a time out of range") in report.named


def test_of_many_broken_lines_only_the_first_are_named() -> None:
    _, report = read(claude_code.read, lines(["x"] * 1000))
    assert (report.broken, len(report.named)) == (1000, 20)


def test_a_line_of_ten_megabytes_is_read() -> None:
    given = lines([user(0, "x" * 10_000_000), assistant(2, "r", [{"type": "text", "text": "y" * 10_000_000}])])
    assert [seconds(call) for call in read(claude_code.read, given)[0]] == [(0.0, 2.0)]


def test_tools_that_never_answer_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_code, "MAX_WAITING", 3)
    given = [
        {**user(n / 100, "x"), "sessionId": f"s{n}"}
        if n % 2
        else assistant(n / 100, f"r{n}", [{"type": "tool_use", "id": f"t{n}", "name": "Bash"}])
        for n in range(200)
    ]
    found, _ = read(claude_code.read, lines(given))
    assert len({span.span_key for span in found if span.kind == SpanKind.TOOL}) == 100
    state = claude_code._Reader()
    for line in lines(given):
        list(state.take(claude_code._record(line.text)))
    assert (len(state.chains), len(state.tools)) == (3, 3)


def test_a_time_without_a_zone_is_utc() -> None:
    (call,) = read(claude_code.read, lines([{**assistant(1, "r"), "timestamp": "2026-10-12T09:00:00.000001"}]))[0]
    assert call.started_ns == NINE_NS + 1000


def test_what_is_wrong_with_a_record_quotes_nothing_of_it() -> None:
    with pytest.raises(BadRecord) as error:
        claude_code._record(b'{"type":"CANARY","sessionId":["CANARY"]}')
    assert "CANARY" not in str(error.value)
