"""How long background work keeps the interpreter from the threads that serve.

The work is done in steps, and after a budget of steps a pacer gives the interpreter away (``turnscope.emit.pacing``): a
slice is what is done in between. It is judged from both sides. As the work's own: the same work is run often, and the
longest of its steps, by the median of its runs, which no chance can lengthen, follows upon a whole budget. As a thread
that serves sees it (``serving``): what it waits for the interpreter while the work is done, 99.9% of all times. That
holds what caches, neighbours and the system add, and some of it comes with any work: now and then the system takes the
core from a thread that has the interpreter, for milliseconds. So what the thread waits where fixed work is done in the
same way instead, some microseconds of arithmetic a step, stands beside it, and what it waits where there is none. The
three take turns.

What the process held before is taken from the collector of cyclic garbage, as vLLM does with its own: a collection
takes as long as the whole heap asks for, whoever sets it off.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from bench.serving import serving
from turnscope.emit.pacing import BUDGET_NS, Pacer

TARGET_US: Final = 100.0
_STEP: Final = 100
"""Rounds of a loop that take about as long as a step of work."""

Pause = Callable[[], None]


@contextmanager
def sliced() -> Iterator[Slices]:
    """``run`` the work as often as there shall be samples; then ``rows``."""
    gc.collect()
    gc.freeze()
    try:
        with ThreadPoolExecutor(1) as background:
            yield Slices(background)
    finally:
        gc.unfreeze()


class Slices:
    """Samples of one work, always the same, which calls ``pause()`` between its steps."""

    def __init__(self, background: Executor) -> None:
        """``background`` has one thread, which lives on as that of a hook does."""
        self._background = background
        self._pause: Pause = lambda: None
        self._steps: list[list[float]] = []
        """Microseconds of processor time of each step of the work, one sample a run."""
        self._waits: tuple[list[float], list[float], list[float]] = [], [], []
        """Microseconds: beside the work, beside fixed work, beside none."""
        self._timed = False

    def pause(self) -> None:
        """A step ends here, and another begins."""
        self._pause()

    def forget(self) -> None:
        """What was run so far was to warm up."""
        self._steps.clear()
        for waits in self._waits:
            waits.clear()

    def run(self, work: Callable[[], None]) -> None:
        """Call ``work()`` once: in this thread, to time its steps, or every other time beside it."""
        self._timed = not self._timed
        if self._timed:
            self._time(work)
        else:
            self._beside(work)

    def _time(self, work: Callable[[], None]) -> None:
        pacer, steps = Pacer(), self._steps
        place = 0
        began = thread_time_ns()

        def pause() -> None:
            nonlocal place, began
            step = (thread_time_ns() - began) / 1e3
            if place == len(steps):
                steps.append([])
            steps[place].append(step)
            place += 1
            pacer()
            began = thread_time_ns()

        self._pause = pause
        work()
        pause()  # what comes after the last pause counts as well

    def _beside(self, work: Callable[[], None]) -> None:
        self._pause = Pacer()
        began = perf_counter_ns()
        self._waits[0].extend(self._waits_beside(work))
        lasted = perf_counter_ns() - began
        self._waits[1].extend(self._waits_beside(partial(_fixed_work, lasted)))
        self._waits[2].extend(self._waits_beside(partial(time.sleep, lasted / 1e9)))

    def _waits_beside(self, work: Callable[[], None]) -> Iterator[float]:
        """Of this thread, while the other does ``work()``."""
        with serving() as wait:
            done = self._background.submit(work)
            while not done.done():
                yield wait()
        done.result()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Two lines of a benchmark's table."""
        longest = BUDGET_NS / 1e3 + max(median(place) for place in self._steps)
        steps = [one for place in self._steps for one in place]
        of = f"{len(self._steps):,} steps, median {median(steps):.3g}"
        waits, fixed, none = map(sorted, self._waits)
        beside = "; ".join(
            f"{what} {_at(0.999, one):.3g}, 99% {_at(0.99, one):.3g}"
            for what, one in (("beside fixed work", fixed), ("beside none", none))
        )
        return [
            _row(f"{name}: the budget and its longest step, median of its runs", longest, len(self._steps[0]), of),
            _row(
                f"{name}: a serving thread waits for the interpreter, 99.9%",
                _at(0.999, waits),
                len(waits),
                f"99% {_at(0.99, waits):.3g}; {beside}",
            ),
        ]


def _fixed_work(ns: int) -> None:
    """For so long."""
    pause, until = Pacer(), perf_counter_ns() + ns
    while perf_counter_ns() < until:
        for _ in range(_STEP):
            pass
        pause()


def _at(share: float, ordered: list[float]) -> float:
    return ordered[int(share * len(ordered))]


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
