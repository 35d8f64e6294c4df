"""How long a background thread works between two offers of the interpreter, by the work and not by the machine.

What is judged is the thread's own processor time. Wall time also counts while the system lets something else have the
core: that holds the interpreter too, but is not ours to slice, and on a shared machine it is most of the tail. A
collection of cyclic garbage, which any allocation of any thread may set off and which takes as long as the process's
whole heap asks for, is left out of both and told beside them. What caches and neighbours add is in processor time as
well, for this work and any other, and differs from run to run: so the same work is run often, and besides the 99.9th
percentile of all slices the longest one is judged by the median of its own runs, which no chance can lengthen.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

TARGET_US: Final = 100.0


class Slices:
    """``run(work)`` as often as there shall be samples, always with the same work, which offers the interpreter to
    others by ``pause()``; then ``rows``."""

    def __init__(self) -> None:
        self._places: list[list[float]] = []
        """Microseconds of processor time of each slice of the work, one sample a run."""
        self._walls: list[float] = []
        self._collections: list[float] = []
        self._at = self._cpu = self._wall = self._collecting = self._collected = 0

    def run(self, work: Callable[[], None]) -> None:
        """Call ``work()`` once, in this thread; what comes after its last pause counts as well."""
        with self._watching_collections():
            self._at = 0
            self._begin()
            work()
            self.pause()

    def forget(self) -> None:
        """What was run so far was to warm up."""
        self._places.clear()
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

    def _begin(self) -> None:
        self._collected = 0
        self._wall = perf_counter_ns()
        self._cpu = thread_time_ns()

    def pause(self) -> None:
        """A slice ends here, and another begins."""
        cpu = thread_time_ns() - self._cpu - self._collected
        self._walls.append((perf_counter_ns() - self._wall - self._collected) / 1e3)
        if self._at == len(self._places):
            self._places.append([])
        self._places[self._at].append(cpu / 1e3)
        self._at += 1
        self._begin()

    def rows(self, name: str, *, judged: bool = True) -> list[dict[str, Any]]:
        """Two lines of a benchmark's table."""
        slices = sorted(one for place in self._places for one in place)
        walls = sorted(self._walls)
        runs = len(self._places[0])
        spread = f"median {median(slices):.3g}, longest {slices[-1]:.3g}; in wall time {_high(walls):.3g}"
        if self._collections:
            spread += f"; {len(self._collections)} collections, longest {max(self._collections):.3g}"
        longest = max(median(place) for place in self._places)
        found = [
            _row(f"{name}: 99.9% of its slices hold the interpreter at most", _high(slices), len(slices), spread),
            _row(f"{name}: its longest slice, median of its runs", longest, runs, f"of {len(self._places):,} slices"),
        ]
        return found if judged else [{**line, "target": None, "ok": None} for line in found]


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
