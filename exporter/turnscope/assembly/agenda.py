"""What is to be looked at when."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Agenda:
    """Things by kind and key, each at the earliest time that it was put down for."""

    def __init__(self) -> None:
        self._due: list[tuple[int, str, str]] = []
        self._queued: dict[tuple[str, str], int] = {}

    def push(self, due_ns: int | None, kind: str, key: str) -> None:
        """Look at it no later than ``due_ns``: one that is queued for an earlier time is queued again then."""
        if due_ns is None:
            return
        queued = self._queued.get((kind, key))
        if queued is None or due_ns < queued:
            self._queued[kind, key] = due_ns
            heapq.heappush(self._due, (due_ns, kind, key))

    def until(self, now_ns: int) -> Iterator[tuple[int, str, str]]:
        """Everything due until then, in order, with what is put down meanwhile."""
        while self._due and self._due[0][0] <= now_ns:
            due_ns, kind, key = heapq.heappop(self._due)
            if self._queued.get((kind, key)) == due_ns:
                del self._queued[kind, key]
                yield due_ns, kind, key
