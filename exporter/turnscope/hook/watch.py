"""What the background thread knows of one watched object (a scheduler, a connector's worker)."""

from __future__ import annotations

from typing import Protocol

from turnscope.hook.guard import Guard
from turnscope.model import Emitter, Engine


class Watch(Protocol):
    """One hook in one process."""

    guard: Guard
    emitter: Emitter
    engine: Engine
    wrapped: list[str]
    """What it holds on to, for the ``engine`` event."""

    def open_requests(self) -> list[str]:
        """Ids of requests begun and not ended, oldest first; called from the background thread."""

    def forget(self) -> None:
        """Drop what is known of running requests: their ends will not be seen."""
