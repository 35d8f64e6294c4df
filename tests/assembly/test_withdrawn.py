"""Rows of turns that stand still are shown before anything is counted: they go when it shows that they are no turns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run, stored
from tests.builders import MS, Pair, request
from turnscope.assembly.turns import turn_id
from turnscope.model import Attempt, Event, Final, Handle, Stuck, Turn
from turnscope.semconv import Leg, StuckCause

GIVEN_UP_MS = 65_000


def first_turn(pair: Pair) -> list[Event]:
    return [*pair.start(), *pair.turn("1", prompt=1000)]


def parked(pair: Pair, at_ms: int = 5010) -> Event:
    """P promised to load for pA, and queued nothing."""
    return pair.p.say(Stuck(request_id="pA", cause=StuckCause.LOAD_FAILED, handle=pair.handle("1", 1199)), at_ms)


def given_up(pair: Pair, at_ms: int = GIVEN_UP_MS, *, number: int = 1, name: str = "pA", named: bool = True) -> Event:
    """The proxy's word on an attempt that it waits for no longer, and makes again."""
    assert pair.proxy is not None
    body = Attempt(
        proxy_turn_id="t2",
        number=number,
        final=False,
        session_id="s",
        prefill=Handle(engine_id="p", request_id=name) if named else None,
        handle_given=pair.handle("1", 1199),
        prefill_status=504,
        outcome="error",
        error_stage="prefill",
        prefill_start_ns=0,
    )
    return pair.proxy.say(body, at_ms)


def aborted(pair: Pair, at_ms: int = GIVEN_UP_MS) -> Event:
    """P's last word on pA, which it never ran."""
    leg = request(
        "pA",
        prompt=1250,
        handle_in=pair.handle("1", 1199),
        stats_sent=False,
        finish_reason="abort",
        added_mono_ns=5000 * MS,
    )
    return pair.p.say(leg, at_ms)


def answered(pair: Pair, number: int = 2, at_ms: int = GIVEN_UP_MS + 100) -> list[Event]:
    """The same client request again, without the handle."""
    return pair.turn("2", at_ms=at_ms, prompt=1250, attempt={"number": number})


def rows(run: Run, request_id: str) -> list[Turn]:
    """Every row that was written of the P request, in order."""
    key = turn_id("p", request_id)
    return [fact.turn for fact in run.facts if fact.turn is not None and fact.turn.turn_id == key]


def test_an_attempt_that_stood_still_and_was_made_again_is_shown_until_then_and_leaves_one_turn() -> None:
    pair = Pair()
    run = Run().feed([*first_turn(pair), parked(pair)]).wait(0)
    assert run.turns()["pA"].status == "stuck"
    run.feed([given_up(pair), aborted(pair), *answered(pair), *pair.beats(70_000, 10_000)]).wait(100)
    assert run.turns().keys() == {"p1", "p2"}
    assert run.count("turns_total") == 2
    assert run.turns()["p2"].attempts_made[0].turn_id == turn_id("p", "pA")
    last = rows(run, "pA")[-1]
    assert (last.withdrawn, last.part_of, last.status) == (True, turn_id("p", "p2"), "stuck")


def test_it_goes_although_the_engine_never_lets_go_of_the_request() -> None:
    pair = Pair()
    run = Run().feed([*first_turn(pair), parked(pair), given_up(pair), *answered(pair)])
    run.feed([pair.p.beat(at, open=["pA"]) for at in range(70_000, 700_000, 10_000)]).wait(1)
    assert run.turns().keys() == {"p1", "p2"}
    assert run.sample("turns_open", "stuck") == 1, "its blocks are taken all the same"


def test_one_that_is_known_to_be_an_attempt_when_it_is_found_to_stand_still_is_never_shown() -> None:
    pair = Pair()
    events = [*first_turn(pair), given_up(pair, 5000), *answered(pair, at_ms=5100), parked(pair, 8000)]
    run = Run().feed(events).wait(100)
    assert rows(run, "pA") == []
    assert run.count("stuck_total", "prefill-0", "load_failed") == 1


def test_one_that_was_given_up_for_good_is_counted_and_stays() -> None:
    pair = Pair()
    run = Run().feed([*first_turn(pair), parked(pair), given_up(pair), aborted(pair)]).wait(400)
    assert run.turns()["pA"].status == "stuck"
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 1


def test_it_belongs_to_whichever_attempt_is_the_last_as_far_as_known() -> None:
    pair = Pair()
    run = Run().feed([*first_turn(pair), parked(pair), given_up(pair), given_up(pair, 66_000, number=2, name="pB")])
    run.wait(400)
    assert rows(run, "pA")[-1].part_of == turn_id("p", "pB")
    run.feed(answered(pair, number=3), at_ms=470_000).wait(100)
    assert rows(run, "pA")[-1].part_of == turn_id("p", "p2")


def test_an_attempt_that_did_not_name_its_prefill_takes_it_away_once_it_is_found() -> None:
    pair = Pair()
    events = [*first_turn(pair), parked(pair), given_up(pair, named=False), aborted(pair), *answered(pair)]
    run = Run().feed([*events, *pair.beats(70_000, 10_000)]).wait(400)
    assert run.turns().keys() == {"p1", "p2"}
    assert rows(run, "pA")[-1].part_of == turn_id("p", "p2")


