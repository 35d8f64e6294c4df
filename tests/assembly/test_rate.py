"""An engine's compute rate from what it was seen to need: right on average, and honest about what it does not know."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.assembly.rate import ENOUGH, KEEP, REACH, Prefill, fit, keep, spared

ENGINES = 200


class Engine:
    """One that needs ``step + tokens x (token + context x middle)`` nanoseconds, times noise."""

    def __init__(self, random: Random, *, noise: float, crowded: float) -> None:
        self._random = random
        self._noise = noise
        self._crowded = crowded
        self.step = random.uniform(1e6, 2e7)
        self.token = random.uniform(2e3, 5e5)
        self.context = random.choice([0.0, random.uniform(0, self.token / 20_000)])

    def exact(self, start: int, tokens: int) -> float:
        """Without the fixed part and without noise."""
        return tokens * (self.token + self.context * (start + tokens / 2))

    def noisy(self, ns: float) -> float:
        return ns * math.exp(self._random.gauss(0, self._noise))

    def prefill(self) -> Prefill:
        """One of any size; now and then others run beside it, and it takes several times as long."""
        end = int(math.exp(self._random.uniform(math.log(200), math.log(20_000))))
        start = self._random.choice([0, 0, self._random.randrange(end)])
        ns = self.noisy(self.step + self.exact(start, end - start))
        if self._random.random() < self._crowded:
            ns *= self._random.uniform(1.5, 5)
        return Prefill(start, end - start, int(ns))


@pytest.mark.parametrize("measured", [ENOUGH, 30, 120])
@pytest.mark.parametrize(("noise", "crowded"), [(0.02, 0.0), (0.1, 0.05), (0.3, 0.0), (0.3, 0.1)])
def test_the_interval_has_the_truth_in_nine_cases_of_ten(measured: int, noise: float, crowded: float) -> None:
    held = would_have_taken = judged = 0
    ratios = []
    for seed in range(ENGINES):
        random = Random(seed)
        engine = Engine(random, noise=noise, crowded=crowded)
        known: dict[int, list[Prefill]] = {}
        for _ in range(measured):
            keep(known, engine.prefill())
        rate = fit(known)
        start = random.randrange(8000)
        tokens = random.randrange(64, 20_000 - start)
        estimate = spared(rate, start, tokens) if rate is not None else None
        if estimate is None:
            continue
        judged += 1
        truth = engine.exact(start, tokens)
        held += estimate.low_ns <= truth <= estimate.high_ns
        would_have_taken += estimate.low_ns <= engine.noisy(truth) <= estimate.high_ns
        ratios.append(estimate.ns / truth)
    assert judged > 0.9 * ENGINES
    assert held >= 0.9 * judged
    assert would_have_taken >= 0.9 * judged
    assert sorted(ratios)[judged // 2] == pytest.approx(1, abs=0.1)


def test_a_quiet_engine_is_known_to_a_few_percent_whatever_its_fixed_part() -> None:
    known: dict[int, list[Prefill]] = {}
    for n in range(40):
        tokens = 200 + 150 * n
        keep(known, Prefill(0, tokens, 50_000_000 + 100_000 * tokens + 5 * tokens * tokens))
    rate = fit(known)
    assert rate is not None
    estimate = spared(rate, 1000, 2000)
    assert estimate is not None
    # The marginal cost at position m is 100,000 + 10 m: 2,000 tokens around position 2,000.
    assert estimate.ns == pytest.approx(2000 * (100_000 + 10 * 2000), rel=0.02)
    assert estimate.high_ns - estimate.low_ns < 0.05 * estimate.ns


def test_too_few_measurements_and_contexts_far_beyond_them_are_not_judged() -> None:
    known: dict[int, list[Prefill]] = {}
    for n in range(ENOUGH - 1):
        keep(known, Prefill(0, 500 + n, 1_000_000 + 1000 * (500 + n)))
    assert fit(known) is None
    keep(known, Prefill(0, 1000, 2_000_000))
    rate = fit(known)
    assert rate is not None
    assert spared(rate, 0, REACH * 1000) is not None
    assert spared(rate, 1, REACH * 1000) is None


def test_an_engine_that_shows_no_cost_of_a_token_has_no_rate() -> None:
    known: dict[int, list[Prefill]] = {}
    for n in range(40):
        keep(known, Prefill(0, 100 + 50 * n, 900_000_000 - 10_000_000 * n))
    assert fit(known) is None


def test_a_flood_of_short_prompts_pushes_out_no_long_one_and_memory_is_bounded() -> None:
    known: dict[int, list[Prefill]] = {}
    keep(known, Prefill(0, 20_000, 1))
    for n in range(10_000):
        keep(known, Prefill(0, 1 + n % 100, n + 1))
    assert known[(20_000).bit_length()] == [Prefill(0, 20_000, 1)]
    assert max(map(len, known.values())) == KEEP
    assert known[(100).bit_length()][-1].ns == 10_000


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(Prefill, st.integers(0, 2**40), st.integers(1, 2**40), st.integers(1, 2**60)), max_size=3 * ENOUGH
    ),
    st.integers(0, 2**40),
    st.integers(1, 2**40),
)
def test_whatever_was_measured_an_estimate_is_in_its_interval_and_not_below_zero(
    prefills: list[Prefill], start: int, tokens: int
) -> None:
    known: dict[int, list[Prefill]] = {}
    for prefill in prefills:
        keep(known, prefill)
    rate = fit(known)
    estimate = spared(rate, start, tokens) if rate is not None else None
    if estimate is not None:
        assert 0 <= estimate.low_ns <= estimate.ns <= estimate.high_ns
