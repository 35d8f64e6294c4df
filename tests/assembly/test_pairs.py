"""A decode engine that comes back, and pairs of engines that cannot reach each other."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.assembly.hosts import HOUR, step
from tests.assembly.run import Run
from tests.builders import D, P, Pair, Process, read
from turnscope.model import Engine, Event, Handle
from turnscope.semconv import Direction, TransferState

D_HERE = msgspec.structs.replace(D, id="e1", generation="e1-1", side_channel_port=5600)
BACK = msgspec.structs.replace(D_HERE, id="e2", generation="e2-1")
SAME_ID = msgspec.structs.replace(D_HERE, generation="e1-2")


def came_back(pair: Pair, engine: Engine) -> Process:
    """D, killed and started again where it was; a process of its own."""
    return Process("00000000000000d1", "engine", engine, host=pair.d.emitter.host)


def next_turn(pair: Pair, n: int, state: TransferState, **fields: Any) -> list[Event]:
    """The turn after the restart, as P and the proxy tell it."""
    given = Handle(engine_id="e1", request_id=f"d{n}", tokens=1199, blocks=75)
    at = 30_000 + 100 * n
    body = read(Direction.REVERSE_FETCH, local=f"p1{n}", remote=("e1", f"d{n}"), state=state)
    turn = pair.turn(f"1{n}", at_ms=at, prompt=1250, given=given, session=f"s{n}", **fields)
    mine = [e for e in turn if e.emitter.id not in (pair.d.emitter.id, pair.dw.emitter.id)]
    return [*mine, pair.pw.say(body, at + 50)]


def twelve(pair: Pair) -> list[Event]:
    events = pair.start()
    for n in range(12):
        events += pair.turn(str(n), at_ms=100 * n, prompt=1000, session=f"s{n}")
    return events


def test_the_holds_of_an_engine_that_comes_back_under_another_id_are_lost_at_its_restart() -> None:
    pair = Pair(d=D_HERE)
    run = Run().feed([*twelve(pair), came_back(pair, BACK).started(20_000)]).wait(10)
    assert run.count("holds_total", "decode-0", "hold", "holder_lost") == 12
    assert run.count("kv_expired_total") == 0
    assert run.sample("held_requests", "decode-0", "hold") == 0


def test_its_old_handles_fail_the_handshake_and_the_turn_tells_who_was_expected_and_who_is_there() -> None:
    pair = Pair(d=D_HERE)
    events = [*twelve(pair), came_back(pair, BACK).started(20_000)]
    failed = {"prefill": {"external_tokens": 1199, "finish_reason": "error", "stats_sent": False}}
    for n in range(12):
        attempt = {"outcome": "error", "error_stage": "prefill", "status_code": 500, "decode_start_ns": None}
        events += next_turn(pair, n, TransferState.HANDSHAKE_FAILED, **failed, attempt=attempt)
    run = Run().feed(events).wait(100)
    for n in range(12):
        turn = run.turns()[f"p1{n}"]
        assert (turn.reason, turn.status, turn.stage, turn.path) == ("handshake_failed", "error", "prefill", "unknown")
        assert (turn.offered_by_engine_id, turn.replaced_by_engine_id) == ("e1", "e2")


def test_under_recompute_the_same_is_no_error_but_the_reason_stays() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"), D_HERE)
    events = [*twelve(pair), came_back(pair, BACK).started(20_000)]
    events += next_turn(pair, 0, TransferState.HANDSHAKE_FAILED, prefill={"external_tokens": 1199})
    turn = Run().feed(events).wait(100).turns()["p10"]
    assert (turn.reason, turn.status, turn.path, turn.computed_tokens) == ("handshake_failed", "ok", "recompute", 1250)


def test_with_the_same_id_the_restart_shows_by_its_generation_and_no_old_handle_passes_as_good() -> None:
    for state, path, suspicions in (
        (TransferState.DONE, "reverse_fetch", ["stale_handle"]),
        (TransferState.FAILED, "recompute", []),
    ):
        pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"), D_HERE)
        events = [*twelve(pair), came_back(pair, SAME_ID).started(20_000)]
        events += next_turn(pair, 0, state, prefill={"external_tokens": 1199, "computed_tokens": 51})
        run = Run().feed(events).wait(100)
        turn = run.turns()["p10"]
        assert (turn.path, turn.suspicions) == (path, suspicions)
        assert run.count("holds_total", "decode-0", "hold", "holder_lost") == 12
        if state is TransferState.FAILED:
            assert turn.reason == "holder_lost"


def test_an_old_handle_is_stale_even_where_the_news_of_its_hold_was_lost() -> None:
    pair = Pair(d=D_HERE)
    events = [e for e in twelve(pair) if e.body.EVENT != "turnscope.hold"]
    events += [came_back(pair, SAME_ID).started(20_000), *next_turn(pair, 0, TransferState.DONE, fetched=1199)]
    events = [e for e in events if e.body.EVENT != "turnscope.hold"]
    assert Run().feed(events).wait(100).turns()["p10"].suspicions == ["stale_handle"]


def test_a_wall_clock_that_is_set_back_meanwhile_hides_no_restart() -> None:
    for engine in (BACK, SAME_ID):
        pair = Pair(d=D_HERE)
        again = came_back(pair, engine)
        events = [*twelve(pair), again.started(20_000), *next_turn(pair, 0, TransferState.DONE, fetched=1199)]
        run = Run().feed_moved(events, step({again.emitter.id}, 0, -5 * HOUR)).wait(100)
        assert run.count("holds_total", "decode-0", "hold", "holder_lost") == 12
        assert run.turns()["p10"].suspicions == ["stale_handle"]


def test_two_engines_on_one_host_do_not_take_each_others_place() -> None:
    pair = Pair(d=D_HERE)
    other = msgspec.structs.replace(BACK, side_channel_port=5601)
    run = Run().feed([*twelve(pair), came_back(pair, other).started(20_000)]).wait(10)
    assert run.count("holds_total", "decode-0", "hold") == 0
    elsewhere = Process("00000000000000d1", "engine", BACK, host="another host")
    pair = Pair(d=D_HERE)
    run = Run().feed([*twelve(pair), elsewhere.started(20_000)]).wait(10)
    assert run.count("holds_total", "decode-0", "hold") == 0


def test_old_news_of_the_first_engine_does_not_take_the_place_back() -> None:
    pair = Pair(d=D_HERE)
    late = pair.d.started(100)
    run = Run().feed([*pair.start(), came_back(pair, BACK).started(20_000)]).feed([late], at_ms=21_000)
    assert run.assembler._state.places == {"host:5600": "e2"}


def other_prefill() -> Process:
    return Process("00000000000000f2", "worker", msgspec.structs.replace(P, id="p2", generation="p2-1", rank=0))


def test_a_pair_that_fails_is_told_from_engines_that_fail() -> None:
    pair, other = Pair(), other_prefill()
    events = pair.start()
    for n in range(6):
        broken = read(Direction.REVERSE_FETCH, local=f"a{n}", remote=("d", f"x{n}"), state=TransferState.FAILED)
        works = read(Direction.REVERSE_FETCH, local=f"b{n}", remote=("d", f"y{n}"), bytes=1)
        events += [pair.pw.say(broken, 100 * n), other.say(works, 100 * n)]
        events += pair.turn(str(n), at_ms=1000 * n)
    run = Run().feed(events)
    failing = {e.name: e.failing for e in run.assembler.status(run.now_ns).engines}
    assert failing == {"prefill-0": {"decode-0": 6}, "prefill-1": {}, "decode-0": {}}
    back = read(Direction.REVERSE_FETCH, local="a9", remote=("d", "x9"), bytes=1)
    run.feed([pair.pw.say(back, 9000)])
    assert run.assembler.status(run.now_ns).engines[0].failing == {}


def test_reads_count_by_pair_with_their_turn_and_declined_ones_say_nothing_of_the_way() -> None:
    pair = Pair()
    declined = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.DECLINED)
    events = [*pair.start(), *pair.turn("1"), *pair.turn("2", at_ms=5000), pair.pw.say(declined, 5100)]
    run = Run().feed(events).wait()
    assert run.count("pair_reads_total", "decode-0", "prefill-0", "done") == 2
    assert run.count("pair_reads_total", "prefill-0") == 0
    assert run.assembler.status(run.now_ns).engines[0].failing == {}
