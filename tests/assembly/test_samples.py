"""n > 1: several engine requests, one turn whose prompt is counted once."""

from __future__ import annotations

import itertools

import pytest

from tests.assembly.run import Run
from tests.builders import BLOCK_BYTES, MS, Pair, read, request
from turnscope.model import Attempt, Event, Handle
from turnscope.semconv import Direction, Leg, turn_key

NAME = "chatcmpl-abc-1111aaaa"
D_NAME = "chatcmpl-abc-2222bbbb"


def sampled(pair: Pair, n: int = 3, given: Handle | None = None) -> list[Event]:
    """P has ``n`` samples of one prompt: the first computes it, the others find it in the cache. D has as many."""
    events = []
    for i in range(n):
        local = 0 if i == 0 else 992
        p_leg = request(f"{i}_{NAME}", prompt=1000, local_hit_tokens=local, handle_in=given, added_mono_ns=0)
        events.append(pair.p.say(p_leg, 400 + i))
    for i in range(n):
        handoff = Handle(engine_id="p", request_id=f"0_{NAME}", tokens=1000, blocks=63)
        left = Handle(engine_id="d", request_id=f"{i}_{D_NAME}", tokens=1199, blocks=75)
        body = read(Direction.HANDOFF, local=f"{i}_{D_NAME}", remote=("p", f"0_{NAME}"), bytes=63 * BLOCK_BYTES)
        events.append(pair.dw.say(body, 450 + i))
        d_leg = request(
            f"{i}_{D_NAME}",
            leg=Leg.DECODE,
            handle_in=handoff,
            handle_out=left,
            external_tokens=999,
            added_mono_ns=415 * MS,
        )
        events += [pair.d.say(d_leg, 900 + i), pair.held(f"{i}_{D_NAME}", 1199, 900 + i)]
    if pair.proxy is not None:
        prefill = Handle(engine_id="p", request_id=f"{n - 1}_{NAME}", tokens=1000)
        attempt = Attempt(proxy_turn_id="t", session_id="s", prefill=prefill, decode_start_ns=1, status_code=200)
        events.append(pair.proxy.say(attempt, 910))
    return events


@pytest.mark.parametrize("proxy", [True, False])
def test_samples_are_one_turn_whose_prompt_counts_once_and_whose_answers_add_up(proxy: bool) -> None:
    pair = Pair(proxy=proxy)
    run = Run().feed([*pair.start(), *sampled(pair)]).wait(100)
    (turn,) = run.turns().values()
    assert (turn.samples, turn.prompt_tokens, turn.computed_tokens, turn.local_hit_tokens) == (3, 1000, 1000, 0)
    assert (turn.path, turn.output_tokens, turn.wasted_bytes) == ("recompute", 600, 0)
    assert run.count("turns_total") == 1
    assert run.count("prompt_tokens_total", "prefill-0") == 1000
    assert run.count("requests_total", "prefill-0") == 3, "the engine counts each"
    assert run.count("request_prompt_tokens_total", "prefill-0") == 3000
    assert run.count("transfer_bytes_total", "decode-0", "handoff") == 3 * 63 * BLOCK_BYTES


def test_the_first_sample_speaks_for_the_prompt_in_whatever_order_they_come() -> None:
    rows = []
    for order in itertools.permutations(range(3)):
        pair = Pair(proxy=False)
        events = sampled(pair)
        shuffled = [*(events[i] for i in order), *events[3:]]
        run = Run().feed(pair.start(), at_ms=1).feed(shuffled, at_ms=1000).wait(100)
        (turn,) = run.turns().values()
        rows.append((turn.prefill_request_id, turn.computed_tokens, turn.samples, turn.output_tokens))
    assert set(rows) == {(f"0_{NAME}", 1000, 3, 600)}


def test_ten_samples_are_sorted_by_number() -> None:
    pair = Pair(proxy=False)
    events = sampled(pair, 12)
    (turn,) = Run().feed([*pair.start(), *reversed(events)], at_ms=1000).wait(100).turns().values()
    assert (turn.prefill_request_id, turn.samples, turn.output_tokens) == (f"0_{NAME}", 12, 2400)


def test_on_an_aggregated_engine_too_and_it_waits_for_those_that_still_run() -> None:
    pair = Pair(proxy=False)
    first, second = (request(f"{i}_{NAME}", leg=Leg.WHOLE, prompt=1000, output_tokens=100) for i in range(2))
    run = Run().feed([*pair.start(), pair.p.say(first, 900)])
    run.feed([pair.p.beat(at, open=[f"1_{NAME}"]) for at in range(1000, 60_000, 5000)])
    assert run.wait(0).count("turns_total") == 0
    run.feed([pair.p.say(second, 61_000), pair.p.beat(62_000)]).wait(100)
    (turn,) = run.turns().values()
    assert (turn.samples, turn.output_tokens, turn.prompt_tokens, turn.late) == (2, 200, 1000, False)
    assert run.count("turns_total") == 1


def test_the_hold_of_each_sample_is_left_by_the_one_turn_and_any_of_them_chains_the_next() -> None:
    pair = Pair(proxy=False)
    given = Handle(engine_id="d", request_id=f"1_{D_NAME}", tokens=1199, blocks=75)
    events = [*pair.start(), *sampled(pair), *pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=given)]
    run = Run().feed([*events, *(e for i in (0, 2) for e in pair.expired(f"{i}_{D_NAME}", 7000))]).wait(100)
    turn = run.turns()[f"0_{NAME}"]
    assert {run.holds()[f"{i}_{D_NAME}"].turn_id for i in range(3)} == {turn.turn_id}
    assert run.turns()["p2"].previous_turn_id == turn.turn_id


def test_samples_that_each_read_the_same_handle_used_it_more_than_once() -> None:
    for readers, suspicions in ((1, []), (2, ["duplicate_handle", "read_after_release"])):
        pair = Pair(proxy=False)
        given = Handle(engine_id="d", request_id="d1", tokens=900, blocks=57)
        reads = [
            pair.pw.say(read(Direction.REVERSE_FETCH, local=f"{i}_{NAME}", remote=("d", "d1"), bytes=1), 100 + i)
            for i in range(readers)
        ]
        held = [pair.held("d1", 900, 50), *pair.released("d1", 100)]
        late = pair.late_notice("d1", 110) if readers > 1 else []
        run = Run().feed([*pair.start(), *held, *reads, *late, *sampled(pair, 2, given)]).wait(100)
        assert run.turns()[f"0_{NAME}"].suspicions == suspicions


def test_every_process_derives_the_same_turn_from_any_sample() -> None:
    assert turn_key("p", f"0_{NAME}") == turn_key("p", f"7_{NAME}") == turn_key("p", NAME)
    assert turn_key("p", "0_mine") != turn_key("p", "mine"), "only what vLLM names so is a sample"
