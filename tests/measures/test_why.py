"""Two requests compared, with places and sizes that are easy to count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.measures.bodies import Saved, read
from turnscope.measures.why import Comparison, Outcome, common_prefix, compare
from turnscope.semconv import Divergence

SYSTEM = {
    "role": "system",
    "content": "You are careful.\nToday is Monday.\n" + "Always check your sources twice.\n" * 3,
}
ASK = {"role": "user", "content": "0123456789"}
ANSWER = {"role": "assistant", "content": "abcde"}
MORE = {"role": "user", "content": "go on"}


def saved(*messages: Any, response: Any = None, **fields: Any) -> Saved:
    body = {"messages": list(messages), **fields}
    around = {"body": body, "response": {"choices": [{"message": response}]}} if response else body
    return read(json.dumps(around))


def compared(before: Saved, now: Saved) -> Comparison:
    return compare(before, now)


def test_a_request_that_goes_on_continues() -> None:
    found = compared(saved(SYSTEM, ASK), saved(SYSTEM, ASK, ANSWER, MORE))
    assert (found.outcome, found.place) == (Outcome.CONTINUES, None)
    assert found.reusable_chars == found.before_chars == len(SYSTEM["content"]) + 10
    assert found.displaced_chars == 0


def test_the_same_request_again_continues_and_a_beginning_of_it_is_shortened() -> None:
    assert compared(saved(SYSTEM, ASK), saved(SYSTEM, ASK)).outcome is Outcome.CONTINUES
    found = compared(saved(SYSTEM, ASK, ANSWER, MORE), saved(SYSTEM, ASK))
    assert (found.outcome, found.kind) == (Outcome.SHORTENED, Divergence.TRUNCATED)
    assert found.reusable_chars == found.now_chars


def test_the_exact_place_is_told_and_what_is_displaced_after_it() -> None:
    edited = {**SYSTEM, "content": SYSTEM["content"].replace("Monday", "Tuesday")}
    found = compared(saved(SYSTEM, ASK), saved(edited, ASK, ANSWER, MORE))
    assert found.outcome is Outcome.DIVERGES
    assert found.place is not None
    assert (found.place.piece.index, found.place.piece.role, found.kind) == (0, "system", Divergence.EDITED)
    assert (found.place.char, found.place.line, found.place.column) == (26, 2, 10)
    assert found.reusable_chars == 26
    same_after = len(SYSTEM["content"]) - len("You are careful.\nToday is Mon")
    assert found.displaced_chars == same_after + 10


def test_what_was_kept_and_what_is_displaced_never_exceed_what_there_is() -> None:
    found = compared(saved({"role": "user", "content": "aaaa"}), saved({"role": "user", "content": "aaaaaa"}))
    assert (found.reusable_chars, found.displaced_chars) == (4, 0)
    found = compared(saved({"role": "user", "content": "aaaaaa"}), saved({"role": "user", "content": "aabaa"}))
    assert (found.reusable_chars, found.displaced_chars) == (2, 2)


def test_lines_that_moved_within_a_message_are_found_again() -> None:
    lines = [f"document number {n} with a long text\n" for n in range(4)]
    before, now = ({"role": "user", "content": "".join(order)} for order in (lines, [lines[2], *lines[:2], lines[3]]))
    found = compared(saved(before), saved(now))
    assert found.place is not None
    assert found.reusable_chars == found.place.char == len("document number ")
    assert found.displaced_chars == 4 * len(lines[0]) - found.place.char


def test_a_message_left_out_is_the_one_that_is_named() -> None:
    note = {"role": "user", "content": "note"}
    found = compared(saved(SYSTEM, note, ASK), saved(SYSTEM, ASK, ANSWER))
    assert found.place is not None
    assert (found.kind, found.place.piece.path) == (Divergence.REMOVED, "messages[1]")
    assert found.displaced_chars == 10


@pytest.mark.parametrize("history", [ANSWER, {**ANSWER, "content": "abcdX"}])
def test_an_answer_that_was_saved_is_held_against_the_history(history: dict[str, str]) -> None:
    given = {**ANSWER, "reasoning_content": "hm"}
    found = compared(saved(SYSTEM, ASK, response=given), saved(SYSTEM, ASK, history, MORE))
    kind = Divergence.REASONING_STRIPPED if history is ANSWER else Divergence.ANSWER_CHANGED
    assert (found.outcome, found.kind) == (Outcome.DIVERGES, kind)
    assert found.place is not None
    assert found.place.piece.path == "messages[2]"
    assert found.reusable_chars == found.before_chars
    kept = compared(saved(SYSTEM, ASK, response=given), saved(SYSTEM, ASK, given, MORE))
    assert kept.outcome is Outcome.CONTINUES


def test_another_tool_list_is_named_before_the_messages() -> None:
    tools = [{"name": "f"}, {"name": "g"}]
    found = compared(saved(SYSTEM, ASK, tools=tools), saved(SYSTEM, ASK, ANSWER, tools=tools[::-1]))
    assert found.place is not None
    assert (found.place.piece.role, found.place.piece.index, found.place.label) == ("tools", None, "g")
    assert found.reusable_chars == len(SYSTEM["content"])
    assert found.reusable_chars + found.displaced_chars <= found.now_chars


def test_parameters_are_named_only_when_all_the_rest_continues() -> None:
    one, other = {"chat_template_kwargs": {"enable_thinking": True}}, {"chat_template_kwargs": {}}
    found = compared(saved(SYSTEM, ASK, **one), saved(SYSTEM, ASK, ANSWER, **other))
    assert found.place is not None
    assert (found.outcome, found.place.piece.role) == (Outcome.DIVERGES, "parameters")
    assert compared(saved(SYSTEM, ASK, **one), saved(SYSTEM, ASK, ANSWER, **one)).outcome is Outcome.CONTINUES
    found = compared(saved(SYSTEM, ASK, **one), saved(ASK, ANSWER, **other))
    assert found.place is not None
    assert found.place.piece.role == "system"


def test_nothing_of_another_model_can_be_reused() -> None:
    found = compared(saved(ASK, model="m"), saved(ASK, ANSWER, model="n"))
    assert (found.outcome, found.reusable_chars) == (Outcome.DIVERGES, 0)


def test_a_request_saved_without_its_model_is_not_of_another_one() -> None:
    assert compared(saved(ASK), saved(ASK, ANSWER, model="n")).outcome is Outcome.CONTINUES
    given = {**ANSWER, "reasoning_content": "hm"}
    found = compared(saved(ASK, model="m", response=given), saved(ASK, ANSWER))
    assert found.kind is Divergence.REASONING_STRIPPED


def test_a_completions_prompt_goes_on_within_its_text() -> None:
    one, more, other = (read(json.dumps({"prompt": text})) for text in ("Once upon", "Once upon a time", "Once at"))
    assert compared(one, more).outcome is Outcome.CONTINUES
    found = compared(one, other)
    assert (found.outcome, found.reusable_chars) == (Outcome.DIVERGES, 5)


@given(st.text("ab\n"), st.text("ab\n"))
def test_the_common_prefix_is_the_longest(one: str, other: str) -> None:
    length = common_prefix(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or length == min(len(one), len(other))


TEXTS = st.lists(st.sampled_from(["x", "yy", "a longer line of text here\n" * 2, "z"]), max_size=5)


@given(TEXTS, TEXTS)
def test_sizes_add_up_for_any_two_requests(before: list[str], now: list[str]) -> None:
    one, other = (
        saved({"role": "user", "content": "."}, *({"role": "user", "content": text} for text in texts))
        for texts in (before, now)
    )
    found = compared(one, other)
    assert 0 <= found.reusable_chars <= min(found.before_chars, found.now_chars)
    assert 0 <= found.displaced_chars <= found.now_chars - found.reusable_chars
    assert found.displaced_chars <= found.before_chars - found.reusable_chars
    assert (found.outcome is Outcome.CONTINUES) is (now[: len(before)] == before)
