"""Slices of background work are judged by their processor time, without collections, each step by its own runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from bench.slices import Slices
from turnscope.emit.pacing import BUDGET_NS


def busy(microseconds: float) -> None:
    end = time.thread_time_ns() + microseconds * 1e3
    while time.thread_time_ns() < end:
        pass


def rows(*parts: Callable[[], object], runs: int = 5) -> list[dict[str, Any]]:
    slices = Slices()

    def work() -> None:
        for part in parts:
            part()
            slices.pause()

    work()
    slices.forget()
    for _ in range(runs):
        slices.run(work)
    return slices.rows("x")


def test_a_step_that_is_always_long_is_the_longest_and_misses_the_target_with_its_slice() -> None:
    high, longest = rows(lambda: busy(10), lambda: busy(5_000), lambda: busy(10))
    assert longest["value"] >= 5_000
    assert (longest["ok"], high["ok"], longest["n"]) == (False, False, 5)


def test_short_steps_share_a_slice_and_the_whole_budget_counts_before_the_longest() -> None:
    high, longest = rows(*[lambda: busy(BUDGET_NS / 1e4)] * 100)
    assert high["n"] < 5 * 50
    assert longest["value"] >= BUDGET_NS / 1e3 * 1.1


def test_waiting_is_no_work() -> None:
    _, longest = rows(lambda: time.sleep(0.05))
    assert longest["value"] < 5_000
    assert longest["target"] == "<= 100"


def test_one_long_run_of_a_step_among_many_does_not_lengthen_it() -> None:
    once = iter([0, 20_000] + [0] * 100)
    high, longest = rows(lambda: busy(next(once)), runs=9)
    assert high["value"] >= 20_000
    assert longest["value"] < 20_000


def test_a_collection_of_garbage_is_told_beside_the_slices() -> None:
    many: list[list[int]] = [[] for _ in range(300_000)]
    high, longest = rows(gc.collect)
    assert "5 collections" in high["spread"]
    assert longest["value"] < float(high["spread"].rpartition("longest ")[2]), "of which each took far longer"
    assert len(many) == 300_000
