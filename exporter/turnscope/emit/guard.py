"""The switch in front of every hook body."""

from __future__ import annotations

from typing import Final

ERROR_LIMIT: Final = 20
"""A hook that has raised this often stays off."""


class Guard:
    """``on`` is all that a serving thread asks. What a body raises is counted here and goes no further."""

    def __init__(self, name: str, limit: int = ERROR_LIMIT) -> None:
        self.name = name
        self.on = True
        self.errors = 0
        self.broken = False
        self.last_error = ""
        self._limit = limit

    def failed(self, error: BaseException) -> None:
        """Count one; at the limit switch off for good. The background thread says so."""
        self.errors += 1
        if self.errors >= self._limit and not self.broken:
            self.last_error = type(error).__name__
            self.broken = True
            self.on = False

    def allow(self, allowed: bool) -> None:
        """Follow the off file; a broken hook stays off."""
        self.on = allowed and not self.broken
