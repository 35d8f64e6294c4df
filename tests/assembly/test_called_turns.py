"""Spans without a session take that of the turn they called, and turns without one that of the span that called."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from tests.assembly.test_agent_spans import Rows, newest, span
from tests.builders import Pair
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.model import AgentSpan, Attempt, Event, Fact, Transfer, Turn

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


def facts(*steps: list[AgentSpan] | list[Event], restored: bool = False) -> list[Fact]:
    """All that is handed out; a turn is counted before the next step. ``restored``: by another assembler each."""
    assembler, at, found = Assembler(AssemblySettings()), SECOND, []
    for step in steps:
        spans = [one for one in step if isinstance(one, AgentSpan)]
        if spans:
            assembler.feed_spans(spans, at)
        for event in step:
            if isinstance(event, Event):
                assembler.feed(event, at)
        at += 100 * SECOND
        assembler.tick(at)
        found += assembler.take()
        if restored:
            state, assembler = assembler.snapshot(), Assembler(AssemblySettings())
            assembler.restore(state)
    return found


def after(*steps: list[AgentSpan] | list[Event]) -> dict[int, tuple[str | None, str | None]]:
    """Session and source of each span by number."""
    rows: Rows = newest(facts(*steps))
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


def whose(*steps: list[AgentSpan] | list[Event], restored: bool = False) -> tuple[str | None, str | None]:
    """Session and source in the newest row of the only turn."""
    rows: list[Turn] = [fact.turn for fact in facts(*steps, restored=restored) if fact.turn is not None]
    assert [row.revision for row in rows] == list(range(1, len(rows) + 1))
    return rows[-1].session_id, rows[-1].session_source


@pytest.mark.parametrize("restored", [False, True], ids=["in one go", "with restarts"])
def test_a_turn_without_a_session_takes_that_of_the_span_that_called_whatever_comes_first(restored: bool) -> None:
    told = [[span(1, None, "outer")], [span(2, 1, "s")], [span(3, 2, kind="model_call")], turn(None, caller=3)]
    for steps in itertools.permutations(told):
        assert whose(*steps, restored=restored) == ("s", "span")


def test_where_the_span_that_called_never_came_the_turn_takes_what_its_trace_agrees_on() -> None:
    for steps in itertools.permutations([[span(1, None, "s")], [span(2, 1)], turn(None, caller=9)]):
        assert whose(*steps) == ("s", "span")
    for steps in itertools.permutations([[span(1, None, "s")], [span(2, None, "other")], turn(None, caller=9)]):
        assert whose(*steps) == (None, None)


def test_a_session_that_the_request_names_goes_before_the_spans() -> None:
    for steps in itertools.permutations([[span(1, None, "spans")], turn("its", caller=1)]):
        assert whose(*steps)[0] == "its"


def test_a_turn_that_has_its_session_from_a_span_is_no_evidence_for_other_spans() -> None:
    pair = Pair()
    told = [[span(1)], [span(2, 1, "a")], [span(3, 1, "b")], turn(None, caller=2, pair=pair)]
    for steps in itertools.permutations(told):
        assert after(*steps) == {1: (None, None), 2: ("a", "session.id"), 3: ("b", "session.id")}
        assert whose(*steps) == ("a", "span")


def test_a_turn_keeps_the_session_of_a_span_that_is_forgotten() -> None:
    def session(*, forgotten: bool) -> str | None:
        assembler = Assembler(AssemblySettings())
        assembler.feed_spans([span(1, None, "s")], SECOND)
        pair = Pair()
        events = turn(None, caller=1, pair=pair)
        late = [event for event in events if isinstance(event.body, Transfer)]
        for event in events:
            if event not in late:
                assembler.feed(event, SECOND)
        assembler.tick(100 * SECOND)
        if forgotten:
            assembler.feed_spans([span(n, trace=n) for n in range(2, 20_010)], 101 * SECOND)
        for event in late:
            assembler.feed(event, 102 * SECOND)
        rows = [fact.turn for fact in assembler.take() if fact.turn is not None]
        assert len(rows) == 2
        return rows[-1].session_id

    assert session(forgotten=False) == session(forgotten=True) == "s"
