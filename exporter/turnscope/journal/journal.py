"""The append-only journal: written and synced in groups by one thread, read by assembly as its queue."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from turnscope.journal import frames, records, segments, unreadable
from turnscope.journal.clock import JournalClock
from turnscope.journal.folder import JournalUnavailable, cannot_write, lock, repair
from turnscope.journal.records import Counted, Record
from turnscope.journal.segments import HEADER, Position, SegmentFile
from turnscope.journal.unreadable import Damage
from turnscope.model import AgentSpan, Contribution, Count, Event

_LOG: Final = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 64 * 2**20
MAX_PENDING: Final = 64 * 2**20
WRITE_TIMEOUT_S: Final = 10.0
TRY_AGAIN_S: Final = 5.0
"""In trouble: nobody may send any more to a sidecar that is not ready, so it has to find out by itself."""


class _Ticket:
    __slots__ = ("done", "trouble")

    def __init__(self) -> None:
        self.done = False
        self.trouble: JournalUnavailable | None = None


class Journal:
    """``append`` returns once the record is on disk; ``read`` gives what is, in order. Thread-safe.

    ``start_ns`` is a journal time that a checkpoint already knows. ``create`` opens a new segment. Raises
    ``JournalUnavailable`` when the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        *,
        count: Count,
        start_ns: int = 0,
        max_bytes: int = 4 * 2**30,
        segment_bytes: int = SEGMENT_BYTES,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
        create: Callable[[Path], SegmentFile] = SegmentFile,
        try_again_s: float = TRY_AGAIN_S,
    ) -> None:
        self._folder = folder
        self._count = count
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._wall_ns = wall_ns
        self._create = create
        self._try_again_s = try_again_s
        self._lock_fd = lock(folder)
        self._changed = threading.Condition()
        self._pending: list[tuple[bytes, _Ticket]] = []
        self._pending_bytes = 0
        self._writing = False
        """A group was taken from ``_pending`` and is not on disk yet."""
        self._closing = False
        self._trouble: JournalUnavailable | None = None
        self._full = False
        try:
            last_ns = max(start_ns, repair(folder))
            existing = segments.list_segments(folder)
            self._ends = {n: segments.path_of(folder, n).stat().st_size for n in existing}
            self._segment = segments.next_number(folder)
        except OSError as error:
            os.close(self._lock_fd)
            raise cannot_write(folder, error) from None
        self.clock = JournalClock(monotonic_ns, last_ns)
        self._last_used = dict.fromkeys(existing, last_ns)
        self._ends[self._segment] = len(HEADER)
        self._file: SegmentFile | None = None
        self._reader: tuple[int, int] | None = None
        self._only_copy: set[int] = set()
        """Segments with bytes that could neither be read nor copied."""
        self._thread = threading.Thread(target=self._write_forever, name="turnscope-journal", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why nothing can be taken in now; None while all is well."""
        with self._changed:
            trouble = self._trouble or self._over_limit()
        return str(trouble) if trouble else None

    @property
    def damage(self) -> Damage | None:
        """What could not be read and is kept; None when there is nothing."""
        found = unreadable.damage(self._folder)
        return found if found.files else None

    # --- writing ---------------------------------------------------------------------------------------
    def append_events(self, events: list[Event]) -> None:
        """Return when ``events`` are on disk, stamped with their arrival. Raises ``JournalUnavailable``."""
        self._check_room()
        self._append(lambda: records.batch(events, arrival_ns=self.clock.now(), wall_ns=self._wall_ns()))

    def append_spans(self, spans: list[AgentSpan]) -> None:
        """Return when ``spans`` are on disk, stamped with their arrival. Raises ``JournalUnavailable``."""
        self._check_room()
        self._append(lambda: records.Spans(self.clock.now(), self._wall_ns(), spans))

    def append_counted(self, now_ns: int, finals: list[tuple[str, list[Contribution]]]) -> None:
        """Return when it is on disk that ``finals`` are counted. Raises ``JournalUnavailable``."""
        self._append(lambda: Counted(now_ns, finals))

    def _check_room(self) -> None:
        with self._changed:
            full = self._over_limit()
            if full is not None and not self._full:
                _LOG.error("%s; until then senders are asked to try again", full)
            self._full = full is not None
        if full is not None:
            raise full

    def _over_limit(self) -> JournalUnavailable | None:
        if self.size() <= self._max_bytes:
            return None
        return JournalUnavailable(
            f"the journal in {self._folder} has reached its limit of {self._max_bytes} bytes: "
            f"see whether the store can be written, or raise --journal-max-bytes"
        )

    def _append(self, make: Callable[[], Record]) -> None:
        ticket = _Ticket()
        with self._changed:
            if self._closing:
                raise JournalUnavailable("the sidecar is stopping")
            if self._pending_bytes > MAX_PENDING:
                raise JournalUnavailable(f"the journal in {self._folder} cannot keep up: try again")
            # Stamped and queued under one lock, so that arrival times ascend in the file.
            data = frames.frame(records.encode(make()))
            self._pending.append((data, ticket))
            self._pending_bytes += len(data)
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: ticket.done, WRITE_TIMEOUT_S):
                raise JournalUnavailable(f"the disk under {self._folder} did not answer in {WRITE_TIMEOUT_S:.0f} s")
        if ticket.trouble is not None:
            raise ticket.trouble

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                wait_s = self._try_again_s if self._trouble is not None else None
                self._changed.wait_for(lambda: self._pending or self._closing, wait_s)
                if self._closing and not self._pending:
                    return
                group, self._pending, self._pending_bytes, self._writing = self._pending, [], 0, True
            data = b"".join(part for part, _ in group)
            trouble: JournalUnavailable | None = None
            started = time.perf_counter()
            try:
                self._write(data)
            except OSError as error:
                trouble = cannot_write(self._folder, error)
            seconds = time.perf_counter() - started
            with self._changed:
                self._writing = False
                if trouble is None:
                    self._ends[self._segment] += len(data)
                    self._last_used[self._segment] = self.clock.now()
                self._report(trouble)
                for _, ticket in group:
                    ticket.done, ticket.trouble = True, trouble
                self._changed.notify_all()
            if group:
                self._count("turnscope_exporter_journal_write_seconds", (), seconds)
            if trouble is None:
                self._count("turnscope_exporter_journal_bytes_total", (), len(data))

    def _write(self, data: bytes) -> None:
        """Of nothing: see whether a segment can be begun, after one that could not be written."""
        if self._file is not None and self._ends[self._segment] >= self._segment_bytes:
            self._next_segment()
        if self._file is None:
            self._file = self._create(segments.path_of(self._folder, self._segment))
        try:
            self._file.write(data)
            self._file.sync()
        except OSError:
            # What the disk holds now is not known: never write into this file again.
            try:
                self._file.truncate(self._ends[self._segment])
            except OSError as error:
                _LOG.warning("the end of segment %d could not be cut off: %s", self._segment, error)
            self._next_segment()
            raise

    def _next_segment(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        with self._changed:
            self._segment += 1
            self._ends[self._segment] = len(HEADER)

    def _report(self, trouble: JournalUnavailable | None) -> None:
        if trouble is not None and self._trouble is None:
            _LOG.error("%s; until then senders are asked to try again", trouble)
        elif trouble is None and self._trouble is not None:
            _LOG.info("the journal in %s can be written again", self._folder)
        self._trouble = trouble

    # --- reading ---------------------------------------------------------------------------------------
    def start(self) -> Position:
        """The oldest position kept."""
        with self._changed:
            return Position(min(self._ends), len(HEADER))

    def end(self) -> Position:
        """The position after the last record on disk."""
        with self._changed:
            return Position(self._segment, self._ends[self._segment])

    def behind(self, position: Position) -> int:
        """Bytes on disk after ``position``."""
        with self._changed:
            return sum(
                max(0, end - (position.offset if segment == position.segment else len(HEADER)))
                for segment, end in self._ends.items()
                if segment >= position.segment
            )

    def wait(self, position: Position, timeout_s: float) -> None:
        """Return when there may be something to read after ``position``, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._unread(position), timeout_s)

    def quiet_now(self, position: Position) -> int | None:
        """The journal time, if no record stamped before it is still unread after ``position``; else None.

        Ticking assembly with it is the same before and after a restart.
        """
        with self._changed:
            busy = self._pending or self._writing or self._unread(position)
            return None if busy else self.clock.now()

    def _unread(self, position: Position) -> bool:
        end = self._ends[self._segment]
        return position.segment < self._segment or position.offset < end

    def read(self, position: Position) -> Iterator[tuple[Record | None, Position]]:
        """Each record after ``position`` that is on disk now, with the position after it; by one thread only.

        None stands for bytes that cannot be read, which are kept in a file of their own, and for a move to the next
        segment.
        """
        end = self.end()
        while position < end:
            with self._changed:
                stop = self._ends.get(position.segment)
                following = min((n for n in self._ends if n > position.segment), default=end.segment)
            if stop is not None and position.offset < stop:
                offset = position.offset
                for record, offset in records.read(self._fd(position.segment), position.offset, stop):
                    if record is None:
                        self._keep_unreadable(position, offset)
                    position = Position(position.segment, offset)
                    yield record, position
            if position.segment == end.segment:
                return
            position = Position(following, len(HEADER))
            yield None, position

    def _keep_unreadable(self, start: Position, end: int) -> None:
        path = segments.path_of(self._folder, start.segment)
        what = f"{path} cannot be read from byte {start.offset} to {end} (damaged, or of another version)"
        try:
            kept = unreadable.keep(self._folder, start, end, unreadable.DAMAGED)
        except OSError as error:
            self._only_copy.add(start.segment)
            _LOG.error("%s, nor be copied (%s): the segment is kept; records after it are read", what, error.strerror)
            return
        if kept is not None:
            _LOG.error("%s: these bytes are kept in %s; records after them are read", what, kept.name)

    def _fd(self, segment: int) -> int:
        if self._reader is None or self._reader[0] != segment:
            if self._reader is not None:
                os.close(self._reader[1])
            self._reader = (segment, os.open(segments.path_of(self._folder, segment), os.O_RDONLY | os.O_CLOEXEC))
        return self._reader[1]

    # --- keeping ---------------------------------------------------------------------------------------
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._ends.values())

    def drop(self, needed: Position, *, unused_since_ns: int) -> None:
        """Delete segments wholly before ``needed`` that were last written before ``unused_since_ns``.

        Above half the size limit age does not protect a segment.
        """
        with self._changed:
            for segment in sorted(self._ends.keys() - self._only_copy):
                if segment >= min(needed.segment, self._segment):
                    return
                if self._last_used.get(segment, 0) >= unused_since_ns and self.size() <= self._max_bytes // 2:
                    return
                segments.path_of(self._folder, segment).unlink(missing_ok=True)
                del self._ends[segment]
                self._last_used.pop(segment, None)

    def close(self) -> None:
        """Write what is pending and let go of the folder. Closing again does nothing."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join(WRITE_TIMEOUT_S)
        if self._file is not None:
            self._file.close()
        if self._reader is not None:
            os.close(self._reader[1])
        os.close(self._lock_fd)
