"""Turns that stand still: named with their stage and cause, while the engine's own gauges show nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import MS, SECOND, D, P, Pair, Process, read, request
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.model import Attempt, Event, Hold, Revision, Stuck
from turnscope.semconv import Direction, HoldKind, Leg, StuckCause, TransferState

KNOWN = [cause for cause in StuckCause if cause is not StuckCause.UNKNOWN]
NEVER_RUN: dict[str, Any] = {"stats_sent": False, "external_tokens": 1199, "finish_reason": "abort"}
"""What an engine reports of a request that it admitted and never ran: the split it set out to make."""


def two(pair: Pair, *, at_ms: int = 5000, **fields: Any) -> list[Event]:
    """A turn, and a second one that is given its handle."""
    first = [*pair.start(), *pair.turn("1", prompt=1000)]
    return [*first, *pair.turn("2", at_ms=at_ms, prompt=1250, given=pair.handle("1", 1199), **fields)]


def parked(pair: Pair, cause: StuckCause = StuckCause.LOAD_FAILED, at_ms: int = 5010) -> Event:
    """P says that it will never run p2."""
    body = Stuck(request_id="p2", cause=cause, promised_tokens=1199, handle=pair.handle("1", 1199))
    return pair.p.say(body, at_ms)


def first_turn(pair: Pair) -> list[Event]:
    return [*pair.start(), *pair.turn("1", prompt=1000)]


def beats(pair: Pair, begin_s: int, until_s: int, **idle: tuple[str, tuple[str, str]]) -> list[Event]:
    """A heartbeat of every process each 10 s; ``p`` and ``d`` list one idle request each: (request, its turn)."""
    events = []
    for at in range(begin_s * 1000, until_s * 1000, 10_000):
        for process, name in ((pair.p, "p"), (pair.d, "d")):
            found = idle.get(name)
            events.append(process.beat(at, idle={found[0]: found[1]} if found is not None else None))
        events += [process.beat(at) for process in pair.processes if process not in (pair.p, pair.d)]
    return events


@pytest.mark.parametrize("cause", KNOWN)
def test_a_broken_promise_is_stuck_at_once_with_its_cause_and_adds_nothing_to_turns(cause: StuckCause) -> None:
    pair = Pair()
    run = Run().feed([*first_turn(pair), parked(pair, cause), pair.p.beat(5020, open=["p2"])]).wait(0)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.stuck_cause, turn.path, turn.reason) == (
        "stuck",
        "prefill",
        cause,
        "unknown",
        "stuck",
    )
    assert run.count("stuck_total", "prefill-0", cause) == 1
    assert run.count("turns_total", "prefill-0", "unknown") == 0
    assert run.sample("turns_open", "stuck") == 1
    assert run.assembler.status(run.now_ns).stuck_causes == {cause: 1}
    assert (turn.prefill_ns, turn.decode_ns, turn.ttft_ns, turn.duration_ns) == (None, None, None, None)


def test_where_the_feature_is_off_the_reason_says_so_and_the_status_that_it_is_stuck() -> None:
    pair = Pair(msgspec.structs.replace(P, bidirectional=False))
    run = Run().feed([*first_turn(pair), parked(pair, StuckCause.BIDIRECTIONAL_OFF)]).wait(0)
    turn = run.turns()["p2"]
    assert (turn.status, turn.reason, turn.stuck_cause) == ("stuck", "feature_off_prefill", "bidirectional_off")


def test_it_is_not_counted_while_the_engine_still_has_it_and_once_when_it_is_given_up() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*first_turn(pair), parked(pair), *beats(pair, 10, 900, p=("p2", ("p", "p2")))]).wait(1)
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 0
    assert run.turns()["p2"].revision == 1
    left = request("p2", prompt=1250, handle_in=pair.handle("1", 1199), added_mono_ns=5000 * MS, **NEVER_RUN)
    run.feed([pair.p.say(left, 901_000)]).wait(20)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.stuck_cause, turn.revision) == ("stuck", "prefill", "load_failed", 3)
    assert (turn.fetched_tokens, turn.path) == (None, "unknown"), "what it set out to fetch it never did"
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 1
    assert run.count("stuck_total", "prefill-0") == 1
    assert run.sample("turns_open", "stuck") == 0


@pytest.mark.parametrize(
    ("ends", "status", "stage", "reason"),
    [
        ({"fetched": 1199}, "ok", None, "none"),
        (
            {"prefill": {**NEVER_RUN, "finish_reason": "error"}, "attempt": {"outcome": "error"}},
            "error",
            "decode",
            None,
        ),
    ],
)
def test_one_that_ends_after_all_is_settled_as_it_ended(
    ends: dict[str, Any], status: str, stage: str | None, reason: str | None
) -> None:
    pair = Pair()
    run = Run().feed([*two(pair, at_ms=40_000, **ends), parked(pair)]).wait(20)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.stuck_cause) == (status, stage, None)
    assert reason in (None, turn.reason)
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 0
    assert run.count("turns_total") == 2


def test_one_whose_engine_dies_is_counted_as_stuck_and_not_as_a_fragment() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*first_turn(pair), parked(pair), pair.p.beat(6000, open=["p2"])]).wait(200)
    assert run.turns()["p2"].status == "stuck"
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 1
    assert run.count("fragments_total") == 0


def test_a_client_that_gives_up_on_a_stuck_turn_leaves_it_stuck_and_not_cancelled() -> None:
    pair = Pair()
    assert pair.proxy is not None
    given = pair.handle("1", 1199)
    gave_up = Attempt(
        proxy_turn_id="t2",
        session_id="s",
        x_request_id="abc",
        handle_given=given,
        outcome="cancelled",
        error_stage="prefill",
        prefill_start_ns=0,
    )
    leg = request("p2", prompt=1250, handle_in=given, added_mono_ns=5000 * MS, **NEVER_RUN)
    events = [*first_turn(pair), parked(pair), *pair.beats(65_000, 10_000)]
    run = Run().feed([*events, pair.p.say(leg, 65_000), pair.proxy.say(gave_up, 65_000)]).wait(20)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.reason, turn.has_attempt) == ("stuck", "prefill", "stuck", True)
    assert run.count("turns_ended_total", "prefill-0", "cancelled") == 0


def test_what_no_hook_saw_the_cause_of_is_stuck_after_the_limit_at_the_stage_where_it_stands() -> None:
    read_done = [Direction.HANDOFF, TransferState.DONE]
    for where, reads, stage in (
        ({"p": ("p2", ("p", "p2"))}, [], "prefill"),
        ({"d": ("d2", ("p", "p2"))}, [], "handoff"),
        ({"d": ("d2", ("p", "p2"))}, read_done, "decode"),
    ):
        pair = Pair(proxy=False)
        events = pair.start()
        if "d" in where:
            events.append(pair.p.say(request("p2", handle_out=pair.p_handle("2", 1000)), 9000))
        if reads:
            events.append(pair.dw.say(read(Direction.HANDOFF, local="d2", remote=("p", "p2"), bytes=1), 9500))
        run = Run().feed([*events, *beats(pair, 10, 330, **where)]).wait(1)
        turn = run.turns()["p2"]
        assert (turn.status, turn.stage, turn.stuck_cause) == ("stuck", stage, "unknown")
        assert run.count("stuck_total", "prefill-0" if stage == "prefill" else "decode-0", "unknown") == 1
        assert run.count("turns_total") == 0


def handed_over(pair: Pair) -> list[Event]:
    """P has done its part of a turn, and D has what it needs for its own."""
    prefill = pair.p.say(request("p2", handle_out=pair.p_handle("2", 1000)), 9000)
    taken = pair.dw.say(read(Direction.HANDOFF, local="d2", remote=("p", "p2"), bytes=1024), 9500)
    return [*pair.start(), prefill, taken]


def given_up(pair: Pair, at_ms: int) -> Event:
    """D's last word on its part."""
    handle = pair.p_handle("2", 1000)
    leg = request("d2", leg=Leg.DECODE, handle_in=handle, finish_reason="abort", added_mono_ns=9000 * MS)
    return pair.d.say(leg, at_ms)


