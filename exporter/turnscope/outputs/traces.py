"""Turn traces on their way out: a bounded queue, one thread that sends, and counts of what was lost."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Final

from turnscope.model import Count, Turn
from turnscope.outputs.otlp import SendFailed, SendLater, TraceSender
from turnscope.outputs.spans import encode

_LOG: Final = logging.getLogger(__name__)
BATCH: Final = 64
"""Turns a request: about 4 KB each and never more than 64 KiB, so within the 4 MiB that receivers take."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


class TraceExporter:
    """Sends each turn once. ``add`` never blocks: a full queue drops the newest turn and counts it."""

    def __init__(self, sender: TraceSender, *, count: Count, version: str, queue: int = 2_048) -> None:
        self._sender = sender
        self._count = count
        self._version = version
        self._size = queue
        self._queue: deque[Turn] = deque()
        self._changed = threading.Condition()
        self._stop = False
        self.trouble: str | None = None
        """Why the last request failed; None once one succeeded."""
        self._thread = threading.Thread(target=self._run, name="turnscope-traces", daemon=True)
        self._thread.start()

    def add(self, turn: Turn) -> None:
        """Queue the trace of ``turn``."""
        with self._changed:
            full = len(self._queue) >= self._size
            if not full:
                self._queue.append(turn)
                self._changed.notify()
        if full:
            self._drop("queue_full", 1)

    def close(self, timeout_s: float) -> None:
        """Send what is queued, for at most ``timeout_s``; the rest is dropped and counted."""
        with self._changed:
            self._stop = True
            self._changed.notify()
        self._thread.join(timeout_s)
        with self._changed:
            left = len(self._queue)
            self._queue.clear()
        if left:
            self._drop("stopping", left)
            _LOG.warning("%d turn traces were not sent: %s", left, self.trouble or "no time left")
        self._sender.close()

    def _drop(self, reason: str, turns: int) -> None:
        self._count("turnscope_exporter_traces_dropped_total", (reason,), turns)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stop)
                batch = [self._queue[i] for i in range(min(BATCH, len(self._queue)))]
            if not batch:
                return
            if not self._send(batch):
                with self._changed:
                    if self._stop or self._changed.wait_for(lambda: self._stop, pause):
                        return
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            pause = _FIRST_PAUSE_S
            with self._changed:
                for _ in batch[: len(self._queue)]:
                    self._queue.popleft()

    def _send(self, batch: list[Turn]) -> bool:
        """Whether the batch is done with, taken or refused; False to try again."""
        try:
            rejected, message = self._sender.send(encode(batch, version=self._version))
        except SendLater as error:
            self._report(str(error))
            return False
        except Exception as error:
            if not isinstance(error, SendFailed):
                _LOG.exception("turn traces could not be encoded")
            self._report(str(error))
            self._drop("refused", len(batch))
            return True
        self._report(f"the backend rejected {rejected} spans: {message}" if rejected else None)
        self._count("turnscope_exporter_traces_exported_total", (), len(batch))
        return True

    def _report(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            _LOG.warning("turn traces are not taken: %s", trouble)
        elif trouble is None and self.trouble is not None:
            _LOG.info("turn traces are taken again")
        self.trouble = trouble
