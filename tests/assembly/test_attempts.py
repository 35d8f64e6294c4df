"""Retries, joins and times: one client request is one turn, whatever it took."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.streams import failed_attempts
from tests.builders import BLOCK_BYTES, EPOCH_NS, MS, Pair, read, request
from turnscope.assembly.turns import names_in
from turnscope.decode import codec
from turnscope.model import Attempt, Event, Handle, Hold, HoldUse, Request
from turnscope.semconv import Direction, Leg


def retried(pair: Pair, *, same_handle: bool, named: bool) -> list[Event]:
    """Turn 3: the first attempt fetches 1,199 tokens and answers 503, the second one is answered.

    ``named``: the failed answer told P's identity, else only the handle (or the header) joins it.
    """
    given = pair.handle("1", 1199)
    assert pair.proxy is not None
    failed = [
        pair.pw.say(read(Direction.REVERSE_FETCH, local="pA", remote=("d", "d1"), bytes=75 * BLOCK_BYTES), 5100),
        *pair.released("d1", 5100),
        pair.p.say(
            request("pA", prompt=1250, external_tokens=1199, finish_reason="error", handle_in=given, added_mono_ns=0),
            5200,
        ),
        pair.proxy.say(
            Attempt(
                proxy_turn_id="t2",
                number=1,
                final=False,
                session_id="s",
                prefill=Handle(engine_id="p", request_id="pA") if named else None,
                handle_given=given,
                prefill_status=503,
                outcome="error",
                error_stage="prefill",
                started_wall_ns=None,
                prefill_start_ns=0,
            ),
            5300,
        ),
    ]
    second: dict[str, Any] = {"given": given, "fetched": 1199} if same_handle else {}
    return [*failed, *pair.turn("2", at_ms=5400, prompt=1250, attempt={"number": 2}, **second)]


def fed_in_each_order(events: list[Event], settled: list[Event]) -> list[Run]:
    """``settled`` at 0 s and ``events`` over the next four, and the other way round; each order of ``events``."""
    runs = []
    for order in itertools.permutations(events):
        for first in (True, False):
            run, moved = Run(), 0 if first else 500
            for number, event in enumerate(order):
                run.feed(settled if first and number == 0 else [], at_ms=0)
                run.feed([event], at_ms=moved + 900 * number)
            runs.append(run.feed([] if first else settled, at_ms=4000).wait(100))
    return runs


def unnamed(pair: Pair, number: int, *, given: Handle | None = None) -> Event:
    """A prefill of turn 2 that was given up; its answer told nothing of P's request."""
    assert pair.proxy is not None
    body = Attempt(
        proxy_turn_id="t2",
        number=number,
        final=False,
        session_id="s",
        handle_given=given,
        prefill_status=503,
        outcome="error",
        error_stage="prefill",
        started_wall_ns=EPOCH_NS + 5000 * MS,
        prefill_start_ns=number * MS,
    )
    return pair.proxy.say(body, 5010 * number)


def given_up(pair: Pair, at_ms: int = 5000) -> tuple[Event, Event]:
    """The first one's request on P, and its read of what turn 1 left."""
    given = pair.handle("1", 1199)
    leg = request("pA", prompt=1250, finish_reason="error", handle_in=given, added_mono_ns=at_ms * MS)
    body = read(Direction.REVERSE_FETCH, local="pA", remote=("d", "d1"), bytes=75 * BLOCK_BYTES)
    return pair.p.say(leg, at_ms + 200), pair.pw.say(body, at_ms + 100)


def test_what_an_attempt_moved_for_nothing_is_counted_whichever_attempt_comes_first() -> None:
    pair = Pair()
    events = [*given_up(pair), unnamed(pair, 1, given=pair.handle("1", 1199)), unnamed(pair, 3)]
    runs = fed_in_each_order(events, pair.start())
    assert {run.count("wasted_bytes_total") for run in runs} == {75 * BLOCK_BYTES}