def test_a_request_is_stuck_from_the_heartbeat_on_that_ends_the_limit() -> None:
    for until_s, number in ((310, 0), (320, 1)):
        pair = Pair(proxy=False)
        run = Run().feed([*pair.start(), *beats(pair, 10, until_s, p=("p2", ("p", "p2")))])
        assert run.sample("turns_open", "stuck") == number


def prefilled(pair: Pair, *, read_by: str | None) -> list[Event]:
    """P has done its part of a turn and holds its blocks for D, whose request ``read_by`` has read them."""
    lease = Hold(request_id="p2", kind=HoldKind.LEASE, phase="held", tokens=1000, ttl_ns=30 * SECOND)
    done = request("p2", handle_out=pair.p_handle("2", 1000), added_mono_ns=8000 * MS)
    events = [*pair.start(), pair.p.say(done, 9000), pair.p.say(lease, 9000)]
    if read_by is not None:
        taken = read(Direction.HANDOFF, local=read_by, remote=("p", "p2"), bytes=1024)
        events += [pair.dw.say(taken, 9500), leased(pair, "released", 9501)]
    return events


def leased(pair: Pair, phase: str, at_ms: int) -> Event:
    """P's rank tells how the lease ended."""
    return pair.pw.say(Hold(request_id="p2", kind=HoldKind.LEASE, phase=phase), at_ms)


