"""The writer: rows are buffered, flushed as small files, and merged into large ones while the sidecar runs."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
import pyarrow as pa

from turnscope.model import AgentSpan, HoldRecord, ProcessRecord, SessionSummary, Turn
from turnscope.store import compact, manifest
from turnscope.store.errors import StoreError, StoreGone, StorePermanentError
from turnscope.store.files import open_files
from turnscope.store.manifest import File, Manifest, Removed
from turnscope.store.parts import write_table
from turnscope.store.schema import HOLDS, PROCESSES, SESSIONS, SPANS, TABLES, TURNS, Table, partition, to_arrow

FLUSH_ROWS: Final = 5_000
FLUSH_NS: Final = 60_000_000_000
GRACE_NS: Final = 600_000_000_000
"""How long a replaced file stays, so that a reader that has the older manifest can finish."""
RETRY_NS: Final = 5_000_000_000
"""How long ``maintain`` waits after a failure."""
MAX_PENDING: Final = 200_000
"""Rows kept while the store cannot be written; beyond it the oldest go and are counted."""
MAX_REMEMBERED: Final = 50_000
"""Entities whose partition is remembered, so that a later revision goes to the same one: half of it at least."""

Row = Turn | HoldRecord | AgentSpan | SessionSummary | ProcessRecord
Flushed = Callable[[dict[str, dict[str, Row]]], None]
"""Told of rows, by table and key, once they can be read."""


class StoreWriter:
    """Writes one writer's part of the store at ``url`` (a local folder or ``s3://bucket/folder``).

    Rows may be added from one thread while another calls ``maintain``. A row added twice with the same key and
    revision is one row for readers; of several revisions they see the newest. Opening creates the store, deletes
    what a crash left behind, and raises StorePermanentError when it is not writable or ``writer_id`` is taken.
    """

    def __init__(self, url: str, *, writer_id: str, now: Callable[[], int], flushed: Flushed = lambda _: None) -> None:
        if not manifest.valid_writer(writer_id):
            raise StorePermanentError(f"a writer cannot be named {writer_id!r}: use letters, digits and _ . - only")
        self.rows_written = 0
        self.rows_dropped = 0
        """Rows lost because the store could not be written for too long."""
        self.rows_rejected = 0
        """Rows with a value that no column can hold."""
        self.flushes = 0
        self.failures = 0
        self.compactions = 0
        self.last_flush_ns: int | None = None
        self.last_error: str | None = None
        """The newest failure; None after the next success."""
        self._writer = writer_id
        self._now = now
        self._flushed = flushed
        self._files = open_files(url)
        self._path = manifest.manifest_path(writer_id)
        self._buffers: dict[str, OrderedDict[str, Row]] = {name: OrderedDict() for name in TABLES}
        self._oldest: int | None = None
        self._dates: dict[int, str] = {}
        """By the hash of table and key: texts would take twice the memory."""
        self._older_dates: dict[int, str] = {}
        """Of those not written since there were half of ``MAX_REMEMBERED`` in ``_dates``."""
        self._jobs: deque[compact.Job] = deque()
        self._retry_at = 0
        self._in_doubt: bytes | None = None
        """A manifest whose replacement failed, and may yet have happened."""
        self._number = 0
        self._adding = threading.Lock()
        self._writing = threading.RLock()
        self._closed = False
        self._files.claim(self._path)
        try:
            self._open()
        except BaseException:
            self._files.close()
            raise

    # --- what the pipeline calls --------------------------------------------------------------------
    def add_turn(self, turn: Turn) -> None:
        """Take a turn in; never blocks on the store."""
        self._add(TURNS, turn.turn_id, turn)

    def add_hold(self, hold: HoldRecord) -> None:
        """Take a hold in; never blocks on the store."""
        self._add(HOLDS, hold.hold_id, hold)

    def add_span(self, span: AgentSpan) -> None:
        """Take an agent's span in; never blocks on the store."""
        self._add(SPANS, span.span_key, span)

    def add_session(self, session: SessionSummary) -> None:
        """Take a session's summary in; never blocks on the store."""
        self._add(SESSIONS, session.session_id, session)

    def add_process(self, process: ProcessRecord) -> None:
        """Take a process's row in; never blocks on the store."""
        self._add(PROCESSES, process.process_id, process)

    @property
    def pending(self) -> int:
        """Rows taken in and not yet readable."""
        with self._adding:
            return sum(len(b) for b in self._buffers.values())

    @property
    def files(self) -> int:
        """Files that readers of this writer's part see now."""
        return len(self._manifest.files)

    def flush(self) -> None:
        """Make every row added so far durable and readable. After a StoreError the rows are still pending."""
        with self._writing:
            self._counted(self._flush)

    def maintain(self) -> None:
        """Flush, compact and delete what is due, at most one compaction a call. Call it about once a second.

        Raises StoreError; calling again later is always right.
        """
        with self._writing:
            now = self._now()
            if now < self._retry_at:
                return
            oldest = self._oldest
            if self.pending >= FLUSH_ROWS or (oldest is not None and now - oldest >= FLUSH_NS):
                self._counted(self._flush)
            self._counted(self._compact)
            if any(now - r.removed_ns >= GRACE_NS for r in self._manifest.removed):
                self._counted(self._delete)

    def close(self) -> None:
        """Flush and let go of the store, even if the flush raises StoreError."""
        with self._writing:
            if self._closed:
                return
            self._closed = True
            try:
                self.flush()
            finally:
                self._files.close()

    # --- inside -------------------------------------------------------------------------------------
    def _open(self) -> None:
        try:
            data, self._version = self._files.read(self._path)
            self._manifest = manifest.decode(data, self._files.address(self._path))
        except FileNotFoundError:
            self._version, self._manifest = "", Manifest(writer=self._writer)
        now = self._now()
        self._commit(
            compacted_hour=self._manifest.compacted_hour or now // compact.HOUR_NS,
            compacted_day=self._manifest.compacted_day or now // compact.DAY_NS,
        )
        self._sweep()

    def _sweep(self) -> None:
        """Delete this writer's files that no manifest lists: what a crash or a failed write left behind."""
        known = {f.path for f in self._manifest.files} | {r.path for r in self._manifest.removed}
        for table in TABLES:
            for path in self._files.names(table):
                if path not in known and manifest.is_from(path, self._writer):
                    self._files.delete(path)

    def _add(self, table: Table, key: str, row: Row) -> None:
        with self._adding:
            buffer = self._buffers[table.name]
            held = buffer.get(key)
            if held is not None and held.revision > row.revision:
                return
            buffer[key] = row
            if self._oldest is None:
                self._oldest = self._now()
            while sum(len(b) for b in self._buffers.values()) > MAX_PENDING:
                fullest = max(self._buffers.values(), key=len)
                fullest.popitem(last=False)
                self.rows_dropped += 1

    def _counted(self, action: Callable[[], None]) -> None:
        try:
            action()
        except StoreError as error:
            self.failures += 1
            self.last_error = str(error)
            self._retry_at = self._now() + RETRY_NS
            raise

    def _flush(self) -> None:
        with self._adding:
            taken = {name: dict(buffer) for name, buffer in self._buffers.items()}
        if not any(taken.values()):
            return
        now = self._now()
        made: list[File] = []
        rejected = 0
        try:
            for name, rows in taken.items():
                rejected += self._write_rows(TABLES[name], rows, made)
        except StoreError:
            self._discard(made)
            raise
        self._settle_doubt()
        try:
            self._commit(files=(*self._manifest.files, *made))
        except StoreGone:
            self._discard(made)
            raise
        with self._adding:
            for name, rows in taken.items():
                buffer = self._buffers[name]
                for key, row in rows.items():
                    if buffer.get(key) is row:
                        del buffer[key]
            self._oldest = now if any(self._buffers.values()) else None
        self.rows_written += sum(f.rows for f in made)
        self.rows_rejected += rejected
        self.flushes += 1
        self.last_flush_ns = now
        self.last_error = None
        self._flushed(taken)
        pa.default_memory_pool().release_unused()

    def _write_rows(self, table: Table, rows: dict[str, Row], made: list[File]) -> int:
        """One file a date, appended to ``made``; returns how many rows were rejected."""
        by_date: defaultdict[str, list[Row]] = defaultdict(list)
        for key, row in rows.items():
            by_date[self._partition(table.name, key, row)].append(row)
        rejected = 0
        for date, group in sorted(by_date.items()):
            data, bad = to_arrow(table, group)
            rejected += bad
            if data.num_rows:
                path = self._new_path(table.name, date)
                size = self._files.write(path, partial(write_table, table, data))
                made.append(
                    File(
                        path=path,
                        table=table.name,
                        date=date,
                        rows=data.num_rows,
                        bytes=size,
                        level=0,
                        created_ns=self._now(),
                    )
                )
        return rejected

    def _discard(self, made: list[File]) -> None:
        for file in made:
            with suppress(StoreError):
                self._files.delete(file.path)

    def _partition(self, table: str, key: str, row: Row) -> str:
        entity = hash((table, key))
        date = self._dates.get(entity) or self._older_dates.get(entity) or partition(row.started_ns)
        self._dates[entity] = date
        if len(self._dates) >= MAX_REMEMBERED // 2:
            self._dates, self._older_dates = {}, self._dates
        return date

    def _new_path(self, table: str, date: str) -> str:
        self._number += 1
        return manifest.data_path(table, date, self._manifest.generation, self._number, self._writer)

    def _commit(self, **changes: object) -> None:
        """Make a new manifest the truth. A crash before leaves orphans, a crash after leaves nothing to do."""
        self._settle_doubt()
        new = msgspec.structs.replace(
            self._manifest, generation=self._manifest.generation + 1, written_ns=self._now(), **changes
        )
        data = manifest.encode(new)
        self._in_doubt = data
        self._version = self._files.replace(self._path, data, self._version)
        self._in_doubt = None
        self._manifest = new

    def _settle_doubt(self) -> None:
        """If an earlier replacement failed on its way back, it did happen: go on from it."""
        if self._in_doubt is None:
            return
        try:
            data, version = self._files.read(self._path)
        except FileNotFoundError:
            data, version = b"", ""
        if data == self._in_doubt:
            self._manifest, self._version = manifest.decode(data, self._path), version
        self._in_doubt = None

    def _compact(self) -> None:
        now = self._now()
        if not self._jobs:
            if now // compact.HOUR_NS <= self._manifest.compacted_hour:
                return
            self._jobs.extend(compact.due(self._manifest, now))
        if self._jobs:
            job = self._jobs.popleft()
            self._settle_doubt()
            gone = {f.path for f in job.inputs}
            others = [f for f in self._manifest.files if f.table == job.table and f.path not in gone]
            made = compact.run(job, self._files, lambda: self._new_path(job.table, job.date), now, others=others)
            self._commit(
                files=(*(f for f in self._manifest.files if f.path not in gone), *made),
                removed=(*self._manifest.removed, *(Removed(path=p, removed_ns=now) for p in sorted(gone))),
            )
            self.compactions += 1
        if not self._jobs:
            self._commit(compacted_hour=now // compact.HOUR_NS, compacted_day=now // compact.DAY_NS)
            self._sweep()

    def _delete(self) -> None:
        over = [r for r in self._manifest.removed if self._now() - r.removed_ns >= GRACE_NS]
        for file in over:
            self._files.delete(file.path)
        paths = {r.path for r in over}
        self._commit(removed=tuple(r for r in self._manifest.removed if r.path not in paths))
