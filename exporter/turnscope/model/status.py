"""What the sidecar knows of its sources and of itself: ``GET /status``, read by ``turnscope doctor``."""

from __future__ import annotations

import msgspec

from turnscope.model.sources import Emitter, Engine


class EmitterStatus(msgspec.Struct, kw_only=True):
    """One process with a hook, as the sidecar hears it."""

    emitter: Emitter
    engine: str | None = None
    """The engine's bounded name; None for a proxy."""
    generation: str | None = None
    """The engine's generation that this process belongs to."""
    rank: int | None = None
    silent_s: float
    """Since its last event or heartbeat."""
    heartbeat_s: float | None = None
    """The usual time between its heartbeats; None before the second one."""
    state: str = "started"
    """Of its last ``engine`` event: ``started, stopping, switched_off``."""
    message: str | None = None
    received: int = 0
    missing: int = 0
    """Sequence numbers that never came: lost between the process and here."""
    dropped: int = 0
    """As its last heartbeat said."""
    errors: int = 0
    """As its last heartbeat said."""
    clock_offset_s: float | None = None
    """Least (arrival - time of the record) seen: the delay of the way, plus how far its clock is behind ours."""


class HeldStatus(msgspec.Struct, kw_only=True):
    """An engine's holds, or its leases."""

    requests: int = 0
    """Held now; likewise blocks."""
    blocks: int = 0
    oldest_s: float = 0.0
    ended: int = 0
    """Since the engine started."""
    read_late: int = 0
    """Of those: given up before a reader's notice came."""
    latest_read_s: float = 0.0
    """The longest time from the begin to such a notice."""


class EngineStatus(msgspec.Struct, kw_only=True):
    """One engine, and counts of what was seen of its requests since it started."""

    name: str
    engine: Engine
    handles_in: int = 0
    """Requests that brought a handle: on P those with D's handle of an earlier turn."""
    handles_in_without_expiry: int = 0
    handles_out: int = 0
    """Requests that the engine ended with a handle."""
    handles_out_with_expiry: int = 0
    streamed_answers: int = 0
    """On D, as the proxy saw it: streamed answers that ended by stop or length."""
    streamed_handles: int = 0
    """... and how many of them carried a handle."""
    plain_answers: int = 0
    plain_handles: int = 0
    reasons: dict[str, int] = {}
    """Turns by reason, on the engine that did their prefill."""
    held: dict[str, HeldStatus] = {}
    """Its holds and its leases, by kind."""
    prefill_measurements: int = 0
    """Prefills that its compute rate is known by; net gain is unknown while they are too few."""


class ClockStatus(msgspec.Struct, kw_only=True):
    """The wall clocks of two hosts, compared by requests of one that enclose what the other did."""

    host: str
    other: str
    skew_s: float
    """How far the other's is ahead of the first's."""
    error_s: float
    """Either way."""
    seen: int
    """Requests that it was worked out from."""


class SteppedClock(msgspec.Struct, kw_only=True):
    """A host whose wall clock was set while turnscope listened."""

    host: str
    steps: int
    last_s: float
    """The last step; positive: forward."""


class AssemblyStatus(msgspec.Struct, kw_only=True):
    """What assembly knows of its sources."""

    emitters: list[EmitterStatus] = []
    engines: list[EngineStatus] = []
    attempts: int = 0
    """Client requests seen by a proxy."""
    attempts_without_session: int = 0
    stuck_turns: int = 0
    """Now."""
    open_turns: int = 0
    """Turns known of and not counted yet, now."""
    suspicions: dict[str, int] = {}
    clocks: list[ClockStatus] = []
    """Pairs of hosts that could be compared."""
    stepped: list[SteppedClock] = []


class ExporterStatus(msgspec.Struct, kw_only=True):
    """The sidecar's own health."""

    version: str
    uptime_s: float
    otlp_address: str = "127.0.0.1:4317"
    """Where it listens to hooks."""
    replaying: bool = False
    """Still reading its journal after a start: counts are not complete."""
    lag_bytes: int = 0
    """Journalled and not yet in ``assembly`` beside this: 0 means that everything taken in is."""
    rejected_records: int = 0
    """Records that claimed to be turnscope's and could not be read."""
    journal_error: str | None = None
    """The last failure of a write, None when the last write succeeded. The same for those below."""
    store_error: str | None = None
    traces_error: str | None = None
    traces_endpoint: str | None = None
    proxy_ttl_s: float | None = None
    """How long the proxy keeps a handle, as the sidecar was told."""
    last_scrape_s: float | None = None
    """Since ``/metrics`` was last read; None when it never was."""


class SystemStatus(msgspec.Struct, kw_only=True):
    """The whole answer of ``GET /status``."""

    assembly: AssemblyStatus
    exporter: ExporterStatus