def quiet(pair: Pair, until_s: int, *, but: tuple[Process, ...] = ()) -> list[Event]:
    """Heartbeats of all others, with nothing to do."""
    processes = [process for process in pair.processes if process not in but]
    return [process.beat(at) for at in range(10_000, until_s * 1000, 10_000) for process in processes]


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_one_whose_decode_engine_died_with_it_is_stuck_there_and_not_answered(proxy: bool, restarted: bool) -> None:
    pair = Pair(proxy=proxy)
    events = [*prefilled(pair, read_by="d2"), *quiet(pair, 400, but=(pair.d, pair.dw))]
    events += [pair.d.beat(at, open=["d2"]) for at in (10_000, 20_000)]
    if restarted:
        again = Process("00000000000000bb", "engine", msgspec.structs.replace(D, generation="d-2"))
        events += [again.started(25_000), *(again.beat(at) for at in range(30_000, 400_000, 10_000))]
    run = Run().feed(events).wait(100)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.has_decode, turn.wasted_bytes) == ("stuck", "decode", False, 1024)
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 1


def test_one_whose_decode_engine_started_anew_before_any_heartbeat_listed_it_is_stuck_there() -> None:
    pair = Pair(proxy=False)
    again = Process("00000000000000bb", "engine", msgspec.structs.replace(D, generation="d-2"))
    events = [*prefilled(pair, read_by="d2"), again.started(12_000), *quiet(pair, 400, but=(pair.d, pair.dw))]
    turn = Run().feed(events).wait(100).turns()["p2"]
    assert (turn.status, turn.stage) == ("stuck", "decode")


@pytest.mark.parametrize("end", ["expired", None])
def test_one_that_no_decode_engine_came_for_is_stuck_at_the_handoff(end: str | None) -> None:
    pair = Pair(proxy=False)
    told = [leased(pair, end, 39_000)] if end is not None else []
    run = Run().feed([*prefilled(pair, read_by=None), *told, *quiet(pair, 600)]).wait(100)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.has_decode) == ("stuck", "handoff", False)
    assert run.count("turns_ended_total", "prefill-0", "stuck") == 1


