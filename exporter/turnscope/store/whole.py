"""All that a store knows of one session, for those who show it whole."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

from turnscope.measures.activities import activities
from turnscope.measures.alignment import aligned
from turnscope.measures.sessions import summarise
from turnscope.model import Activity, AgentSpan, Segment, SessionSummary, Turn
from turnscope.store import summing
from turnscope.store.reader import StoreReader
from turnscope.store.structs import structs

ALL: Final = 10_000_000
"""More rows than a session has."""


class Whole(NamedTuple):
    """One session: its sums, its time in order, and the rows that they are made of."""

    summary: SessionSummary
    segments: list[Segment]
    turns: pa.Table
    """The columns of ``StoreReader.turns``, oldest first."""
    activities: list[Activity]
    """What ran, oldest first: turns, and the agents' spans by the proxy's clock."""
    holds: pa.Table
    """The columns of ``StoreReader.holds``, oldest first."""


def read(reader: StoreReader, session_id: str, now_ns: int) -> Whole | None:
    """The session with this id, summed up as of now; None where the store knows nothing of it. Raises StoreError.

    One that is too large to be taken apart has the turns and holds that the store has, and nothing that ran.
    """
    table = reader.turns(session_id, limit=ALL).table
    holds = reader.holds(_of_holds(table))
    found = reader.spans(session_id, limit=max(1, summing.MOST_ROWS - len(table)))
    if len(table) + found.total > summing.MOST_ROWS:
        large = summing.large(reader, session_id, now_ns)
        if large is None:
            return read(reader, session_id, now_ns)  # It has shrunk meanwhile.
        return Whole(large.summary, large.segments, table, [], holds)
    turns = list(structs(table, Turn))
    spans = list(structs(found.table, AgentSpan))
    session = summarise(session_id, turns, spans, revision=now_ns)
    if session is None:
        return None
    ran = activities(turns, aligned(turns, spans))
    return Whole(session.summary, session.segments, table, ran, holds)


def _of_holds(turns: pa.Table) -> list[str]:
    """The ids of the holds that the turns left or were offered."""
    ids = pa.chunked_array([*turns["left_hold_id"].chunks, *turns["used_hold_id"].chunks], pa.string())
    return [str(one) for one in ids.drop_null().unique().to_pylist()]
