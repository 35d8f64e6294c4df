"""What a turn's time to first token was made of, from the events of its engines and its proxy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import MS, D, Pair, Process, request
from turnscope.model import Attempt, Event, Turn
from turnscope.semconv import Leg

PARTS = ("proxy", "queue", "fetch", "prefill", "handoff", "first_step", "unattributed")


def shown(turn: Turn) -> dict[str, int]:
    """The parts that are known, in milliseconds."""
    values = {part: getattr(turn, f"ttft_{part}_ns") for part in PARTS}
    return {part: value // MS for part, value in values.items() if value is not None}


def k20(pair: Pair, n: str = "1", *, at_ms: int = 0, slower_ms: int = 0, **more: Any) -> list[Event]:
    """P 400 ms, a gap of 15, D queues 100, loads 60 and makes its first step in 25: the client sees 600."""
    late = {"first_byte_ns": (600 + slower_ms) * MS, "last_byte_ns": (1000 + slower_ms) * MS}
    events = pair.turn(
        n,
        at_ms=at_ms,
        prefill={"scheduled_mono_ns": at_ms * MS},
        decode={"scheduled_mono_ns": (at_ms + 575) * MS, **more.pop("decode", {})},
        attempt={**late, **more.pop("attempt", {})},
        **more,
    )
    for event in events:
        transfer = event.body
        if event.emitter == pair.dw.emitter and hasattr(transfer, "started_mono_ns"):
            transfer.started_mono_ns, event.mono_ns = (at_ms + 515) * MS, (at_ms + 575) * MS
    return events


def test_the_client_s_600_ms_are_five_parts_and_neither_engine_s_own_time_to_first_token() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *k20(pair)]).wait()
    turn = run.turns()["p1"]
    expected = {"proxy": 15, "queue": 100, "prefill": 400, "handoff": 60, "first_step": 25, "unattributed": 0}
    assert (turn.ttft_ns, shown(turn)) == (600 * MS, expected)
    assert run.count("ttft_seconds") == 0.6
    for part, value in expected.items():
        assert run.count("ttft_part_seconds", part) == value / 1000
    assert run.count("ttft_part_seconds", "reverse_fetch") == 0
    assert run.count("turns_total") == 1
    assert run.count("request_prompt_tokens_total", "prefill-0", "local_compute") == 1000
    assert run.count("request_prompt_tokens_total", "decode-0", "local_compute") == 1


@pytest.mark.parametrize(
    ("tokens", "context"),
    [(1, "0-1023"), (1023, "0-1023"), (1024, "1024-4095"), (16_384, "16384-65535"), (262_144, "262144-")],
)
def test_the_time_is_counted_once_more_by_the_prompt_s_length(tokens: int, context: str) -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *k20(pair, prompt=tokens)]).wait()
    assert run.count("ttft_context_seconds", context) == run.count("ttft_context_seconds") == 0.6


def test_without_the_proxy_s_stamp_there_is_no_time_to_first_token_and_no_part_of_one() -> None:
    for pair, attempt in ((Pair(proxy=False), {}), (Pair(), {"first_byte_ns": None})):
        run = Run().feed([*pair.start(), *k20(pair, attempt=attempt)]).wait(100)
        turn = run.turns()["p1"]
        assert (turn.ttft_ns, shown(turn)) == (None, {})
        assert run.count("ttft_seconds") == run.count("ttft_part_seconds") == run.count("ttft_context_seconds") == 0
        assert turn.prefill_ns == 400 * MS


def test_the_reverse_fetch_is_no_queue_although_the_engine_counts_it_as_waiting() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1")]
    scheduled = {"scheduled_mono_ns": 5130 * MS}
    events += pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=pair.handle("1", 1199), prefill=scheduled)
    turn = Run().feed(events).wait().turns()["p2"]
    # Accepted at 0, read from 60 to 100, scheduled at 130, done at 400.
    assert (turn.prefill_queue_ns, turn.ttft_fetch_ns) == (90 * MS, 40 * MS)
    assert turn.ttft_prefill_ns == 270 * MS


def test_a_slow_first_step_of_d_shows_as_unattributed_against_its_median_and_not_as_transfer() -> None:
    d = msgspec.structs.replace(D, speculative=True)
    pair = Pair(d=d)
    events = pair.start()
    for n in range(25):
        events += k20(pair, str(n), at_ms=2000 * n, slower_ms=35, session=f"s{n}")
    run = Run().feed(events).wait()
    assert run.turns()["p5"].first_step_usual_ns is None
    run.feed(k20(pair, "slow", at_ms=100_000, slower_ms=875)).wait()
    turn = run.turns()["pslow"]
    assert (turn.first_step_ns, turn.first_step_usual_ns) == (900 * MS, 60 * MS)
    assert (turn.ttft_first_step_ns, turn.ttft_unattributed_ns) == (60 * MS, 840 * MS)
    assert (turn.ttft_handoff_ns, turn.speculative) == (60 * MS, True)


def test_a_load_that_nobody_saw_is_neither_queue_nor_handoff() -> None:
    pair = Pair()
    events = [e for e in k20(pair) if e.emitter != pair.dw.emitter]
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p1"]
    assert shown(turn) == {"proxy": 15, "queue": 0, "prefill": 400, "first_step": 25, "unattributed": 160}


def test_a_prompt_that_d_had_to_compute_is_prefill_and_teaches_nothing_of_first_steps() -> None:
    pair = Pair()
    events = [e for e in k20(pair, decode={"external_tokens": 0}) if e.emitter != pair.dw.emitter]
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p1"]
    assert shown(turn) == {"proxy": 15, "queue": 160, "prefill": 425, "unattributed": 0}
    assert turn.first_step_ns is None


def test_an_answer_that_is_not_streamed_has_its_generation_unattributed() -> None:
    pair = Pair()
    attempt = {"first_byte_ns": 1000 * MS}
    turn = Run().feed([*pair.start(), *k20(pair, streamed=False, attempt=attempt)]).wait().turns()["p1"]
    assert (turn.ttft_first_step_ns, turn.ttft_unattributed_ns) == (None, 425 * MS)


def test_an_aggregated_engine_s_first_step_is_its_prefill() -> None:
    engine = Process("00000000000000a1", "engine", msgspec.structs.replace(D, id="w", role="aggregated"))
    proxy = Process("00000000000000c1", "proxy", None)
    leg = request("cmpl-x-1-aa", leg=Leg.WHOLE, finish_reason="stop", added_mono_ns=10 * MS, scheduled_mono_ns=30 * MS)
    attempt = Attempt(
        proxy_turn_id="t",
        x_request_id="x-1",
        decode_status=200,
        status_code=200,
        streamed=True,
        started_mono_ns=0,
        decode_start_ns=4 * MS,
        first_byte_ns=250 * MS,
        last_byte_ns=500 * MS,
    )
    run = Run().feed([engine.started(), proxy.started(), engine.say(leg, 490), proxy.say(attempt, 500)]).wait(100)
    (turn,) = run.turns().values()
    assert shown(turn) == {"proxy": 4, "queue": 20, "prefill": 220, "unattributed": 6}


@pytest.mark.parametrize("missing", ["p", "d", "pw", "dw"])
def test_the_parts_add_up_whoever_is_not_heard(missing: str) -> None:
    pair = Pair()
    gone = getattr(pair, missing).emitter
    given = pair.handle("1", 1199)
    events = [*pair.turn("1"), *k20(pair, "2", at_ms=5000, prompt=1250, fetched=1199, given=given)]
    run = Run().feed([*pair.start(), *(e for e in events if e.emitter != gone)]).wait(100)
    for turn in run.turns().values():
        assert turn.ttft_ns is not None
        assert sum(shown(turn).values()) == turn.ttft_ns // MS
