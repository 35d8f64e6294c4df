"""What assembly remembers of the processes and engines that send events, and of their clocks: plain structs, part of
the checkpoint."""

from __future__ import annotations

import msgspec

from turnscope.assembly.moments import Moment
from turnscope.assembly.rate import Prefill, Rate
from turnscope.assembly.sequence import Sequence
from turnscope.model import Emitter, Engine


class Idle(msgspec.Struct, array_like=True):
    """A request that takes no step."""

    turn_id: str
    since_ns: int
    """Arrival of the first heartbeat that said so, of those that all did."""
    since_wall_ns: int


class EmitterState(msgspec.Struct, kw_only=True):
    """One process with a hook."""

    emitter: Emitter
    engine_id: str | None = None
    generation: str | None = None
    rank: int | None = None
    first_ns: int
    last_ns: int
    sequence: Sequence
    state: str = "started"
    message: str | None = None
    received: int = 0
    missing: int = 0
    dropped: int = 0
    errors: int = 0
    open: dict[str, int] = {}
    """Requests (proxy: turns) that its last heartbeat listed, with the arrival of the first that did."""
    open_more: int = 0
    idle: dict[str, Idle] = {}
    """Requests that take no step, by its last heartbeats."""
    beat_mono_ns: int | None = None
    """Of its last heartbeat, by its own clock."""
    beat_every_ns: int | None = None
    """Between its last two."""
    digest_key_id: str = ""
    """Of the key that its newest digests were made under; empty before the first one."""
    delay_ns: int | None = None
    """Least (arrival - monotonic time of the event): the clocks' difference plus the fastest way here."""
    mono_ns: int = 0
    """Of its newest event, by its own clock."""
    wall_ns: int = 0
    """That event's wall time less that."""
    steps: int = 0
    """How often its host's wall clock was set meanwhile, and by how much last."""
    step_ns: int = 0
    clock_ns: int | None = None
    """Least (wall time of arrival - wall time of the event)."""
    tally: dict[str, int] = {}
    """Not yet handed out: ``<metric>/<label value>`` to count."""


class Ended(msgspec.Struct, kw_only=True):
    """Holds, or leases, of one start of an engine that have ended."""

    count: int = 0
    read_late: int = 0
    latest_read_ns: int = 0


class Start(msgspec.Struct, array_like=True):
    """The earliest event seen of one start of an engine."""

    wall_ns: int
    at: Moment


class EngineState(msgspec.Struct, kw_only=True):
    """One engine, its present start and what was seen of its requests since."""

    name: str
    engine: Engine
    host: str
    last_ns: int
    last_wall_ns: int
    last_clock: str = ""
    last_mono_ns: int = 0
    """Of the newest event, by the clock of the process that sent it."""
    hosts: list[str] = []
    """Of all its processes."""
    starts: dict[str, Start]
    """By generation."""
    stopped: bool = False
    """It said that it stops, or another has taken its place."""
    replaced_by: str | None = None
    """The engine that listens where it did."""
    silent: bool = False
    """Not heard of for too long."""
    handles_in: int = 0
    handles_in_without_expiry: int = 0
    handles_out: int = 0
    handles_out_with_expiry: int = 0
    streamed_answers: int = 0
    streamed_handles: int = 0
    plain_answers: int = 0
    plain_handles: int = 0
    without_handoff: int = 0
    """Its last requests, one after the other, that brought nothing from P and computed their prompts."""
    prefills_before: int = 0
    """``State.prefills`` when the first of them ended."""
    reasons: dict[str, int] = {}
    failing: dict[str, int] = {}
    """Holder's id to reads from it that failed in a row."""
    prefills: dict[int, list[Prefill]] = {}
    """Measurements of its compute rate, by size of the context, oldest first."""
    unlearnt: int = 0
    """Of those: taken since ``rate`` was worked out."""
    rate: Rate | None = None
    fetches: list[tuple[int, int]] = []
    """(tokens, ns) of its newest fetches, oldest first."""
    first_steps: list[int] = []
    """Of its newest turns."""
    ended: dict[str, Ended] = {}
    """By kind of hold."""

    @property
    def start(self) -> Start:
        """Its present one."""
        return self.starts[self.engine.generation]

    @property
    def last(self) -> Moment:
        """When it was last heard of, by a clock of its own."""
        return Moment(self.last_clock, self.last_mono_ns)

    @property
    def gone(self) -> bool:
        """What it held is lost, and its name is free."""
        return self.stopped or self.silent


class ClockState(msgspec.Struct, kw_only=True):
    """One host's clocks."""

    host: str
    last_ns: int
    mono_ns: int
    """Of the newest event."""
    wall_ns: int
    """Its wall time less that."""


class Offset(msgspec.Struct, kw_only=True):
    """Between what two monotonic clocks show at the same instant: it lies between ``low`` and ``high``."""

    low_ns: int
    high_ns: int
    at_ns: int
    """Arrival of what last narrowed it."""
    seen: int = 1
