"""Keeps sessions' summaries up to date beside a writer: what was flushed makes its session due."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from turnscope.measures.session_counts import contributions
from turnscope.measures.sessions import Session
from turnscope.model import AgentSpan, Contribution, HoldRecord, ProcessRecord, Turn
from turnscope.store.reader import StoreReader
from turnscope.store.resting import Resting
from turnscope.store.schema import SESSIONS, SPANS, TURNS
from turnscope.store.summing import BATCH, summed_up
from turnscope.store.writer import Row, StoreWriter

ROUND_S: Final = 1.0
"""No further batch is begun in a round that took so long."""
REST_S: Final = 5.0
"""Between two rounds."""
LOOK_S: Final = 600.0
"""Between two looks for sessions that others wrote turns or spans of, such as importers."""
REST_OF_SESSION_S: Final = 1800.0
"""A session of which nothing came for so long has come to rest."""
CLOSING_S: Final = 10.0
"""For what is due when the sidecar ends; the rest is made up for at the next start."""


class SummarisingWriter:
    """A ``StoreWriter`` that also writes a summary of each session that its rows are of.

    Rows may be added from one thread while another calls ``flush``, ``maintain`` and ``close``. A summary is worked out
    after the rows can be read, and is itself readable after the next flush. At the start and every ten minutes,
    sessions whose summary is missing or was made of another number of rows are made up for.

    A session that has come to rest is counted: ``count`` is called with what it adds once its row says so in the store.
    So it is counted once, whatever is replayed or starts anew; what a crash between the two loses is lost to the
    metrics only, as are increments that nobody had scraped.
    """

    def __init__(
        self,
        url: str,
        *,
        writer_id: str,
        now: Callable[[], int],
        count: Callable[[list[Contribution]], object] = lambda _: None,
        rest_s: float = REST_OF_SESSION_S,
        closing_s: float = CLOSING_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._now = now
        self._count = count
        self._resting = Resting(rest_s)
        self._rested: set[str] = set()
        """Of those that are due: to be counted when they are summed up."""
        self._counting: dict[str, tuple[int, list[Contribution]]] = {}
        """Counted in a row that is not in the store yet: until when, and what is to be added once it is."""
        self._closing_s = closing_s
        self._clock_s = clock_s
        self._reader: StoreReader | None = None
        """While there is work: an open one holds on to tens of megabytes."""
        self._looked = False
        """For sessions that an earlier sidecar had not counted."""
        self._due: dict[str, None] = {}
        """Sessions, in the order in which they became due."""
        self._moved: tuple[set[str], set[str]] = set(), set()
        """Turns and spans of a later revision: they may have been another session's before."""
        self._look_s = clock_s()
        self._next_s = clock_s()
        self._writer = StoreWriter(url, writer_id=writer_id, now=now, flushed=self._flushed)

    # --- rows -----------------------------------------------------------------------------------------
    def add_turn(self, turn: Turn) -> None:
        """Take a turn in; never blocks on the store."""
        self._writer.add_turn(turn)

    def add_hold(self, hold: HoldRecord) -> None:
        """Take a hold in; never blocks on the store."""
        self._writer.add_hold(hold)

    def add_span(self, span: AgentSpan) -> None:
        """Take an agent's span in; never blocks on the store."""
        self._writer.add_span(span)

    def add_process(self, process: ProcessRecord) -> None:
        """Take a process's row in; never blocks on the store."""
        self._writer.add_process(process)

    @property
    def rows_written(self) -> int:
        """As the writer's."""
        return self._writer.rows_written

    @property
    def rows_dropped(self) -> int:
        """As the writer's."""
        return self._writer.rows_dropped

    @property
    def rows_rejected(self) -> int:
        """As the writer's."""
        return self._writer.rows_rejected

    @property
    def pending(self) -> int:
        """As the writer's."""
        return self._writer.pending

    @property
    def due(self) -> int:
        """Sessions whose summary is older than their rows."""
        return len(self._due)

    # --- the store's thread ---------------------------------------------------------------------------
    def flush(self) -> None:
        """As the writer's."""
        self._writer.flush()

    def maintain(self) -> None:
        """As the writer's, and sum up sessions that are due, for about a second at most. Raises StoreError."""
        self._writer.maintain()
        if self._clock_s() >= self._next_s:
            self._work(ROUND_S)
            self._next_s = self._clock_s() + REST_S

    def close(self) -> None:
        """Flush, sum up what is due while there is time, and let go of the store. Raises StoreError."""
        try:
            self._writer.flush()
            self._work(self._closing_s)
        finally:
            self._let_go()
            self._writer.close()

    # --- inside ---------------------------------------------------------------------------------------
    def _flushed(self, rows: dict[str, dict[str, Row]]) -> None:
        for session_id in rows[SESSIONS.name].keys() & self._counting.keys():
            self._count(self._counting.pop(session_id)[1])
        live: dict[str, None] = {}
        for table, moved in zip((TURNS, SPANS), self._moved, strict=True):
            for key, row in rows[table.name].items():
                if isinstance(row, (Turn, AgentSpan)):
                    if row.session_id:
                        live[row.session_id] = None
                    if row.revision > 1:
                        moved.add(key)
        self._due |= live
        self._resting.heard(live, self._clock_s())

    def _work(self, at_most_s: float) -> None:
        now_s = self._clock_s()
        rested = self._resting.due(now_s)
        self._rested |= rested
        self._due |= dict.fromkeys(sorted(rested))
        if not self._due and not any(self._moved) and now_s < self._look_s:
            return
        if self._reader is None:
            self._reader = StoreReader(self._url, threads=1)
        self._look(self._reader, now_s)
        self._sum_up(self._reader, now_s + at_most_s)
        if not self._due:
            self._let_go()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            pa.default_memory_pool().release_unused()

    def _look(self, reader: StoreReader, now_s: float) -> None:
        """For sessions that are due though no row of theirs was just written."""
        if not self._looked:
            self._resting.heard(reader.uncounted(), now_s)
            self._looked = True
        if now_s >= self._look_s:
            self._due |= dict.fromkeys(reader.outdated())
            self._look_s = now_s + LOOK_S
        if any(self._moved):
            turns, spans = self._moved
            self._due |= dict.fromkeys(reader.left_by(sorted(turns), sorted(spans)))
            self._moved = set(), set()

    def _sum_up(self, reader: StoreReader, until_s: float) -> None:
        while self._due and self._clock_s() < until_s:
            batch = list(self._due)[:BATCH]
            counted = reader.counted_until(batch)
            for session in summed_up(reader, batch, self._now()):
                session_id = session.summary.session_id
                self._mark(session, counted.get(session_id))
                self._writer.add_session(session.summary)
                del self._due[session_id]

    def _mark(self, session: Session, counted: int | None) -> None:
        """Write into its row until when it is counted, and keep what that adds until the row is in the store.
        ``counted``: what the row in the store says."""
        row, session_id = session.summary, session.summary.session_id
        rested = session_id in self._rested
        pending, found = self._counting.get(session_id, (counted, []))
        row.counted_until_ns = 0 if pending is None and (rested or session_id in self._resting) else pending
        if rested:
            self._rested.discard(session_id)
            if row.turns + row.spans and row.ended_ns > (since := row.counted_until_ns or 0):
                row.counted_until_ns = row.ended_ns
                self._counting[session_id] = row.ended_ns, [*found, *contributions(session, since)]
