"""What waits for the user's own backend: a bounded queue, one thread that sends, and counts of what was lost."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, Generic, TypeVar

from turnscope.outputs.otlp import SendFailed, SendLater

_LOG: Final = logging.getLogger(__name__)
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
T = TypeVar("T")


class Outbox(Generic[T]):
    """Sends each item once, in order, up to ``batch`` of them together. ``add`` never waits: beyond ``limit`` (of what
    ``size`` says of an item) the newest is dropped.

    ``send`` may raise ``SendLater``: then it is tried again, more and more seldom. It returns how many spans the
    backend rejected, and why. ``sent`` and ``dropped`` (reason: ``queue_full, refused, stopping``) are told of items.
    ``what`` names them in the log, in the plural.
    """

    def __init__(
        self,
        what: str,
        send: Callable[[list[T]], tuple[int, str]],
        *,
        sent: Callable[[int], None],
        dropped: Callable[[str, int], None],
        limit: int,
        size: Callable[[T], int] = lambda _: 1,
        batch: int = 1,
    ) -> None:
        self._what = what
        self._send_all = send
        self._sent = sent
        self._dropped = dropped
        self._limit = limit
        self._size = size
        self._batch = batch
        self._queue: deque[T] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._stop = False
        self.trouble: str | None = None
        """Why the last request failed; None once one succeeded."""
        self._thread = threading.Thread(target=self._run, name=f"turnscope {what}", daemon=True)
        self._thread.start()

    def add(self, item: T) -> None:
        """Queue one."""
        with self._changed:
            full = self._waiting + self._size(item) > self._limit
            if not full:
                self._queue.append(item)
                self._waiting += self._size(item)
                self._changed.notify()
        if full:
            self._dropped("queue_full", 1)

    def close(self, timeout_s: float) -> None:
        """Send what is queued, for at most ``timeout_s``; the rest is dropped."""
        with self._changed:
            self._stop = True
            self._changed.notify()
        self._thread.join(timeout_s)
        with self._changed:
            left = len(self._queue)
            self._queue.clear()
        if left:
            self._dropped("stopping", left)
            _LOG.warning("%d %s were not sent: %s", left, self._what, self.trouble or "no time left")

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stop)
                batch = list(islice(self._queue, self._batch))
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
                    self._waiting -= self._size(self._queue.popleft())

    def _send(self, batch: list[T]) -> bool:
        """Whether the batch is done with, taken or refused; False to try again."""
        try:
            rejected, message = self._send_all(batch)
        except SendLater as error:
            self._report(str(error))
            return False
        except Exception as error:
            if not isinstance(error, SendFailed):
                _LOG.exception("%s could not be sent", self._what)
            self._report(str(error))
            self._dropped("refused", len(batch))
            return True
        self._report(f"the backend rejected {rejected} spans: {message}" if rejected else None)
        self._sent(len(batch))
        return True

    def _report(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            _LOG.warning("%s are not taken: %s", self._what, trouble)
        elif trouble is None and self.trouble is not None:
            _LOG.info("%s are taken again", self._what)
        self.trouble = trouble
