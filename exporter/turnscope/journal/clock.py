"""Journal time: monotonic nanoseconds that stand still while the sidecar is down.

Grace periods run on it. Downtime of the sidecar is not silence of the engines, and the operating system's
monotonic clock starts anew at a reboot, so each run continues from the last time the one before wrote down.
"""

from __future__ import annotations

from collections.abc import Callable


class JournalClock:
    """Continues from ``start_ns``; never goes back."""

    def __init__(self, monotonic_ns: Callable[[], int], start_ns: int) -> None:
        self._monotonic_ns = monotonic_ns
        self._offset = start_ns - monotonic_ns()

    def now(self) -> int:
        """Nanoseconds of journal time."""
        return self._monotonic_ns() + self._offset
