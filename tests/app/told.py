"""A session's rows as the store gives them back whole."""

from __future__ import annotations

from pathlib import Path

from tests.app.agent_session import Rows
from tests.store.rows import NOON, fill
from turnscope.store import StoreReader
from turnscope.store.whole import Whole, read
from turnscope_app import stories, timeline
from turnscope_app.timeline import Timeline


def whole(folder: Path, rows: Rows, session_id: str) -> Whole:
    """The session out of a store with these rows."""
    fill(folder, *rows)
    reader = StoreReader(str(folder))
    try:
        found = read(reader, session_id, NOON)
    finally:
        reader.close()
    assert found is not None
    return found


def numbers(found: Whole) -> list[int]:
    return stories.numbers(found.turns["turn_index"].to_pylist())


def drawn(found: Whole) -> Timeline:
    """All of it in one drawing."""
    return timeline.build(found, found.turns.to_pylist(), numbers(found), first=True, last=True)
