"""What a request puts into its prompt, whatever API it is for."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.history.pieces import FIELDS, Piece, message, pieces


def shown(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(piece.path, piece.role) for piece in pieces(body)]


def test_a_chat_request_is_its_tools_messages_and_parameters() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "chat_template_kwargs": {"enable_thinking": False},
        "temperature": 0.3,
        "stream": True,
        "user": "somebody",
    }
    assert shown(body) == [
        ("model", "model"),
        ("tools", "tools"),
        ("messages[0]", "system"),
        ("messages[1]", "user"),
        ("parameters", "parameters"),
    ]


def test_responses_completions_and_messages_requests_are_read_too() -> None:
    call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
    assert shown({"instructions": "be brief", "input": [{"role": "user", "content": "hi"}, call]}) == [
        ("instructions", "system"),
        ("input[0]", "user"),
        ("input[1]", "assistant"),
    ]
    assert shown({"input": "hi"}) == [("input", "user")]
    assert shown({"prompt": "Once upon"}) == [("prompt", "prompt")]
    assert shown({"prompt": ["a", "b"]}) == [("prompt[0]", "prompt"), ("prompt[1]", "prompt")]
    assert shown({"system": [{"type": "text", "text": "s"}], "messages": [{"role": "user", "content": "u"}]}) == [
        ("system", "system"),
        ("messages[0]", "user"),
    ]


def test_token_ids_stand_one_a_line() -> None:
    (piece,) = pieces({"prompt": [5, 17, 3]})
    assert piece.texts[0].text == "5\n17\n3\n"


def test_what_is_not_rendered_makes_no_difference() -> None:
    plain = {"role": "user", "content": "hello"}
    for same in (
        {"content": "hello", "role": "user", "id": "msg_1"},
        {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": "hello", "tool_calls": None, "refusal": None, "annotations": []},
    ):
        assert message(same) == message(plain)
    one, other = ({"tools": [{"name": "f", **mark}]} for mark in ({}, {"cache_control": {"type": "ephemeral"}}))
    assert list(pieces(one)) == list(pieces(other))


def test_what_is_rendered_makes_a_difference() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}
    base = {"role": "assistant", "content": "x", "reasoning_content": "r", "tool_calls": [call]}
    changed: list[dict[str, Any]] = [
        {"role": "user"},
        {"content": "x "},
        {"reasoning_content": None},
        {"tool_calls": [{**call, "function": {"name": "g", "arguments": '{"a": 1}'}}]},
        {"tool_calls": [{**call, "function": {"name": "f", "arguments": '{"a":1}'}}]},
        {"content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}]},
    ]
    assert all(message({**base, **change}) != message(base) for change in changed)
    tools = [{"name": "f"}, {"name": "g"}]
    assert list(pieces({"tools": tools})) != list(pieces({"tools": tools[::-1]}))


def test_reasoning_that_is_sent_under_two_names_counts_once() -> None:
    assert message({"role": "assistant", "reasoning": "hm", "reasoning_content": "hm"}).chars == 2


def test_an_image_is_compared_and_has_no_characters() -> None:
    one, other = (
        message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}) for url in ("a", "b")
    )
    assert one != other
    assert one.chars == 0


def test_calls_and_results_of_the_messages_api_are_read() -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"q": 1}}
    (asked,) = pieces({"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, use]}]})
    assert [(text.label, text.text) for text in asked.texts] == [
        ("reasoning", "hm"),
        ("name", "f"),
        ("arguments", '{"q":1}'),
    ]
    result = message({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "four"}]})
    assert (result.role, result.chars) == ("tool", 4)


JSON = st.recursive(
    st.sampled_from([None, True, 3, 1.5, "", "text", "tool_result"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "tool_calls", "function", "name"]), inner)
    ),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), JSON))
def test_encoded_and_decoded_bodies_give_the_same_pieces(body: dict[str, Any]) -> None:
    encoded = msgspec.json.decode(msgspec.json.encode(body), type=dict[str, msgspec.Raw])
    found = list(pieces(encoded))
    assert found == list(pieces(body))
    assert all(isinstance(piece, Piece) for piece in found)
