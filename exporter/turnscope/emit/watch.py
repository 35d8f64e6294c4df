"""What the background thread knows of one watched object: a scheduler, a connector's worker, a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from turnscope.emit.guard import Guard
from turnscope.model import Emitter, Engine, EngineState


class Job(Protocol):
    """Long work for the background thread."""

    @property
    def pressing(self) -> bool:
        """So much waits for it that there may soon be no room for more."""

    def work(self, pause: Callable[[], None]) -> None:
        """Do what waits by now; ``pause()`` is called between short steps."""


class Watch(Protocol):
    """One hook in one process."""

    guard: Guard
    emitter: Emitter
    wrapped: list[str]
    """What it holds on to, for the ``engine`` event."""

    @property
    def engine(self) -> Engine | None:
        """None in a proxy."""

    def state(self, body: EngineState) -> EngineState:
        """The body itself: an entry is tied to its watch by the method that builds it."""

    def open_requests(self) -> list[str]:
        """Ids of requests begun and not ended, oldest first; called from the background thread."""

    def idle_requests(self, pause: Callable[[], None]) -> Iterable[tuple[str, str]]:
        """Open requests that took no step since this was last asked, each with its turn's id, which takes a hash and is
        made as it is asked for. ``pause()`` is called between slices of the work."""

    def forget(self) -> None:
        """Drop what is known of running requests: their ends will not be seen."""
