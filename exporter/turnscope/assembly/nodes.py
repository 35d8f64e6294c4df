"""What assembly remembers of nodes whose cards are looked at: plain structs, part of the checkpoint."""

from __future__ import annotations

import msgspec

from turnscope.model import FabricWindow


class Interval(msgspec.Struct, array_like=True):
    """Between two looks at a node's cards; times by the node's monotonic clock."""

    begin_ns: int
    end_ns: int
    efa: int | None
    """Bytes that went through EFA cards, either way; None where no counter tells."""
    ethernet: int | None
    efa_partial: bool
    """What EFA carried is at least that much."""
    across: int = 0
    """NIXL's bytes with one end on the node."""
    within: int = 0
    """NIXL's bytes with both."""
    transfers: int = 0
    """That ended in it."""
    busy: list[tuple[int, int]] = []
    """When a read was under way: spans that do not touch, ascending."""


class Moving(msgspec.Struct, array_like=True):
    """A read that ended after the last look, or during it."""

    begin_ns: int
    end_ns: int
    bytes: int
    within: bool


class Window(msgspec.Struct, array_like=True):
    """Looks that are judged together, once the reads of their time have arrived."""

    begin_ns: int
    end_ns: int
    due_ns: int
    key: str


class NodeState(msgspec.Struct, kw_only=True):
    """One node whose cards are looked at."""

    node: str
    """Bounded: the label."""
    hosts: list[str]
    emitter_id: str
    last_ns: int
    last_wall_ns: int
    clock_ns: int
    """Its wall clock less its monotonic one, at the last look."""
    end_ns: int
    """The last look, by its monotonic clock."""
    look_due_ns: int = 0
    """When the reads of the last look's time have arrived."""
    window_ns: int | None = None
    """Where the open window begins."""
    efa_devices: int = 0
    ethernet_devices: int = 0
    intervals: list[Interval] = []
    moving: list[Moving] = []
    closing: list[Window] = []
    counters: list[str] = []
    """Raw names exported as labels: few."""
    windows: list[tuple[int, FabricWindow]] = []
    """The last two with transfers, and the arrival of the look that ended each."""
    waiting: dict[str, int] = {}
    """Counted turns whose transfers ended after the last look, and since when they wait."""