def test_an_attempt_that_was_given_up_is_never_taken_for_the_turn_before_the_next() -> None:
    pair = Pair()
    settled = pair.turn("2", at_ms=5400, prompt=1250, handle_seen=False, attempt={"number": 2})
    settled += [*pair.start(), *pair.turn("1")]
    settled += pair.turn("3", at_ms=9000, prompt=1600, given=pair.handle("2", 1449))
    settled = [e for e in settled if not (isinstance(e.body, Request) and e.body.request_id in ("p2", "d2"))]
    events = [given_up(pair, 5500)[0], unnamed(pair, 1, given=pair.handle("1", 1199))]
    runs = fed_in_each_order(events, settled)
    of_turns = [{key: n for key, n in run.counters().items() if "events" not in key[0]} for run in runs]
    assert [counted for counted in of_turns if counted != of_turns[0]] == []
    assert runs[0].count("turn_gap_seconds") > 0


def test_a_retry_is_one_turn_and_the_handle_went_with_the_first_attempt() -> None:
    for named in (True, False):
        pair = Pair()
        events = [*pair.start(), *pair.turn("1", prompt=1000), *retried(pair, same_handle=False, named=named)]
        run = Run().feed(events).wait(100)
        assert run.turns().keys() == {"p1", "p2"}
        turn = run.turns()["p2"]
        assert (turn.path, turn.reason, turn.attempts, turn.status) == (
            "recompute",
            "handle_consumed_by_retry",
            2,
            "ok",
        )
        assert run.count("turns_total") == 2
        assert run.count("requests_total", "prefill-0") == 3
        assert run.count("prompt_tokens_total", "prefill-0", "fetched") == 0
        assert run.count("transfer_bytes_total", "prefill-0", "reverse_fetch") == 75 * BLOCK_BYTES


def test_what_the_given_up_attempt_moved_is_wasted_and_each_attempt_tells_how_it_went() -> None:
    for named in (True, False):
        pair = Pair()
        events = [*pair.start(), *pair.turn("1", prompt=1000), *retried(pair, same_handle=False, named=named)]
        run = Run().feed(events).wait(100)
        turn = run.turns()["p2"]
        first, second = turn.attempts_made
        assert (first.number, first.final, first.path, first.status, first.stage) == (
            1,
            False,
            "reverse_fetch",
            "error",
            "prefill",
        )
        assert (second.number, second.final, second.path, second.status, second.turn_id) == (
            2,
            True,
            "recompute",
            "ok",
            turn.turn_id,
        )
        assert first.moved_bytes == turn.wasted_bytes == 75 * BLOCK_BYTES
        assert (first.started_ns or 0) < (second.started_ns or 0)
        assert run.count("wasted_bytes_total", "prefill-0", "reverse_fetch") == 75 * BLOCK_BYTES
        assert (turn.fetched_tokens, turn.fetched_bytes) == (0, None), "and nothing was saved"


def test_an_attempt_lasts_from_when_it_went_to_an_engine_to_its_end() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000), *retried(pair, same_handle=False, named=True)]
    for event in events:
        if isinstance(event.body, Attempt) and event.body.number == 2:
            event.body.prefill_start_ns = 30 * MS
    first, second = Run().feed(events).wait(100).turns()["p2"].attempts_made
    assert (first.started_ns, first.duration_ns) == (EPOCH_NS, 5200 * MS)
    assert (second.started_ns, second.duration_ns) == (EPOCH_NS + 5430 * MS, 870 * MS)


def test_what_was_fetched_for_a_client_that_left_before_its_answer_began_is_wasted() -> None:
    pair = Pair()
    left = {"outcome": "cancelled", "error_stage": "prefill"}
    given = pair.handle("1", 1199)
    second = pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=given, attempt=left)
    second = [e for e in second if e.emitter not in (pair.d.emitter, pair.dw.emitter)]
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000), *second]).wait(100)
    turn = run.turns()["p2"]
    assert (turn.status, turn.stage, turn.wasted_bytes) == ("cancelled", "prefill", 75 * BLOCK_BYTES)
    assert run.count("wasted_bytes_total", "prefill-0", "reverse_fetch") == 75 * BLOCK_BYTES


def test_a_fetch_that_was_done_shows_even_where_the_failed_request_sent_no_statistics() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000), *retried(pair, same_handle=False, named=True)]
    unsent = [
        msgspec.structs.replace(e, body=msgspec.structs.replace(e.body, stats_sent=False))
        if isinstance(e.body, Request) and e.body.request_id == "pA"
        else e
        for e in events
    ]
    first, _ = Run().feed(unsent).wait(100).turns()["p2"].attempts_made
    assert (first.path, first.moved_bytes) == ("reverse_fetch", 75 * BLOCK_BYTES)


