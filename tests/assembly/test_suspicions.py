"""Answers that may be wrong although nothing failed."""

from __future__ import annotations

import msgspec

from tests.assembly.hosts import B, Host, apart, conversation
from tests.assembly.run import Run
from tests.builders import MS, SECOND, D, P, Pair, Process, read
from turnscope.model import Event, Hold
from turnscope.semconv import Direction, HoldKind, TransferState


def two_turns(pair: Pair, *, prompt: int = 1650, fetched: int = 1599, at_ms: int = 5000) -> list[Event]:
    """Turn 1: 1,000 tokens and 600 generated; turn 2 of ``prompt`` tokens fetches."""
    first = [*pair.start(), *pair.turn("1", prompt=1000, output=600), *pair.beats(at_ms)]
    return [*first, *pair.turn("2", at_ms=at_ms, prompt=prompt, fetched=fetched, given=pair.handle("1", 1599))]


def without_d_s_release(pair: Pair, events: list[Event]) -> list[Event]:
    """D had given the hold up before, so that it does not report it as released once more."""
    return [e for e in events if e.emitter != pair.dw.emitter or getattr(e.body, "phase", "") != "released"]


def test_a_history_that_shrank_is_a_mismatch_and_one_that_grew_is_not() -> None:
    shrunk = Run().feed(two_turns(Pair(), prompt=1250, fetched=1250)).wait()
    turn = shrunk.turns()["p2"]
    assert (turn.path, turn.suspicions, turn.offered_tokens) == ("reverse_fetch", ["kv_mismatch"], 1599)
    assert shrunk.count("suspicions_total", "prefill-0", "kv_mismatch") == 1
    assert shrunk.count("inconsistent_input_total") == 0
    assert Run().feed(two_turns(Pair())).wait().count("suspicions_total") == 0


def test_the_second_reader_of_a_handle_read_after_release() -> None:
    pair = Pair()
    events = two_turns(pair)
    third = pair.turn("3", at_ms=7000, prompt=1700, fetched=1599, given=pair.handle("1", 1599))
    events += without_d_s_release(pair, third)
    run = Run().feed([*events, *pair.late_notice("d1", 7100)]).wait()
    assert run.turns()["p2"].suspicions == []
    assert run.turns()["p3"].suspicions == ["duplicate_handle", "read_after_release", "stale_handle"]
    assert run.count("turns_total") == 3


def test_a_read_behind_the_expiry_is_one_suspicion_even_when_the_notice_comes_late() -> None:
    pair = Pair()
    events = without_d_s_release(pair, two_turns(pair, at_ms=482_000))
    run = Run().feed([*events, *pair.expired("d1", 480_900)]).wait()
    assert run.turns()["p2"].suspicions == ["stale_handle"]
    before = run.count("turns_total")
    run.feed(pair.late_notice("d1", 500_000)).wait()
    assert run.turns()["p2"].suspicions == ["read_after_release", "stale_handle"]
    assert run.turns()["p2"].revision == 2
    assert run.count("suspicions_total", "prefill-0", "read_after_release") == 1
    run.feed(pair.late_notice("d1", 510_000)).wait()
    assert run.count("suspicions_total", "prefill-0", "read_after_release") == 1
    assert (run.count("turns_total"), run.count("late_facts_total")) == (before, 0)


