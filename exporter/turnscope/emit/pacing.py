"""When the background thread offers the interpreter to the threads that serve."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

BUDGET_NS: Final = 15_000
"""How long it works at least before it offers. Each offer is a switch of threads, which costs both sides more than most
steps take; with a step that began within the budget, and the noise of a machine, a slice stays below 0.1 ms."""


def give_way() -> None:
    """Let serving threads run. A true sleep: after ``sleep(0)`` the same thread usually wins the interpreter again."""
    time.sleep(0.00002)


class Pacer:
    """Called between the steps of long work, which take some microseconds each. One thread's."""

    __slots__ = ("_clock", "_give_way", "_since")

    def __init__(
        self, give_way: Callable[[], None] = give_way, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._give_way = give_way
        self._clock = clock
        self._since = clock()

    def __call__(self) -> None:
        """Give way, if that was long enough ago."""
        # By the wall clock: where the machine is slow or gave the core to another, fewer steps make a slice.
        if self._clock() - self._since >= BUDGET_NS:
            self._give_way()
            self._since = self._clock()