def test_what_a_decode_engine_without_a_hook_may_have_answered_is_not_stuck() -> None:
    pair = Pair(proxy=False)
    events = [event for event in prefilled(pair, read_by=None) if event.emitter in (pair.p.emitter, pair.pw.emitter)]
    events += [leased(pair, "expired", 39_000), *quiet(pair, 600, but=(pair.d, pair.dw))]
    assert Run().feed(events).wait(100).turns()["p2"].status == "ok"


def test_one_that_d_read_and_has_no_more_was_answered_though_d_s_word_was_lost() -> None:
    for read_by in ("d2", None):
        pair = Pair(proxy=False)
        told = [] if read_by is not None else [leased(pair, "released", 9501)]
        events = [*prefilled(pair, read_by=read_by), *told, *quiet(pair, 400)]
        assert Run().feed(events).wait(100).turns()["p2"].status == "ok"


def test_an_end_that_comes_late_after_all_is_what_the_row_tells() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*prefilled(pair, read_by=None), leased(pair, "expired", 39_000), *quiet(pair, 200)]).wait(1)
    assert run.turns()["p2"].status == "stuck"
    leg = request("d2", leg=Leg.DECODE, handle_in=pair.p_handle("2", 1000), added_mono_ns=9000 * MS)
    turn = run.feed([pair.d.say(leg, 210_000)]).wait(10).turns()["p2"]
    assert (turn.status, turn.stage) == ("ok", None)
    assert run.count("turns_ended_total") == 1


def test_the_proxy_s_word_on_how_a_turn_ended_outweighs_that_its_decode_engine_never_told() -> None:
    pair = Pair()
    assert pair.proxy is not None
    failed = Attempt(
        proxy_turn_id="t2",
        prefill=pair.p_handle("2", 1000),
        prefill_status=200,
        decode_status=502,
        status_code=502,
        outcome="error",
        error_stage="decode",
    )
    events = [*prefilled(pair, read_by=None), leased(pair, "expired", 39_000), pair.proxy.say(failed, 40_000)]
    turn = Run().feed([*events, *quiet(pair, 200)]).wait(100).turns()["p2"]
    assert (turn.status, turn.stage) == ("error", "decode")


def test_one_that_stood_still_at_d_and_was_given_up_is_stuck_and_what_it_had_read_is_wasted() -> None:
    pair = Pair(proxy=False)
    events = [*handed_over(pair), *beats(pair, 10, 330, d=("d2", ("p", "p2"))), given_up(pair, 331_000)]
    run = Run().feed(events).wait(100)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.has_decode, turn.wasted_bytes) == ("stuck", "decode", True, 1024)
    assert run.count("wasted_bytes_total", "decode-0", "handoff") == 1024


def test_one_that_is_missing_from_a_heartbeat_because_it_has_ended_did_not_move() -> None:
    pair = Pair(proxy=False)
    events = [*handed_over(pair), *beats(pair, 10, 330, d=("d2", ("p", "p2"))), pair.d.beat(331_000)]
    run = Run().feed([*events, given_up(pair, 331_100)]).wait(100)
    assert (run.turns()["p2"].status, run.turns()["p2"].stage) == ("stuck", "decode")


def test_one_that_stood_still_at_d_and_came_to_its_end_before_the_next_heartbeat_is_not_stuck() -> None:
    pair = Pair(proxy=False)
    leg = request("d2", leg=Leg.DECODE, handle_in=pair.p_handle("2", 1000), added_mono_ns=9000 * MS)
    events = [*handed_over(pair), *beats(pair, 10, 330, d=("d2", ("p", "p2"))), pair.d.say(leg, 325_000)]
    turn = Run().feed(events).wait(100).turns()["p2"]
    assert (turn.status, turn.stage, turn.stuck_cause) == ("ok", None, None)