def test_an_answered_turn_wasted_nothing_and_one_that_failed_all_it_had_read() -> None:
    pair = Pair()
    fine = Run().feed([*pair.start(), *pair.turn("1", prompt=1000)]).wait().turns()["p1"]
    assert (fine.wasted_bytes, fine.attempts_made, fine.attempts) == (0, [], 1)
    pair = Pair()
    failed = pair.turn("1", prompt=1000, decode_finish="error", attempt={"outcome": "error", "error_stage": "decode"})
    run = Run().feed([*pair.start(), *failed]).wait()
    assert run.turns()["p1"].wasted_bytes == run.turns()["p1"].handoff_bytes == 63 * BLOCK_BYTES
    assert run.count("wasted_bytes_total", "decode-0", "handoff") == 63 * BLOCK_BYTES
    pair = Pair()
    left = pair.turn("1", decode_finish="abort", attempt={"outcome": "cancelled", "error_stage": "decode"})
    assert Run().feed([*pair.start(), *left]).wait().turns()["p1"].wasted_bytes == 0, "part of an answer was streamed"


def test_a_second_request_to_d_for_the_same_prefill_is_the_answer_and_the_first_ones_handover_wasted() -> None:
    pair = Pair()
    events = pair.turn("1", prompt=1000)
    handoff = pair.p_handle("1", 1000)
    lost = request("dA", leg=Leg.DECODE, handle_in=handoff, finish_reason="error", added_mono_ns=401 * MS)
    events += [
        pair.d.say(lost, 420),
        pair.dw.say(read(Direction.HANDOFF, local="dA", remote=("p", "p1"), bytes=63 * BLOCK_BYTES), 410),
    ]
    run = Run().feed([*pair.start(), *events]).wait()
    turn = run.turns()["p1"]
    assert (turn.status, turn.output_tokens, turn.decode_request_id) == ("ok", 200, "d1")
    assert turn.wasted_bytes == 63 * BLOCK_BYTES


def test_no_reads_were_seen_is_not_nothing_was_wasted() -> None:
    pair = Pair()
    events = [e for e in pair.turn("1") if e.emitter.kind != "worker"]
    assert Run().feed([*pair.start(), *events]).wait().turns()["p1"].wasted_bytes is None


def test_the_same_handle_again_is_a_duplicate_use() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000), *retried(pair, same_handle=True, named=True)]
    run = Run().feed(events).wait(100)
    assert run.turns()["p2"].suspicions == ["duplicate_handle"]
    assert run.count("suspicions_total", "prefill-0", "duplicate_handle") == 1
    assert run.count("turns_total") == 2


def test_legs_join_by_the_handle_and_never_by_cutting_names() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("chatcmpl-1-aaaa"), *pair.turn("chatcmpl-1-bbbb", at_ms=1)]).wait()
    assert {turn.join for turn in run.turns().values()} == {"exact"}
    assert run.count("turns_total") == 2
    assert all(turn.has_prefill and turn.has_decode and turn.has_attempt for turn in run.turns().values())


def whole(pair: Pair, name: str, engine_id: str, at_ms: int) -> list[Event]:
    """A request on an engine that does both, through a proxy that sent ``X-Request-Id: <name>``."""
    assert pair.proxy is not None
    leg = request(engine_id, leg=Leg.WHOLE, added_mono_ns=at_ms * MS)
    attempt = Attempt(
        proxy_turn_id=f"t-{engine_id}",
        x_request_id=name,
        session_id="s",
        decode_status=200,
        status_code=200,
        decode_start_ns=0,
        first_byte_ns=90 * MS,
        last_byte_ns=500 * MS,
        finish_reason="stop",
    )
    return [pair.p.say(leg, at_ms + 500), pair.proxy.say(attempt, at_ms + 500)]


def test_an_answer_without_engine_identity_joins_by_the_header_and_says_that_it_is_inferred() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *whole(pair, "abc", "chatcmpl-abc-1111aaaa", 0)]).wait(20)
    (turn,) = run.turns().values()
    assert (turn.join, turn.ttft_ns, turn.prompt_tokens, turn.output_tokens) == ("inferred", 90 * MS, 1000, 200)
    assert run.count("turns_total") == 1


