"""Sessions summed up by what is stored of them, with a bound on what is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.sessions import Session, summarise
from turnscope.model import Ceiling, Segment, SessionSummary
from turnscope.semconv import Evidence, Part
from turnscope.store.reader import StoreReader
from turnscope.store.session_queries import Size

BATCH: Final = 32
"""Sessions read at once: asking takes about as long as reading so many short ones."""
MOST_ROWS: Final = 50_000
"""Turns and spans that are taken apart at once: about 1.2 KB of memory each."""


def fresh(reader: StoreReader, now: int, limit: int) -> tuple[list[SessionSummary], int]:
    """Summaries of the newest ``limit`` sessions that the store has none of yet, or an old one, and how many more there
    are: for readers that will not wait for a writer."""
    due = reader.outdated()
    found = []
    for at in range(0, min(limit, len(due)), BATCH):
        batch = due[at : min(limit, at + BATCH)]
        found += [session.summary for session in summed_up(reader, batch, now)]
    return found, max(0, len(due) - limit)


def summed_up(reader: StoreReader, session_ids: list[str], now: int) -> Iterator[Session]:
    """Each of the sessions by what is stored of it, ``MOST_ROWS`` turns and spans in memory at most: one that has more
    is not taken apart."""
    sizes = {size.session_id: size for size in reader.sizes(session_ids)}
    some: list[str] = []
    rows = 0
    for session_id in session_ids:
        size = sizes.get(session_id)
        mine = size.turns + size.spans if size is not None else 0
        if size is not None and mine > MOST_ROWS:
            yield _untaken(size, now)
            continue
        if rows + mine > MOST_ROWS:
            yield from _read(reader, some, now)
            some, rows = [], 0
        some.append(session_id)
        rows += mine
    yield from _read(reader, some, now)


def large(reader: StoreReader, session_id: str, now: int) -> Session | None:
    """The session, if it is too large to be taken apart."""
    for size in reader.sizes([session_id]):
        if size.turns + size.spans > MOST_ROWS:
            return _untaken(size, now)
    return None


def _untaken(size: Size, now: int) -> Session:
    """Of a session that is not taken apart: how long it was, and nothing about what for."""
    wall = max(0, size.ended_ns - size.started_ns)
    summary = SessionSummary(
        session_id=size.session_id,
        revision=now,
        too_large=True,
        started_ns=size.started_ns,
        ended_ns=size.started_ns + wall,
        wall_ns=wall,
        unknown_ns=wall,
        turns=size.turns,
        spans=size.spans,
        ceiling=Ceiling(unjudged_turns=size.turns),
    )
    whole = Segment(size.started_ns, size.started_ns + wall, Part.UNKNOWN, evidence=Evidence.NONE)
    return Session(summary, [whole] if wall else [])


def _read(reader: StoreReader, session_ids: list[str], now: int) -> Iterator[Session]:
    """One that has nothing left is one that all its turns and spans have left: readers pass it over."""
    known = reader.known(session_ids)
    for session_id in session_ids:
        session = summarise(session_id, *known.pop(session_id, ([], [])), revision=now)
        nothing = SessionSummary(
            session_id=session_id, revision=now, started_ns=now, ended_ns=now, wall_ns=0, ceiling=Ceiling()
        )
        yield session or Session(nothing, [])