def test_one_whose_answer_was_seen_is_not_stuck_whatever_stood_still() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("2"), *beats(pair, 10, 330, d=("d2", ("p", "p2")))]
    turn = Run().feed([*events, given_up(pair, 331_000)]).wait(100).turns()["p2"]
    assert (turn.status, turn.stage) == ("ok", None)


def test_another_request_of_the_turn_that_moves_does_not_make_it_move() -> None:
    pair = Pair(proxy=False)
    turn = ("p", "p2")
    run = Run().feed([*pair.start(), *beats(pair, 10, 330, p=("p2", turn), d=("d2", turn))])
    before = run.sample("turns_open", "stuck")
    run.feed([pair.d.beat(331_000, open=["d2"])])
    assert (before, run.sample("turns_open", "stuck")) == (1, 1), "p2 was named first, and stands still"
    run.feed([pair.p.beat(332_000, open=["p2"])])
    assert run.sample("turns_open", "stuck") == 0


def test_a_cause_that_the_hook_saw_stays_when_heartbeats_see_the_request_stand_still_or_move() -> None:
    pair = Pair(proxy=False)
    events = [*first_turn(pair), parked(pair), *beats(pair, 10, 330, p=("p2", ("p", "p2")))]
    run = Run().feed([*events, pair.p.beat(331_000, open=["p2"])]).wait(0)
    assert (run.turns()["p2"].stuck_cause, run.sample("turns_open", "stuck")) == ("load_failed", 1)


def test_a_cause_takes_the_place_of_none_and_the_first_cause_stays() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*first_turn(pair), *beats(pair, 10, 330, p=("p2", ("p", "p2")))]).wait(0)
    assert run.turns()["p2"].stuck_cause == "unknown"
    for cause in (StuckCause.LOAD_FAILED, StuckCause.HOST_BUFFER):
        run.feed([parked(pair, cause, at_ms=331_000)]).wait(0)
        assert run.turns()["p2"].stuck_cause == "load_failed"
    assert run.count("stuck_total", "prefill-0", "host_buffer") == 0


def test_what_a_decode_engine_alone_has_and_does_not_run_is_no_prefill_that_was_parked() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *beats(pair, 10, 330, d=("d2", ("d", "d2")))]).wait(1)
    assert (run.sample("turns_open", "stuck"), run.turns()) == (1, {})


@pytest.mark.parametrize(
    ("local", "state"), [("dA", TransferState.DONE), ("d2", TransferState.FAILED)], ids=["another_s", "failed"]
)
def test_only_its_own_read_that_was_done_brings_a_request_past_the_handoff(local: str, state: TransferState) -> None:
    pair = Pair(proxy=False)
    events = [*pair.start(), pair.p.say(request("p2", handle_out=pair.p_handle("2", 1000)), 9000)]
    events.append(pair.dw.say(read(Direction.HANDOFF, local=local, remote=("p", "p2"), state=state), 9500))
    run = Run().feed([*events, *beats(pair, 10, 330, d=("d2", ("p", "p2")))]).wait(1)
    assert (run.turns()["p2"].status, run.turns()["p2"].stage) == ("stuck", "handoff")


def test_one_that_was_said_to_be_parked_and_was_answered_by_d_was_not_although_p_s_word_was_lost() -> None:
    pair = Pair(proxy=False)
    leg = request("d2", leg=Leg.DECODE, handle_in=pair.p_handle("2", 1000), added_mono_ns=9000 * MS)
    turn = Run().feed([*first_turn(pair), parked(pair), pair.d.say(leg, 40_000)]).wait(400).turns()["p2"]
    assert (turn.status, turn.has_prefill, turn.has_decode) == ("ok", False, True)


