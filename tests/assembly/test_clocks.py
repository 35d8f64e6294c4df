"""Clocks of several hosts: compared by what encloses what, and never by what their wall clocks say."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.assembly.hosts import A, B, Host, X, apart, conversation, on_hosts, step
from tests.assembly.run import Run
from tests.assembly.streams import Stream, traffic
from tests.assembly.test_properties import many
from tests.builders import EPOCH_NS, MS, SECOND, D, Pair, Process
from turnscope.assembly.clocks import DRIFT, Clocks
from turnscope.assembly.moments import ClockState, Moment
from turnscope.assembly.state import State
from turnscope.model import ClockStatus, Event, HoldRecord, Turn

HOUR = 3600 * SECOND


def compared(run: Run) -> dict[tuple[str, str], ClockStatus]:
    """By pair of hosts."""
    return {(c.host, c.other): c for c in run.assembler.status(run.now_ns).clocks}


@pytest.mark.parametrize("proxy", [True, False])
def test_skews_of_wall_clocks_are_found_within_their_error(proxy: bool) -> None:
    pair = Pair(proxy=proxy)
    run = Run().feed_moved(conversation(pair), apart(pair)).wait()
    truth = {"x": X.wall_ns, "a": A.wall_ns, "b": B.wall_ns}
    found = compared(run)
    assert found.keys() == ({("a", "b"), ("a", "x"), ("b", "x")} if proxy else {("a", "b")})
    for (host, other), clock in found.items():
        assert abs(clock.skew_s - (truth[other] - truth[host]) / SECOND) <= clock.error_s
        assert (clock.error_s < 0.1, clock.seen) == (True, 4)


def test_processes_of_one_clock_are_not_compared_and_containers_of_one_kernel_are_one_clock() -> None:
    pair = Pair()
    assert compared(Run().feed(conversation(pair)).wait()) == {}
    names = {p.emitter.id: Host(name="kernel") for p in pair.processes}
    move = on_hosts(names)

    def contained(event: Event) -> Event:
        moved = move(event)
        return msgspec.structs.replace(moved, emitter=msgspec.structs.replace(moved.emitter, host=event.emitter.id))

    run = Run().feed_moved(conversation(Pair()), contained).wait()
    assert compared(run) == {}
    assert run.holds()["d0"].held_ns == run.turns()["p1"].started_ns - run.holds()["d0"].started_ns + 100 * MS


@pytest.mark.parametrize("outcome", ["cancelled", "ok"])
def test_a_request_that_ended_after_its_answer_tells_nothing_of_clocks(outcome: str) -> None:
    """Cut off by the client, or by a stop string that the frontend found."""
    pair = Pair()
    times = {"decode_start_ns": 395 * MS, "last_byte_ns": 890 * MS}
    aborted = pair.turn("1", decode_finish="abort", attempt={"outcome": outcome, **times})
    events = [e for e in aborted if e.emitter not in (pair.pw.emitter, pair.dw.emitter)]
    run = Run().feed_moved([*pair.start(), *events], apart(pair)).wait()
    assert compared(run).keys() == {("a", "x")}


# --- one offset ---------------------------------------------------------------------------------------
def clocks(now_ns: int = 0) -> tuple[Clocks, State]:
    state = State(now_ns=now_ns)
    return Clocks(state), state


def test_many_requests_narrow_an_offset_and_it_always_holds_the_truth() -> None:
    random = Random(1)
    for offset in (-(10**15), -1, 0, 7, 10**15):
        known, state = clocks()
        errors = []
        for n in range(200):
            state.now_ns = 100 * n * MS
            known._narrow("p", "d", offset - random.randrange(50 * MS), offset + random.randrange(50 * MS))
            span = known.between(Moment("p", 0), Moment("d", 0))
            assert span is not None
            assert abs(span.ns + offset) <= span.error_ns
            errors.append(span.error_ns)
        assert errors[-1] < errors[0] / 5


def test_clocks_that_drift_apart_are_followed() -> None:
    random = Random(2)
    for ppm in (-400, 400):
        known, state = clocks()
        for n in range(600):
            state.now_ns = n * SECOND
            offset = state.now_ns * ppm // 1_000_000
            known._narrow("d", "p", offset - random.randrange(5 * MS), offset + random.randrange(5 * MS))
            span = known.between(Moment("d", 0), Moment("p", 0))
            assert span is not None
            assert abs(span.ns + offset) <= span.error_ns


def test_an_offset_that_nobody_confirms_grows_less_certain_and_a_contradiction_starts_anew() -> None:
    known, state = clocks()
    known._narrow("p", "d", -MS, MS)
    state.now_ns = 100 * SECOND
    span = known.between(Moment("p", 0), Moment("d", 0))
    assert span == (0, MS + 100 * SECOND // DRIFT)
    known._narrow("p", "d", 10 * SECOND - MS, 10 * SECOND + MS)
    assert known.between(Moment("p", 0), Moment("d", 10 * SECOND)) == (0, MS)


def test_two_clocks_that_were_never_compared_are_so_by_a_third_or_not_at_all() -> None:
    known, state = clocks()
    one, other = Moment("p", 0), Moment("d", 0)
    assert known.between(one, other) is None
    known._narrow("x", "p", 5 * SECOND - MS, 5 * SECOND + MS)
    known._narrow("x", "d", 8 * SECOND - 2 * MS, 8 * SECOND + 2 * MS)
    assert known.between(one, other) is None
    state.clocks = {n: ClockState(host=n, last_ns=0, mono_ns=0, wall_ns=0) for n in "xpd"}
    assert known.between(one, other) == (-3 * SECOND, 3 * MS)
    assert known.between(other, one) == (3 * SECOND, 3 * MS)
    assert known.between(one, Moment("", 5)) is known.between(None, one) is None


def test_clocks_that_fell_silent_are_forgotten() -> None:
    pair = Pair()
    run = Run().feed_moved(conversation(pair), apart(pair)).wait()
    late = pair.p.beat(4 * 3600 * 1000)
    run.feed_moved([late], apart(pair)).wait()
    assert compared(run) == {}
    assert run.assembler.status(run.now_ns).emitters[0].emitter.host == "a"


# --- a wall clock that is set -------------------------------------------------------------------------
def times(row: Turn | HoldRecord) -> dict[str, int | None]:
    """Everything that is a duration, also the one between begin and end."""
    positions = ("started_ns", "ended_ns", "deadline_ns")
    values = {f: getattr(row, f) for f in row.__struct_fields__ if f.endswith("_ns") and not f.endswith(positions)}
    ended = row.ended_ns
    return values | {"between": None if ended is None else ended - row.started_ns}


def told(run: Run) -> dict[str, dict[str, int | None]]:
    """Of every turn, and of every hold and lease."""
    turns = {f"turn {name}": times(row) for name, row in run.turns().items()}
    return turns | {f"hold {name}": times(row) for name, row in run.holds().items()}


@pytest.mark.parametrize("hours", [-5, 5])
@pytest.mark.parametrize("proxy", [True, False])
def test_a_wall_clock_that_is_set_by_hours_in_mid_turn_makes_no_duration(hours: int, proxy: bool) -> None:
    whole = Run().feed(conversation(Pair(proxy=proxy))).wait(100)
    for names in ({"a1", "a2"}, {"b1", "b2"}, {"c1"}, {"a1", "a2", "b1", "b2", "c1"}):
        pair = Pair(proxy=proxy)
        emitters = {p.emitter.id for p in pair.processes if p.emitter.id[-2:] in names}
        move = step(emitters, 5300 * MS, hours * HOUR)
        run = Run().feed_moved(conversation(pair), move).wait(100)
        assert told(run) == told(whole)
        for metric in ("hold_seconds", "hold_token_seconds_total", "ttft_seconds", "prefill_seconds"):
            assert run.count(metric) == whole.count(metric)
        stepped = run.assembler.status(run.now_ns).stepped
        assert [(s.host, s.last_s) for s in stepped] == ([("host", hours * 3600)] if emitters else [])


@many
@given(st.data())
def test_whatever_the_traffic_and_whoever_s_wall_clock_is_set_no_duration_changes(data: st.DataObject) -> None:
    events: Stream = data.draw(traffic())
    emitters = data.draw(st.sets(st.sampled_from(sorted({e.emitter.id for e in events}))))
    move = step(emitters, data.draw(st.integers(0, 8000)) * MS, data.draw(st.sampled_from([-HOUR, HOUR])))
    assert told(Run().feed_moved(events, move).wait(100)) == told(Run().feed(events).wait(100))


def test_a_clock_that_is_set_between_an_engine_s_frontend_and_its_core_does_not_stretch_the_turn() -> None:
    lasted = []
    for hours in (-5, 0, 5):
        pair = Pair(proxy=False)
        arrived = {"arrival_wall_ns": EPOCH_NS + (5000 - 8) * MS - hours * HOUR}
        run = Run().feed([*pair.start(), *pair.turn("1", at_ms=5000, prefill=arrived)]).wait(100)
        turn = run.turns()["p1"]
        assert turn.ended_ns is not None
        lasted.append(turn.ended_ns - turn.started_ns)
    assert lasted == [900 * MS, 908 * MS, 900 * MS]


def test_an_engine_that_starts_anew_after_its_clock_was_set_back_is_the_newer_start() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    events = [*pair.start(), pair.held("d1", 1199, 1000), again.started(20_000)]
    run = Run().feed_moved(events, step({again.emitter.id}, 0, -5 * HOUR)).wait()
    assert (run.holds()["d1"].outcome, run.holds()["d1"].held_ns) == ("holder_lost", 19 * SECOND)


def test_an_entry_that_expired_is_told_by_the_monotonic_clock() -> None:
    for after_ms, hours, reason in ((460_000, -5, "proxy_entry_expired"), (10_000, 5, "handle_not_given")):
        pair = Pair()
        late = pair.turn("2", at_ms=900 + after_ms, prompt=1250, attempt={"handle_given": None})
        events = [*pair.start(), *pair.turn("1"), *pair.beats(900 + after_ms), *late]
        everyone = {p.emitter.id for p in pair.processes}
        assert pair.proxy is not None
        run = Run().feed_moved(events, step(everyone - {pair.proxy.emitter.id}, 5000 * MS, hours * HOUR)).wait()
        assert run.turns()["p2"].reason == reason
