"""How long a background thread works between two offers of the interpreter, by the work and not by the machine.

The work is done in steps, and after a budget of steps a pacer gives the interpreter away (``turnscope.emit.pacing``): a
slice is what was done in between. What is judged is the thread's own processor time. Wall time also counts while the
system lets something else have the core: that holds the interpreter too, but is not ours to slice, and on a shared
machine it is most of the tail. A collection of cyclic garbage, which any allocation of any thread may set off and which
takes as long as the process's whole heap asks for, is left out of both and told beside them. What caches and neighbours
add is in processor time as well, for this work and any other, and differs from run to run: so the same work is run
often, and besides the 99.9th percentile of all slices the longest step is judged, by the median of its own runs, which
no chance can lengthen, with the whole budget before it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from turnscope.emit.pacing import BUDGET_NS, Pacer, give_way

TARGET_US: Final = 100.0


class Slices:
    """``run(work)`` as often as there shall be samples, always with the same work, which calls ``pause()`` between its
    steps; then ``rows``."""

    def __init__(self) -> None:
        self._steps: list[list[float]] = []
        """Microseconds of processor time of each step of the work, one sample a run."""
        self._slices: list[float] = []
        self._walls: list[float] = []
        self._collections: list[float] = []
        self._pacer = Pacer(self._offered)
        self._at = self._collecting = self._collected = 0
        self._step = self._slice = self._wall = 0

    def run(self, work: Callable[[], None]) -> None:
        """Call ``work()`` once, in this thread; what comes after its last pause counts as well."""
        with self._watching_collections():
            self._at = 0
            self._pacer = Pacer(self._offered)
            self._begin()
            self._step = self._work_ns()
            work()
            self.pause()
            self._end()

    def forget(self) -> None:
        """What was run so far was to warm up."""
        self._steps.clear()
        self._slices.clear()
        self._walls.clear()
        self._collections.clear()

    @contextmanager
    def _watching_collections(self) -> Iterator[None]:
        gc.callbacks.append(self._collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collection)

    def _collection(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = thread_time_ns()
        else:
            taken = thread_time_ns() - self._collecting
            self._collected += taken
            self._collections.append(taken / 1e3)

    def _work_ns(self) -> int:
        return thread_time_ns() - self._collected

    def pause(self) -> None:
        """A step ends here, and another begins."""
        step = (self._work_ns() - self._step) / 1e3
        if self._at == len(self._steps):
            self._steps.append([])
        self._steps[self._at].append(step)
        self._at += 1
        self._pacer()
        self._step = self._work_ns()

    def _offered(self) -> None:
        self._end()
        give_way()
        self._begin()

    def _begin(self) -> None:
        self._wall = perf_counter_ns()
        self._slice = self._work_ns()

    def _end(self) -> None:
        self._slices.append((self._work_ns() - self._slice) / 1e3)
        self._walls.append((perf_counter_ns() - self._wall) / 1e3)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Two lines of a benchmark's table."""
        slices = sorted(self._slices)
        walls = sorted(self._walls)
        runs, steps = len(self._steps[0]), [one for place in self._steps for one in place]
        spread = f"median {median(slices):.3g}, longest {slices[-1]:.3g}; in wall time {_high(walls):.3g}"
        if self._collections:
            spread += f"; {len(self._collections)} collections, longest {max(self._collections):.3g}"
        longest = BUDGET_NS / 1e3 + max(median(place) for place in self._steps)
        of = f"{len(self._steps):,} steps in {len(self._slices) / runs:,.0f} slices, median step {median(steps):.3g}"
        return [
            _row(f"{name}: 99.9% of its slices hold the interpreter at most", _high(slices), len(slices), spread),
            _row(f"{name}: the budget and its longest step, median of its runs", longest, runs, of),
        ]


def _high(ordered: list[float]) -> float:
    return ordered[int(0.999 * len(ordered))]


def _row(name: str, value: float, n: int, spread: str) -> dict[str, Any]:
    return {
        "name": name,
        "value": round(value, 4),
        "unit": "us",
        "target": f"<= {TARGET_US:g}",
        "ok": value <= TARGET_US,
        "n": n,
        "spread": spread,
    }
