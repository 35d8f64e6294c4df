"""What is told of messages: roles, lengths and keyed digests, whatever the body is; never text."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.decode.codec import MAX_LIST
from turnscope.history.digests import DIGEST_BYTES, Key, unpacked
from turnscope.history.pieces import MODEL, pieces
from turnscope.model import Attempt
from turnscope.proxy.messages import AT_ONCE, Prompts, Told, Untold, tell
from turnscope.proxy.said import Said

KEY = Key(b"secret")
SYSTEM = {"role": "system", "content": "You are careful."}
ASK = {"role": "user", "content": "What is new?"}
ANSWER = {"role": "assistant", "content": "Nothing."}


def told(messages: Any, key: Key | None = KEY, field: str = "messages", **fields: Any) -> Told:
    return tell(json.dumps({field: messages, **fields}).encode(), key)


def sizes(messages: Any, field: str = "messages") -> list[tuple[str, int]]:
    found = told(messages, None, field)
    return list(zip(found.roles, found.chars, strict=True))


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
    whole = [{"role": "user", "content": "x" * i} for i in range(MAX_LIST + 1)]
    found = told([SYSTEM, *whole, ANSWER])
    assert found.roles == ["user"] * (MAX_LIST - 1) + ["assistant"]
    assert found.chars[:-1] == [*range(2, MAX_LIST + 1)]
    assert found.digests == told([*whole[2:], ANSWER]).digests
    assert len(found.digests) == MAX_LIST * DIGEST_BYTES


def test_each_message_has_its_own_digest_wherever_it_stands() -> None:
    before, now = told([SYSTEM, ASK]), told([SYSTEM, ASK, ANSWER, ASK])
    assert unpacked(now.digests)[:2] == unpacked(before.digests)
    assert unpacked(now.digests)[3] == unpacked(now.digests)[1]
    assert len(set(unpacked(now.digests))) == 3


@pytest.mark.parametrize(
    "other",
    [
        {**SYSTEM, "content": "You are careful!"},
        {**SYSTEM, "role": "developer"},
        {"role": "system", "content": "You are ", "reasoning": "careful."},
    ],
)
def test_another_role_or_text_of_the_same_length_is_another_digest(other: dict[str, str]) -> None:
    one, same = told([SYSTEM]), told([other])
    assert one.chars == same.chars
    assert one.digests != same.digests


def test_digests_compare_only_under_one_key_and_need_one() -> None:
    assert told([SYSTEM], Key(b"other")).digests != told([SYSTEM]).digests
    assert told([SYSTEM], Key(b"secret")).digests == told([SYSTEM]).digests
    assert told([SYSTEM], None).digests == b""


def test_fields_that_are_rendered_too_are_told_beside_the_messages() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}]
    found = told([ASK], tools=tools, chat_template_kwargs={"enable_thinking": True}, model="m", temperature=1)
    assert found.part_names == ["tools", "parameters"]
    turned = told([ASK], tools=tools[::-1], chat_template_kwargs={"enable_thinking": True})
    assert found.part_chars == turned.part_chars
    assert unpacked(found.part_digests)[0] != unpacked(turned.part_digests)[0]
    assert unpacked(found.part_digests)[1] == unpacked(turned.part_digests)[1]
    assert told("Once", field="prompt").part_names == ["prompt"]
    assert told([ASK], system="s").part_names == ["system"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"x"', b"\xff", b'{"messages": {}}', b"[" * 100_000])
def test_of_what_is_no_request_nothing_is_told(body: bytes) -> None:
    assert tell(body, KEY) == Told([], [], b"", [], [], b"", KEY.id)


JSON = st.recursive(
    st.sampled_from([None, True, 3, 1.5, "", "text", "tool_result", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "tool_calls", "function"]), inner)
    ),
)


@settings(deadline=None)
@given(JSON)
def test_no_shape_of_messages_makes_the_reader_fail(messages: Any) -> None:
    found = told(messages)
    assert len(found.roles) == len(found.chars) == len(found.digests) // DIGEST_BYTES


def test_a_history_is_read_in_slices() -> None:
    pauses: list[None] = []
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 10_000}] * 100}).encode()
    tell(body, KEY, lambda: pauses.append(None))
    assert len(pauses) >= 50


def test_long_texts_are_told_as_if_they_were_decoded_whole() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBO" * 9_000}}
    body = {
        "messages": [
            {"role": "system", "content": "Be brief. 😀 " * 3_000},
            {"role": "user", "content": [{"type": "text", "text": '{"a": "\\n"}\n' * 5_000}, image]},
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": "f", "arguments": {"text": 'say "é"' * 4_000}}}],
            },
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "中文\t" * 6_000}}],
        "chat_template": "{{ x }}\n" * 4_000,
    }
    of_all = [piece for piece in pieces(body) if piece.role != MODEL]
    for ascii_only in (True, False):
        found = tell(json.dumps(body, ensure_ascii=ascii_only).encode(), KEY)
        names, digests = [*found.roles, *found.part_names], unpacked(found.digests + found.part_digests)
        assert dict(zip(names, digests, strict=True)) == {piece.role: KEY.digest(piece) for piece in of_all}
        chars = [*found.chars, *found.part_chars]
        assert dict(zip(names, chars, strict=True)) == {piece.role: piece.chars for piece in of_all}


def test_nothing_is_told_of_a_body_with_a_long_text_that_is_no_json() -> None:
    bad = '{"role": "user", "content": "\\x' + "x" * 9_000 + '"}'
    assert tell(f'{{"messages": [{json.dumps(SYSTEM)}, {bad}]}}'.encode(), KEY) == tell(b"", KEY)


# --- what waits ---------------------------------------------------------------------------------------
def body_of(size: int) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "x" * size}]}).encode()


def waiting(limit: int) -> tuple[Prompts, Any]:
    prompts = Prompts(lambda: KEY, limit)
    return prompts, lambda prompt: prompts.fill(Untold(Attempt(proxy_turn_id="t"), prompt, None), lambda: None)


def test_a_body_waits_until_it_is_told_and_is_then_let_go() -> None:
    prompts, fill = waiting(10_000)
    prompt = prompts.take(body_of(5_000))
    assert prompts.room < 5_000
    assert prompts.pressing
    first = fill(prompt)
    assert (first.message_chars, prompts.room, prompt.body) == ([5_000], 10_000, b"")
    assert not prompts.pressing
    assert fill(prompt).message_digests == first.message_digests != b""


def test_bodies_are_told_while_their_requests_still_run() -> None:
    prompts, _ = waiting(10_000)
    prompt = prompts.take(body_of(5_000))
    prompts.work(lambda: None)
    assert prompts.room == 10_000
    assert prompt.told is not None
    assert prompt.told.chars == [5_000]


def test_a_body_that_finds_no_room_is_told_at_once_without_digests() -> None:
    prompts, fill = waiting(10_000)
    first, second = prompts.take(body_of(8_000)), prompts.take(body_of(8_000))
    event = fill(second)
    assert (event.message_chars, event.message_digests, event.digest_key_id) == ([8_000], b"", "")
    assert len(fill(first).message_digests) == DIGEST_BYTES
    assert prompts.room == 10_000


def test_of_a_long_body_that_finds_no_room_nothing_is_told_rather_than_keep_its_client_waiting() -> None:
    prompts, fill = waiting(10_000)
    event = fill(prompts.take(body_of(AT_ONCE + 1)))
    assert (event.message_roles, event.message_chars, event.last_role) == ([], [], None)
    assert fill(prompts.take(body_of(10_001))).message_chars == [10_001]


# --- the answer ---------------------------------------------------------------------------------------
def filled(said: Said | None, key: Key | None = KEY) -> Attempt:
    prompts = Prompts(lambda: key)
    prompt = prompts.take(json.dumps({"messages": [ASK]}).encode())
    return prompts.fill(Untold(Attempt(proxy_turn_id="t"), prompt, said), lambda: None)


def said(content: str, reasoning: str = "", calls: Any = None) -> Said:
    answer = Said()
    answer.add(0, content, reasoning, calls)
    return answer


def as_history(**message: Any) -> bytes:
    return told([{"role": "assistant", **message}]).digests


@pytest.mark.parametrize(
    ("answer", "reasoning"),
    [
        (said("\n\nFour.", "two and two"), 11),
        (said("<think>two and two</think>\n\nFour."), 26),
        (said("two and two</think>\n\nFour."), 19),
    ],
)
def test_an_answer_is_recognised_in_a_history_with_and_without_its_reasoning(answer: Said, reasoning: int) -> None:
    event = filled(answer)
    message = answer.message()
    assert message is not None
    whole, spoken, bare = unpacked(event.answer_digests)
    assert whole == as_history(**message)
    assert spoken == as_history(content="\n\nFour.")
    assert bare == as_history(content="Four.")
    assert event.answer_reasoning_chars == reasoning
    assert event.answer_chars == sum(len(text) for text in (message["content"], message["reasoning_content"]))
    assert event.digest_key_id == KEY.id


def test_tool_calls_are_put_together_from_their_pieces() -> None:
    answer = Said()
    answer.add(0, None, None, [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}])
    answer.add(0, None, None, [{"index": 0, "function": {"arguments": '{"a"'}}])
    answer.add(0, None, None, [{"index": 1, "function": {"name": "g", "arguments": "{}"}}])
    answer.add(0, None, None, [{"index": 0, "function": {"arguments": ": 1}"}}])
    calls = [{"function": {"name": "f", "arguments": '{"a": 1}'}}, {"function": {"name": "g", "arguments": "{}"}}]
    assert unpacked(filled(answer).answer_digests)[0] == as_history(content=None, tool_calls=calls)


def test_nothing_is_told_of_an_answer_that_is_none_or_not_one() -> None:
    several = said("a")
    several.add(1, "b", None, None)
    forgotten = said("a")
    forgotten.forget()
    for answer in (None, Said(), said(""), several, forgotten):
        event = filled(answer)
        assert (event.answer_chars, event.answer_reasoning_chars, event.answer_digests) == (None, None, b"")


def test_without_a_key_lengths_are_told_and_no_digest() -> None:
    event = filled(said("Four.", "hm"), None)
    assert (event.message_roles, event.message_chars, event.last_role) == (["user"], [12], "user")
    assert (event.answer_chars, event.answer_reasoning_chars) == (7, 2)
    assert (event.message_digests, event.answer_digests, event.digest_key_id) == (b"", b"", "")


def test_the_answer_reader_keeps_a_streamed_and_a_plain_answer_alike() -> None:
    from turnscope.proxy.answer import AnswerReader

    streamed = AnswerReader("text/event-stream")
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "h"},
        {"reasoning_content": "m"},
        {"content": "Fo"},
        {"content": "ur.", "tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]},
    ]
    for number, delta in enumerate(deltas):
        finish = "stop" if number == len(deltas) - 1 else None
        event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        streamed.feed(b"data: " + msgspec.json.encode(event) + b"\n\n")
    message = {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": "Four.",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
    }
    plain = AnswerReader("application/json")
    plain.feed(msgspec.json.encode({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    plain.finish()
    one, other = filled(streamed.answer.said), filled(plain.answer.said)
    assert one.answer_digests == other.answer_digests
    assert unpacked(one.answer_digests)[0] == told([message]).digests
