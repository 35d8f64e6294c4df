"""How long a thread that serves waits for the interpreter, seen from that thread.

It sleeps in ``select`` until a timer fires, without the interpreter, and then asks for it. Linux leaves in ``select``'s
timeout how much of it was left when the thread was awake again: what passed from then on was spent waiting for the
interpreter. Neither the timer nor the system's scheduling before the thread ran are in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator
from time import CLOCK_MONOTONIC, perf_counter_ns
from typing import Final

PERIOD_NS: Final = 150_000
"""A thread that serves sleeps and wakes so often: an engine's step takes some milliseconds, a streamed token in a proxy
comes every few."""
_TIMEOUT_US: Final = 1_000_000
_WORDS: Final = 1024 // (8 * ctypes.sizeof(ctypes.c_ulong))


class _Time(ctypes.Structure):
    """``timeval`` or ``timespec``: microseconds or nanoseconds."""

    _fields_ = (("seconds", ctypes.c_long), ("fraction", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Time), ("first", _Time))


@contextlib.contextmanager
def serving() -> Iterator[Callable[[], float]]:
    """A function that sleeps until the timer fires next; the microseconds that the caller then waited for the
    interpreter. Beside nobody that is about two, for the call itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    timer = libc.timerfd_create(CLOCK_MONOTONIC, 0)
    if timer < 0:
        raise OSError(ctypes.get_errno(), "no timer")
    try:
        period = _Time(0, PERIOD_NS)
        libc.timerfd_settime(timer, 0, ctypes.byref(_Timer(period, period)), None)
        watched, timeout = (ctypes.c_ulong * _WORDS)(), _Time()
        word, bit = divmod(timer, 8 * ctypes.sizeof(ctypes.c_ulong))

        def wait() -> float:
            watched[word] = 1 << bit
            timeout.seconds, timeout.fraction = divmod(_TIMEOUT_US, 1_000_000)
            began = perf_counter_ns()
            libc.select(timer + 1, ctypes.byref(watched), None, None, ctypes.byref(timeout))
            ended = perf_counter_ns()
            os.read(timer, 8)
            asleep: int = _TIMEOUT_US - 1_000_000 * timeout.seconds - timeout.fraction
            return (ended - began) / 1e3 - asleep

        yield wait
    finally:
        os.close(timer)
