"""Nodes whose cards are looked at: their counters, and windows in which NIXL's bytes are held against them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from turnscope.assembly import cards
from turnscope.assembly.engines import Engines
from turnscope.assembly.ledger import Ledger, one
from turnscope.assembly.nodes import Interval, Moving, NodeState, Window
from turnscope.assembly.ranks import as_read
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import State
from turnscope.assembly.transport import Traffic, card_bytes, figures, infer, total
from turnscope.catalog import METRICS
from turnscope.catalog.labels import CARDS
from turnscope.model import SECOND_NS, Contribution, Event, FabricStatus, FabricWindow, Sample, Transfer
from turnscope.model import Fabric as Look
from turnscope.semconv import TransferState, Transport

COLLECTOR: Final = "collector"
"""The kind of emitter that looks at cards."""
KEPT: Final = 2
"""Windows that are shown."""
MAX_COUNTERS: Final = 64
"""Raw counter names that become label values, per node."""
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")


class Fabric:
    """One record per node. Arrival time only tells when the reads of a look's time have come in."""

    def __init__(self, state: State, settings: AssemblySettings, ledger: Ledger, engines: Engines) -> None:
        self._state = state
        self._settings = settings
        self._ledger = ledger
        self._engines = engines

    # --- in -------------------------------------------------------------------------------------------
    def look(self, event: Event, body: Look, arrival_ns: int) -> None:
        """Take one look at a node's cards."""
        node = self._state.nodes.get(body.node)
        first = body.interval_ns is None
        if node is None or node.emitter_id != event.emitter.id:
            # One collector a node: another takes its place by beginning later, so that a recording does not.
            later = node is None or event.wall_ns > node.last_wall_ns
            room = node is not None or len(self._state.nodes) < self._settings.max_nodes
            if not (first and later and room):
                return
            node = self._begin(event, body, node, arrival_ns)
        elif body.interval_ns is None or not 0 < body.interval_ns <= event.mono_ns - node.end_ns:
            return
        node.hosts, node.clock_ns = body.hosts, event.wall_ns - event.mono_ns
        node.last_ns, node.last_wall_ns = arrival_ns, event.wall_ns
        node.look_due_ns = arrival_ns + self._settings.fabric_wait_ns
        node.efa_devices, node.ethernet_devices = body.efa_devices, body.ethernet_devices
        unique = f"{event.emitter.id}/{event.seq}"
        self._ledger.count(f"look:{unique}", self._counted(node, body, first=first))
        if body.interval_ns is None:
            return
        interval = Interval(
            begin_ns=event.mono_ns - body.interval_ns,
            end_ns=event.mono_ns,
            efa=card_bytes(body.efa_counters, body.efa_increases),
            ethernet=card_bytes(body.ethernet_counters, body.ethernet_increases),
            efa_partial=body.efa_partial,
        )
        cards.look(node, interval, 2 * self._settings.fabric_window_ns + self._settings.max_wait_ns)
        begin = interval.begin_ns if node.window_ns is None else node.window_ns
        node.window_ns = begin
        if interval.end_ns - begin >= self._settings.fabric_window_ns:
            node.closing.append(Window(begin, interval.end_ns, node.look_due_ns, unique))
            node.window_ns = None

    def _begin(self, event: Event, body: Look, before: NodeState | None, arrival_ns: int) -> NodeState:
        node = NodeState(
            node=body.node,
            hosts=body.hosts,
            emitter_id=event.emitter.id,
            last_ns=arrival_ns,
            last_wall_ns=event.wall_ns,
            clock_ns=event.wall_ns - event.mono_ns,
            end_ns=event.mono_ns,
        )
        if before is not None:
            for window in (*before.closing, *_open(before, arrival_ns)):
                self._close(before, window)
            node.windows, node.counters, node.waiting = before.windows, before.counters, before.waiting
        self._state.nodes[body.node] = node
        return node

    def _counted(self, node: NodeState, body: Look, *, first: bool) -> list[Contribution]:
        """Raw counters; at the first look everything that is known in advance, at 0."""
        out = []
        counters = [("efa", *pair) for pair in zip(body.efa_counters, body.efa_increases, strict=False)]
        counters += [("ethernet", *pair) for pair in zip(body.ethernet_counters, body.ethernet_increases, strict=False)]
        for card, name, increase in counters:
            metric = f"turnscope_fabric_{card}_{'bytes' if name.endswith('_bytes') else 'events'}_total"
            if metric in METRICS and (increase > 0 or first) and self._known(node, name):
                out.append(one(metric, node.node, name, value=max(0, increase)))
        for card, partial in zip(CARDS, (body.efa_partial, body.ethernet_partial), strict=True):
            if partial or first:
                out.append(one("turnscope_fabric_partial_looks_total", node.node, card, value=int(partial)))
        if first:
            for transport in Transport:
                out.append(one("turnscope_fabric_windows_total", node.node, transport, value=0))
                out.append(one("turnscope_fabric_window_bytes_total", node.node, transport, value=0))
            for card in CARDS:
                out.append(one("turnscope_fabric_short_bytes_total", node.node, card, value=0))
                out.append(one("turnscope_fabric_surplus_bytes_total", node.node, card, value=0))
        return out

    def _known(self, node: NodeState, name: str) -> bool:
        if name not in node.counters and len(node.counters) < MAX_COUNTERS and _NAME.fullmatch(name):
            node.counters.append(name)
        return name in node.counters

    def read(self, event: Event, transfer: Transfer) -> None:
        """Take one rank's read: it counts on every node that one of its ends is on."""
        if transfer.state is not TransferState.DONE or not transfer.bytes or transfer.bytes < 0:
            return
        read = as_read(event, transfer)
        for node in self._state.nodes.values():
            mine, holds = cards.here(node, read.host), cards.holder_here(node, read, self._engines)
            if mine or holds:
                begin, end = cards.span(node, read)
                cards.put(node, Moving(begin, end, transfer.bytes, mine and holds))

    # --- time -----------------------------------------------------------------------------------------
    def next_due_ns(self, name: str) -> int | None:
        """When the node's windows, or turns that wait for its last look, are due."""
        node = self._state.nodes.get(name)
        if node is None:
            return None
        times = [node.look_due_ns, *(window.due_ns for window in node.closing)]
        return min((due_ns for due_ns in times if due_ns > self._state.now_ns), default=None)

    def due(self, name: str, now_ns: int) -> set[str]:
        """Close the windows that are due; the counted turns that can be looked at again."""
        node = self._state.nodes.get(name)
        if node is None:
            return set()
        for window in node.closing:
            if window.due_ns <= now_ns:
                self._close(node, window)
        node.closing = [window for window in node.closing if window.due_ns > now_ns]
        if node.look_due_ns > now_ns:
            return set()
        waiting, node.waiting = set(node.waiting), {}
        return waiting

    def _close(self, node: NodeState, window: Window) -> None:
        parts = [part for part in node.intervals if window.begin_ns <= part.begin_ns < window.end_ns]
        traffic = total(parts)
        if not traffic.nixl:
            return
        transport, why = infer(traffic)
        out = [
            one("turnscope_fabric_windows_total", node.node, transport),
            one("turnscope_fabric_window_bytes_total", node.node, transport, value=traffic.nixl),
        ]
        for card, size in _measured(traffic):
            beyond = size - traffic.on_card
            metric = "surplus" if beyond > 0 else "short"
            out.append(one(f"turnscope_fabric_{metric}_bytes_total", node.node, card, value=abs(beyond)))
        self._ledger.count(f"window:{window.key}", out)
        busy_ns = sum(end - begin for part in parts for begin, end in part.busy)
        shown = FabricWindow(
            transport=transport,
            inferred_from=f"{why}: {figures(traffic)}",
            ended_s=0.0,
            seconds=sum(part.end_ns - part.begin_ns for part in parts) / SECOND_NS,
            transfers=sum(part.transfers for part in parts),
            across_bytes=traffic.across,
            within_bytes=traffic.within,
            efa_bytes=traffic.efa,
            ethernet_bytes=traffic.ethernet,
            bytes_per_second=traffic.nixl * SECOND_NS / busy_ns if busy_ns else None,
        )
        node.windows = [*node.windows, (window.due_ns - self._settings.fabric_wait_ns, shown)][-KEPT:]

    # --- out ------------------------------------------------------------------------------------------
    def samples(self) -> list[Sample]:
        """Devices found, and how far the last window's cards and NIXL agree."""
        out = []
        for node in self._state.nodes.values():
            for card, devices in zip(CARDS, (node.efa_devices, node.ethernet_devices), strict=True):
                out.append(Sample("turnscope_fabric_devices", (node.node, card), devices))
            for _, window in node.windows[-1:]:
                on_card = window.across_bytes + 2 * window.within_bytes
                for card, size in zip(CARDS, (window.efa_bytes, window.ethernet_bytes), strict=True):
                    if size is not None:
                        out.append(Sample("turnscope_fabric_agreement_ratio", (node.node, card), size / on_card))
        return out

    def status(self, now_ns: int) -> list[FabricStatus]:
        """For ``/status``."""
        return [
            FabricStatus(
                node=node.node,
                collector=node.emitter_id,
                silent_s=max(0, now_ns - node.last_ns) / SECOND_NS,
                efa_devices=node.efa_devices,
                ethernet_devices=node.ethernet_devices,
                engines=sorted(
                    engine.name
                    for engine in self._engines.present()
                    if any(cards.here(node, host) for host in engine.hosts)
                ),
                windows=[
                    msgspec.structs.replace(window, ended_s=max(0, now_ns - ended_ns) / SECOND_NS)
                    for ended_ns, window in node.windows
                ],
            )
            for node in self._state.nodes.values()
        ]

    def prune(self, before_ns: int) -> None:
        """Forget nodes that nobody looks at any more, and turns whose look never came."""
        self._state.nodes = {name: node for name, node in self._state.nodes.items() if node.last_ns >= before_ns}
        for node in self._state.nodes.values():
            node.waiting = {key: since for key, since in node.waiting.items() if since >= before_ns}


def _open(node: NodeState, now_ns: int) -> Iterator[Window]:
    """What there is of a window that nobody will fill."""
    if node.window_ns is not None:
        yield Window(node.window_ns, node.end_ns, now_ns, f"{node.emitter_id}/open")


def _measured(traffic: Traffic) -> Iterator[tuple[str, int]]:
    """Cards whose bytes are known, not only that they are at least so many."""
    if traffic.efa is not None and not traffic.efa_partial:
        yield CARDS[0], traffic.efa
    if traffic.ethernet is not None:
        yield CARDS[1], traffic.ethernet
