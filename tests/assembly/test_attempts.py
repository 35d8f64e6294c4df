"""Retries, joins and times: one client request is one turn, whatever it took."""

from __future__ import annotations

from typing import Any

from tests.assembly.run import Run
from tests.builders import BLOCK_BYTES, MS, Pair, read, request
from turnscope.assembly.turns import names_in
from turnscope.model import Attempt, Event, Handle
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


def test_the_same_handle_again_is_a_duplicate_use() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000), *retried(pair, same_handle=True, named=True)]
    run = Run().feed(events).wait(100)
    assert run.turns()["p2"].suspicions == ["duplicate_handle"]
    assert run.count("suspicions_total", "duplicate_handle") == 1
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
    assert names_in("something-else") == []


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
