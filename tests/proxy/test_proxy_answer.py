"""What is read out of engines' answers."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.model import Handle
from turnscope.proxy.answer import PLAIN_LIMIT, Answer, AnswerReader, FirstContent, text_alone

PARAMS = {
    "do_remote_prefill": False,
    "do_remote_decode": True,
    "remote_block_ids": [[1, 2, 3]],
    "remote_engine_id": "décode-0",
    "remote_request_id": "chatcmpl-x-1",
    "remote_num_tokens": 1199,
    "remote_blocks_expiry_time": 1234.5,
}
HANDLE = Handle(engine_id="décode-0", request_id="chatcmpl-x-1", tokens=1199, blocks=3, expiry_s=1234.5)


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}


STREAM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": 'say "finish_reason":"stop" € '}),
    chunk({"content": None}),
    chunk({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
    chunk({"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]}),
    chunk({}, "tool_calls"),
    {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 1250, "completion_tokens": 30}},
    {"id": "chatcmpl-1", "choices": [], "kv_transfer_params": PARAMS},
]


def wire(events: list[dict[str, Any]], *, end: str = "\n\n", prefix: str = "data: ", **dumps: Any) -> bytes:
    lines = [json.dumps(event, **dumps) for event in events] + ["[DONE]"]
    return "".join(f"{prefix}{line}{end}" for line in lines).encode()


def read(chunks: list[bytes], content_type: str = "text/event-stream", encoding: str = "") -> AnswerReader:
    reader = AnswerReader(content_type, encoding)
    for piece in chunks:
        reader.feed(piece)
    reader.finish()
    return reader


def facts(answer: Answer) -> tuple[Any, ...]:
    return answer.handle, answer.finish_reason, answer.tool_calls, answer.input_tokens, answer.output_tokens


EXPECTED = (HANDLE, "tool_calls", 2, 1250, 30)


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@pytest.mark.parametrize("prefix", ["data: ", "data:"])
@pytest.mark.parametrize("dumps", [{}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_every_form_of_stream_gives_the_same_facts(end: str, prefix: str, dumps: dict[str, Any]) -> None:
    whole = wire(STREAM, end=end, prefix=prefix, **dumps)
    assert facts(read([whole]).answer) == EXPECTED
    assert facts(read([whole[i : i + 1] for i in range(len(whole))]).answer) == EXPECTED


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_any_chunking_gives_the_same_facts(places: list[int]) -> None:
    whole = wire(STREAM, ensure_ascii=False)
    edges = [0, *sorted(place % len(whole) for place in places), len(whole)]
    assert facts(read([whole[a:b] for a, b in itertools.pairwise(edges)]).answer) == EXPECTED


def test_a_stream_left_in_the_middle_of_the_handle_has_none() -> None:
    whole = wire(STREAM)
    assert read([whole[: whole.index(b"remote_num_tokens")]]).answer.handle is None


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_plain_answer_is_read_at_its_end(encoding: str) -> None:
    body = json.dumps(
        {
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"content": "x", "tool_calls": [{"id": "a"}] * 2}},
                {"index": 1, "finish_reason": "length", "message": {"content": None, "tool_calls": [{"id": "b"}]}},
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
            "kv_transfer_params": PARAMS,
        }
    ).encode()
    sent = gzip.compress(body) if encoding else body
    reader = read([sent[:50], sent[50:]], "application/json", encoding)
    assert facts(reader.answer) == (HANDLE, "stop", 3, 7, 2)
    assert reader.skipped == 0


def test_the_responses_api_is_read_streamed_and_plain() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    answer = {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [{"type": "message", "content": []}, call],
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }
    events = [
        {"type": "response.created", "response": {**answer, "output": [], "usage": None, "status": "in_progress"}},
        {"type": "response.output_item.added", "item": call},
        {"type": "response.completed", "response": answer},
    ]
    for got in (read([wire(events)]).answer, read([json.dumps(answer).encode()], "application/json").answer):
        assert (got.response_id, got.tool_calls, got.input_tokens, got.output_tokens) == ("resp_1", 1, 5, 6)


def test_the_messages_api_is_read_streamed_and_plain() -> None:
    tool = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": tool},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 6}},
    ]
    plain = {
        "type": "message",
        "content": [tool],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }
    for got in (read([wire(events)]).answer, read([json.dumps(plain).encode()], "application/json").answer):
        assert facts(got) == (None, "tool_use", 1, 5, 6)


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "m", "code": 500}},
        chunk({}, "error"),
        {"type": "response.failed", "response": {"id": "r", "object": "response", "status": "failed"}},
    ],
)
def test_an_error_inside_a_stream_is_seen(event: dict[str, Any]) -> None:
    assert read([wire([chunk({"content": "a"}), event])]).answer.failed


KEYS = st.sampled_from(["choices", "delta", "tool_calls", "usage", "kv_transfer_params", "item", "output", "response"])
JSON = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, "", "x", "response", "function_call", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_no_shape_of_json_makes_the_reader_fail(event: dict[str, Any]) -> None:
    read([wire([event])])
    FirstContent("text/event-stream").found_in(wire([event]))


@pytest.mark.parametrize("number", [True, -1, 2**63, 10**400, 1.5, "12", None, [], {}])
def test_what_is_no_number_of_tokens_is_unknown(number: Any) -> None:
    """An event with one that no message can carry would be lost whole; and a client may have written the handle."""
    usage = {"prompt_tokens": number, "completion_tokens": number}
    params = PARAMS | {"remote_num_tokens": number, "remote_blocks_expiry_time": number}
    answer = read([wire([{"choices": [], "usage": usage, "kv_transfer_params": params}])]).answer
    assert (answer.input_tokens, answer.output_tokens) == (None, None)
    assert answer.handle is not None
    assert answer.handle.tokens is None
    assert answer.handle.expiry_s == (1.5 if number == 1.5 else None)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b'{"usage":', b'"usage"'])
def test_what_is_no_json_is_passed_over(data: bytes) -> None:
    assert facts(read([b'data: "usage"' + data + b"\n\n"]).answer) == (None, None, 0, None, None)
    assert facts(read([data], "application/json").answer) == (None, None, 0, None, None)


def test_too_long_or_strangely_encoded_answers_are_said_to_be_unread() -> None:
    assert read([b"x" * (PLAIN_LIMIT // 2)] * 3, "application/json").skipped == 1
    assert read([b"x"], encoding="br").skipped == 1
    assert read([b"not gzip"], encoding="gzip").skipped == 1
    assert read([gzip.compress(b"x" * (PLAIN_LIMIT + 10))], "application/json", "gzip").skipped == 1


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (b'{"choices":[{"delta":{"content":"a \\"usage\\":{} "},"finish_reason":null}],"usage":null}', False),
        (b'{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}', False),
        (b'{"choices":[{"finish_reason":null},{"finish_reason":"stop"}]}', True),
        (b'{"choices":[],"usage":{"prompt_tokens":1}}', True),
        (b'{"choices":[],"kv_transfer_params":{"remote_engine_id":"d"}}', True),
        (b'{"choices":{"0":{}}}', True),
    ],
)
def test_only_events_that_hold_more_than_text_are_read_in_full(data: bytes, more: bool) -> None:
    assert (text_alone(data) is None) is more


def test_of_a_stream_only_the_events_that_hold_more_than_text_are_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_full: list[Any] = []
    see = Answer.see

    def overheard(answer: Answer, part: Any) -> None:
        read_in_full.append(part)
        see(answer, part)

    monkeypatch.setattr(Answer, "see", overheard)
    last = chunk({}, "stop")
    assert read([wire([chunk({"content": "word "})] * 5 + [last])]).answer.finish_reason == "stop"
    assert read_in_full == [last, None], "and the end, which is no object"


@pytest.mark.parametrize(
    ("event", "content"),
    [
        (chunk({"role": "assistant", "content": ""}), False),
        (chunk({"content": None}), False),
        ({"choices": [], "usage": {}}, False),
        (chunk({"content": "a"}), True),
        (chunk({"reasoning_content": "a"}), True),
        (chunk({"tool_calls": [{"index": 0}]}), True),
        ({"choices": [{"text": "a"}]}, True),
        ({"type": "response.created", "response": {}}, False),
        ({"type": "response.output_text.delta", "delta": "a"}, True),
        ({"type": "content_block_delta", "delta": {"text": "a"}}, True),
        ({"token": "a"}, True),
    ],
)
def test_the_first_content_is_a_token_not_a_role(event: dict[str, Any], content: bool) -> None:
    whole = b": ping\n\n" + wire([event])
    assert FirstContent("text/event-stream; charset=utf-8").found_in(whole) is content


def test_any_byte_of_a_plain_or_compressed_response_is_content() -> None:
    assert FirstContent("application/json").found_in(b"{")
    assert not FirstContent("application/json").found_in(b"")
    assert FirstContent("text/event-stream", "gzip").found_in(b"\x1f")


def test_an_answer_asked_for_in_the_middle_tells_what_has_come_so_far() -> None:
    reader = AnswerReader("text/event-stream")
    events = wire(STREAM)
    middle = events.index(b'"usage"')
    reader.feed(events[:middle])
    assert (reader.answer.finish_reason, reader.answer.input_tokens) == ("tool_calls", None)
    reader.feed(events[middle:])
    reader.finish()
    assert (reader.answer.input_tokens, reader.answer.handle) == (1250, HANDLE)
