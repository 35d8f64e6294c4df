"""Turns that continue another: could they have fetched, did they, and how long was the pause before them."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import D, P, Pair

WORD = {"taken": 0, "missed": 0, "none": 0, "unknown": 0}


def followups(run: Run) -> dict[str, float]:
    return {word: run.count("followup_turns_total", "prefill-0", word) for word in WORD}


def second(pair: Pair, **fields: object) -> Run:
    """Turn 1 leaves 1,199 tokens on D; turn 2 of the same session begins at 5 s, 4.1 s after the answer's last byte."""
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000)]).wait()
    events = pair.turn("2", at_ms=5000, prompt=1250, **fields)  # type: ignore[arg-type]
    return run.feed(events, at_ms=12_000).wait()


def test_a_first_turn_continues_nothing() -> None:
    pair = Pair()
    assert followups(Run().feed([*pair.start(), *pair.turn("1")]).wait()) == WORD


def test_what_was_fetched_was_taken() -> None:
    pair = Pair()
    assert followups(second(pair, given=pair.handle("1", 1199), fetched=1199)) == {**WORD, "taken": 1}


def test_what_d_held_and_p_computed_again_was_missed() -> None:
    assert followups(second(Pair())) == {**WORD, "missed": 1}


@pytest.mark.parametrize(("local", "found"), [(1199 - 64, "missed"), (1199 - 63, "none")])
def test_less_than_the_threshold_beyond_the_local_hit_is_no_opportunity(local: int, found: str) -> None:
    assert followups(second(Pair(), local=local)) == {**WORD, found: 1}


def test_where_d_had_given_it_up_before_there_was_nothing_to_take() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000)]).wait()
    run.feed(pair.released("d1", 4000), at_ms=11_000).wait()
    run.feed(pair.turn("2", at_ms=5000, prompt=1250), at_ms=22_000).wait()
    assert followups(run) == {**WORD, "none": 1}


def test_with_the_feature_off_on_d_there_was_nothing_to_take() -> None:
    off = msgspec.structs.replace(D, bidirectional=False, hold_ttl_ns=None)
    pair = Pair(P, off)
    run = Run().feed([*pair.start(), *pair.turn("1", decode_finish="abort")]).wait()
    assert followups(run.feed(pair.turn("2", at_ms=5000), at_ms=12_000).wait()) == {**WORD, "none": 1}


def test_the_pause_before_a_turn_is_observed_with_what_became_of_it() -> None:
    pair = Pair()
    run = second(pair, given=pair.handle("1", 1199), fetched=1199)
    assert run.count("turn_gap_seconds", "taken") == pytest.approx(5.0 - 0.9)
