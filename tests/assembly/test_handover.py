"""Turns whose P handed nothing, or nothing usable, over to D: one turn all the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assembly.run import Run
from tests.assembly.streams import not_handed_over
from tests.builders import MS, Pair, request
from turnscope.model import Event, Handle
from turnscope.semconv import Leg


@pytest.mark.parametrize("proxy", [True, False])
def test_an_answer_that_d_computed_alone_is_one_turn_and_says_so(proxy: bool) -> None:
    pair = Pair(proxy=proxy)
    run = Run().feed([*pair.start(), *not_handed_over(pair, 1)]).wait(100)
    (turn,) = run.turns().values()
    assert (turn.path, turn.status, turn.join, turn.has_prefill, turn.has_decode) == (
        "recompute",
        "ok",
        "inferred",
        True,
        True,
    )
    assert (turn.prompt_tokens, turn.computed_tokens, turn.decode_computed_tokens, turn.handoff_tokens) == (
        39,
        39,
        39,
        0,
    )
    assert (turn.output_tokens, turn.handoff_bytes) == (200, None)
    assert run.count("turns_total") == 1
    assert run.count("fragments_total") == 0
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 39, "useful once"
    assert run.count("request_prompt_tokens_total", "decode-0", "local_compute") == 39, "and done twice"


def test_after_ten_of_them_the_engine_is_known_to_take_nothing_over() -> None:
    pair = Pair()
    events = pair.start()
    for n in range(10):
        events += not_handed_over(pair, n, at_ms=1000 * n)
    run = Run().feed(events).wait(100)
    (decode,) = [e for e in run.assembler.status(run.now_ns).engines if e.name == "decode-0"]
    assert (decode.without_handoff, decode.prefills_meanwhile) == (10, 9)
    healthy = Pair()
    run = Run().feed([*healthy.start(), *healthy.turn("1")]).wait()
    (decode,) = [e for e in run.assembler.status(run.now_ns).engines if e.name == "decode-0"]
    assert (decode.without_handoff, decode.prefills_meanwhile) == (0, 0)


def test_of_two_requests_with_the_same_name_none_is_guessed() -> None:
    pair = Pair(proxy=False)
    events = [*not_handed_over(pair, 1, name="1"), *not_handed_over(pair, 2, at_ms=20, name="1")]
    run = Run().feed([*pair.start(), *events]).wait(100)
    assert {turn.join for turn in run.turns().values()} == {"exact"}
    assert run.count("turns_total") == 4, "what cannot be told apart is not put together"


def test_a_request_sent_to_a_decode_engine_alone_is_a_turn_of_its_own() -> None:
    pair = Pair(proxy=False)
    leg = request("chatcmpl-x-2222bbbb", leg=Leg.WHOLE, prompt=39)
    run = Run().feed([*pair.start(), pair.d.say(leg, 900)]).wait(100)
    (turn,) = run.turns().values()
    assert (turn.join, turn.prefill_engine, turn.output_tokens) == ("exact", "decode-0", 200)


def preempted(pair: Pair, **handle: Any) -> list[Event]:
    """P was preempted in its last step."""
    empty = Handle(**{"engine_id": "p", "request_id": "p1", "tokens": 0, "blocks": 0, **handle})
    prefill = {"preemptions": 1, "handle_out": empty}
    events = [e for e in pair.turn("1", prompt=1000, prefill=prefill) if e.emitter != pair.dw.emitter]
    (decode,) = [e for e in events if getattr(e.body, "leg", None) is Leg.DECODE]
    computed = request("d1", leg=Leg.DECODE, prompt=1000, handle_in=empty, added_mono_ns=415 * MS)
    return [*pair.start(), *(e for e in events if e is not decode), pair.d.say(computed, 900)]


def test_an_empty_handover_after_preemption_is_named_and_its_prompt_counts_once() -> None:
    pair = Pair()
    run = Run().feed(preempted(pair)).wait(100)
    turn = run.turns()["p1"]
    assert (turn.path, turn.reason, turn.preemptions) == ("recompute", "empty_handoff_after_preemption", 1)
    assert (turn.computed_tokens, turn.decode_computed_tokens, turn.handoff_tokens) == (1000, 1000, 0)
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 1000
    assert run.count("turns_total") == 1
    full = Run().feed(preempted(Pair(), tokens=1000, blocks=63)).wait(100).turns()["p1"]
    assert full.reason == "first_turn"
