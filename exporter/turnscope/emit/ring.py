"""Where the threads that serve leave their facts: one bounded ring per kind, never a lock, never a wait.

An entry is numbered before it can be lost, so that ``given = taken + queued + dropped`` at any moment of rest.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Any, Final, NamedTuple

from turnscope.model import Body

CAPACITY: Final = {
    "engine": 256,
    "request": 4096,
    "hold": 4096,
    "hold_use": 4096,
    "transfer": 8192,
    "stuck": 1024,
    "emptied": 256,
    "attempt": 4096,
    "digest": 4096,
}
"""By kind. The background thread empties the rings every second, and five times a second where much is in them."""


class Entry(NamedTuple):
    """What a serving thread leaves. ``build(payload)``, a method of the watch that saw it, runs in the background."""

    ordinal: int
    seq: int
    mono_ns: int
    build: Callable[[Any], Body]
    payload: Any


class Ring:
    """The newest ``capacity`` entries of one kind. Any thread may push; one thread takes."""

    def __init__(self, capacity: int, numbers: Iterator[int]) -> None:
        self._entries: deque[tuple[Any, ...]] = deque(maxlen=capacity)
        self._numbers = numbers
        self._ordinals = itertools.count(1)
        self._taken = 0
        self._highest = 0

    def pusher(self, build: Callable[[Any], Body]) -> Callable[[Any], None]:
        """A function that appends a payload for ``build``; the oldest entry falls out when the ring is full.

        Everything it needs is bound once, and it makes a plain tuple: it runs on the thread that serves.
        """
        append, ordinal, number = self._entries.append, self._ordinals.__next__, self._numbers.__next__

        def push(payload: Any) -> None:
            append((ordinal(), number(), monotonic_ns(), build, payload))

        return push

    def take(self, limit: int) -> list[Entry]:
        """The oldest entries, at most ``limit``."""
        entries = self._entries
        taken = []
        for _ in range(min(limit, len(entries))):
            try:
                taken.append(Entry(*entries.popleft()))
            except IndexError:
                break
        if taken:
            self._taken += len(taken)
            self._highest = max(self._highest, max(entry.ordinal for entry in taken))
        return taken

    @property
    def queued(self) -> int:
        """Entries waiting."""
        return len(self._entries)

    @property
    def dropped(self) -> int:
        """Entries that fell out before they were taken, as far as what was taken since shows."""
        return max(0, self._highest - self._taken)


class Rings:
    """All rings of one process, numbered together."""

    def __init__(self, capacity: dict[str, int] | None = None) -> None:
        self.numbers: Iterator[int] = itertools.count(1)
        self._rings = {kind: Ring(size, self.numbers) for kind, size in (capacity or CAPACITY).items()}

    def __getitem__(self, kind: str) -> Ring:
        return self._rings[kind]

    def take(self, limit: int) -> list[Entry]:
        """The oldest entries, at most ``limit`` of each ring, in the order of their numbers."""
        taken = [entry for ring in self._rings.values() for entry in ring.take(limit)]
        taken.sort(key=lambda entry: entry.seq)
        return taken

    @property
    def dropped(self) -> int:
        """Entries lost in all rings."""
        return sum(ring.dropped for ring in self._rings.values())

    @property
    def queued(self) -> int:
        """Entries waiting in all rings."""
        return sum(ring.queued for ring in self._rings.values())
