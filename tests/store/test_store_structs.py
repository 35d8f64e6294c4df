"""Rows read back as the Structs that they were written from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.store.rows import fill, span, turn
from turnscope.model import AgentSpan
from turnscope.store import StoreReader
from turnscope.store.schema import SPANS, to_arrow
from turnscope.store.structs import newest


def known(url: Path, session_id: str) -> tuple[list[int], list[str | None]]:
    """Revisions of its turns and names of its spans' tools."""
    reader = StoreReader(str(url))
    turns, spans = reader.known([session_id]).get(session_id, ([], []))
    reader.close()
    return sorted(one.revision for one in turns), sorted(one.tool_name or "" for one in spans)


def test_of_several_revisions_the_newest_is_known_whichever_file_it_is_in(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, revision=3), span(1, revision=2, tool_name="new"))
    fill(tmp_path, turn(1, revision=1), span(1, revision=1, tool_name="old"))
    assert known(tmp_path, "s1") == ([3], ["new"])


@pytest.mark.parametrize("order", [1, -1])
def test_of_equal_revisions_the_one_written_last_is_the_newest_in_whatever_order_files_are_read(order: int) -> None:
    files = [
        ("store/spans/2026-11-30/00000001-w.parquet", "first"),
        ("store/spans/2026-11-30/00000002-w.parquet", "last"),
    ]
    batches = []
    for file, tool in files[::order]:
        table, _ = to_arrow(SPANS, [span(1, tool_name=tool)])
        batches += table.append_column("filename", pa.array([file])).to_batches()
    found = newest(pa.RecordBatchReader.from_batches(batches[0].schema, batches), SPANS, AgentSpan)
    assert [one.tool_name for one in found] == ["last"]


def test_what_moved_to_another_session_is_known_there_alone(tmp_path: Path) -> None:
    fill(tmp_path, turn(1), span(1, tool_name="search"))
    fill(tmp_path, turn(1, revision=2, session_id="s2"), span(1, revision=2, session_id="s2", tool_name="search"))
    assert known(tmp_path, "s2") == ([2], ["search"])
    reader = StoreReader(str(tmp_path))
    assert reader.known(["s1"]) == {}
    reader.close()


def test_a_turn_whose_newest_row_is_withdrawn_is_not_known(tmp_path: Path) -> None:
    fill(tmp_path, turn(1), turn(2))
    fill(tmp_path, turn(1, revision=2, withdrawn=True))
    assert known(tmp_path, "s1") == ([1], [])
