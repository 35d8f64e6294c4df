"""Rows read back as the Structs that they were written from."""

from __future__ import annotations

from pathlib import Path

from tests.store.rows import fill, span, turn
from turnscope.store import StoreReader


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


def test_of_equal_revisions_the_one_written_last_is_known(tmp_path: Path) -> None:
    fill(tmp_path, span(1, tool_name="first"))
    fill(tmp_path, span(1, tool_name="last"))
    assert known(tmp_path, "s1") == ([], ["last"])


def test_what_moved_to_another_session_is_known_there_alone(tmp_path: Path) -> None:
    fill(tmp_path, turn(1), span(1, tool_name="search"))
    fill(tmp_path, turn(1, revision=2, session_id="s2"), span(1, revision=2, session_id="s2", tool_name="search"))
    assert known(tmp_path, "s1") == ([], [])
    assert known(tmp_path, "s2") == ([2], ["search"])


def test_a_turn_whose_newest_row_is_withdrawn_is_not_known(tmp_path: Path) -> None:
    fill(tmp_path, turn(1), turn(2))
    fill(tmp_path, turn(1, revision=2, withdrawn=True))
    assert known(tmp_path, "s1") == ([1], [])
