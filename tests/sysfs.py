"""A collector that looks at a tree of card counters at times of the test's choosing."""

from __future__ import annotations

from collections.abc import Callable

from live.sysfs import Sysfs
from tests.builders import EPOCH_NS, MS
from turnscope.model import Event
from turnscope.receivers.fabric import Collector


class Looks:
    """Looks at a tree when told to; the events come out as the sidecar would journal them."""

    def __init__(
        self,
        tree: Sysfs,
        *,
        node: str = "node-a",
        hosts: tuple[str, ...] = ("host",),
        wall_ns: Callable[[int], int] = lambda mono_ns: EPOCH_NS + mono_ns,
    ) -> None:
        self._now_ns = 0
        self._events: list[Event] = []
        self.collector = Collector(
            self._events.extend,
            node=node,
            hosts=list(hosts),
            host="host",
            version="0",
            infiniband=tree.infiniband,
            net=tree.net,
            every_s=2.0,
            monotonic_ns=lambda: self._now_ns,
            wall_ns=lambda: wall_ns(self._now_ns),
        )

    def at(self, at_ms: float) -> Event:
        """Look at ``at_ms``."""
        self._now_ns = int(at_ms * MS)
        self.collector.look()
        return self._events.pop()