@pytest.mark.parametrize(
    ("leg", "handle", "lasted_s", "status"),
    [
        (Leg.PREFILL, True, 300, "stuck"),
        (Leg.PREFILL, False, 301, "cancelled"),
        (Leg.WHOLE, True, 301, "cancelled"),
    ],
    ids=["at_the_limit", "without_a_handle", "no_prefill_engine"],
)
def test_only_a_prefill_that_was_to_read_and_waited_for_the_limit_is_taken_for_parked(
    leg: Leg, handle: bool, lasted_s: int, status: str
) -> None:
    pair = Pair(proxy=False)
    given = pair.handle("1", 1199) if handle else None
    body = request("p2", leg=leg, prompt=1250, handle_in=given, added_mono_ns=5000 * MS, **NEVER_RUN)
    events = [*first_turn(pair), pair.p.say(body, 5000 + lasted_s * 1000)]
    assert Run().feed(events).wait(100).turns()["p2"].status == status


def test_one_that_was_counted_before_it_was_found_is_revised() -> None:
    pair = Pair(proxy=False)
    prefill = pair.p.say(request("p2", handle_out=pair.p_handle("2", 1000)), 9000)
    run = Run().feed([*pair.start(), prefill]).wait(100)
    assert (run.turns()["p2"].status, run.count("turns_total")) == ("ok", 1)
    run.feed(beats(pair, 120, 460, d=("d2", ("p", "p2")))).wait(1)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.revision) == ("stuck", "handoff", 2)
    assert run.count("turns_total") == 1


def test_a_request_at_d_that_nothing_else_tells_of_is_a_gauge_and_no_turn() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *beats(pair, 10, 330, d=("d2", ("p", "p2")))]).wait(1)
    assert run.sample("turns_open", "stuck") == 1
    assert run.turns() == {}


def test_a_long_answer_that_goes_on_is_not_stuck_and_one_that_moves_again_is_not_any_more() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), pair.p.say(request("p2", handle_out=pair.p_handle("2", 1000)), 9000)])
    run.feed([pair.dw.say(read(Direction.HANDOFF, local="d2", remote=("p", "p2"), bytes=1), 9500)])
    run.feed([process.beat(at, open=["d2"]) for at in range(10_000, 900_000, 10_000) for process in (pair.p, pair.d)])
    assert run.sample("turns_open", "stuck") == 0
    run.feed(beats(pair, 900, 1230, d=("d2", ("p", "p2"))))
    assert run.sample("turns_open", "stuck") == 1
    run.feed([pair.d.beat(1_230_000, open=["d2"])])
    assert run.sample("turns_open", "stuck") == 0
    body = request("d2", leg=Leg.DECODE, handle_in=pair.p_handle("2", 1000), added_mono_ns=9000 * MS)
    run.feed([pair.d.say(body, 1_240_000)]).wait(20)
    assert (run.turns()["p2"].status, run.turns()["p2"].stuck_cause) == ("ok", None)


def test_a_pause_shorter_than_the_limit_makes_nothing_stuck() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *beats(pair, 10, 300, p=("p2", ("p", "p2")))])
    assert (run.sample("turns_open", "stuck"), run.sample("turns_open", "running")) == (0, 1)


def test_a_request_that_never_ran_fetched_nothing_even_where_nobody_said_that_it_was_parked() -> None:
    pair = Pair()
    events = two(pair, prefill=NEVER_RUN, attempt={"outcome": "cancelled", "error_stage": "prefill"})
    turn = Run().feed(events).wait().turns()["p2"]
    assert (turn.status, turn.stage) == ("cancelled", "prefill")
    assert (turn.path, turn.reason, turn.fetched_tokens, turn.computed_tokens) == ("unknown", "other", None, None)
    assert turn.reported_external_tokens == 1199


