"""What is known of one node's cards: its looks, and NIXL's bytes spread over the time between them."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from turnscope.assembly.engines import Engines
from turnscope.assembly.nodes import Interval, Moving, NodeState
from turnscope.assembly.ranks import begin_ns, end_ns
from turnscope.assembly.settings import SECOND
from turnscope.assembly.state import Read

SAME_CLOCK_NS: Final = 60 * SECOND
"""Two monotonic clocks of one host that differ by more belong to different starts of it."""


def here(node: NodeState, host: str) -> bool:
    """Whether processes with this host name are on the node."""
    return any(fnmatchcase(host, pattern) for pattern in node.hosts)


def holder_here(node: NodeState, read: Read, engines: Engines) -> bool:
    """Whether the engine that was read from is known to be on the node, with all its processes."""
    holder = engines.get(read.transfer.remote_engine_id)
    return holder is not None and bool(holder.hosts) and all(here(node, host) for host in holder.hosts)


def span(node: NodeState, read: Read) -> tuple[int, int]:
    """When a read went on, by the node's monotonic clock; over wall clocks only where its reader has another one."""
    shift = read.wall_ns - read.mono_ns - node.clock_ns
    if here(node, read.host) and abs(shift) <= SAME_CLOCK_NS:
        shift = 0
    end = end_ns(read)
    return min(begin_ns(read), end) + shift, end + shift


def put(node: NodeState, moving: Moving) -> None:
    """Spread a read over the looks that it lies in; what is after the last one waits for the next."""
    for interval in reversed(node.intervals):
        if interval.end_ns < moving.begin_ns:
            break
        _add(interval, moving)
    if moving.end_ns > node.end_ns:
        node.moving.append(moving)


def look(node: NodeState, interval: Interval, keep_ns: int) -> None:
    """Add the time up to a new look, with what of the reads so far lies in it; forget those ``keep_ns`` ago."""
    for moving in node.moving:
        _add(interval, moving)
    node.end_ns = interval.end_ns
    node.moving = [moving for moving in node.moving if moving.end_ns > node.end_ns]
    node.intervals.append(interval)
    while node.intervals[0].end_ns < node.end_ns - keep_ns:
        node.intervals.pop(0)


def _add(interval: Interval, moving: Moving) -> None:
    begin, end = max(interval.begin_ns, moving.begin_ns), min(interval.end_ns, moving.end_ns)
    ends_here = interval.begin_ns < moving.end_ns <= interval.end_ns
    interval.transfers += ends_here
    length = moving.end_ns - moving.begin_ns
    if length == 0:
        size = moving.bytes if ends_here else 0
    elif begin < end:
        # Differences of one ascending sum: the parts of a read add up to it, to the byte.
        size = moving.bytes * (end - moving.begin_ns) // length - moving.bytes * (begin - moving.begin_ns) // length
        interval.busy = _joined(interval.busy, begin, end)
    else:
        return
    if moving.within:
        interval.within += size
    else:
        interval.across += size


def _joined(spans: list[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """``spans`` and one more, with those that touch made one."""
    apart = []
    for low, high in spans:
        if high < begin or low > end:
            apart.append((low, high))
        else:
            begin, end = min(begin, low), max(end, high)
    return sorted([*apart, (begin, end)])


def around(node: NodeState, begin_ns: int, end_ns: int) -> list[Interval] | None:
    """The looks that together cover this time; None where the node was not looked at for all of it."""
    found = list(_overlapping(node, begin_ns, end_ns))
    covered = begin_ns
    for interval in found:
        if interval.begin_ns > covered:
            return None
        covered = interval.end_ns
    return found if found and covered >= end_ns else None


def _overlapping(node: NodeState, begin_ns: int, end_ns: int) -> Iterator[Interval]:
    for interval in node.intervals:
        inside = interval.begin_ns < end_ns and interval.end_ns > begin_ns
        if inside or interval.begin_ns < begin_ns == end_ns <= interval.end_ns:
            yield interval
