"""What no honest hook sends costs no turn of others, no restart and no total."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.assembly.hostile import attacks
from tests.assembly.test_properties import END_NS, law_holds, many, pauses, split_holds
from turnscope.assembly import Assembler, AssemblySettings, settler
from turnscope.model import Event, Fact, Final, HoldRecord, Turn
from turnscope.outputs.spans import encode
from turnscope.store.schema import HOLDS, TURNS, to_arrow

SIGNED = {
    *("started_ns", "ended_ns", "prefill_started_ns", "decode_started_ns", "fetch_started_ns", "handoff_started_ns"),
    *("reported_local_tokens", "reported_external_tokens", "reported_computed_tokens", "remainder_tokens"),
    *("net_gain_ns", "net_gain_low_ns", "net_gain_high_ns", "late_by_ns", "deadline_ns"),
}
"""Figures that may be below zero: times of day, what engines said word for word, and differences."""


def below_zero(row: Turn | HoldRecord) -> list[str]:
    """Figures of a row that cannot be."""
    found = {name: getattr(row, name) for name in row.__struct_fields__ if name not in SIGNED}
    return [f"{name} {value}" for name, value in found.items() if isinstance(value, int) and value < 0]


def told(assembler: Assembler, events: list[Event], arrivals_ns: list[int]) -> list[Fact]:
    """Everything that anybody asks of it, after each event."""
    facts: list[Fact] = []
    for event, at in zip(events, arrivals_ns, strict=True):
        assembler.feed(event, at, at)
        assembler.tick(at)
        facts += assembler.take()
        assembler.samples(at)
        assembler.status(at)
    assembler.tick(arrivals_ns[-1] + END_NS)
    return facts + assembler.take()


@many
@given(st.data())
def test_nothing_that_the_wire_lets_through_raises_or_breaks_the_token_law(data: st.DataObject) -> None:
    events = data.draw(attacks())
    assembler = Assembler(AssemblySettings())
    facts = told(assembler, events, data.draw(pauses(len(events))))
    turns = [fact.turn for fact in facts if fact.turn is not None]
    holds = [fact.hold for fact in facts if fact.hold is not None]
    assert [turn for turn in turns if not (law_holds(turn) and split_holds(turn))] == []
    assert [figure for turn in turns for figure in below_zero(turn)] == []
    assert [figure for hold in holds for figure in below_zero(hold)] == []
    encode(turns, version="0")
    assert to_arrow(TURNS, turns)[1] == 0
    assert to_arrow(HOLDS, holds)[1] == 0


@many
@given(st.data())
def test_a_session_that_remembers_two_turns_settles_whatever_comes_late_of_others(data: st.DataObject) -> None:
    events = data.draw(attacks())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settler, "MAX_TURNS", 2)
        facts = told(Assembler(AssemblySettings()), events, data.draw(pauses(len(events))))
    assert [fact.turn for fact in facts if fact.turn is not None and not law_holds(fact.turn)] == []


@many
@given(st.data())
def test_after_a_restart_nothing_of_it_is_counted_again(data: st.DataObject) -> None:
    events = data.draw(attacks())
    arrivals = data.draw(pauses(len(events)))
    before = Assembler(AssemblySettings())
    keys = [fact.key for fact in told(before, events, arrivals) if isinstance(fact, Final)]
    after = Assembler(AssemblySettings())
    after.restore(before.snapshot())
    replayed = Assembler(AssemblySettings())
    for key in keys:
        replayed.mark_counted(key, arrivals[-1])
    assert [fact for fact in told(replayed, events, arrivals) if isinstance(fact, Final)] == []
