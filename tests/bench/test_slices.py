"""Background work is judged by its longest step, and by what a serving thread waits for the interpreter beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from bench.serving import serving
from bench.slices import sliced
from turnscope.emit.pacing import BUDGET_NS


def busy(microseconds: float) -> None:
    end = time.thread_time_ns() + microseconds * 1e3
    while time.thread_time_ns() < end:
        pass


def rows(*parts: Callable[[], object], runs: int = 10) -> list[dict[str, Any]]:
    with sliced() as slices:

        def work() -> None:
            for part in parts:
                part()
                slices.pause()

        for _ in range(runs):
            slices.run(work)
        return slices.rows("x")


def test_a_step_that_is_always_long_is_the_longest_and_misses_the_target_on_both_sides() -> None:
    longest, waits = rows(lambda: busy(10), lambda: busy(4_000), lambda: busy(10))
    assert longest["value"] >= 4_000
    assert waits["value"] >= 1_000, "a thread that wakes within the step waits for its end"
    assert (longest["ok"], waits["ok"], longest["n"]) == (False, False, 5)


def test_the_whole_budget_counts_before_the_longest_step() -> None:
    longest, _ = rows(*[lambda: busy(BUDGET_NS / 1e4)] * 100)
    assert longest["value"] >= BUDGET_NS / 1e3 * 1.1


def test_waiting_is_no_work_and_keeps_the_interpreter_from_nobody() -> None:
    longest, waits = rows(lambda: time.sleep(0.05), runs=4)
    assert longest["value"] < 5_000
    assert longest["target"] == waits["target"] == "<= 100"
    assert waits["n"] > 100


def test_one_long_run_of_a_step_among_many_does_not_lengthen_it() -> None:
    once = iter([0, 0, 20_000] + [0] * 100)
    longest, _ = rows(lambda: busy(next(once)), runs=10)
    assert longest["value"] < 20_000


def test_what_fails_in_the_background_fails_here() -> None:
    with sliced() as slices:
        slices.run(lambda: None)
        with pytest.raises(ZeroDivisionError):
            slices.run(lambda: 1 / 0)  # type: ignore[arg-type]


def test_a_serving_thread_that_is_alone_waits_for_nobody() -> None:
    with serving() as wait:
        assert sorted(wait() for _ in range(200))[100] < 100
