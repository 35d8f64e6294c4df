"""What is read out of requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.model import Handle
from turnscope.proxy.requests import (
    MAX_MESSAGES,
    ClientRequest,
    read_client_request,
    read_leg_request,
    roles_and_lengths,
)
from turnscope.semconv import Leg

CHAT = "/v1/chat/completions"


def leg_of(body: dict[str, Any], client: dict[str, Any] | None = None) -> Leg:
    request = read_leg_request(CHAT, json.dumps(body).encode())
    assert request is not None
    return request.leg(read_client_request(json.dumps(client or {}).encode()))


def test_a_first_turns_prefill_request_has_no_handle() -> None:
    params = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_request_id": None}
    body = json.dumps({"kv_transfer_params": params, "max_tokens": 1}).encode()
    request = read_leg_request(CHAT, body)
    assert request is not None
    assert request.handle is None
    assert request.leg(ClientRequest()) is Leg.PREFILL


def test_a_later_turns_prefill_request_carries_the_decode_engines_handle() -> None:
    params = {
        "do_remote_decode": True,
        "remote_engine_id": "d0",
        "remote_request_id": "r1",
        "remote_block_ids": [4, 5, 6],
        "remote_num_tokens": 700,
    }
    request = read_leg_request(CHAT, json.dumps({"kv_transfer_params": params}).encode())
    assert request is not None
    assert request.handle == Handle(engine_id="d0", request_id="r1", tokens=700, blocks=3)
    assert request.leg(ClientRequest()) is Leg.PREFILL


def test_legs_are_told_apart() -> None:
    given_by_p = {"do_remote_prefill": True, "remote_engine_id": "p0", "remote_request_id": "r"}
    assert leg_of({"kv_transfer_params": given_by_p, "stream": True}) is Leg.DECODE
    assert leg_of({"messages": []}) is Leg.WHOLE
    assert leg_of({"max_tokens": 1}, {"max_tokens": 300}) is Leg.PREFILL
    assert leg_of({"max_completion_tokens": 1}, {}) is Leg.PREFILL
    assert leg_of({"max_tokens": 1}, {"max_tokens": 1}) is Leg.WHOLE
    assert leg_of({"max_tokens": 1, "stream": True}, {}) is Leg.WHOLE


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/tokenize", "/v1/embeddings"])
def test_other_requests_to_engines_are_no_legs(path: str) -> None:
    assert read_leg_request(path, b'{"input": "x"}') is None
    assert read_leg_request(path, b"") is None


def test_a_body_that_cannot_be_read_is_judged_by_its_path() -> None:
    assert read_leg_request(CHAT, b"") is not None
    assert read_leg_request(CHAT, b"{") is not None
    assert read_client_request(b"{") == ClientRequest()
    assert read_client_request(b"[1]") == ClientRequest()


def sizes(messages: Any, key: str = "messages") -> list[tuple[str, int]]:
    request = read_client_request(json.dumps({key: messages}).encode())
    return list(zip(*roles_and_lengths(request), strict=True))


def test_roles_and_lengths_count_characters_not_bytes() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"q":1}'}}
    assert sizes(
        [
            {"role": "system", "content": "héllo"},
            {"role": "user", "content": [{"type": "text", "text": "abc"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": None, "reasoning_content": "mm", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "42"},
            {"content": "?"},
            "not a message",
        ]
    ) == [("system", 5), ("user", 3), ("assistant", 12), ("tool", 2), ("unknown", 1)]


def test_results_of_tools_have_the_role_tool_in_every_api() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "four"}
    assert sizes([{"role": "user", "content": [result]}]) == [("tool", 4)]
    items = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "12345"},
    ]
    assert sizes(items, "input") == [("user", 2), ("assistant", 3), ("tool", 5)]
    assert sizes("just text", "input") == [("user", 9)]


def test_of_very_many_messages_the_newest_are_kept() -> None:
    found = sizes([{"role": "user", "content": "x" * i} for i in range(MAX_MESSAGES + 2)])
    assert len(found) == MAX_MESSAGES
    assert found[-1] == ("user", MAX_MESSAGES + 1)


JSON = st.recursive(
    st.sampled_from([None, True, 3, 1.5, "", "text", "tool_result"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "tool_calls", "function"]), inner)
    ),
)


@settings(deadline=None)
@given(JSON)
def test_no_shape_of_messages_makes_the_reader_fail(messages: Any) -> None:
    roles, lengths = roles_and_lengths(read_client_request(json.dumps({"messages": messages}).encode()))
    assert len(roles) == len(lengths)
