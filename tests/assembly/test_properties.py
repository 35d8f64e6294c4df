"""What holds for every stream of events, whatever the order, the pauses and the repetitions."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.assembly.possible import possible
from tests.assembly.run import stored, totals
from tests.assembly.streams import disorder, traffic
from tests.builders import MS, SECOND
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.assembly.evidence import turn_split
from turnscope.catalog import METRICS, label_sets, legal
from turnscope.model import Event, Fact, Final, Turn
from turnscope.semconv import Path, Reason, Role

many = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

END_NS = 7 * 60 * SECOND
"""Longer than anything is awaited, shorter than memory."""


def arrive(assembler: Assembler, events: list[Event], arrivals_ns: list[int], *, end_ns: int = END_NS) -> list[Fact]:
    """Feed each event at its time, tick now and then, and wait until all is finalised."""
    facts: list[Fact] = []
    for number, (event, at) in enumerate(zip(events, arrivals_ns, strict=True)):
        assembler.feed(event, at)
        if number % 7 == 0:
            assembler.tick(at)
            facts += assembler.take()
    assembler.tick(arrivals_ns[-1] + end_ns)
    return facts + assembler.take()


def within_grace(events: list[Event]) -> list[int]:
    """One after the other, all within four seconds."""
    return [4 * SECOND * n // len(events) for n in range(len(events))]


def pauses(count: int) -> st.SearchStrategy[list[int]]:
    """Arrival times with any pauses, up to a minute and a half each."""
    steps = (0, 0, MS, MS, SECOND, 6 * SECOND, 90 * SECOND)

    def arrivals(seed: int) -> list[int]:
        return list(accumulate(Random(seed).choices(steps, k=count)))

    return st.integers(0, 2**32).map(arrivals)


def law_holds(turn: Turn) -> bool:
    parts = (turn.local_hit_tokens, turn.fetched_tokens, turn.external_tokens, turn.computed_tokens)
    if all(part is None for part in parts):
        return True
    known = [part for part in parts if part is not None]
    return len(known) == 4 and min(known) >= 0 and sum(known) == turn.prompt_tokens


def split_holds(turn: Turn) -> bool:
    """recomputed + new = computed or neither is known; rewritten is of new, suspect of what was reused."""
    split = (turn.recomputed_tokens, turn.new_tokens)
    if None in split:
        return split == (None, None) and turn.rewritten_tokens is None
    recomputed, new = (part or 0 for part in split)
    reused = (turn.local_hit_tokens or 0) + (turn.fetched_tokens or 0)
    return (
        recomputed >= 0
        and new >= 0
        and recomputed + new == turn.computed_tokens
        and 0 <= (turn.rewritten_tokens or 0) <= new
        and 0 <= (turn.suspect_tokens or 0) <= reused
    )


@many
@given(st.data())
def test_the_token_law_holds_for_every_turn_and_every_revision(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    facts = arrive(Assembler(AssemblySettings()), events, data.draw(pauses(len(events))))
    turns = [fact.turn for fact in facts if fact.turn is not None]
    assert turns
    assert [turn for turn in turns if not (law_holds(turn) and split_holds(turn))] == []
    assert all(legal(Path(turn.path), Reason(turn.reason)) for turn in turns)


def latency_adds_up(turn: Turn) -> bool:
    parts = [getattr(turn, name) for name in turn.__struct_fields__ if name.startswith("ttft_") and name != "ttft_ns"]
    known = [part for part in parts if part is not None]
    return (
        sum(known) == (turn.ttft_ns or 0) and min(known, default=0) >= 0 and bool(known) == (turn.ttft_ns is not None)
    )


@many
@given(st.data())
def test_the_parts_of_every_time_to_first_token_add_up_and_a_gain_is_in_its_interval(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    facts = arrive(Assembler(AssemblySettings()), events, data.draw(pauses(len(events))))
    turns = [fact.turn for fact in facts if fact.turn is not None]
    assert [turn for turn in turns if not latency_adds_up(turn)] == []
    gains = [(t.net_gain_low_ns, t.net_gain_ns, t.net_gain_high_ns) for t in turns if t.net_gain_ns is not None]
    assert [gain for gain in gains if None in gain or list(gain) != sorted(gain, key=lambda ns: ns or 0)] == []


@many
@given(st.data())
def test_what_events_say_at_once_is_possible_evidence(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    assembler = Assembler(AssemblySettings())
    arrive(assembler, events, data.draw(pauses(len(events))))
    turns = [assembler._turns.get(key) for key in assembler._state.old_turns]
    assert turns
    witness, settler = assembler._closing._witness, assembler._settler
    said = [witness.evidence(t, turn_split(t), settler.previous(t)) for t in turns if t is not None]
    assert [evidence for evidence in said if not possible(evidence)] == []


@many
@given(st.data())
def test_each_key_is_final_once_and_nothing_is_ever_taken_back(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    facts = arrive(Assembler(AssemblySettings()), events, data.draw(pauses(len(events))))
    finals = [fact for fact in facts if isinstance(fact, Final)]
    assert [key for key, count in Counter(final.key for final in finals).items() if count > 1] == []
    assert min(add.value for final in finals for add in final.contributions) >= 0


def newest(facts: list[Fact]) -> dict[tuple[str, str], Any]:
    """The last row of each turn and hold that readers see, but for what says when it was written."""
    rows: dict[tuple[str, str], Any] = {
        ("turn", turn.turn_id): structs.replace(turn, revision=0, late=False) for turn in stored(facts)
    }
    for fact in facts:
        if fact.hold is not None:
            rows["hold", fact.hold.hold_id] = structs.replace(fact.hold, revision=0)
    return rows


@many
@given(st.data())
def test_order_and_pauses_make_no_difference_to_what_is_told_within_the_grace(data: st.DataObject) -> None:
    ordered = data.draw(traffic())
    shuffled = data.draw(disorder(ordered))
    again = sorted(shuffled, key=lambda e: (e.mono_ns, e.emitter.id, e.seq))
    one = arrive(Assembler(AssemblySettings()), shuffled, within_grace(shuffled))
    other = arrive(Assembler(AssemblySettings()), again, within_grace(again))
    assert totals(one) == totals(other)
    assert newest(one) == newest(other)
    late = [key for key in totals(one) if "late_facts" in key[0] or "reclassified" in key[0]]
    assert late == []


def _as_led_to(row: Turn) -> Turn:
    """Without what tells of the way: suspicions stay once they were raised; and of a request that was counted when it
    was tried again after all, the first row tells of its attempts as far as they were known when it was last looked at.
    """
    return structs.replace(row, suspicions=[], attempts_made=[], wasted_bytes=None)


@many
@given(st.data())
def test_the_rows_that_readers_see_are_the_turns_that_were_counted_and_those_that_stand_still(
    data: st.DataObject,
) -> None:
    events = data.draw(traffic().flatmap(disorder))
    arrivals, cut = data.draw(pauses(len(events))), data.draw(st.integers(0, len(events)))
    assembler, facts = Assembler(AssemblySettings()), list[Fact]()

    def counted() -> set[str]:
        return {fact.turn.turn_id for fact in facts if isinstance(fact, Final) and fact.turn is not None}

    def seen() -> set[str]:
        assembler._closing.settle()
        facts.extend(assembler.take())
        return {turn.turn_id for turn in stored(facts)}

    for event, at in zip(events[:cut], arrivals[:cut], strict=True):
        assembler.feed(event, at)
    shown = seen()
    standing = {
        t.turn_id for t in assembler._state.turns.values() if t.stuck and assembler._closing._closes_as(t) == "turn"
    }
    assert shown == counted() | standing
    if cut < len(events):
        facts += arrive(assembler, events[cut:], arrivals[cut:])
        assert seen() == counted()


OF_ARRIVAL = {
    "turnscope_events_missing_total",
    "turnscope_events_recovered_total",
    "turnscope_late_facts_total",
    "turnscope_turns_reclassified_total",
    "turnscope_suspicions_total",
    "turnscope_suspicions_withdrawn_total",
}
"""All that depends on the order of late facts, and must: they are counted one by one as they come. A gap is counted
when it shows, and a suspicion at first evidence, though the next fact may refute it."""


@many
@given(st.data())
def test_what_came_in_time_and_what_came_late_makes_a_difference_and_the_order_within_each_makes_none(
    data: st.DataObject,
) -> None:
    """A turn is counted once, with what is known by then: that set decides, and rows end where all facts lead."""
    events = data.draw(traffic().flatmap(disorder))
    cut, random = data.draw(st.integers(1, len(events))), Random(data.draw(st.integers(0, 2**32)))

    def fed(parts: list[list[Event]]) -> list[Fact]:
        assembler, facts = Assembler(AssemblySettings()), list[Fact]()
        for number, part in enumerate(parts):
            arrivals = [number * 110 * SECOND + at for at in within_grace(part)]
            facts += arrive(assembler, part, arrivals, end_ns=100 * SECOND) if part else []
        return facts

    parts = [events[:cut], events[cut:]]
    one, other = fed(parts), fed([random.sample(part, len(part)) for part in parts])
    counted = [{key: n for key, n in totals(facts).items() if key[0] not in OF_ARRIVAL} for facts in (one, other)]
    assert counted[0] == counted[1]
    rows = [
        {key: _as_led_to(row) if isinstance(row, Turn) else row for key, row in newest(facts).items()}
        for facts in (one, other)
    ]
    assert rows[0] == rows[1]


@many
@given(st.data())
def test_computed_tokens_are_counted_once_told_apart_or_not(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    facts = arrive(Assembler(AssemblySettings()), events, data.draw(pauses(len(events))))
    finals = [fact for fact in facts if isinstance(fact, Final)]
    tokens = {key[2]: 0.0 for key in totals(finals) if key[0] == "turnscope_prompt_tokens_total"}
    for (metric, *labels), value in totals(finals).items():
        if metric == "turnscope_prompt_tokens_total":
            tokens[labels[1]] += value
    computed = sum(final.turn.computed_tokens or 0 for final in finals if final.turn is not None)
    assert sum(tokens.get(source, 0) for source in ("computed", "recomputed", "new")) == computed
    avoidable = [v for k, v in totals(finals).items() if k[0] == "turnscope_avoidable_recompute_tokens_total"]
    assert sum(avoidable) == tokens.get("recomputed", 0)


@many
@given(st.data())
def test_replay_of_a_journal_adds_exactly_what_was_not_counted(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    arrivals = data.draw(pauses(len(events)))
    whole = arrive(Assembler(AssemblySettings()), events, arrivals)
    crash, checkpoint = sorted(data.draw(st.tuples(*2 * (st.integers(0, len(events)),))), reverse=True)
    before, saved, facts = Assembler(AssemblySettings()), b"", list[Fact]()
    for number in range(crash):
        if number == checkpoint:
            before.tick(arrivals[number - 1] if number else 0)
            facts += before.take()
            saved = before.snapshot()
        before.feed(events[number], arrivals[number])
        if number % 5 == 0:
            before.tick(arrivals[number])
            facts += before.take()
    after = Assembler(AssemblySettings())
    begin = checkpoint if saved else 0
    if saved:
        after.restore(saved)
    for fact in facts:
        if isinstance(fact, Final):
            after.mark_counted(fact.key, arrivals[-1])
    facts += arrive(after, events[begin:], arrivals[begin:]) if begin < len(events) else []
    assert totals(facts) == totals(whole)
    assert {t.turn_id for t in stored(facts)} == {t.turn_id for t in stored(whole)}


@many
@given(st.data())
def test_every_label_set_is_one_that_the_catalogue_knows_in_advance(data: st.DataObject) -> None:
    events = data.draw(traffic().flatmap(disorder))
    facts = arrive(Assembler(AssemblySettings()), events, data.draw(pauses(len(events))))
    engines = {"prefill-0": Role.PREFILL, "decode-0": Role.DECODE}
    known = {(name, *labels) for name, metric in METRICS.items() for labels in label_sets(metric, engines)}
    assert {key for key in totals(facts) if not METRICS[key[0]].sparse} - known == set()