def test_a_handle_of_a_start_that_is_gone_never_passes_as_good() -> None:
    pair = Pair()
    first = [*pair.start(), *pair.turn("1", prompt=1000)]
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    second = pair.turn("2", at_ms=30_000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    second = [e for e in second if e.emitter.id not in (pair.d.emitter.id, pair.dw.emitter.id)]
    run = Run().feed([*first, again.started(20_000), *second]).wait(100)
    assert run.turns()["p2"].suspicions == ["stale_handle"]
    assert run.holds()["d1"].outcome == "holder_lost"


def lease(phase: str) -> Hold:
    """A word of one of P's ranks on what it keeps for D."""
    return Hold(request_id="p1", kind=HoldKind.LEASE, phase=phase)


def test_a_notice_that_came_twice_for_a_lease_that_was_read_in_time_is_no_suspicion() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1"), pair.pw.say(lease("late_notice"), 700)]
    run = Run().feed(events).wait()
    assert (run.turns()["p1"].suspicions, run.holds()["p1"].late_notices) == ([], 1)


def test_that_d_took_over_what_had_lapsed_is_seen_without_its_workers_by_the_tokens_it_did_not_compute() -> None:
    for external, expected in ((999, ["read_after_release"]), (0, [])):
        pair = Pair()
        events = [e for e in pair.turn("1", decode={"external_tokens": external}) if e.emitter.kind != "worker"]
        words = [pair.pw.say(lease("expired"), 420), pair.pw.say(lease("late_notice"), 500)]
        assert Run().feed([*pair.start(), *events, *words]).wait().turns()["p1"].suspicions == expected


def test_a_handle_is_stale_only_when_its_hold_ended_by_more_than_clocks_differ_before_the_prefill_began() -> None:
    for ended_ms, expected in ((481_000, []), (480_999, ["stale_handle"])):
        pair = Pair()
        events = without_d_s_release(pair, two_turns(pair, at_ms=482_000))
        assert Run().feed([*events, *pair.expired("d1", ended_ms)]).wait().turns()["p2"].suspicions == expected


def test_across_hosts_a_handle_is_stale_only_past_what_their_comparison_leaves_open() -> None:
    for extra_ms, expected in ((10, []), (100, ["stale_handle"])):
        pair = Pair()
        events = without_d_s_release(pair, two_turns(pair, at_ms=482_000))
        expired = pair.expired("d1", 481_000 - extra_ms)
        turn = Run().feed_moved([*events, *expired], apart(pair)).wait().turns()["p2"]
        assert turn.late_by_error_ns is not None
        assert 10 * MS < turn.late_by_error_ns < 50 * MS
        assert turn.suspicions == expected


def test_a_failed_load_whose_request_failed_with_it_is_no_suspicion() -> None:
    pair = Pair()
    failed = {"prefill": {"finish_reason": "error"}, "attempt": {"outcome": "error", "error_stage": "prefill"}}
    second = pair.turn("2", at_ms=5000, prompt=1650, given=pair.handle("1", 1599), **failed)
    second = [e for e in second if e.emitter not in (pair.d.emitter, pair.dw.emitter)]
    body = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    first = [*pair.start(), *pair.turn("1", prompt=1000, output=600)]
    turn = Run().feed([*first, *second, pair.pw.say(body, 5110)]).wait(100).turns()["p2"]
    assert (turn.status, turn.suspicions) == ("error", [])


def test_a_failed_load_that_was_answered_although_it_should_have_failed() -> None:
    for policy, expected in (("fail", ["answered_after_failed_load"]), ("recompute", [])):
        pair = Pair(msgspec.structs.replace(P, load_failure_policy=policy))
        body = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
        run = Run().feed([*two_turns(pair), pair.pw.say(body, 5110)]).wait()
        assert run.turns()["p2"].suspicions == expected


def test_a_handshake_that_failed_after_a_restart_is_named_so() -> None:
    pair = Pair()
    body = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.HANDSHAKE_FAILED)
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, id="e2", generation="e2-1"))
    events = [*two_turns(pair, fetched=0), pair.pw.say(body, 5100), again.started(3000)]
    turn = Run().feed(events).wait().turns()["p2"]
    assert (turn.path, turn.reason) == ("recompute", "handshake_failed")


def test_a_suspicion_that_later_facts_refute_is_withdrawn_and_never_taken_back() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"))
    third = pair.turn("3", at_ms=7000, prompt=1700, fetched=1599, given=pair.handle("1", 1599))
    unseen = [e for e in third if e.emitter != pair.pw.emitter and e.emitter != pair.dw.emitter]
    run = Run().feed([*two_turns(pair), *unseen]).wait()
    assert run.turns()["p3"].suspicions == ["duplicate_handle", "stale_handle"]
    failed = read(Direction.REVERSE_FETCH, local="p3", remote=("d", "d1"), state=TransferState.FAILED)
    run.feed([pair.pw.say(failed, 7150)]).wait()
    turn = run.turns()["p3"]
    assert (turn.suspicions, turn.path, turn.computed_tokens, turn.late) == ([], "recompute", 1700, True)
    for kind in ("duplicate_handle", "stale_handle"):
        assert run.count("suspicions_total", "prefill-0", kind) == 1
        assert run.count("suspicions_withdrawn_total", kind) == 1
    assert run.count("turns_reclassified_total", "reverse_fetch", "recompute") == 1
    assert run.count("turns_total", "prefill-0", "reverse_fetch", "none") == 2
    assert run.count("late_facts_total", "turn") == 1


def test_hosts_whose_clocks_are_set_apart_make_no_stale_handle_and_hide_none() -> None:
    faithful = Run().feed_moved(conversation(Pair()), apart(Pair())).wait()
    assert faithful.count("suspicions_total") == 0
    pair = Pair()
    third = pair.turn("3", at_ms=9000, prompt=1700, fetched=1599, given=pair.handle("1", 1599))
    events = [*two_turns(pair), *without_d_s_release(pair, third)]
    for hours in (-5, 0, 5):
        late = Host(name="b", boot_ns=B.boot_ns, wall_ns=hours * 3600 * SECOND)
        run = Run().feed_moved(events, apart(pair, b=late)).wait()
        assert run.turns()["p2"].suspicions == []
        assert run.turns()["p3"].suspicions == ["duplicate_handle", "stale_handle"]
