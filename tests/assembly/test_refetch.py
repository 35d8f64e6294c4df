"""What recomputed tokens cost, and what fetching them would have: measured where it was, else assumed and said so."""

from __future__ import annotations

import random

import pytest

from tests.assembly.run import Run
from tests.assembly.talk import Talk, message
from tests.assembly.test_gain import TOKEN_MS, computing, learnt
from tests.builders import MS, Pair
from turnscope.assembly.rate import ENOUGH
from turnscope.assembly.refetch import REFERENCE, line
from turnscope.model import Turn


def again(count: int = 30) -> tuple[Run, Turn]:
    """A session whose second turn computes its first one's 1,000 tokens and answer once more."""
    pair = Pair()
    at = 10_000 * count
    talk = Talk(pair)
    prompt = message(1000, salt=1)
    first, told = talk.turn("1", prompt, at_ms=at, first=True)
    longer = [*prompt, *talk.answers["1"], *message(300, salt=2)]
    second, told_second = talk.turn("2", longer, at_ms=at + 5000)
    run = Run().feed([*learnt(pair, count), *first, *told, *second, *told_second, *pair.beats(at + 6000)]).wait()
    return run, run.turns()["p2"]


def test_recomputed_tokens_cost_what_the_engine_needs_for_them_at_their_place() -> None:
    _, turn = again()
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens > 1000
    assert turn.recompute_ns == pytest.approx(turn.recomputed_tokens * TOKEN_MS * MS, rel=0.03)
    assert turn.recompute_low_ns is not None
    assert turn.recompute_high_ns is not None
    assert turn.recompute_low_ns <= turn.recompute_ns <= turn.recompute_high_ns


def test_before_enough_was_fetched_the_time_is_the_published_references_half_to_twice_and_says_so() -> None:
    _, turn = again()
    assert turn.refetch_basis == "assumed"
    assert turn.recomputed_tokens is not None
    assert turn.refetch_ns == REFERENCE.estimate(turn.recomputed_tokens).ns
    assert (turn.refetch_low_ns, turn.refetch_high_ns) == (turn.refetch_ns // 2, turn.refetch_ns * 2)


def test_the_reference_takes_what_was_published() -> None:
    assert REFERENCE.estimate(2_000).ns == pytest.approx(30 * MS, rel=0.1)
    assert REFERENCE.estimate(24_000).ns == pytest.approx(130 * MS, rel=0.1)


def test_an_engine_whose_rate_is_not_known_has_no_price() -> None:
    _, turn = again(count=ENOUGH - 3)
    assert turn.recomputed_tokens
    assert turn.recompute_ns is turn.refetch_ns is turn.refetch_basis is None


def test_with_enough_fetches_of_its_own_the_engine_is_taken_at_its_word() -> None:
    pair = Pair()
    events = learnt(pair)
    at = 300_000
    for n in range(ENOUGH + 1):
        events += pair.turn(f"a{n}", at_ms=at, session=f"f{n}")
        given = pair.handle(f"a{n}", 1199)
        events += computing(pair, f"b{n}", at_ms=at + 5000, prompt=1250, fetched=1199, given=given, session=f"f{n}")
        at += 10_000
    talk = Talk(pair)
    prompt = message(1000, salt=1)
    first, told = talk.turn("1", prompt, at_ms=at, first=True)
    second, more = talk.turn("2", [*prompt, *talk.answers["1"], *message(300, salt=2)], at_ms=at + 5000)
    run = Run().feed([*events, *first, *told, *second, *more, *pair.beats(at + 6000)]).wait()
    turn = run.turns()["p2"]
    assert turn.refetch_basis == "measured"
    # Each of them brought 1,199 tokens in 40 ms, and it is not known what of that is per token.
    assert turn.refetch_ns == pytest.approx(40 * MS * (turn.recomputed_tokens or 0) / 1199, rel=0.01)


def test_what_a_turn_was_first_told_to_cost_stays() -> None:
    run, turn = again()
    pair = Pair()
    slower = [e for n in range(40) for e in pair.turn(f"z{n}", at_ms=400_000 + 2000 * n, session=f"z{n}")]
    run.feed(slower).wait(200)
    assert run.turns()["p2"].recompute_ns == turn.recompute_ns


def test_a_line_is_found_through_fetches_of_many_sizes_and_encloses_nine_in_ten_of_them() -> None:
    rng = random.Random(1)
    sizes = [rng.randrange(500, 30_000) for _ in range(60)]
    measured = [(n, round((5 * MS + 3_000 * n) * rng.uniform(0.8, 1.25))) for n in sizes]
    found = line(measured)
    assert found is not None
    assert found.token == pytest.approx(3_000, rel=0.15)
    inside = [found.estimate(n).low_ns <= ns <= found.estimate(n).high_ns for n, ns in measured]
    assert sum(inside) >= 0.9 * len(inside)


def test_fetches_of_one_size_alone_are_taken_to_cost_by_the_token() -> None:
    found = line([(1000, 10 * MS)] * ENOUGH)
    assert found is not None
    assert (found.step, found.token) == (0.0, pytest.approx(10_000))
