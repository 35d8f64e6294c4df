"""Spans passed on to the user's own backend as they were received: a bounded queue and one thread that sends."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from turnscope.model import Count
from turnscope.outputs.otlp import SendFailed, SendLater, TraceSender

_LOG: Final = logging.getLogger(__name__)
QUEUE_BYTES: Final = 64 * 2**20
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


class PassingOn:
    """Sends each request once, in the order received. ``add`` never waits: beyond ``queue_bytes`` the newest is dropped
    and counted. ``protobuf`` makes the bytes to send of a request in JSON, since not every backend takes that."""

    def __init__(
        self, sender: TraceSender, protobuf: Callable[[bytes], bytes], *, count: Count, queue_bytes: int = QUEUE_BYTES
    ) -> None:
        self._sender = sender
        self._protobuf = protobuf
        self._count = count
        self._limit = queue_bytes
        self._queue: deque[tuple[bytes, bool]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._stop = False
        self.trouble: str | None = None
        """Why the last request failed; None once one succeeded."""
        self._thread = threading.Thread(target=self._run, name="turnscope-passing-on", daemon=True)
        self._thread.start()

    def add(self, body: bytes, as_json: bool) -> None:
        """Queue one request."""
        with self._changed:
            full = self._bytes + len(body) > self._limit
            if not full:
                self._queue.append((body, as_json))
                self._bytes += len(body)
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
            _LOG.warning("%d requests with spans were not passed on: %s", left, self.trouble or "no time left")
        self._sender.close()

    def _drop(self, reason: str, requests: int) -> None:
        self._count("turnscope_exporter_span_requests_not_passed_on_total", (reason,), requests)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stop)
                if not self._queue:
                    return
                body, as_json = self._queue[0]
            if not self._send(body, as_json):
                with self._changed:
                    if self._stop or self._changed.wait_for(lambda: self._stop, pause):
                        return
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            pause = _FIRST_PAUSE_S
            with self._changed:
                if self._queue:
                    self._queue.popleft()
                    self._bytes -= len(body)

    def _send(self, body: bytes, as_json: bool) -> bool:
        """Whether it is done with, taken or refused; False to try again."""
        try:
            rejected, message = self._sender.send_bytes(self._protobuf(body) if as_json else body)
        except SendLater as error:
            self._report(str(error))
            return False
        except Exception as error:
            if not isinstance(error, SendFailed):
                _LOG.exception("a request with spans could not be passed on")
            self._report(str(error))
            self._drop("refused", 1)
            return True
        self._report(f"the backend rejected {rejected} spans: {message}" if rejected else None)
        self._count("turnscope_exporter_span_requests_passed_on_total", (), 1)
        return True

    def _report(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            _LOG.warning("spans are not passed on: %s", trouble)
        elif trouble is None and self.trouble is not None:
            _LOG.info("spans are passed on again")
        self.trouble = trouble
