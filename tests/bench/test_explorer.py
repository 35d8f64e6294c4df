"""The explorer's benchmark measures on a store like a real one, and judges its medians."""

from __future__ import annotations

from pathlib import Path

from bench import explorer
from turnscope.store import StoreReader


def test_the_store_has_the_sessions_and_turns_that_the_row_names(tmp_path: Path) -> None:
    reader = StoreReader(explorer.build(tmp_path, sessions=20))
    totals, counts = reader.totals(), reader.counts()
    assert (totals.sessions, totals.turns) == (20, 20 * explorer.TURNS)
    assert (counts.holds, counts.by_hold_fate["not_continued"]) == (20 * explorer.TURNS, 20)
    assert reader.turns("agent-000007").total == explorer.TURNS
    assert all(seconds > 0 for seconds in explorer.answers(reader.url))
    reader.close()


def test_the_median_is_judged_and_the_slowest_is_shown() -> None:
    row = explorer.row("a page", [1.0, 9.0, 2.0], 3)
    assert (row["value"], row["target"], row["ok"], row["n"], row["spread"]) == (2.0, "< 3", True, 3, "1.00-9.00")
    assert explorer.row("a page", [3.0, 4.0, 2.0], 3)["ok"] is False
    assert explorer.row("a page", [1.0], None)["ok"] is None
