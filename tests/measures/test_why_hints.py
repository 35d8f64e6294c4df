"""Each usual cause is recognised by what it looks like, and not in what only looks a little like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnscope.measures.bodies import Saved, read
from turnscope.measures.why import compare
from turnscope.measures.why_hints import hints

RULES = "Always check your sources twice before you answer.\n" * 20
ASK = {"role": "user", "content": "What is new?"}
MORE = [{"role": "assistant", "content": "Nothing."}, {"role": "user", "content": "Sure?"}]


def saved(messages: list[Any], **fields: Any) -> Saved:
    return read(json.dumps({"messages": messages, **fields}))


def told(before: Any, now: Any) -> list[str]:
    """Kinds of hints for two first messages, all the rest going on."""
    return [h.kind for h in hints(compare(saved([before, ASK]), saved([now, ASK, *MORE])))]


def system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Now it is 2026-10-12 09:14.", "Now it is 2026-10-12 09:21."),
        ("Date: Monday, 12 Oct 2026", "Date: Tuesday, 13 Oct 2026"),
        ("ts=1791800000", "ts=1791800042"),
        ("run 6f1d0c2a-1111-4222-8333-944445555666", "run 6f1d0c2a-1111-4222-8333-944445555667"),
        ("trace 0123456789abcdef0123", "trace 0123456789abcdef4567"),
    ],
)
def test_times_and_random_ids_in_the_system_prompt_are_recognised(one: str, other: str) -> None:
    assert told(system(f"{one}\n{RULES}"), system(f"{other}\n{RULES}")) == ["changing_value", "early"]


def test_other_words_that_change_are_no_times() -> None:
    assert told(system(f"You are Ann. {RULES}"), system(f"You are Bob. {RULES}")) == ["early"]
    assert told(system(f"You know 3 tools. {RULES}"), system(f"You know 4 tools. {RULES}")) == ["early"]


def test_a_late_change_is_not_called_early() -> None:
    assert told(system(f"{RULES} You are Ann."), system(f"{RULES} You are Bob.")) == []


def test_reasoning_that_was_stripped_is_recognised_in_both_its_forms() -> None:
    answer = {"role": "assistant", "content": "Four.", "reasoning_content": "two and two"}
    assert told(answer, {"role": "assistant", "content": "Four."})[0] == "reasoning"
    inline = {"role": "assistant", "content": "<think>two and two</think>\n\nFour."}
    assert told(inline, {"role": "assistant", "content": "Four."})[0] == "reasoning"
    assert told(answer, {"role": "assistant", "content": "Five."}) == []


@pytest.mark.parametrize("other", ["  a b\nc", "a b\nc ", "a  b\nc", "a b\r\nc"])
def test_blanks_are_recognised(other: str) -> None:
    assert told(system("a b\nc"), system(other))[0] == "whitespace"


def test_other_encodings_of_the_same_characters_are_recognised() -> None:
    assert told(system("caf\u00e9"), system("cafe\u0301"))[0] == "unicode"


def test_arguments_that_were_printed_anew_are_recognised() -> None:
    def call(arguments: str) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}

    assert told(call('{"a": 1}'), call('{"a":1}'))[0] == "arguments"
    assert told(call('{"a": 1}'), call('{"a":2}'))[0] == "early"


def test_a_text_that_was_cut_off_and_a_result_that_was_cleared_are_told_apart() -> None:
    long = {"role": "tool", "content": "result " * 50}
    assert told(long, {"role": "tool", "content": "result " * 10})[0] == "shortened"
    assert told(long, {"role": "tool", "content": "[cleared]"})[0] == "cleared"


def test_what_was_done_to_the_list_of_messages_is_recognised() -> None:
    many = [{"role": "user", "content": f"message number {n}"} for n in range(6)]
    before = [system("s"), *many]

    def kinds(now: list[Any]) -> str:
        return hints(compare(saved(before), saved(now)))[0].kind

    assert kinds([system("s"), {"role": "user", "content": "summary"}, *many[4:], *MORE]) == "compaction"
    assert kinds([system("s"), *many[2:], *MORE]) == "dropped"
    assert kinds([system("s"), {"role": "user", "content": "memory"}, *many, *MORE]) == "inserted"


def test_what_was_done_to_the_tools_is_recognised() -> None:
    f, g = ({"type": "function", "function": {"name": name, "parameters": {"a": 1, "b": 2}}} for name in "fg")
    turned = {"type": "function", "function": {"name": "f", "parameters": {"b": 2, "a": 1}}}

    def hint(before: list[Any] | None, now: list[Any] | None) -> tuple[str, str]:
        one, other = ({"tools": tools} if tools else {} for tools in (before, now))
        found = hints(compare(saved([ASK], **one), saved([ASK, *MORE], **other)))[0]
        return found.kind, found.text

    assert hint([f, g], [g, f])[0] == "tool_order"
    assert hint([f, g], [turned, g])[0] == "tool_spelling"
    kind, text = hint([f], [f, g])
    assert kind == "tools"
    assert "'g' added" in text
    assert "'g' left out" in hint([f, g], [f])[1]
    assert "no tools any more" in hint([f], None)[1]
    assert "the first had none" in hint(None, [f])[1]


def test_another_model_and_other_parameters_are_named() -> None:
    assert hints(compare(saved([ASK], model="m"), saved([ASK], model="n")))[0].kind == "model"
    (hint,) = hints(compare(saved([ASK], reasoning_effort="low"), saved([ASK], reasoning_effort="high")))
    assert hint.kind == "parameters"
    assert "'reasoning_effort'" in hint.text


def test_a_request_that_continues_needs_no_hint() -> None:
    assert hints(compare(saved([ASK]), saved([ASK, *MORE]))) == []
    assert hints(compare(saved([ASK, *MORE]), saved([ASK]))) == []
