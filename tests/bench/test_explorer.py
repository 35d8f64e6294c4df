"""The explorer's benchmark judges its slowest moments."""

from __future__ import annotations

import os

from bench import explorer


def test_the_95th_percentile_is_judged_and_the_range_is_shown() -> None:
    row = explorer.row("a page", [1.0, 9.0, 2.0], "s", 10)
    assert (row["value"], row["target"], row["ok"], row["n"], row["spread"]) == (9.0, "< 10", True, 3, "1.00-9.00")
    assert explorer.row("a page", [3.0, 4.0, 2.0], "s", 4)["ok"] is False
    assert explorer.row("memory", [650.0], "MB", 700)["unit"] == "MB"


def test_of_a_hundred_the_95th_is_taken() -> None:
    assert explorer.p95([float(n) for n in range(1, 101)]) == 95
    assert explorer.p95([float(n) for n in range(1, 21)]) == 19


def test_a_process_holds_some_memory() -> None:
    assert 1 < explorer.resident_mb(os.getpid()) < 100_000
