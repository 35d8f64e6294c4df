"""Spans without a session take that of the turn that they called."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from tests.assembly.test_agent_spans import Rows, newest, span
from tests.builders import Pair
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.model import AgentSpan, Attempt, Event

SECOND = 10**9


def turn(session: str | None, *, caller: int, trace: int = 1, name: str = "1", pair: Pair | None = None) -> list[Event]:
    """The events of one turn that span ``caller`` asked for."""
    events = (pair or Pair()).turn(name)
    for event in events:
        if isinstance(event.body, Attempt):
            event.body = msgspec.structs.replace(
                event.body, session_id=session, caller_trace_id=f"{trace:032x}", caller_span_id=f"{caller:016x}"
            )
    return events


def after(*steps: list[AgentSpan] | list[Event]) -> dict[int, tuple[str | None, str | None]]:
    """Session and source of each span by number; a turn is counted before the next step."""
    assembler, at = Assembler(AssemblySettings()), SECOND
    for step in steps:
        spans = [one for one in step if isinstance(one, AgentSpan)]
        if spans:
            assembler.feed_spans(spans, at)
        for event in step:
            if isinstance(event, Event):
                assembler.feed(event, at)
        at += 100 * SECOND
        assembler.tick(at)
    rows: Rows = newest(assembler)
    return {int(row.span_id, 16): (row.session_id, row.session_source) for row in rows.values()}


@pytest.mark.parametrize("caller", [2, 3], ids=["the model call itself", "its HTTP client's span"])
def test_a_trace_without_a_session_takes_its_turns_whatever_comes_first(caller: int) -> None:
    told = [[span(1)], [span(2, 1, kind="model_call"), span(3, 2)], turn("s", caller=caller)]
    for steps in itertools.permutations(told):
        assert set(after(*steps).values()) == {("s", "turn")}


def test_where_turns_of_a_trace_disagree_only_their_callers_take_them() -> None:
    pair = Pair()
    told = [
        [span(1)],
        [span(2, 1, kind="model_call"), span(3, 2)],
        [span(4, 1, kind="model_call")],
        turn("a", caller=3, pair=pair),
        turn("b", caller=4, name="2", pair=pair),
    ]
    for steps in itertools.permutations(told):
        assert after(*steps) == {1: (None, None), 2: ("a", "turn"), 3: ("a", "turn"), 4: ("b", "turn")}


def test_what_spans_say_of_themselves_goes_before_what_a_turn_says() -> None:
    for steps in itertools.permutations([[span(1, None, "mine")], [span(2, 1)], turn("its", caller=2)]):
        assert after(*steps) == {1: ("mine", "session.id"), 2: ("mine", "parent")}


def test_turns_of_other_traces_and_turns_without_a_session_tell_nothing() -> None:
    pair = Pair()
    elsewhere, nobodys = turn("s", caller=1, trace=2, pair=pair), turn(None, caller=1, name="2", pair=pair)
    assert after([span(1)], elsewhere, nobodys) == {1: (None, None)}