def test_the_hold_of_an_answer_without_engine_identity_is_left_by_its_turn_in_whatever_order_the_news_comes() -> None:
    pair = Pair(p_ids="chatcmpl-{}-1111aaaa")
    given, told = pair.handle("0", 999), {"prefill": None, "x_request_id": "1"}
    events = pair.turn("1", prompt=1250, fetched=999, given=given, session=None, attempt=told)
    chosen = [e for e in events if isinstance(e.body, Request | Attempt) or getattr(e.body, "phase", "") == "held"]
    rest = [*pair.start(), *(e for e in events if e not in chosen)]
    for order in itertools.permutations(chosen):
        run = Run().feed(rest, at_ms=1000)
        for number, event in enumerate(order):
            run.feed([event], at_ms=8000 * (1 + number))
        run.wait(100).feed(pair.released("d1", 200_000)).wait(100)
        (turn,) = run.turns().values()
        hold = run.holds()["d1"]
        assert (hold.turn_id, turn.join, turn.suspicions) == (turn.turn_id, "inferred", [])


def test_what_was_given_a_hold_that_has_ended_is_the_turn_that_its_attempt_was_joined_to_in_whatever_order() -> None:
    pair = Pair(p_ids="chatcmpl-{}-1111aaaa")
    first, told = pair.turn("1", prompt=999), {"prefill": None, "x_request_id": "2"}
    second = pair.turn("2", at_ms=5000, prompt=1250, given=pair.handle("1", 999), attempt=told)
    ended = [e for e in first if getattr(e.body, "request_id", "") == "d1" and isinstance(e.body, Hold)]
    ended += pair.expired("d1", 4000)
    chosen = [*ended, *(e for e in second if isinstance(e.body, Request | HoldUse | Attempt))]
    rest = [*pair.start(), *(e for e in [*first, *second] if e not in chosen)]
    users = set()
    for order in itertools.permutations(chosen):
        run = Run().feed(rest, at_ms=7000)
        for number, event in enumerate(order):
            run.feed([event], at_ms=7100 + number)
        run.wait(100)
        users.add(run.holds()["d1"].used_by_turn_id)
    assert users == {next(turn.turn_id for turn in run.turns().values() if turn.prompt_tokens == 1250)}


@pytest.mark.parametrize("name", ["a2", "b7", "c3"])
def test_a_leg_that_an_attempt_has_by_name_is_no_other_attempt_s_by_the_handle_alone(name: str) -> None:
    pair = Pair(p_ids="chatcmpl-{}-1111aaaa")
    given = pair.handle("1", 1199)
    events = [*pair.start(), *pair.turn("1")]
    events += failed_attempts(pair, name, 1, 5000, given=given, session="s", named=False)
    told = {"number": 2, "prefill": None, "x_request_id": name}
    events += pair.turn(name, at_ms=5000, prompt=1250, fetched=1199, given=given, attempt=told)
    for seed in range(20):
        shuffled = Random(seed).sample(events, len(events))
        run = Run()
        for number, event in enumerate(shuffled):
            run.feed([event], at_ms=100 * number)
        turn = run.wait(100).turns()[f"chatcmpl-{name}-1111aaaa"]
        assert (turn.attempts, turn.status, turn.fetched_tokens) == (2, "ok", 1199)
        assert run.count("turns_total") == 2


def test_two_requests_with_the_same_header_are_two_turns_and_none_is_guessed() -> None:
    pair = Pair()
    events = [*whole(pair, "1", "chatcmpl-1-1111aaaa", 0), *whole(pair, "1", "chatcmpl-1-2222bbbb", 10)]
    run = Run().feed([*pair.start(), *events]).wait(100)
    assert run.count("turns_total") == 2
    assert [turn.has_attempt for turn in run.turns().values()] == [False, False]
    assert run.count("fragments_total", "attempt") == 2


def test_the_names_that_engines_make_of_a_header() -> None:
    assert names_in("chatcmpl-abc-1111aaaa") == ["abc"]
    assert names_in("cmpl-abc-0-1111aaaa") == ["abc-0", "abc"]
    assert names_in("0_chatcmpl-abc-1111aaaa") == names_in("11_chatcmpl-abc-1111aaaa") == ["abc"]
    assert names_in("something-else") == names_in("0_something-else") == []


