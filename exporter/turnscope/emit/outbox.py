"""Encoded batches that wait for the sidecar."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

MAX_BYTES: Final = 8 * 1024 * 1024


class Batch(msgspec.Struct, frozen=True):
    """One serialised export request and how many events it holds."""

    body: bytes
    events: int


class Outbox:
    """Oldest first, bounded in bytes; what does not fit pushes the oldest out, counted."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._batches: deque[Batch] = deque()
        self._bytes = 0
        self.max_bytes = max_bytes
        self.dropped = 0

    def add(self, batch: Batch) -> None:
        """Queue ``batch``, dropping from the old end as needed."""
        self._batches.append(batch)
        self._bytes += len(batch.body)
        while self._bytes > self.max_bytes and len(self._batches) > 1:
            self.drop_first()

    def first(self) -> Batch | None:
        """The next to send."""
        return self._batches[0] if self._batches else None

    def sent_first(self) -> None:
        """Forget the first: it has arrived."""
        self._bytes -= len(self._batches.popleft().body)

    def drop_first(self) -> None:
        """Forget the first: it never will."""
        self.dropped += self._batches[0].events
        self.sent_first()

    @property
    def queued(self) -> int:
        """Events waiting."""
        return sum(batch.events for batch in self._batches)

    @property
    def bytes(self) -> int:
        """Bytes waiting."""
        return self._bytes
