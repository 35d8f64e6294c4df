"""Benchmark rows are collected, checked and shown."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from rich.console import Console

from bench.run import Row, collect, table
from bench.stats import ratio

GOOD = {"name": "a", "value": 1.5, "unit": "us", "target": "<= 2", "ok": True, "n": 9, "spread": None}


def _broken() -> list[Any]:
    raise RuntimeError("no pair")


def test_one_failing_benchmark_takes_nothing_from_the_others() -> None:
    outcome = collect({"first": lambda: [GOOD], "second": _broken, "third": lambda: [{**GOOD, "name": "b"}]})
    assert [row.name for row in outcome.rows] == ["a", "b"]
    assert outcome.failed == ["second: RuntimeError: no pair"]


def test_a_row_without_its_number_of_samples_is_refused() -> None:
    outcome = collect({"first": lambda: [{k: v for k, v in GOOD.items() if k != "n"}]})
    assert outcome.rows == []
    assert "`n`" in outcome.failed[0]


def test_the_table_says_what_missed_its_target() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table([Row(**GOOD), Row(**{**GOOD, "name": "slow", "ok": False, "value": 3})]))
    lines = console.export_text().splitlines()
    assert "ok" in lines[1]
    assert lines[2].split()[:5] == ["slow", "3", "us", "<=", "2"]
    assert "missed" in lines[2]


def test_drift_that_hits_both_runs_of_a_block_divides_out() -> None:
    blocks = [(100.0 * drift, 98.0 * drift) for drift in (1, 2, 5, 0.5, 3)]
    found = ratio(blocks, rng=random.Random(1))
    assert found.value == pytest.approx(0.98)
    assert (found.low, found.high) == (pytest.approx(0.98), pytest.approx(0.98))


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng = random.Random(7)
    hits = 0
    for _ in range(200):
        blocks = [(rng.gauss(100, 5), rng.gauss(100, 5)) for _ in range(20)]
        found = ratio(blocks, rng=rng, draws=400)
        hits += found.low <= 1 <= found.high
    assert 176 <= hits <= 199


def test_one_block_gives_no_interval() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        ratio([(1.0, 1.0)], rng=random.Random(1))
