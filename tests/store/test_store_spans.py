"""Spans of agents in the store: the third table beside turns and holds."""

from __future__ import annotations

from pathlib import Path

from tests.store.rows import NOON, SECOND, fill, span, turn
from turnscope.store import StoreReader


def test_a_sessions_spans_come_oldest_first_and_no_others(tmp_path: Path) -> None:
    fill(tmp_path, span(2, kind="tool", tool_name="grep"), span(1, kind="agent"), span(3, session_id="other"), turn(1))
    reader = StoreReader(str(tmp_path))
    page = reader.spans("s1")
    rows = page.table.to_pylist()
    assert [(row["kind"], row["started_ns"]) for row in rows] == [
        ("agent", NOON + SECOND),
        ("tool", NOON + 2 * SECOND),
    ]
    assert page.total == 2
    assert rows[1]["tool_name"] == "grep"
    reader.close()


def test_a_later_revision_moves_a_span_to_the_session_it_turned_out_to_belong_to(tmp_path: Path) -> None:
    fill(tmp_path, span(1, session_id=None), span(2))
    fill(tmp_path, span(1, revision=2, session_source="trace"))
    fill(tmp_path, span(2, revision=2, session_id="other"))
    reader = StoreReader(str(tmp_path))
    assert [row["span_id"] for row in reader.spans("s1").table.to_pylist()] == [f"{1:016x}"]
    assert [row["span_id"] for row in reader.spans("other").table.to_pylist()] == [f"{2:016x}"]
    reader.close()


def test_a_page_of_spans_says_how_many_there_are_in_all(tmp_path: Path) -> None:
    fill(tmp_path, *(span(n) for n in range(1, 8)))
    reader = StoreReader(str(tmp_path))
    page = reader.spans("s1", limit=2, offset=3)
    assert [row["span_id"] for row in page.table.to_pylist()] == [f"{4:016x}", f"{5:016x}"]
    assert page.total == 7
    reader.close()
