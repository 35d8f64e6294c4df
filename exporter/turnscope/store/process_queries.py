"""What the reader asks about the processes that data are from."""

from __future__ import annotations

from turnscope.store.queries import Params, Sources
from turnscope.store.schema import PROCESSES
from turnscope.store.sql import newest


def heard(src: Sources) -> tuple[str, Params]:
    """A page of processes with a hook, those heard last first: the fields of ``ProcessRecord``."""
    return (
        f"SELECT {PROCESSES.columns()}, count(*) OVER () AS total FROM {newest(PROCESSES, src.processes)} "
        "ORDER BY ended_ns DESC, process_id LIMIT $limit OFFSET $offset"
    ), {}
