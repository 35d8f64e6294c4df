"""Everything assembly remembers: plain structs, so that a checkpoint is one encode."""

from __future__ import annotations

import msgspec

from turnscope.assembly.moments import ClockState, Moment, Offset
from turnscope.assembly.rate import Prefill, Rate
from turnscope.assembly.sequence import Sequence
from turnscope.model import Attempt, Emitter, Engine, HoldRecord, HoldUse, Request, Transfer, Turn
from turnscope.semconv import HoldKind


# --- sources ------------------------------------------------------------------------------------------
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
    beat_mono_ns: int | None = None
    """Of its last heartbeat, by its own clock."""
    beat_every_ns: int | None = None
    """Between its last two."""
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
    begun: Moment | None = None
    """The first event's of this start."""
    starts: dict[str, int]
    """Generation to the wall time of the earliest event seen of it."""
    stopped: bool = False
    """It said that it stops."""
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
    reasons: dict[str, int] = {}
    prefills: dict[int, list[Prefill]] = {}
    """Measurements of its compute rate, by size of the context, oldest first."""
    unlearnt: int = 0
    """Of those: taken since ``rate`` was worked out."""
    rate: Rate | None = None
    first_steps: list[int] = []
    """Of its newest turns."""
    ended: dict[str, Ended] = {}
    """By kind of hold."""

    @property
    def last(self) -> Moment:
        """When it was last heard of, by a clock of its own."""
        return Moment(self.last_clock, self.last_mono_ns)

    @property
    def gone(self) -> bool:
        """What it held is lost, and its name is free."""
        return self.stopped or self.silent


# --- turns --------------------------------------------------------------------------------------------
class Leg(msgspec.Struct, kw_only=True):
    """A request that ended, with the process that said so."""

    engine_id: str
    generation: str
    wall_ns: int
    mono_ns: int
    clock: str = ""
    request: Request

    @property
    def started_wall_ns(self) -> int:
        """When the engine accepted it."""
        return self.wall_ns - max(0, self.mono_ns - self.request.added_mono_ns)

    @property
    def duration_ns(self) -> int:
        """From then to its end."""
        return max(0, self.mono_ns - self.request.added_mono_ns)


class Read(msgspec.Struct, kw_only=True):
    """One rank's read."""

    engine_id: str
    wall_ns: int
    mono_ns: int
    clock: str = ""
    transfer: Transfer


class TurnState(msgspec.Struct, kw_only=True):
    """What is known of one turn, or of one attempt of it."""

    turn_id: str
    first_ns: int
    last_ns: int
    due_ns: int = 0
    """When it is looked at next."""
    ready_ns: int | None = None
    prefill_engine_id: str | None = None
    prefill_request_id: str | None = None
    decode_engine_id: str | None = None
    decode_request_id: str | None = None
    """Known from a read before the D leg has ended."""
    prefill: Leg | None = None
    """The P leg, or on an aggregated engine the whole request."""
    decodes: list[Leg] = []
    reads: list[Read] = []
    hold_use: HoldUse | None = None
    attempt: Attempt | None = None
    attempt_clock: str = ""
    join: str = "exact"
    counted: bool = False
    """Finalised: nothing of it is ever counted again."""
    closed: str | None = None
    """How: ``turn, attempt`` (of a turn counted elsewhere) or ``fragment``."""
    revision: int = 0
    rate: Rate | None = None
    """What its engines were known to need when it was counted: later measurements change no row."""
    usual_step_ns: int | None = None
    late: bool = False
    suspicions: list[str] = []
    withdrawn: list[str] = []
    row: Turn | None = None


class AttemptRef(msgspec.Struct, array_like=True):
    """One attempt of a client request."""

    turn_id: str
    used_hold: str | None
    final: bool


class ProxyTurn(msgspec.Struct, kw_only=True):
    """One client request, as a proxy counts it."""

    last_ns: int
    attempts: dict[int, AttemptRef] = {}


# --- holds --------------------------------------------------------------------------------------------
class Report(msgspec.Struct, array_like=True, gc=False):
    """One rank's word on the end of a hold."""

    expired: bool
    wall_ns: int
    mono_ns: int
    clock: str
    readers_seen: int | None
    readers_expected: int | None


