"""What is read out of requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnscope.model import Handle
from turnscope.proxy.requests import (
    ClientRequest,
    read_client_request,
    read_leg_request,
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


def test_a_request_with_half_a_character_in_its_text_still_names_its_session() -> None:
    said = {"messages": [{"role": "user", "content": "a face: \ud83d"}], "conversation_id": "c", "stream": True}
    request = read_client_request(json.dumps(said).encode())
    assert (request.conversation_id, request.stream) == ("c", True)


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/tokenize", "/v1/embeddings"])
def test_other_requests_to_engines_are_no_legs(path: str) -> None:
    assert read_leg_request(path, b'{"input": "x"}') is None
    assert read_leg_request(path, b"") is None


def test_a_body_that_cannot_be_read_is_judged_by_its_path() -> None:
    assert read_leg_request(CHAT, b"") is not None
    assert read_leg_request(CHAT, b"{") is not None
    assert read_client_request(b"{") == ClientRequest()
    assert read_client_request(b"[1]") == ClientRequest()
