"""Processor time that threads have taken: what a piece of work costs, whatever else the machine does meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def taken_ns(leaders: Iterable[int], proc: Path = PROC) -> dict[int, int]:
    """Nanoseconds that each running thread of these processes, and of all that they started, has had so far, by the
    thread's id; that of a process's main thread is the process's.

    ``leaders`` began a session of their own (``live.engines.start``). Source: ``/proc/PID/task/TID/schedstat``, whose
    first figure is the time on a processor.
    """
    wanted = set(leaders)
    return {int(task.name): _task_ns(task) for process in _processes(proc, wanted) for task in _list(process / "task")}


def between(before: dict[int, int], after: dict[int, int]) -> dict[int, int]:
    """What each thread has taken meanwhile; of one that has ended it is not known."""
    return {thread: taken - before.get(thread, 0) for thread, taken in after.items()}


def _processes(proc: Path, sessions: set[int]) -> Iterable[Path]:
    for folder in _list(proc):
        if folder.name.isdigit():
            with suppress(OSError):  # it may end at any moment
                # The name, in parentheses, may hold anything; then come state, parent, group and session.
                if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) in sessions:
                    yield folder


def _task_ns(task: Path) -> int:
    with suppress(OSError):
        return int((task / "schedstat").read_text().split()[0])
    return 0


def _list(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