class HoldState(msgspec.Struct, kw_only=True):
    """What is known of one hold or lease."""

    hold_id: str
    kind: HoldKind
    engine_id: str
    generation: str
    request_id: str
    last_ns: int
    due_ns: int | None = None
    """None while it is held and nothing is awaited."""
    held_ns: int | None = None
    """Arrival of the news that it is held; None when it never came."""
    held_wall_ns: int | None = None
    held_at: Moment | None = None
    tokens: int | None = None
    blocks: int | None = None
    bytes: int | None = None
    ttl_ns: int | None = None
    ranks: int = 1
    reports: dict[str, Report] = {}
    late_notices: int = 0
    last_notice: Moment | None = None
    """The last late one."""
    read_late: bool = False
    """Counted as such."""
    lost_wall_ns: int | None = None
    """When its holder ended, as far as that was seen."""
    lost_at: Moment | None = None
    counted: bool = False
    fragment: bool = False
    revision: int = 0
    outcome: str | None = None
    row: HoldRecord | None = None

    @property
    def complete(self) -> bool:
        """Every rank has spoken."""
        return len(self.reports) >= self.ranks

    @property
    def ended_at(self) -> Moment | None:
        """Observed end: the last rank's release of those on the scheduler's clock, or its holder's end."""
        if not self.complete:
            return self.lost_at
        clock = self.held_at.clock if self.held_at is not None else ""
        times = [r.mono_ns for r in self.reports.values() if r.clock == clock]
        return Moment(clock, max(times)) if times else None

    @property
    def ended_wall_ns(self) -> int | None:
        """Observed end: the last rank's release, or the holder's."""
        if self.reports:
            return max(report.wall_ns for report in self.reports.values())
        return self.lost_wall_ns


# --- what needs several turns -------------------------------------------------------------------------
class Past(msgspec.Struct, kw_only=True):
    """What later turns of a session ask of an earlier one."""

    turn_id: str
    started_ns: int
    ended_ns: int | None
    ended_at: Moment | None = None
    ending: str | None
    """``ok, aborted, stop_string, error``; None when unknown."""
    left_hold: str | None
    handle_seen: bool | None
    """The proxy saw a handle in D's answer; None without its word."""
    decode_engine_id: str | None
    decode_bidirectional: bool | None
    whole: bool
    """Served by an aggregated engine."""


class SessionState(msgspec.Struct, kw_only=True):
    """The turns of one session, by start."""

    source: str
    last_ns: int
    turns: list[Past] = []
    forgotten: int = 0
    """Turns before the first in ``turns``."""


class Use(msgspec.Struct, array_like=True):
    """One P leg that was given a hold's handle."""

    turn_id: str
    started_ns: int
    read: bool | None
    """It fetched; False: it only told the holder, or read nothing; None when unknown."""


class State(msgspec.Struct, kw_only=True):
    """The whole."""

    now_ns: int = 0
    pruned_ns: int = 0
    emitters: dict[str, EmitterState] = {}
    proxies: list[str] = []
    """Emitters that are proxies: asked for at every event."""
    engines: dict[str, EngineState] = {}
    clocks: dict[str, ClockState] = {}
    offsets: dict[str, dict[str, Offset]] = {}
    """Clock to the clocks compared with it: what those show, less what it shows."""
    names: dict[str, str] = {}
    """Bounded engine name to the id of the engine that has it."""
    turns: dict[str, TurnState] = {}
    old_turns: dict[str, tuple[int, bytes]] = {}
    """Counted: when, and the encoded ``TurnState``."""
    holds: dict[str, HoldState] = {}
    old_holds: dict[str, HoldState] = {}
    proxy_turns: dict[str, ProxyTurn] = {}
    named: dict[str, list[str]] = {}
    """The ``X-Request-Id`` in an engine's request id to the turns of the P legs that have it."""
    unplaced: dict[str, list[str]] = {}
    """``X-Request-Id`` to attempts that did not name their P leg."""
    sessions: dict[str, SessionState] = {}
    session_of: dict[str, str] = {}
    """Turn to session."""
    left_by: dict[str, str] = {}
    """Hold to the turn that left it."""
    uses: dict[str, list[Use]] = {}
    """Hold to the turns that were given its handle."""
    tallied: dict[str, int] = {}
    """Emitter to the number of its events whose tallies are in the journal."""
    counted: dict[str, int] = {}
    """Keys in the journal: they contribute nothing again."""
    suspicions: dict[str, int] = {}
    attempts: int = 0
    attempts_without_session: int = 0