def test_ids_of_any_length_join_by_the_handle_because_everybody_cuts_them_alike() -> None:
    pair = Pair()
    long = "chatcmpl-" + "x" * 2**20
    sent = codec.encode([*pair.start(), *pair.turn(f"{long}-1"), *pair.turn(f"{long}-2", at_ms=5)], observed_ns=1)
    run = Run().feed(codec.decode(sent).events).wait()
    assert run.count("turns_total") == 2
    assert {(t.join, t.has_prefill, t.has_decode, t.has_attempt) for t in run.turns().values()} == {
        ("exact", True, True, True)
    }
    records = [r for block in sent.resource_logs for scope in block.scope_logs for r in scope.log_records]
    told = {r.trace_id.hex() for r in records if r.event_name == "turnscope.request"}
    assert told == {turn.turn_id for turn in run.turns().values()}, "a collector shards by the same key"


def test_ttft_is_the_clients_and_never_a_sum_of_legs() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000)]).wait()
    turn = run.turns()["p1"]
    assert (turn.ttft_ns, turn.prefill_ns, turn.prefill_queue_ns) == (600 * MS, 400 * MS, 10 * MS)
    assert turn.decode_ns == 485 * MS
    assert run.count("ttft_seconds", "recompute") == 0.6
    assert run.count("turns_total") == 1
    assert run.count("request_prompt_tokens_total", "prefill-0", "local_compute") == 1000
    assert run.count("request_prompt_tokens_total", "decode-0", "local_compute") == 1


def test_a_client_that_leaves_during_prefill_leaves_one_cancelled_turn() -> None:
    pair = Pair()
    assert pair.proxy is not None
    never: dict[str, Any] = {"computed_tokens": None, "local_hit_tokens": None, "external_tokens": None}
    left = Attempt(
        proxy_turn_id="t1",
        x_request_id="abc",
        session_id="s",
        outcome="cancelled",
        error_stage="prefill",
        prefill_start_ns=0,
    )
    leg = request("chatcmpl-abc-1111aaaa", finish_reason="abort", **never)
    run = Run().feed([*pair.start(), pair.p.say(leg, 300), pair.proxy.say(left, 310)]).wait(20)
    (turn,) = run.turns().values()
    assert (turn.status, turn.stage, turn.path, turn.has_decode) == ("cancelled", "prefill", "unknown", False)
    assert run.count("turns_ended_total", "prefill-0", "cancelled") == 1


def test_however_often_a_request_is_tried_it_is_one_turn_that_tells_of_all_its_attempts() -> None:
    for last_came in (True, False):
        pair = Pair()
        assert pair.proxy is not None
        events = pair.start()
        for n in range(1, 6):
            leg = Handle(engine_id="p", request_id=f"pA{n}")
            failed = Attempt(
                proxy_turn_id="t9",
                number=n,
                final=False,
                session_id="s",
                prefill=leg,
                prefill_status=503,
                outcome="error",
                error_stage="prefill",
                prefill_start_ns=0,
            )
            events.append(pair.p.say(request(f"pA{n}", finish_reason="error", added_mono_ns=0), 100 * n))
            events.append(pair.proxy.say(failed, 100 * n + 10))
        if last_came:
            events += pair.turn("9", at_ms=700, attempt={"number": 6})
        run = Run().feed(events).wait(100)
        assert [turn.prefill_request_id for turn in run.turns().values()] == ["p9" if last_came else "pA5"]
        (turn,) = run.turns().values()
        assert [made.number for made in turn.attempts_made] == list(range(1, 7 if last_came else 6))
        assert run.count("turns_total") == 1


def test_a_leg_that_comes_just_before_a_silent_proxy_is_heard_again_waits_for_its_word() -> None:
    pair = Pair()
    assert pair.proxy is not None
    given = pair.handle("1", 1199)
    leg = pair.p.say(request("pA", prompt=100, finish_reason="error", handle_in=given, added_mono_ns=0), 200_000)
    attempt = Attempt(proxy_turn_id="t2", number=1, final=False, handle_given=given, prefill_status=503)
    told = pair.proxy.say(attempt, 203_000)
    second = pair.turn("2", at_ms=203_000, attempt={"number": 2})
    run = Run().feed([*pair.start(), *pair.turn("1"), leg, told, *second]).wait(100)
    assert run.turns().keys() == {"p1", "p2"}, "by the time the leg came nobody had heard of the proxy for minutes"
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 2000
