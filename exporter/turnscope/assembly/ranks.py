"""Reads of single ranks to logical transfers: what was moved, on the wire and as KV, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from turnscope.assembly.moments import clock_of
from turnscope.assembly.state import Read
from turnscope.model import Engine, Event, Transfer
from turnscope.semconv import Direction, TransferState

MOVING: Final = (TransferState.DONE, TransferState.FAILED)
"""States of reads that were begun: the others moved nothing and took no time."""


class Moved(NamedTuple):
    """A turn's transfers in one direction; every part None when there was none."""

    bytes: int | None = None
    """On the wire."""
    logical_bytes: int | None = None
    """KV, each part once; None while it is not known which ranks have the same."""
    transfers: int | None = None
    reads: int | None = None
    ranks_seen: int | None = None
    ranks_expected: int | None = None
    started_ns: int | None = None
    """Wall time."""
    duration_ns: int | None = None
    """Of the longest transfer."""


def as_read(event: Event, transfer: Transfer) -> Read:
    """``transfer``, with who reported it and when."""
    return Read(
        engine_id=event.engine.id if event.engine is not None else "",
        wall_ns=event.wall_ns,
        mono_ns=event.mono_ns,
        clock=clock_of(event.emitter),
        host=event.emitter.host,
        rank=event.engine.rank if event.engine is not None else None,
        transfer=transfer,
    )


def begin_ns(read: Read) -> int:
    """When it began, by its reader's monotonic clock; its end where neither that nor its duration is known."""
    started = read.transfer.started_mono_ns
    return started if started is not None else read.mono_ns - max(0, read.transfer.duration_ns or 0)


def end_ns(read: Read) -> int:
    """When it ended, by its reader's monotonic clock: its report comes up to one engine step later."""
    transfer = read.transfer
    if transfer.started_mono_ns is None or transfer.duration_ns is None:
        return read.mono_ns
    return transfer.started_mono_ns + max(0, transfer.duration_ns)


def lasted_ns(reads: Iterable[Read]) -> int | None:
    """How long one logical transfer took; None where any of its reads was not timed, or there are none.

    Ranks read side by side: from the first begin to the last end where one clock tells, else the longest read. Of a
    read that failed NIXL tells nothing: it ends with its report.
    """
    part = [read for read in reads if read.transfer.state in MOVING]
    times = [_took_ns(read) for read in part]
    known = [took for took in times if took is not None]
    if not known or len(known) < len(part):
        return None
    begins = [read.transfer.started_mono_ns for read in part if read.transfer.started_mono_ns is not None]
    if len(begins) == len(part) and len({read.clock for read in part}) == 1:
        return max(0, max(end_ns(read) for read in part) - min(begins))
    return max(known)


def _took_ns(read: Read) -> int | None:
    transfer = read.transfer
    if transfer.state is TransferState.DONE and transfer.duration_ns is not None:
        return max(0, transfer.duration_ns)
    return max(0, read.mono_ns - transfer.started_mono_ns) if transfer.started_mono_ns is not None else None


def done(reads: Iterable[Read], *, handoff: bool) -> list[Read]:
    """Those of one direction that moved something."""
    return [
        read
        for read in reads
        if read.transfer.state is TransferState.DONE and (read.transfer.direction is Direction.HANDOFF) is handoff
    ]


def moved(reads: list[Read], engine_of: Callable[[str], Engine | None]) -> Moved:
    """``reads`` of one direction as the logical transfers that they are part of, one for each reading request."""
    if not reads:
        return Moved()
    groups: dict[tuple[str, str], list[Read]] = {}
    for read in reads:
        groups.setdefault((read.engine_id, read.transfer.request_id), []).append(read)
    engines = [engine_of(engine_id) for engine_id, _ in groups]
    parts = list(groups.values())
    sizes = [read.transfer.bytes for read in reads if read.transfer.bytes is not None]
    return Moved(
        bytes=_sum([max(0, size) for size in sizes] or [None]),
        logical_bytes=_sum([_logical(part, engine) for part, engine in zip(parts, engines, strict=True)]),
        transfers=len(parts),
        reads=len(reads),
        ranks_seen=sum(len({read.rank for read in part}) for part in parts),
        ranks_expected=_sum([_expected(engine) for engine in engines]),
        started_ns=min(
            (
                read.wall_ns - max(0, read.mono_ns - read.transfer.started_mono_ns)
                for read in reads
                if read.transfer.started_mono_ns is not None
            ),
            default=None,
        ),
        duration_ns=max((lasted for lasted in map(lasted_ns, parts) if lasted is not None), default=None),
    )


def _sum(values: list[int | None]) -> int | None:
    """Unknown when any part is."""
    return None if None in values else sum(value for value in values if value is not None)


def _expected(engine: Engine | None) -> int | None:
    if engine is None or engine.tp_size is None:
        return None
    return engine.tp_size * (engine.pp_size or 1)


def _logical(part: list[Read], engine: Engine | None) -> int | None:
    """Neighbouring ranks that have the same KV each read all of it: of each such group the fullest counts.

    A rank may read in several pieces, from the ranks of the other side.
    """
    copies = 1 if engine is not None and _expected(engine) == 1 else engine.kv_copies if engine is not None else None
    if not copies or any(read.transfer.bytes is None for read in part):
        return None
    by_rank: dict[int, int] = {}
    for read in part:
        by_rank[read.rank or 0] = by_rank.get(read.rank or 0, 0) + max(0, read.transfer.bytes or 0)
    shards: dict[int, int] = {}
    for rank, size in by_rank.items():
        shards[rank // copies] = max(shards.get(rank // copies, 0), size)
    return sum(shards.values())
