"""Which processes' rows are due: at once what is new, now and then what was only heard again."""

from __future__ import annotations

from typing import Final

from turnscope.measures.heard import processes
from turnscope.model import AssemblyStatus, ProcessRecord

CHANGED_NS: Final = 60_000_000_000
"""Between two rows of a process whose losses or errors grew."""
HEARD_NS: Final = 300_000_000_000
"""Between two rows of one that was only heard again: each row makes a file, and readers ask anew."""
SOON_NS: Final = 5_000_000_000
"""Between the first two rows: the first has what came until then, which of a recording is a part."""


class Roll:
    """Remembers what was told of each process."""

    def __init__(self) -> None:
        self._told: dict[str, ProcessRecord] = {}

    def due(self, status: AssemblyStatus, now_ns: int, *, last: bool = False) -> list[ProcessRecord]:
        """The rows to write at ``now_ns`` (Unix); ``last``: of everything that changed at all."""
        found = []
        for process in processes(status, now_ns):
            before = self._told.get(process.process_id)
            if before is None or _wait(before, process, last=last) <= now_ns - before.revision:
                # Worked out from two clocks, its begin would move by the time between them.
                process.started_ns = process.started_ns if before is None else before.started_ns
                self._told[process.process_id] = process
                found.append(process)
        if len(self._told) > len(status.emitters):
            alive = {heard.emitter.id for heard in status.emitters}
            self._told = {name: told for name, told in self._told.items() if name in alive}
        return found


def _wait(before: ProcessRecord, now: ProcessRecord, *, last: bool) -> float:
    """Nanoseconds to let pass since the row before; infinite where there is nothing to tell."""
    if _known_by(before) != _known_by(now):
        return 0
    if before.received == now.received:
        return float("inf")
    if last:
        return 0
    # As long as it had been heard by then: a young one is told in full soon, and all of them seldom in the end.
    known = max(SOON_NS, before.revision - before.started_ns)
    return min(known, CHANGED_NS if _losses(before) != _losses(now) else HEARD_NS)


def _known_by(process: ProcessRecord) -> tuple[str | None, ...]:
    return process.version, process.engine, process.role, process.model, process.vllm_version, process.state


def _losses(process: ProcessRecord) -> tuple[int, ...]:
    return process.missing, process.dropped, process.errors