def test_a_turn_that_moves_again_is_not_shown_as_stuck_any_more_and_comes_back_when_it_is_counted() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), pair.p.say(request("p2", handle_out=pair.p_handle("2", 1000)), 9000)])
    idle = {"d2": ("p", "p2")}
    run.feed([e for at in range(10_000, 330_000, 10_000) for e in (pair.p.beat(at), pair.d.beat(at, idle=idle))])
    assert run.wait(0).turns()["p2"].status == "stuck"
    body = request("d2", leg=Leg.DECODE, handle_in=pair.p_handle("2", 1000), added_mono_ns=9000 * MS)
    run.feed([pair.d.beat(330_000, open=["d2"]), *pair.turn("9", at_ms=331_000)]).wait(6)
    assert run.turns().keys() == {"p9"}
    run.feed([pair.d.say(body, 340_000)]).wait(20)
    assert run.turns()["p2"].status == "ok"


@pytest.mark.parametrize("proxy", [True, False])
def test_a_request_of_d_that_was_shown_and_turns_out_to_be_the_answer_of_another_turn_goes(*, proxy: bool) -> None:
    pair = Pair(proxy=proxy)
    name = "chatcmpl-abc1-2222bbb1"
    samples = [request(f"{n}_{name}", leg=Leg.WHOLE, prompt=39, added_mono_ns=415 * MS) for n in range(2)]
    idle = {f"1_{name}": ("d", name)}
    run = Run().feed([*pair.start(), pair.d.say(samples[0], 900)])
    run.feed([e for at in range(10_000, 330_000, 10_000) for e in (pair.p.beat(at), pair.d.beat(at, idle=idle))])
    run.feed([pair.p.say(request("chatcmpl-abc1-1111aaa1", prompt=39), 330_000), pair.d.say(samples[1], 331_000)])
    run.wait(400)
    counted = {fact.turn.turn_id for fact in run.facts if isinstance(fact, Final) and fact.turn is not None}
    assert {row.turn_id for row in stored(run.facts)} == counted


def test_what_comes_of_a_withdrawn_request_later_is_shown_in_a_newer_row() -> None:
    pair, name = Pair(proxy=False), "chatcmpl-abc1-2222bbb1"
    first, second = (request(f"{n}_{name}", leg=Leg.WHOLE, prompt=39, added_mono_ns=415 * MS) for n in range(2))
    idle = [{f"{n}_{name}": ("d", name)} for n in (1, 2)]

    def beats(begin: int, end: int, idle: dict[str, tuple[str, str]]) -> list[Event]:
        return [e for at in range(begin, end, 10_000) for e in (pair.p.beat(at), pair.d.beat(at, idle=idle))]

    run = Run().feed([*pair.start(), pair.d.say(first, 900), *beats(10_000, 330_000, idle[0])])
    run.feed([pair.p.say(request("chatcmpl-abc1-1111aaa1", prompt=39), 330_000), *beats(340_000, 350_000, {})])
    run.feed(beats(350_000, 400_000, {})).wait(0)
    (shown, withdrawn) = (fact.turn for fact in run.facts if fact.turn is not None and fact.turn.status == "stuck")
    assert (shown.withdrawn, withdrawn.withdrawn) == (False, True)
    run.feed([pair.d.say(second, 400_000), *beats(400_000, 800_000, idle[1])]).wait(0)
    later = [fact.turn for fact in run.facts if fact.turn is not None and fact.turn.turn_id == shown.turn_id]
    assert [(row.revision, row.withdrawn) for row in later] == [(1, False), (2, True), (3, False), (4, False)]


@pytest.mark.parametrize("session", ["s", None], ids=["it_named_one", "it_asked_for_its_callers"])
def test_what_a_shown_attempt_told_of_its_callers_session_is_forgotten_with_it(session: str | None) -> None:
    pair, key = Pair(), turn_id("p", "pA")
    caller: dict[str, Any] = {"session_id": session, "handle_given": None, "caller_trace_id": "a" * 32}
    told = msgspec.structs.replace(given_up(pair).body, **caller, caller_span_id="b" * 16)
    stuck = Stuck(request_id="pA", cause=StuckCause.LOAD_FAILED)
    assert pair.proxy is not None
    run = Run().feed([*first_turn(pair), pair.proxy.say(told, 5000), pair.p.say(stuck, 5010)]).wait(0)
    assert "pA" in run.turns(), "the last attempt as far as known"
    spans = run.assembler._state.spans
    trace = spans.traces["a" * 32]
    assert (trace.turns.keys() | trace.asking.keys(), spans.remembered) == ({key}, 1)
    run.feed([*answered(pair, at_ms=20_000), *pair.beats(70_000, 10_000)]).wait(100)
    assert rows(run, "pA")[-1].withdrawn
    assert (trace.turns, trace.asking, spans.remembered) == ({}, {}, 0)
