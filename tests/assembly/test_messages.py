"""Which message parts a turn from the one before it, as the proxy's digests and lengths tell."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.assembly.run import Run
from tests.builders import Pair
from turnscope.assembly.messages import MOST, Parting, parting
from turnscope.history.digests import Key
from turnscope.model import Attempt
from turnscope.proxy.messages import Prompts, Untold
from turnscope.proxy.said import Said
from turnscope.semconv import Divergence, diverges_in

KEY = Key(b"the sidecar's")
SYSTEM = {"role": "system", "content": "You are careful."}
ASK = {"role": "user", "content": "What is two and two?"}
ANSWER = {"role": "assistant", "content": "Four.", "reasoning_content": "hm hm"}
SPOKEN = {"role": "assistant", "content": "Four."}
MORE = {"role": "user", "content": "Sure?"}
TOOLS = [{"name": "f"}, {"name": "g"}]


def attempt(*messages: Any, key: Key | None = KEY, answer: dict[str, str] | None = None, **body: Any) -> Attempt:
    """What the proxy tells of a request with these messages; of ``answer``, too."""
    said = Said()
    if answer is not None:
        said.add(0, answer["content"], answer.get("reasoning_content"), None)
    prompts = Prompts(lambda: key)
    prompt = prompts.take(json.dumps({"messages": messages, **body}).encode())
    event = Attempt(proxy_turn_id="t", model=body.get("model"))
    return prompts.fill(Untold(event, prompt, said if answer is not None else None), lambda: None)


def test_a_request_that_goes_on_parts_nowhere() -> None:
    before = attempt(SYSTEM, ASK, answer=ANSWER, tools=TOOLS)
    assert parting(before, attempt(SYSTEM, ASK, ANSWER, MORE, tools=TOOLS)) is None
    assert parting(before, attempt(SYSTEM, ASK, tools=TOOLS)) is None


def test_an_edited_system_prompt_is_message_0() -> None:
    edited = {**SYSTEM, "content": "You are cautious."}
    found = parting(attempt(SYSTEM, ASK), attempt(edited, ASK, ANSWER, MORE))
    assert found == Parting(0, "system", Divergence.EDITED, 16, 17, "digests")
    assert diverges_in(found.message, found.role) == "message 0, system"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([SYSTEM, ASK, ANSWER, MORE], [SYSTEM, ANSWER, MORE, SPOKEN], (1, "user", "removed", 20, None)),
        ([SYSTEM, ASK], [SYSTEM, MORE, ASK, ANSWER], (1, "user", "inserted", None, 5)),
        ([SYSTEM, ASK, ANSWER, MORE], [SYSTEM, ASK], (2, "assistant", "truncated", 15, None)),
        ([SYSTEM, ASK, ANSWER, MORE, SPOKEN], [SYSTEM, SPOKEN], (1, "user", "removed", 35, None)),
        ([SYSTEM, ASK, ANSWER, MORE], [SYSTEM, {"role": "user", "content": "sum"}], (1, "user", "compacted", 35, 3)),
    ],
)
def test_each_kind_of_change_names_its_message(before: list[Any], now: list[Any], expected: tuple[Any, ...]) -> None:
    assert parting(attempt(*before), attempt(*now)) == (*expected, "digests")


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        (SPOKEN, "reasoning_stripped"),
        ({**ANSWER, "content": "Five."}, "answer_changed"),
        ({**SPOKEN, "content": "Five."}, "answer_changed"),
    ],
)
def test_an_answer_that_came_back_changed_is_told_from_one_without_its_reasoning(
    history: dict[str, str], kind: str
) -> None:
    before = attempt(SYSTEM, ASK, answer=ANSWER)
    found = parting(before, attempt(SYSTEM, ASK, history, MORE))
    chars = sum(len(text) for name, text in history.items() if name != "role")
    assert found == (2, "assistant", kind, 10, chars, "digests")


def test_an_answer_that_was_left_out_is_named() -> None:
    found = parting(attempt(SYSTEM, ASK, answer=ANSWER), attempt(SYSTEM, ASK, MORE))
    assert found == (2, "assistant", "removed", 10, None, "digests")


def test_of_an_answer_that_nobody_saw_nothing_is_said() -> None:
    assert parting(attempt(SYSTEM, ASK), attempt(SYSTEM, ASK, SPOKEN, MORE)) is None


def test_another_tool_list_is_named_before_any_message() -> None:
    edited = {**SYSTEM, "content": "x"}
    found = parting(attempt(SYSTEM, ASK, tools=TOOLS), attempt(edited, ASK, MORE, tools=TOOLS[::-1]))
    assert found is not None
    assert (found.message, found.role, found.kind) == (None, "tools", "edited")
    assert found.chars_before == found.chars
    assert diverges_in(found.message, found.role) == "the tools"
    gone = parting(attempt(SYSTEM, ASK, tools=TOOLS), attempt(SYSTEM, ASK, MORE))
    assert gone is not None
    assert (gone.role, gone.kind, gone.chars) == ("tools", "removed", None)


def test_parameters_are_named_only_where_nothing_else_differs() -> None:
    one, other = {"reasoning_effort": "low"}, {"reasoning_effort": "high"}
    found = parting(attempt(ASK, answer=SPOKEN, **one), attempt(ASK, SPOKEN, MORE, **other))
    assert found is not None
    assert (found.role, found.kind) == ("parameters", "edited")
    found = parting(attempt(ASK, answer=SPOKEN, **one), attempt(ASK, ANSWER, MORE, **other))
    assert found is not None
    assert found.role == "assistant"


def test_another_model_is_named_first() -> None:
    found = parting(attempt(SYSTEM, model="m"), attempt(ASK, model="n"))
    assert found == (None, "model", "edited", None, None, "names")


def test_without_a_common_key_lengths_prove_a_difference_and_never_equality() -> None:
    same_length = {**SYSTEM, "content": "You are careful!"}
    longer = {**SYSTEM, "content": "You are careful!!"}
    for mine, key in ((None, None), (None, KEY), (KEY, None), (KEY, Key(b"another"))):
        before = attempt(SYSTEM, ASK, key=mine, answer=ANSWER)
        assert parting(before, attempt(same_length, ASK, ANSWER, MORE, key=key)) is None
        found = parting(before, attempt(longer, ASK, ANSWER, MORE, key=key))
        assert found == (0, "system", "edited", 16, 17, "lengths")
        stripped = parting(before, attempt(SYSTEM, ASK, SPOKEN, MORE, key=key))
        assert stripped == (2, "assistant", "reasoning_stripped", 10, 5, "lengths")


def test_what_cannot_be_compared_is_not_compared() -> None:
    told = attempt(SYSTEM, ASK)
    assert parting(None, told) is None
    assert parting(told, None) is None
    assert parting(told, attempt()) is None
    server = attempt(MORE)
    server.session_source = "body.previous_response_id"
    assert parting(told, server) is None
    many = attempt(*[ASK] * MOST)
    assert parting(many, attempt(SYSTEM, ASK)) is None


MESSAGES = st.lists(st.sampled_from([SYSTEM, ASK, ANSWER, SPOKEN, MORE]), min_size=1, max_size=6)


@given(MESSAGES, MESSAGES)
def test_nothing_is_said_exactly_where_the_history_is_kept(before: list[Any], now: list[Any]) -> None:
    found = parting(attempt(*before), attempt(*now))
    assert (found is None) is (now[: len(before)] == before)
    if found is not None:
        assert found.message is not None
        assert before[: found.message] == now[: found.message]


# --- in the row ---------------------------------------------------------------------------------------
def fields(told: Attempt, **more: Any) -> dict[str, Any]:
    """Of an attempt event."""
    names = [n for n in told.__struct_fields__ if n.startswith(("message_", "part_", "answer_", "digest_"))]
    return {name: getattr(told, name) for name in names} | more


def test_a_turns_row_names_the_message_and_the_turn_before_can_be_counted_already() -> None:
    pair = Pair()
    first, second = attempt(SYSTEM, ASK, answer=SPOKEN), attempt({**SYSTEM, "content": "x"}, ASK, SPOKEN, MORE)
    run = Run().feed([*pair.start(), *pair.turn("1", attempt=fields(first))]).wait(20)
    turn = run.feed(pair.turn("2", at_ms=30_000, prompt=1250, attempt=fields(second))).wait().turns()["p2"]
    assert (turn.diverged_message, turn.diverged_role, turn.diverged_kind) == (0, "system", "edited")
    assert (turn.diverged_chars_before, turn.diverged_chars, turn.diverged_evidence) == (16, 1, "digests")
    assert run.turns()["p1"].diverged_role is None


def test_a_turn_that_goes_on_says_nothing() -> None:
    pair = Pair()
    first, second = attempt(SYSTEM, ASK, answer=SPOKEN), attempt(SYSTEM, ASK, SPOKEN, MORE)
    events = [*pair.start(), *pair.turn("1", attempt=fields(first))]
    events += pair.turn("2", at_ms=5000, prompt=1250, attempt=fields(second))
    turn = Run().feed(events).wait().turns()["p2"]
    assert (turn.diverged_message, turn.diverged_role, turn.diverged_kind, turn.diverged_evidence) == (None,) * 4


def test_each_agent_of_a_session_goes_on_from_its_own_turn() -> None:
    pair = Pair()
    main, more = attempt(SYSTEM, ASK, answer=SPOKEN), attempt(SYSTEM, ASK, SPOKEN, MORE)
    sub = attempt({"role": "system", "content": "You search."}, MORE)
    lineage = {"agent_id": "sub", "parent_agent_id": "main", "parent_session_id": "above"}
    events = [*pair.start(), *pair.turn("1", attempt=fields(main))]
    events += pair.turn("2", at_ms=5000, attempt=fields(sub, **lineage))
    events += pair.turn("3", at_ms=10_000, prompt=1250, attempt=fields(more))
    turns = Run().feed(events).wait().turns()
    assert [turns[name].diverged_role for name in ("p1", "p2", "p3")] == [None, None, None]
    found = turns["p2"]
    assert (found.agent_id, found.parent_agent_id, found.parent_session_id) == ("sub", "main", "above")


def test_a_turn_goes_on_from_the_last_one_that_was_answered() -> None:
    pair = Pair()
    first, failed = attempt(SYSTEM, ASK, answer=SPOKEN), attempt(SYSTEM, ASK, SPOKEN, {**MORE, "content": "Really?"})
    third = attempt(SYSTEM, ASK, SPOKEN, MORE)
    events = [*pair.start(), *pair.turn("1", attempt=fields(first))]
    broke = fields(failed, outcome="error", finish_reason=None)
    events += pair.turn("2", at_ms=5000, prompt=1250, decode_finish="error", attempt=broke)
    events += pair.turn("3", at_ms=10_000, prompt=1250, attempt=fields(third))
    turns = Run().feed(events).wait().turns()
    assert turns["p2"].status == "error"
    assert turns["p3"].previous_turn_id == turns["p2"].turn_id
    assert (turns["p2"].diverged_role, turns["p3"].diverged_role) == (None, None)


def test_an_agent_that_is_given_anothers_handle_is_held_against_that_ones_history() -> None:
    pair = Pair()
    main = attempt(SYSTEM, ASK, answer=SPOKEN)
    sub = attempt({"role": "system", "content": "You search."}, MORE)
    events = [*pair.start(), *pair.turn("1", prompt=1000, attempt=fields(main))]
    given = pair.handle("1", 1199)
    told = fields(sub, agent_id="sub")
    events += pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=given, attempt=told)
    turn = Run().feed(events).wait().turns()["p2"]
    assert (turn.diverged_message, turn.diverged_role) == (0, "system")
