"""Processor time that processes have taken: what a piece of work costs, whatever else the machine does meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def taken_ns(leaders: Iterable[int], proc: Path = PROC) -> int:
    """Nanoseconds that the running threads of these processes, and of all that they started, have had so far.

    ``leaders`` began a session of their own (``live.engines.start``). Source: ``/proc/PID/task/TID/schedstat``, whose
    first figure is the time on a processor; a thread that has ended no longer counts.
    """
    wanted = set(leaders)
    return sum(_task_ns(task) for process in _processes(proc, wanted) for task in _list(process / "task"))


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
