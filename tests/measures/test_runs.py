"""Two runs side by side, by prompt length."""

from __future__ import annotations

from typing import Any

import pytest

from turnscope.measures.runs import MOST_BUCKETS, RunTurn, side_by_side

MS = 1_000_000


def turn(prompt: int | None, **changes: Any) -> RunTurn:
    measured: dict[str, Any] = {"ttft_ns": None, "prefill_ns": None, "fetch_ns": None, "fetch_reads": None}
    return RunTurn(prompt_tokens=prompt, **{**measured, **changes})


def test_the_median_to_the_first_token_is_held_beside_the_other_runs() -> None:
    a = [turn(24_000, ttft_ns=ms * MS) for ms in (100, 460, 500)]
    b = [turn(24_100, ttft_ns=ms * MS) for ms in (700, 778, 800)]
    (bucket,) = side_by_side(a, b)
    assert (bucket.from_tokens, bucket.until_tokens) == (24_000, 26_000)
    assert (bucket.a.ttft_ns, bucket.b.ttft_ns) == (460 * MS, 778 * MS)
    assert bucket.ratio == pytest.approx(1.691, abs=0.001)


def test_a_prefill_is_split_into_transfer_and_the_rest_and_they_add_up() -> None:
    reused = [turn(1000, prefill_ns=100 * MS, fetch_ns=40 * MS), turn(1000, prefill_ns=200 * MS, fetch_ns=60 * MS)]
    (bucket,) = side_by_side(reused, [turn(1000, prefill_ns=300 * MS, fetch_reads=0)])
    assert (bucket.a.prefill_ns, bucket.a.transfer_ns, bucket.a.compute_ns) == (150 * MS, 50 * MS, 100 * MS)
    assert (bucket.b.prefill_ns, bucket.b.transfer_ns, bucket.b.compute_ns) == (300 * MS, 0, 300 * MS)


def test_a_split_that_is_not_known_of_all_turns_is_unknown() -> None:
    some = [turn(1000, prefill_ns=100, fetch_ns=40), turn(1000, prefill_ns=200)]
    (bucket,) = side_by_side(some, [])
    assert (bucket.a.prefill_ns, bucket.a.prefill_turns, bucket.a.split_turns) == (150, 2, 1)
    assert (bucket.a.transfer_ns, bucket.a.compute_ns) == (None, None)


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    (bucket,) = side_by_side([turn(10, ttft_ns=5)], [turn(10)])
    assert (bucket.b.ttft_turns, bucket.b.ttft_ns, bucket.b.prefill_ns, bucket.ratio) == (0, None, None, None)


@pytest.mark.parametrize(
    ("longest", "step"), [(1, 1), (15, 1), (16, 2), (7_999, 500), (24_000, 2_000), (100_000, 10_000), (10**9, 10**8)]
)
def test_steps_are_round_and_few(longest: int, step: int) -> None:
    (bucket,) = side_by_side([turn(longest)], [])
    assert bucket.until_tokens - bucket.from_tokens == step
    assert longest // step < MOST_BUCKETS


def test_steps_without_turns_are_left_out_as_are_turns_without_a_length() -> None:
    found = side_by_side([turn(100), turn(None)], [turn(1_500)])
    assert [(one.from_tokens, one.a.ttft_turns, one.b.ttft_turns) for one in found] == [(100, 0, 0), (1_500, 0, 0)]
    assert side_by_side([turn(None)], []) == []


def test_nine_in_ten_are_told_of_ten_turns_or_more() -> None:
    ten = [turn(1, ttft_ns=n) for n in range(1, 12)]
    assert side_by_side(ten, [])[0].a.ttft_p90_ns == 10
    assert side_by_side(ten[:9], [])[0].a.ttft_p90_ns is None
