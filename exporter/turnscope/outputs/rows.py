"""Rows on their way to the store: added by assembly, written by a thread of their own, which also makes checkpoints.

A checkpoint says that everything before it is in the store, so it is saved only after a flush that succeeded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from turnscope.model import AgentSpan, AssemblyStatus, Count, Gauge, HoldRecord, ProcessRecord, Turn
from turnscope.outputs.roll import Roll

_LOG: Final = logging.getLogger(__name__)


class Store(Protocol):
    """What this needs of a store's writer. ``flush`` and ``maintain`` may raise ``StoreRows.errors``."""

    @property
    def rows_written(self) -> int: ...

    @property
    def rows_dropped(self) -> int: ...

    @property
    def rows_rejected(self) -> int: ...

    def add_turn(self, turn: Turn) -> None: ...

    def add_hold(self, hold: HoldRecord) -> None: ...

    def add_span(self, span: AgentSpan) -> None: ...

    def add_process(self, process: ProcessRecord) -> None: ...

    @property
    def pending(self) -> int: ...

    def flush(self) -> None: ...

    def maintain(self) -> None: ...

    def close(self) -> None: ...


class StoreRows:
    """Keeps ``store`` going from a thread of its own; ``errors`` is what its failures are."""

    def __init__(
        self,
        store: Store,
        *,
        errors: type[Exception],
        count: Count,
        gauge: Gauge,
        interval_s: float = 1.0,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._errors = errors
        self._count = count
        self._gauge = gauge
        self._interval_s = interval_s
        self._wall_ns = wall_ns
        self._roll = Roll()
        self._wake = threading.Condition()
        self._stop = False
        self._checkpoint: Callable[[], None] | None = None
        self._written = self._lost = 0
        self.trouble: str | None = None
        """Why the last write failed; None once one succeeded."""
        self._thread = threading.Thread(target=self._run, name="turnscope-store", daemon=True)
        self._thread.start()

    def add(self, turn: Turn | None, hold: HoldRecord | None) -> None:
        """Take rows in; never waits for the store."""
        if turn is not None:
            self._store.add_turn(turn)
        if hold is not None:
            self._store.add_hold(hold)

    def add_span(self, span: AgentSpan) -> None:
        """Take a span's row in; never waits for the store."""
        self._store.add_span(span)

    def see(self, status: AssemblyStatus, *, last: bool = False) -> None:
        """Take in what is known of processes; never waits for the store. ``last``: nothing will come any more."""
        for process in self._roll.due(status, self._wall_ns(), last=last):
            self._store.add_process(process)

    def request_checkpoint(self, save: Callable[[], None]) -> bool:
        """Call ``save`` after the next flush that succeeds; False when an earlier one is still waiting for that."""
        with self._wake:
            if self._checkpoint is not None:
                return False
            self._checkpoint = save
            self._wake.notify()
            return True

    def close(self, save: Callable[[], None] | None) -> None:
        """Flush, save the last checkpoint if given one and if that succeeded, and let go of the store."""
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join()
        self._checkpoint = save
        self._step(flush=True)
        self._checkpoint = None
        try:
            self._store.close()
        except self._errors as error:
            _LOG.error("%s; the journal keeps the rows for the next start", error)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._stop, self._interval_s)
                if self._stop:
                    return
                flush = self._checkpoint is not None
            self._step(flush=flush)

    def _step(self, *, flush: bool) -> None:
        try:
            if flush:
                self._store.flush()
            self._store.maintain()
        except self._errors as error:
            self._count("turnscope_exporter_store_failures_total", (), 1)
            if self.trouble is None:
                _LOG.error("%s", error)
            self.trouble = str(error)
        else:
            if self.trouble is not None:
                _LOG.info("the store can be written again")
            self.trouble = None
            if flush:
                self._save()
        self._measure()

    def _save(self) -> None:
        with self._wake:
            save, self._checkpoint = self._checkpoint, None
        if save is not None:
            save()

    def _measure(self) -> None:
        store = self._store
        lost = store.rows_dropped + store.rows_rejected
        self._count("turnscope_exporter_store_rows_total", (), store.rows_written - self._written)
        self._count("turnscope_exporter_store_rows_lost_total", (), lost - self._lost)
        self._written, self._lost = store.rows_written, lost
        self._gauge("turnscope_exporter_store_pending_rows", (), store.pending)
