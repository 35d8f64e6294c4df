"""Holds and leases: what was observed, once each, from all ranks' words."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import BLOCK_BYTES, EPOCH_NS, MS, SECOND, D, P, Pair, Process, read, request
from turnscope.assembly import AssemblySettings
from turnscope.model import Event, Hold
from turnscope.semconv import Direction, HoldKind, Leg, TransferState

WIDE = msgspec.structs.replace(P, tp_size=8)


def ranks(engine_id: str = "p", count: int = 8) -> list[Process]:
    """The workers of one engine."""
    base = msgspec.structs.replace(WIDE, id=engine_id, generation=f"{engine_id}-1")
    return [Process(f"00000000000000f{n}", "worker", msgspec.structs.replace(base, rank=n)) for n in range(count)]


def lease(request_id: str, phase: str) -> Hold:
    return Hold(request_id=request_id, kind=HoldKind.LEASE, phase=phase, tokens=1000, ttl_ns=30 * SECOND)


def test_a_hold_is_read_notified_or_expired_and_only_p_s_transfer_tells_the_first_two_apart() -> None:
    for states, fetched, outcome in (
        ((), 1199, "read"),
        ((TransferState.NOTICE_ONLY,), 0, "notified"),
        (None, 0, "ttl"),
    ):
        pair = Pair()
        events = [*pair.start(), *pair.turn("1", prompt=1000), *pair.beats(500_000)]
        if states is None:
            events += pair.expired("d1", 480_900)
        else:
            events += pair.turn("2", at_ms=5000, prompt=1250, local=0, fetched=fetched, given=pair.handle("1", 1199))
            for state in states:
                body = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=state)
                events += [pair.pw.say(body, 5100), *pair.released("d1", 5100)]
        run = Run().feed(events).wait()
        assert run.holds()["d1"].outcome == outcome
        assert run.count("holds_total", "decode-0", "hold", outcome) == 1


def test_token_seconds_are_tokens_times_the_observed_time() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.beats(480_000), pair.held("d1", 1199, 0), *pair.expired("d1", 480_000)]
    run = Run().feed(events).wait()
    hold = run.holds()["d1"]
    assert (hold.held_ns, hold.outcome, hold.tokens) == (480 * SECOND, "ttl", 1199)
    assert run.count("hold_seconds", "hold", "ttl") == 480
    assert run.count("hold_token_seconds_total", "decode-0", "hold", "ttl") == 480 * 1199
    assert run.count("hold_byte_seconds_total", "decode-0", "hold", "ttl") == 480 * 75 * BLOCK_BYTES


def test_what_is_held_now_is_a_gauge_and_idle_sessions_show() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *(pair.held(f"d{n}", 2400, 1000 * n) for n in range(6))]).wait(20)
    assert run.sample("held_requests", "decode-0", "hold") == 6
    assert run.sample("held_tokens", "decode-0", "hold") == 6 * 2400
    assert run.sample("held_bytes", "decode-0", "hold") == 6 * 150 * BLOCK_BYTES == 1_887_436_800
    assert run.sample("held_oldest_seconds", "decode-0", "hold") == pytest.approx(25)
    assert run.sample("held_requests", "prefill-0", "lease") == 0
    expiries = [e for n in range(6) for e in pair.expired(f"d{n}", 480_000 + 1000 * n)]
    run.feed([*pair.beats(480_000), *expiries]).wait()
    assert run.sample("held_requests", "decode-0", "hold") == 0
    assert run.count("holds_total", "decode-0", "hold", "ttl") == 6
    assert run.count("holds_total", "decode-0", "hold", "read") == 0


def test_a_deadline_alone_ends_nothing_but_shows_as_overdue() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), pair.held("d1", 1199, 0), *pair.beats(486_000)])
    assert run.sample("held_overdue", "decode-0", "hold") == 0
    run.feed([pair.d.beat(495_000)])
    assert run.sample("held_overdue", "decode-0", "hold") == 1
    assert run.wait(1).holds() == {}


def test_expiry_and_late_read_are_one_incident_each_however_many_ranks_report() -> None:
    pair = Pair(WIDE)
    workers = ranks()
    events: list[Event] = pair.start()
    for n in range(42):
        name, at = str(n), 100 * n
        turn = pair.turn(name, at_ms=at, prompt=1000, session=f"s{n}")
        ours = {pair.pw.emitter.id}
        events += [e for e in turn if e.emitter.id not in ours]
        late = n < 8
        for worker in workers:
            events.append(worker.say(lease(f"p{n}", "expired" if late else "released"), at + (30_000 if late else 460)))
            if late:
                events.append(worker.say(lease(f"p{n}", "late_notice"), at + 52_000))
    run = Run().feed(events).wait(120)
    assert run.count("holds_total", "prefill-0", "lease", "lease") == 8
    assert run.count("holds_total", "prefill-0", "lease", "read") == 34
    assert run.count("suspicions_total", "prefill-0", "read_after_release") == 8
    assert run.count("kv_expired_total", "prefill-0", "lease") == 64
    assert run.count("late_notices_total", "prefill-0") == 64
    assert {t.turn_id for t in run.turns().values() if t.suspicions} == {run.turns()[f"p{n}"].turn_id for n in range(8)}
    read_late = run.holds()["p0"]
    assert (read_late.late_notices, read_late.outcome, read_late.overdue_ns) == (8, "lease", None)
    assert (read_late.held_ns, read_late.late_notice_ns) == (29_600 * MS, 51_600 * MS)
    status = next(e for e in run.assembler.status(run.now_ns).engines if e.name == "prefill-0").held["lease"]
    assert (status.ended, status.read_late, status.latest_read_s) == (42, 8, 51.6)
    assert run.count("unmatched_notices_total") == 0


def test_a_late_notice_without_a_release_is_unmatched_once_and_claims_no_corruption() -> None:
    pair, workers = Pair(), ranks()
    unknown = [worker.say(lease("unknown", "late_notice"), 2000) for worker in workers]
    run = Run().feed([*pair.start(), *pair.turn("1"), *unknown]).wait(120)
    assert run.count("late_notices_total", "prefill-0") == 8
    assert run.count("unmatched_notices_total", "prefill-0") == 1
    assert run.count("suspicions_total") == 0
    assert run.count("fragments_total", "hold") == 1
    assert run.count("holds_total", "prefill-0") == 1


def test_a_late_notice_for_what_was_given_up_is_matched_even_if_its_begin_was_never_seen() -> None:
    pair = Pair()
    words = [pair.pw.say(lease("x", "expired"), 1000), pair.pw.say(lease("x", "late_notice"), 2000)]
    run = Run().feed([*pair.start(), *words]).wait(120)
    assert (run.count("fragments_total", "hold"), run.count("unmatched_notices_total")) == (1, 0)


def test_a_deadline_is_the_holder_s_and_what_outlived_it_says_by_how_much() -> None:
    pair = Pair()
    events = [*pair.start(), pair.held("d1", 1199, 1000), pair.held("d2", 1199, 1000), *pair.beats(483_500)]
    run = Run().feed([*events, *pair.expired("d1", 483_500), *pair.released("d2", 300_000)]).wait()
    late, early = run.holds()["d1"], run.holds()["d2"]
    assert late.deadline_ns == early.deadline_ns == EPOCH_NS + 481 * SECOND
    assert (late.overdue_ns, early.overdue_ns) == (2500 * MS, None)
    assert (late.ended_ns, early.ended_ns) == (EPOCH_NS + 483_500 * MS, EPOCH_NS + 300 * SECOND)


def test_a_lease_that_d_renewed_is_not_overdue() -> None:
    pair = Pair()
    held = pair.p.say(lease("p1", "held"), 0)
    run = Run().feed([*pair.start(), held, pair.pw.say(lease("p1", "released"), 50_000)]).wait(60)
    record = run.holds()["p1"]
    assert (record.held_ns, record.ttl_ns, record.overdue_ns) == (50 * SECOND, 30 * SECOND, None)


def test_a_hold_is_timed_by_the_ranks_on_its_scheduler_s_clock_and_by_no_other() -> None:
    for hosts, held_ns in ((("host", "far"), 5 * SECOND), (("far", "far"), None)):
        pair = Pair(d=msgspec.structs.replace(D, tp_size=2))
        workers = [
            Process(f"00000000000000e{n}", "worker", msgspec.structs.replace(D, tp_size=2, rank=n), host)
            for n, host in enumerate(hosts)
        ]
        body = Hold(request_id="d1", kind=HoldKind.HOLD, phase="released", readers_expected=1, readers_seen=1)
        events = [*pair.start(), pair.held("d1", 1199, 1000), workers[0].say(body, 6000), workers[1].say(body, 6400)]
        run = Run().feed(events).wait()
        assert run.holds()["d1"].held_ns == held_ns
        seconds = run.count("hold_token_seconds_total")
        assert seconds == (0 if held_ns is None else 5 * 1199)


def test_blocks_held_now_stand_beside_what_the_engine_has() -> None:
    pair = Pair(d=msgspec.structs.replace(D, num_blocks=1000))
    run = Run().feed([*pair.start(), *(pair.held(f"d{n}", 2400, 1000 * n) for n in range(6))])
    assert run.sample("held_blocks", "decode-0", "hold") == 900
    assert run.sample("engine_blocks", "decode-0") == 1000
    assert ("turnscope_engine_blocks", ("prefill-0",)) not in {
        (s.metric, s.labels) for s in run.assembler.samples(run.now_ns)
    }


def test_of_engines_that_share_a_name_the_series_is_the_sum_and_each_is_asked_for_its_own() -> None:
    run = Run(AssemblySettings(max_engine_names=0))
    pairs = [Pair(d=msgspec.structs.replace(D, id=name, num_blocks=1000)) for name in ("d", "e")]
    for n, pair in enumerate(pairs):
        pair.d.emitter = msgspec.structs.replace(pair.d.emitter, id=f"00000000000000b{n}")
        run.feed([pair.d.started(), *(pair.held(f"{n}/{k}", 160, 1000) for k in range(n + 1))])
    shared = [s.value for s in run.assembler.samples(run.now_ns) if s.metric == "turnscope_engine_blocks"]
    assert (shared, run.sample("held_blocks", "decode-other", "hold")) == ([2000], 30)
    engines = run.assembler.status(run.now_ns).engines
    assert {e.engine.id: e.held["hold"].blocks for e in engines} == {"d": 10, "e": 20}


def twelve_held(d: Process, pair: Pair) -> list[Event]:
    pair.d = d
    return [*pair.start(), *(pair.held(f"d{n}", 1199, 1000) for n in range(12))]


def test_a_restarted_holder_with_the_same_id_has_lost_its_holds() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    run = Run().feed([*twelve_held(pair.d, pair), again.started(20_000)]).wait()
    assert run.count("holds_total", "decode-0", "hold", "holder_lost") == 12
    assert run.count("kv_expired_total") == 0
    assert {hold.held_ns for hold in run.holds().values()} == {19 * SECOND}
    late = pair.held("d99", 1199, 19_000)
    assert run.feed([late], at_ms=40_000).wait().holds()["d99"].outcome == "holder_lost"
    assert run.sample("held_requests", "decode-0", "hold") == 0


def test_a_holder_that_is_killed_is_missed_by_its_silence_and_its_name_goes_to_the_next() -> None:
    pair = Pair()
    run = Run().feed([*twelve_held(pair.d, pair), pair.d.beat(9000)]).wait(130)
    assert run.count("holds_total", "decode-0", "hold", "holder_lost") == 12
    # It ended some time after it was last heard: no more than that is known to have been held.
    assert {hold.held_ns for hold in run.holds().values()} == {8 * SECOND}
    other = Process("00000000000000d1", "engine", msgspec.structs.replace(D, id="d2", generation="d2-1"))
    run.feed([other.started(150_000), other.say(lease("x", "expired"), 150_001)]).wait()
    assert run.count("kv_expired_total", "decode-0", "lease") == 1


def test_a_holder_that_says_goodbye_loses_them_at_once() -> None:
    pair = Pair()
    stop = pair.d.say(msgspec.structs.replace(pair.d.started().body, state="stopping"), 9000)
    run = Run().feed([*twelve_held(pair.d, pair), stop]).wait(6)
    assert run.count("holds_total", "decode-0", "hold", "holder_lost") == 12


def test_what_a_holder_had_released_before_it_went_is_not_lost_with_it() -> None:
    pair = Pair()
    second = pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    stop = pair.d.say(msgspec.structs.replace(pair.d.started().body, state="stopping"), 6000)
    hold = Run().feed([*pair.start(), *pair.turn("1"), *second, stop]).wait(20).holds()["d1"]
    assert (hold.outcome, [step for step in hold.steps if step.startswith("lost")]) == ("read", [])


def test_a_release_that_was_on_its_way_when_the_holder_ended_counts_as_what_it_was() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    second = pair.turn("2", at_ms=19_950, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    run = Run().feed([*pair.start(), *pair.turn("1"), *second, again.started(20_000)]).wait(20)
    assert run.holds()["d1"].outcome == "read"


def test_what_is_lost_is_not_held_from_then_on() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    run = Run().feed([*twelve_held(pair.d, pair), again.started(20_000)])
    assert run.sample("held_requests", "decode-0", "hold") == 0


@pytest.mark.parametrize("told", [{"pp_size": 2}, {"tp_size": 2}])
def test_a_hold_ends_with_the_last_rank_s_word_of_all_that_any_of_them_told_of(told: dict[str, int]) -> None:
    pair = Pair(d=msgspec.structs.replace(D, **told))
    one, other = (
        Process(f"00000000000000e{n}", "worker", msgspec.structs.replace(D, rank=n, tp_size=None)) for n in (0, 1)
    )
    body = Hold(request_id="d1", kind=HoldKind.HOLD, phase="released", readers_expected=2, readers_seen=2)
    early = msgspec.structs.replace(body, readers_seen=1)
    run = Run().feed([*pair.start(), pair.held("d1", 1199, 1000), one.say(early, 2000)])
    assert run.sample("held_requests", "decode-0", "hold") == 1
    hold = run.feed([other.say(body, 3000)]).wait().holds()["d1"]
    assert (hold.held_ns, hold.readers_seen, run.sample("held_requests", "decode-0", "hold")) == (2 * SECOND, 1, 0)


def test_a_lease_whose_d_request_was_broken_off_before_it_read_was_aborted() -> None:
    pair = Pair()
    events = pair.turn("1", decode_finish="abort", decode={"external_tokens": 0}, attempt={"outcome": "cancelled"})
    unread = [e for e in events if e.emitter != pair.dw.emitter]
    assert Run().feed([*pair.start(), *unread]).wait().holds()["p1"].outcome == "aborted"


def test_a_hold_is_overdue_once_ten_seconds_past_its_deadline_are_over() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), pair.held("d1", 1199, 0), *pair.beats(485_000), pair.d.beat(490_000)])
    assert run.sample("held_overdue", "decode-0", "hold") == 0
    run.feed([pair.d.beat(490_001)])
    assert run.sample("held_overdue", "decode-0", "hold") == 1


def test_a_lease_is_overdue_only_by_the_end_of_its_d_request_which_renews_it() -> None:
    pair = Pair(proxy=False)
    events = [e for e in pair.turn("1") if e.emitter == pair.p.emitter]
    run = Run().feed([*pair.start(), *events, *pair.beats(100_000, 10_000)])
    assert run.sample("held_overdue", "prefill-0", "lease") == 0, "D may still queue"
    leg = request("d1", leg=Leg.DECODE, handle_in=pair.p_handle("1", 1000), added_mono_ns=415 * MS)
    run.feed([pair.d.say(leg, 100_000), *(pair.p.beat(at) for at in range(110_000, 140_000, 10_000))])
    assert run.sample("held_overdue", "prefill-0", "lease") == 0, "it ended not long ago"
    run.feed([pair.p.beat(at) for at in range(140_000, 170_000, 10_000)])
    assert run.sample("held_overdue", "prefill-0", "lease") == 1


def test_a_lease_of_a_turn_that_nothing_else_tells_of_is_never_overdue() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), pair.p.say(lease("x", "held"), 0), *pair.beats(200_000, 10_000)])
    assert run.sample("held_requests", "prefill-0", "lease") == 1
    assert run.sample("held_overdue", "prefill-0", "lease") == 0


def test_an_engine_whose_old_start_still_sends_late_events_stays_restarted() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    fresh = again.say(Hold(request_id="n", kind=HoldKind.HOLD, phase="held", tokens=10, ttl_ns=SECOND), 20_001)
    old = pair.held("d1", 1199, 1000)
    run = Run().feed([*pair.start(), again.started(20_000), fresh]).feed([old], at_ms=21_000).wait()
    assert run.holds().keys() == {"d1"}
    assert run.sample("held_requests", "decode-0", "hold") == 1


def test_a_hold_read_by_one_of_two_ranks_and_expired_on_the_other_has_expired() -> None:
    pair = Pair(d=msgspec.structs.replace(D, tp_size=2))
    other = Process("00000000000000d9", "worker", msgspec.structs.replace(D, tp_size=2, rank=1))
    body = Hold(request_id="d1", kind=HoldKind.HOLD, phase="expired", readers_expected=2, readers_seen=1)
    events = [*pair.start(), pair.held("d1", 1199, 0), *pair.released("d1", 100), other.say(body, 480_000)]
    hold = Run().feed([*events, *pair.beats(480_000)]).wait().holds()["d1"]
    assert (hold.outcome, hold.readers_seen, hold.readers_expected) == ("ttl", 1, 2)
    assert hold.held_ns == 480_000 * MS


def test_two_data_parallel_engines_stay_two() -> None:
    first, second = (
        Process(f"00000000000000e{n}", "engine", msgspec.structs.replace(D, id=f"d_dp{n}", dp_rank=n)) for n in (0, 1)
    )
    pair = Pair()
    events: list[Event] = []
    for process, count in ((first, 10), (second, 30)):
        pair.d = process
        events += [pair.held(f"d{n}", 1199, 100) for n in range(count)]
    run = Run().feed(events)
    assert run.sample("held_requests", "decode-0", "hold") == 10
    assert run.sample("held_requests", "decode-1", "hold") == 30


def test_of_two_words_of_one_rank_the_earlier_counts_in_whatever_order_they_come() -> None:
    for backwards in (False, True):
        pair = Pair()
        words = [*pair.expired("d1", 2000), *pair.released("d1", 3000)]
        run = Run().feed([*pair.start(), pair.held("d1", 1199, 0)])
        run.feed(reversed(words) if backwards else words, at_ms=3500).wait()
        assert (run.holds()["d1"].outcome, run.holds()["d1"].held_ns) == ("ttl", 2 * SECOND)