def test_one_that_waited_past_the_limit_and_was_given_up_is_stuck_although_its_heartbeats_were_lost() -> None:
    for lasted_s, status in ((299, "cancelled"), (301, "stuck")):
        pair = Pair(proxy=False)
        given = pair.handle("1", 1199)
        leg = request("p2", prompt=1250, handle_in=given, added_mono_ns=5000 * MS, **NEVER_RUN)
        run = Run().feed([*first_turn(pair), pair.p.say(leg, 5000 + lasted_s * 1000)]).wait(100)
        turn = run.turns()["p2"]
        assert (turn.status, turn.stage) == (status, "prefill")


def test_the_attempt_that_got_stuck_is_one_attempt_and_the_retry_that_was_answered_makes_the_turn_ok() -> None:
    pair = Pair()
    assert pair.proxy is not None
    given = pair.handle("1", 1199)
    stuck = Stuck(request_id="pA", cause=StuckCause.HOST_BUFFER, handle=given)
    timed_out = Attempt(
        proxy_turn_id="t2", final=False, session_id="s", handle_given=given, outcome="error", error_stage="prefill"
    )
    leg = request("pA", prompt=1250, handle_in=given, added_mono_ns=5000 * MS, **NEVER_RUN)
    events = [*first_turn(pair), pair.p.say(stuck, 5010), *pair.beats(35_000, 10_000)]
    events += [pair.p.say(leg, 35_000), pair.proxy.say(timed_out, 35_000)]
    events += pair.turn("2", at_ms=35_100, prompt=1250, attempt={"number": 2})
    run = Run().feed(events).wait(100)
    turn = run.turns()["p2"]
    assert (turn.status, turn.attempts, turn.reason) == ("ok", 2, "handle_consumed_by_retry")
    assert [(a.number, a.status, a.stage) for a in turn.attempts_made] == [(1, "stuck", "prefill"), (2, "ok", None)]
    assert run.count("turns_total") == 2
    assert run.count("stuck_total", "prefill-0", "host_buffer") == 1


def test_a_turn_that_follows_a_stuck_one_names_it_as_its_cause() -> None:
    pair = Pair()
    events = [*first_turn(pair), parked(pair)]
    leg = request("p2", prompt=1250, session_id="s", handle_in=pair.handle("1", 1199), **NEVER_RUN)
    events += [pair.p.say(leg, 9000), *pair.beats(80_000, 10_000), *pair.turn("3", at_ms=80_000, prompt=1250)]
    assert Run().feed(events).wait(20).turns()["p3"].reason == "previous_turn_aborted"


def test_after_a_restart_it_is_still_known_and_counted_no_second_time() -> None:
    pair = Pair(proxy=False)
    begun = [*first_turn(pair), parked(pair), *beats(pair, 10, 60, p=("p2", ("p", "p2")))]
    leg = request("p2", prompt=1250, handle_in=pair.handle("1", 1199), added_mono_ns=5000 * MS, **NEVER_RUN)
    events = [*begun, pair.p.say(leg, 65_000)]
    whole = Run().feed(events).wait(20)
    crashed = Run().feed(begun).wait(0)
    saved, again = crashed.assembler.snapshot(), Run()
    again.assembler = Assembler(AssemblySettings())
    again.assembler.restore(saved)
    again.now_ns = crashed.now_ns
    again.feed(events[len(begun) :]).wait(20)
    assert again.turns()["p2"] == whole.turns()["p2"]
    again.facts = crashed.facts + again.facts
    assert again.counters() == whole.counters()
    replayed = Run()
    for key in whole.keys:
        replayed.assembler.mark_counted(key, 0)
    replayed.feed(begun).wait(0)
    assert replayed.keys == []
    assert [f.turn.status for f in replayed.facts if isinstance(f, Revision) and f.turn] == ["stuck", "ok"]


def test_a_limit_of_its_own_can_be_set() -> None:
    pair = Pair(proxy=False, d=D)
    run = Run(AssemblySettings(stuck_ns=20 * SECOND)).feed([*pair.start(), *beats(pair, 10, 50, p=("p2", ("p", "p2")))])
    assert run.sample("turns_open", "stuck") == 1
