"""Where session ids are found, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnscope.proxy.requests import read_client_request
from turnscope.proxy.sessions import HEADERS, Lineage, ResponseChain, Session, find_lineage, find_session

PLACES: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"conversation_id": "s"}, {}, "body.conversation_id"),
    ({"session_id": "s"}, {}, "body.session_id"),
    ({"conversation": "s"}, {}, "body.conversation"),
    ({"previous_response_id": "s"}, {}, "body.previous_response_id"),
    *(({}, {name: "s"}, f"header.{name}") for name in HEADERS),
    ({"vllm_xargs": {"session_id": "s"}}, {}, "body.vllm_xargs.session_id"),
]


def find(body: dict[str, Any], headers: dict[str, str], chain: ResponseChain | None = None) -> Session | None:
    return find_session(
        read_client_request(json.dumps(body).encode()), headers, ResponseChain() if chain is None else chain
    )


@pytest.mark.parametrize(("body", "headers", "source"), PLACES)
def test_each_place_is_read(body: dict[str, Any], headers: dict[str, str], source: str) -> None:
    assert find(body, headers) == Session("s", source)


def test_the_earlier_place_wins() -> None:
    body: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for position, (more_body, more_headers, source) in reversed(list(enumerate(PLACES))):
        body |= {
            key: {"session_id": str(position)} if isinstance(v, dict) else str(position) for key, v in more_body.items()
        }
        headers |= dict.fromkeys(more_headers, str(position))
        assert find(body, headers) == Session(str(position), source)


def test_a_person_is_never_a_session() -> None:
    body = {"user": "u", "safety_identifier": "u", "prompt_cache_key": "k", "metadata": {"user_id": "u"}}
    assert find(body, {"x-user-id": "u", "authorization": "Bearer t"}) is None


@pytest.mark.parametrize("value", ["", "  ", None, [], {}, True, 1.5])
def test_what_names_nothing_is_passed_over(value: Any) -> None:
    assert find({"conversation_id": value, "session_id": "s"}, {}) == Session("s", "body.session_id")


def test_objects_and_numbers_name_conversations_too() -> None:
    assert find({"conversation": {"id": "conv_1"}}, {}) == Session("conv_1", "body.conversation")
    assert find({"conversation_id": 17}, {}) == Session("17", "body.conversation_id")


def test_a_long_id_is_cut_and_stays_itself() -> None:
    one, other = find({"session_id": "a" * 1_000_000}, {}), find({"session_id": "a" * 999_999 + "b"}, {})
    assert one is not None
    assert other is not None
    assert len(one.id) == 256
    assert one.id != other.id


def test_a_chain_of_responses_is_one_session() -> None:
    chain = ResponseChain()
    chain.add("resp_1", "resp_1")
    second = find({"previous_response_id": "resp_1"}, {}, chain)
    assert second == Session("resp_1", "body.previous_response_id")
    chain.add("resp_2", second.id)
    assert find({"previous_response_id": "resp_2"}, {}, chain) == second


def test_the_memory_of_chains_is_bounded() -> None:
    chain = ResponseChain(limit=3)
    for number in range(10):
        chain.add(f"resp_{number}", "root")
    assert len(chain) == 3
    assert chain.session_of("resp_9") == "root"
    assert chain.session_of("resp_0") == "resp_0"


def test_who_asks_and_who_started_it_is_read_from_headers() -> None:
    headers = {
        "x-dynamo-session-id": "child",
        "x-dynamo-parent-session-id": "parent",
        "x-claude-code-agent-id": "a2",
        "x-claude-code-parent-agent-id": "a1",
    }
    assert find({}, headers) == Session("child", "header.x-dynamo-session-id")
    assert find_lineage(headers) == Lineage(parent_session_id="parent", agent_id="a2", parent_agent_id="a1")
    assert find_lineage({}) == find_lineage({"x-claude-code-agent-id": " "}) == Lineage()
    long = find_lineage({"x-claude-code-agent-id": "a" * 1_000_000}).agent_id
    assert long is not None
    assert len(long) == 256
