"""Spans of agents: what is read of them, what they stand for, and that nothing else is read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.protobuf import json_format

from tests.decode.spans import NOON, SECOND, TRACE, otlp_span, request
from turnscope.decode import otlp_json, span_record, spans
from turnscope.model import AgentSpan

CANARY = "the king of Ruritania sleeps at noon"


def read(attributes: dict[str, Any], **more: Any) -> AgentSpan:
    """The one span with these attributes."""
    resource = more.pop("resource", None)
    decoded = spans.decode(request(otlp_span(1, attributes, **more), resource=resource))
    assert decoded.rejected == []
    return decoded.spans[0]


@pytest.mark.parametrize(
    ("attributes", "kind", "by"),
    [
        ({"langfuse.observation.type": "generation", "gen_ai.operation.name": "execute_tool"}, "model_call", "first"),
        (
            {"langfuse.observation.type": "span", "gen_ai.operation.name": "execute_tool"},
            "tool",
            "gen_ai.operation.name",
        ),
        # CrewAI names its model on spans of agents, and LangSmith's exporter calls a prompt's template a chat.
        ({"openinference.span.kind": "AGENT", "llm.model_name": "gpt-5"}, "agent", "first"),
        ({"langsmith.span.kind": "prompt", "gen_ai.operation.name": "chat"}, "other", None),
        ({"openinference.span.kind": "RETRIEVER"}, "retrieval", "first"),
        ({"openinference.span.kind": "CHAIN", "gen_ai.request.model": "m"}, "other", None),
        ({"openinference.span.kind": "NOVEL", "traceloop.span.kind": "tool"}, "tool", "traceloop.span.kind"),
        ({"traceloop.span.kind": "workflow"}, "agent", "first"),
        ({"gen_ai.operation.name": "chat", "gen_ai.tool.name": "x"}, "model_call", "first"),
        ({"gen_ai.operation.name": "execute_tool"}, "tool", "first"),
        ({"gen_ai.operation.name": "invoke_workflow"}, "agent", "first"),
        ({"gen_ai.operation.name": "retrieval"}, "retrieval", "first"),
        ({"ai.operationId": "ai.streamText"}, "agent", "first"),
        ({"ai.operationId": "ai.streamText.doStream"}, "model_call", "first"),
        ({"ai.operationId": "ai.toolCall"}, "tool", "first"),
        ({"gen_ai.tool.call.id": "c", "gen_ai.request.model": "m"}, "tool", "first"),
        ({"gen_ai.request.model": "m"}, "model_call", "first"),
        ({"http.request.method": "POST"}, "other", None),
        ({}, "other", None),
    ],
)
def test_the_first_rule_that_knows_the_value_says_what_a_span_is(
    attributes: dict[str, Any], kind: str, by: str | None
) -> None:
    span = read(attributes)
    assert (span.kind, span.classified_by) == (kind, next(iter(attributes)) if by == "first" else by)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude_code.llm_request", "model_call"),
        ("claude_code.tool", "tool"),
        ("claude_code.tool.blocked_on_user", "user_wait"),
        ("claude_code.tool.execution", "other"),
        ("claude_code.interaction", "agent"),
    ],
)
def test_claude_codes_spans_are_known_by_their_names_and_its_questions_are_the_users_time(name: str, kind: str) -> None:
    span = read({"tool_name": "Bash", "model": "m", "ttft_ms": 250, "input_tokens": "12"}, name=name)
    assert (span.kind, span.name, span.model, span.input_tokens) == (kind, name, "m", 12)
    assert span.tool_name == ("Bash" if kind == "tool" else None)
    assert span.time_to_first_token_ns == 250_000_000


def test_the_session_is_asked_for_in_one_order_and_never_a_person() -> None:
    told = {
        "user.id": "ada",
        "langsmith.metadata.thread_id": "7",
        "traceloop.association.properties.chat_id": "6",
        "traceloop.association.properties.session_id": "4",
        "session.id": "3",
        "langfuse.session.id": "2",
        "gen_ai.conversation.id": "1",
    }
    found = []
    while told:
        span = read(told)
        found.append((span.session_id, span.session_source))
        told.popitem()
    assert [session for session, _ in found] == ["1", "2", "3", "4", "6", "7", None]
    assert found[0][1] == "gen_ai.conversation.id"


def test_what_the_span_says_of_its_session_goes_before_its_resource() -> None:
    assert read({"session.id": "mine"}, resource={"gen_ai.conversation.id": "the process's"}).session_id == "mine"
    assert read({}, resource={"session.id": "the process's"}).session_id == "the process's"


def test_the_fields_of_a_model_call_are_read() -> None:
    span = read(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "asked",
            "gen_ai.response.model": "answered",
            "gen_ai.usage.input_tokens": 1199,
            "gen_ai.usage.cache_read.input_tokens": 1000,
            "gen_ai.usage.output_tokens": 9_007_199_254_740_993,
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.response.time_to_first_chunk": 0.25,
            "gen_ai.agent.name": "planner",
            "gen_ai.completion.0.tool_calls.0.name": CANARY,
            "gen_ai.completion.0.tool_calls.0.arguments": CANARY,
            "gen_ai.completion.0.tool_calls.1.name": CANARY,
        },
        name="chat asked",
        resource={"service.name": "desk", "service.version": "3", "deployment.environment.name": "prod"},
    )
    assert (span.model, span.input_tokens, span.cached_tokens) == ("answered", 1199, 1000)
    assert span.output_tokens == 9_007_199_254_740_993
    assert (span.finish_reason, span.tool_calls, span.agent_name) == ("tool_calls", 2, "planner")
    assert span.time_to_first_token_ns == 250_000_000
    assert (span.service_name, span.service_version, span.deployment) == ("desk", "3", "prod")
    assert (span.started_ns, span.ended_ns) == (NOON, NOON + SECOND)
    assert span.span_key == f"{TRACE}-{1:016x}"


def test_evaluations_come_as_attributes_or_as_an_event_without_their_explanation() -> None:
    told = {
        "gen_ai.evaluation.name": "correctness",
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.score.value": 0.9,
        "gen_ai.evaluation.explanation": CANARY,
    }
    for span in (read(told), read({}, events=(("gen_ai.evaluation.result", told),))):
        assert (span.evaluation_name, span.evaluation_label, span.evaluation_score) == ("correctness", "pass", 0.9)
        assert CANARY not in str(span)


CONTENT = {
    "gen_ai.input.messages": CANARY,
    "gen_ai.output.messages": CANARY,
    "gen_ai.system_instructions": CANARY,
    "gen_ai.tool.call.arguments": CANARY,
    "gen_ai.tool.call.result": CANARY,
    "gen_ai.prompt.0.content": CANARY,
    "gen_ai.completion.0.content": CANARY,
    "input.value": CANARY,
    "output.value": CANARY,
    "llm.input_messages.0.message.content": CANARY,
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": CANARY,
    "traceloop.entity.input": CANARY,
    "traceloop.entity.output": CANARY,
    "langfuse.observation.input": CANARY,
    "ai.prompt": CANARY,
    "ai.toolCall.args": CANARY,
    "http.url": CANARY,
    "metadata": CANARY,
    "user.id": CANARY,
    # Where one word is meant a sentence is none.
    "error.type": CANARY,
    "gen_ai.response.finish_reasons": [CANARY],
    "gen_ai.evaluation.score.label": CANARY,
}


@pytest.mark.parametrize("of", ["protobuf", "json"])
def test_content_is_nowhere_in_what_is_kept(of: str) -> None:
    span = otlp_span(
        1,
        {**CONTENT, "openinference.span.kind": "LLM"},
        name=f"ask about {CANARY}",
        events=(
            (
                "exception",
                {"exception.type": "ValueError", "exception.message": CANARY, "exception.stacktrace": CANARY},
            ),
            ("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": CANARY}),
            (CANARY, {}),
        ),
    )
    span.status.code, span.status.message = 2, CANARY
    message = request(span, resource={"service.name": "desk", "process.command_line": CANARY})
    decoded = spans.decode(message) if of == "protobuf" else otlp_json.spans(json_of(message))
    (found,) = decoded.spans
    assert (found.status, found.error_type, found.tool_calls) == ("error", "ValueError", 1)
    assert found.name is None
    assert CANARY not in str(msgspec.to_builtins(found))


@pytest.mark.parametrize(
    ("name", "attributes", "kept"),
    [
        ("execute_tool read_file", {"gen_ai.tool.name": "read_file"}, True),
        ("invoke_agent planner", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}, True),
        ("chat gpt-5.1-mini", {"gen_ai.request.model": "gpt-5.1-mini"}, True),
        ("ChatOpenAI", {}, True),
        ("POST /v1/chat/completions", {}, True),
        ("chat hunter2", {}, False),
        ("Where does the king sleep?", {}, False),
        ("агент", {}, False),
        ("x" * 500, {}, False),
    ],
)
def test_a_name_is_kept_when_it_is_made_of_common_words_and_of_what_is_kept_anyway(
    name: str, attributes: dict[str, Any], kept: bool
) -> None:
    assert read(attributes, name=name).name == (name if kept else None)


def test_a_span_that_ends_before_it_starts_is_kept_without_an_end() -> None:
    decoded = spans.decode(request(otlp_span(1, end_s=-5), otlp_span(2, end_s=None), otlp_span(3)))
    assert [span.ended_ns for span in decoded.spans] == [None, None, NOON + SECOND]
    assert decoded.without_end == 2


def test_a_span_that_would_have_lasted_more_than_a_month_is_kept_without_an_end() -> None:
    month = spans.LONGEST_SPAN_NS // SECOND
    decoded = spans.decode(request(otlp_span(1, end_s=month), otlp_span(2, end_s=month + 1)))
    assert [span.ended_ns for span in decoded.spans] == [NOON + month * SECOND, None]
    assert decoded.without_end == 1


def test_impossible_numbers_are_absent_and_not_wrong() -> None:
    span = read(
        {
            "gen_ai.usage.input_tokens": -1,
            "gen_ai.usage.output_tokens": float("inf"),
            "gen_ai.response.time_to_first_chunk": float("nan"),
            "gen_ai.evaluation.score.value": "very good",
            "gen_ai.request.model": 5,
        }
    )
    assert (span.input_tokens, span.output_tokens, span.time_to_first_token_ns) == (None, None, None)
    assert (span.evaluation_score, span.model) == (None, None)
    assert read({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 9}).cached_tokens is None


def test_ten_megabytes_in_one_attribute_are_cut_or_never_read() -> None:
    huge = "x" * 10_000_000
    span = read({"gen_ai.agent.name": huge, "gen_ai.conversation.id": huge, "gen_ai.input.messages": huge})
    assert len(str(span)) < 5_000
    assert span.session_id is not None


def json_of(message: Any) -> dict[str, Any]:
    """As an SDK writes it: ids in hex."""
    content: dict[str, Any] = json_format.MessageToDict(message, use_integers_for_enums=True)
    for plain, span in zip(
        content["resourceSpans"][0]["scopeSpans"][0]["spans"],
        message.resource_spans[0].scope_spans[0].spans,
        strict=True,
    ):
        plain["traceId"], plain["spanId"] = span.trace_id.hex().upper(), span.span_id.hex()
        if span.parent_span_id:
            plain["parentSpanId"] = span.parent_span_id.hex()
    return content


def test_json_and_protobuf_are_read_alike() -> None:
    message = request(
        otlp_span(1, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9_007_199_254_740_993}, parent=2),
        otlp_span(2, {"gen_ai.response.finish_reasons": ["stop"], "gen_ai.response.time_to_first_chunk": 1.5}),
        otlp_span(3, events=(("gen_ai.evaluation.result", {"gen_ai.evaluation.score.value": 1.0}),)),
        resource={"service.name": "desk"},
    )
    assert otlp_json.spans(json_of(message)).spans == spans.decode(message).spans
    assert spans.decode(otlp_json.span_request(json_of(message))).spans == spans.decode(message).spans


def test_each_bad_span_in_json_is_rejected_by_itself() -> None:
    content = json_of(request(*(otlp_span(n) for n in range(1, 8))))
    plain = content["resourceSpans"][0]["scopeSpans"][0]["spans"]
    plain[0]["traceId"] = TRACE[:30]
    plain[1]["spanId"] = "not hex"
    plain[2]["startTimeUnixNano"] = "soon"
    plain[3]["attributes"] = [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": CANARY}}]
    plain[4]["startTimeUnixNano"] = 0
    plain[5]["somethingOfTheFuture"] = {"a": [1]}
    plain[6]["attributes"] = [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": 1199}}]
    decoded = otlp_json.spans(content)
    assert [reason for reason, _ in decoded.rejected] == ["bad_id", "bad_id", "unreadable", "unreadable", "bad_time"]
    assert [span.span_id for span in decoded.spans] == [f"{6:016x}", f"{7:016x}"]
    assert decoded.spans[1].input_tokens == 1199
    assert CANARY not in str(decoded.rejected)


@pytest.mark.parametrize(
    "content",
    [
        {"resourceSpans": 5},
        {"resourceSpans": ["x"]},
        {"resourceSpans": [{"scopeSpans": [{"spans": "x"}]}]},
        {"resourceSpans": [{"resource": "x"}]},
    ],
)
def test_what_has_not_the_shape_of_otlp_is_refused_whole(content: dict[str, Any]) -> None:
    with pytest.raises(otlp_json.NotOtlp, match="not OTLP spans"):
        otlp_json.spans(content)


def test_a_recorded_span_is_read_back_as_it_was() -> None:
    first = read(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.conversation.id": "s",
            "gen_ai.usage.input_tokens": 12,
            "gen_ai.evaluation.score.value": 1,
            "error.type": "timeout",
        },
        name="chat m",
        parent=9,
        resource={"service.name": "desk"},
    )
    unfinished = read({}, end_s=None)
    again = spans.decode(span_record.encode([first, unfinished]))
    assert again.spans == [first, unfinished]
