"""Emitters count: duplicates go, gaps show, and a late arrival takes nothing back."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import MS, D, P, Pair, Process, request
from turnscope.assembly import AssemblySettings
from turnscope.assembly.sequence import MAX_SPANS, Arrival, Sequence
from turnscope.catalog import METRICS, label_sets
from turnscope.model import EngineState, Event, Hold, HoldUse, Transfer
from turnscope.semconv import Role


def test_a_number_seen_twice_is_a_duplicate_in_whatever_order() -> None:
    numbers = Sequence()
    assert [numbers.take(n, 0) for n in (1, 2, 5, 4, 3)] == [Arrival.NEW] * 5
    assert [numbers.take(n, 0) for n in (1, 3, 5)] == [Arrival.DUPLICATE] * 3
    assert numbers.gaps == []


def test_a_gap_becomes_a_loss_after_a_while_and_what_comes_then_is_recovered() -> None:
    numbers = Sequence()
    numbers.take(1, 0)
    numbers.take(5, 10)
    assert [(span.low, span.high) for span in numbers.give_up(10)] == [(2, 4)]
    assert numbers.take(3, 20) is Arrival.RECOVERED
    assert numbers.take(3, 21) is Arrival.DUPLICATE
    assert numbers.take(4, 22) is Arrival.RECOVERED


def test_a_heartbeat_shows_what_was_lost_at_the_end() -> None:
    numbers = Sequence()
    numbers.take(1, 0)
    numbers.announce(3, 10)
    assert [(span.low, span.high) for span in numbers.give_up(10)] == [(2, 3)]


def test_numbers_from_before_the_first_one_heard_may_have_gone_elsewhere() -> None:
    numbers = Sequence()
    numbers.take(100, 0)
    assert numbers.give_up(0) == []
    assert numbers.take(99, 1) is Arrival.NEW
    assert numbers.take(99, 2) is Arrival.DUPLICATE


def test_an_event_counted_twice_counts_once() -> None:
    pair = Pair()
    turn = pair.turn("1", prompt=1000)
    once = Run().feed([*pair.start(), *turn]).wait(100).counters()
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000)]).feed(turn).wait(100)
    twice = {key: value for key, value in run.counters().items() if "events_" not in key[0]}
    assert twice == {key: value for key, value in once.items() if "events_" not in key[0]}
    assert run.count("events_duplicate_total") == len(turn)
    assert run.count("events_received_total", "request") == 4


def test_a_dropped_event_is_missing_and_one_that_comes_late_is_recovered() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    (lost,) = [e for e in events if isinstance(e.body, type(request())) and e.body.request_id == "d1"]
    run = Run().feed([e for e in events if e is not lost] + [pair.d.beat(2000)]).wait(50)
    assert run.count("events_missing_total") == 0
    run.wait(20)
    assert run.count("events_missing_total", "engine") == 1
    run.feed([lost], at_ms=80_000).wait()
    assert run.count("events_missing_total", "engine") == 1
    assert run.count("events_recovered_total", "engine") == 1
    assert run.count("requests_total", "decode-0", "decode", "stop") == 1


def test_what_hooks_dropped_and_failed_at_is_counted_by_their_heartbeats() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), pair.d.beat(1000, dropped=3, errors=1), pair.d.beat(2000, dropped=5, errors=1)])
    run.wait()
    assert run.count("hook_dropped_total", "engine") == 5
    assert run.count("hook_errors_total", "engine") == 1


def test_open_turns_are_counted_by_the_last_heartbeats() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), pair.p.beat(1000, open=["p1"]), pair.d.beat(1000, open=["d0", "d9"])])
    assert (run.sample("turns_open", "running"), run.sample("turns_open", "stuck")) == (3, 0)
    run.feed([pair.p.beat(2000)])
    assert run.sample("turns_open", "running") == 2


def test_a_process_that_stops_or_falls_silent_is_not_alive() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    assert run.sample("emitters_alive", "engine") == 2
    run.feed([pair.d.say(EngineState(state="switched_off", message="too many errors"), 1000)])
    assert run.sample("emitters_alive", "engine") == 1
    (off,) = [e for e in run.assembler.status(run.now_ns).emitters if e.state == "switched_off"]
    assert (off.engine, off.message) == ("decode-0", "too many errors")
    assert run.wait(31).sample("emitters_alive", "engine") == 0


def test_a_turn_is_not_finalised_by_silence_while_its_request_is_listed() -> None:
    pair = Pair()
    assert pair.proxy is not None
    turn = pair.turn("1", prompt=1000)
    end = [e for e in turn if e.mono_ns == 900 * MS]
    run = Run().feed([*pair.start(), *(e for e in turn if e not in end)])
    for at in range(5000, 200_000, 5000):
        run.feed([pair.d.beat(at, open=["d1"]), pair.proxy.beat(at, open=["t1"])])
    assert run.wait(0).count("turns_total") == 0
    run.feed(end, at_ms=200_000).wait()
    assert run.turns()["p1"].has_decode
    assert (run.count("turns_total"), run.count("late_facts_total")) == (1, 0)


@pytest.mark.parametrize("begun_ms", range(0, 5000, 500))
def test_what_ends_a_long_wait_is_given_the_same_grace_whenever_the_wait_began(begun_ms: int) -> None:
    pair = Pair(proxy=False)
    turn = pair.turn("1", at_ms=begun_ms)
    begins = [e for e in turn if e.mono_ns == (begun_ms + 400) * MS]
    (read,) = [e for e in turn if isinstance(e.body, Transfer)]
    (released,) = [e for e in turn if isinstance(e.body, Hold) and e.body.phase == "released"]
    run = Run().feed([*pair.start(), *begins]).wait(100)
    assert run.count("turns_total") == 0, "P holds its blocks for D"
    run.feed([released], at_ms=110_000).feed([read], at_ms=114_000).wait(70)
    assert run.count("turns_total") == 1
    assert (run.count("transfers_total", "decode-0"), run.count("late_facts_total")) == (1, 0)


def test_a_sample_that_ends_long_after_the_first_is_given_the_grace_too() -> None:
    pair = Pair(proxy=False)
    first, second = (request(f"{n}_chatcmpl-1", finish_reason="abort") for n in range(2))
    run = Run().feed([*pair.start(), pair.p.say(first, 400)])
    run.feed([pair.p.beat(at, open=["1_chatcmpl-1"]) for at in range(3000, 63_000, 10_000)])
    use = HoldUse(request_id="0_chatcmpl-1", handle=pair.handle("0", 999), input_tokens=1000, processed=True)
    run.feed([pair.p.beat(60_000), pair.p.say(second, 60_000), pair.p.say(use, 64_000)]).wait(20)
    assert (run.count("turns_total"), run.count("late_facts_total")) == (1, 0)


def test_what_is_sent_twice_does_not_bring_a_silent_proxy_back_to_life() -> None:
    pair = Pair()
    assert pair.proxy is not None
    started, said = pair.start(), [e for e in pair.turn("1", at_ms=50_000) if e.emitter != pair.proxy.emitter]
    run = Run().feed(started).feed([started[-1]], at_ms=50_000).feed(said).wait(6)
    assert run.count("turns_total") == 1, "no attempt is awaited"


def test_a_turn_whose_decode_never_comes_is_finalised_a_minute_after_its_last_fact() -> None:
    pair = Pair()
    leg, *_ = [e for e in pair.turn("1") if isinstance(e.body, type(request()))]
    run = Run().feed([*pair.start(), leg]).wait(59)
    assert run.count("turns_total") == 0
    assert run.wait(2).count("turns_total") == 1
    assert not run.turns()["p1"].has_decode


def test_of_numbers_that_are_missing_everywhere_the_oldest_are_given_up_and_all_are_counted() -> None:
    pair, run = Pair(), Run()
    for _ in range(2 * MAX_SPANS + 1):
        run.feed([pair.p.beat(1000)])
        pair.p.seq += 1
    (emitter,) = run.assembler._state.emitters.values()
    assert len(emitter.sequence.gaps) == MAX_SPANS
    assert run.wait(100).count("events_missing_total", "engine") == 2 * MAX_SPANS
    assert len(emitter.sequence.lost) == MAX_SPANS


def test_what_a_journal_counted_of_a_process_is_not_counted_again_whatever_its_id_is() -> None:
    for emitter_id in ("a:b", "tally:", "é/"):
        process = Process(emitter_id, "engine", P)
        whole = Run().feed([process.started()]).wait(1)
        replayed = Run()
        for key in whole.keys:
            replayed.assembler.mark_counted(key, 0)
        assert whole.count("events_received_total", "engine") == 1
        assert replayed.feed([process.started()]).wait(1).keys == []


# --- names ----------------------------------------------------------------------------------------------
def engine_of(run: Run) -> list[str]:
    return [engine.name for engine in run.assembler.status(run.now_ns).engines]


def test_names_are_role_and_ordinal_or_what_was_configured() -> None:
    named = msgspec.structs.replace(D, name="blue")
    run = Run().feed(Pair(d=named).start())
    assert engine_of(run) == ["prefill-0", "blue"]


def test_data_parallel_ranks_of_one_configured_name_stay_apart() -> None:
    engines = [msgspec.structs.replace(D, id=f"d_dp{n}", dp_rank=n, name="blue") for n in (0, 1)]
    run = Run().feed([Process(f"e{n}", "engine", engine).started() for n, engine in enumerate(engines)])
    assert engine_of(run) == ["blue-dp0", "blue-dp1"]


def test_fifty_restarts_and_six_hundred_sessions_leave_the_label_sets_as_they_were() -> None:
    settings = AssemblySettings(max_engine_names=4)
    run = Run(settings)
    at = 0
    for start in range(50):
        engine = msgspec.structs.replace(P, id=f"p-{start}", generation=f"g-{start}")
        process = Process(f"e{start}", "engine", engine)
        run.feed([process.started(at)])
        for n in range(12):
            leg = request(f"p{start}-{n}", session_id=f"s{start}-{n}", finish_reason=f"odd reason {start}/{n}")
            run.feed([process.say(leg, at + n)])
        at += 200_000
        run.now_ns = at * MS
        run.wait(0)
    run.wait(100)
    assert run.count("requests_total", "prefill-0", "prefill", "other") == 600
    known = {(m, *s) for m in METRICS for s in label_sets(METRICS[m], {"prefill-0": Role.PREFILL})}
    assert run.counters().keys() <= known
    assert len([labels for labels in known if "prefill-0" in labels]) < 500


def test_more_engines_than_names_share_one() -> None:
    engines = [msgspec.structs.replace(P, id=f"p-{n}") for n in range(6)]
    run = Run(AssemblySettings(max_engine_names=4))
    run.feed([Process(f"e{n}", "engine", engine).started() for n, engine in enumerate(engines)])
    assert engine_of(run) == [*(f"prefill-{n}" for n in range(4)), "prefill-other", "prefill-other"]


def test_names_that_mean_something_else_cannot_be_given() -> None:
    engines = [msgspec.structs.replace(P, id=name, name=name) for name in ("none", "prefill-other", "decode-other", "")]
    run = Run().feed([Process(f"e{n}", "engine", engine).started() for n, engine in enumerate(engines)])
    assert engine_of(run) == [f"prefill-{n}" for n in range(4)]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("east\n\x1b[31m\x00", "east__[31m_"),
        (" ", "prefill-0"),
        ("x" * 3000, "x" * 100),
        ('a{b="c"}\\', 'a{b="c"}\\'),
        ("übung 1", "übung 1"),
    ],
)
def test_a_name_has_only_what_can_be_printed_and_an_end(given: str, name: str) -> None:
    run = Run().feed([Process("e1", "engine", msgspec.structs.replace(P, name=given, model=given)).started()])
    assert engine_of(run) == [name]
    (info,) = [s for s in run.assembler.samples(run.now_ns) if s.metric == "turnscope_engine_info"]
    assert all(label.isprintable() and len(label) <= 100 for label in info.labels)


def test_an_engine_that_comes_back_to_a_name_given_on_has_no_series_of_it() -> None:
    lost_ms = 200_000
    old, new = (Process(f"e{n}", "engine", msgspec.structs.replace(P, id=f"p-{n}")) for n in (0, 1))
    run = Run().feed([old.started(0)])
    run.feed([new.started(lost_ms)])
    run.feed([old.beat(lost_ms + 10)])
    assert engine_of(run) == ["prefill-0", "prefill-0"]
    infos = [s for s in run.assembler.samples(run.now_ns) if s.metric == "turnscope_engine_info"]
    assert len(infos) == 1


@pytest.mark.parametrize("role", ["prefill", "decode", "both", "aggregated", "unheard_of"])
def test_an_engine_of_any_role_is_taken(role: str) -> None:
    run = Run().feed([Process("e1", "engine", msgspec.structs.replace(P, role=role)).started()])
    (engine,) = run.assembler.status(run.now_ns).engines
    assert engine.engine.role == (role if role != "unheard_of" else "aggregated")


def test_the_first_wall_time_of_an_arrival_tells_how_far_clocks_are_apart() -> None:
    pair = Pair()
    run = Run()
    event: Event = pair.d.started(0)
    run.assembler.feed(event, MS, event.wall_ns + 3_000_000_000)
    (emitter,) = run.assembler.status(MS).emitters
    assert emitter.clock_offset_s == pytest.approx(3)
