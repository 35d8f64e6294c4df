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
    heard_s: float = 0.0
    """Since its first event."""
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
    digest_key_id: str = ""
    """Of the key that its newest digests were made under; empty where it made none."""
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
    without_handoff: int = 0
    """On D: its last so many requests, one after the other, brought nothing from P and computed their prompts."""
    prefills_meanwhile: int = 0
    """... and how many prefill requests other engines ended while it did."""
    reasons: dict[str, int] = {}
    """Turns by reason, on the engine that did their prefill."""
    failing: dict[str, int] = {}
    """Holder's name to reads from it that failed, without one that succeeded since."""
    spoiled_prefixes: int = 0
    """Beginnings of prompts under which its prefix cache may hold wrong KV, after a mismatch. A restart clears them."""
    held: dict[str, HeldStatus] = {}
    """Its holds and its leases, by kind."""
    prefill_measurements: int = 0
    """Prefills that its compute rate is known by; net gain is unknown while they are too few."""


class FabricWindow(msgspec.Struct, kw_only=True):
    """What NIXL moved from and to a node's engines within a window, and what the node's cards counted then."""

    transport: str
    inferred_from: str
    ended_s: float
    """Since its end."""
    seconds: float
    """Looked at within it."""
    transfers: int
    """Reads of single ranks that ended in it."""
    across_bytes: int
    """NIXL's, with one end on this node."""
    within_bytes: int
    """NIXL's, with both ends on this node."""
    efa_bytes: int | None = None
    ethernet_bytes: int | None = None
    bytes_per_second: float | None = None
    """NIXL's bytes over the time in which a read was under way; an upper bound of that time, so a lower one of this."""


class FabricStatus(msgspec.Struct, kw_only=True):
    """The cards of one node."""

    node: str
    collector: str = ""
    """Id of the emitter that looks at them."""
    silent_s: float
    """Since the last look at them."""
    efa_devices: int
    ethernet_devices: int
    engines: list[str] = []
    """Bounded names of the engines on this node."""
    windows: list[FabricWindow] = []
    """The last two with transfers, oldest first."""


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
    spans_without_session: int = 0
    """Of agents, within the last hour."""
    direct_requests: int = 0
    """Requests sent straight to an engine of a pair, past the proxy: not counted as turns."""
    stuck_turns: int = 0
    """Now."""
    stuck_causes: dict[str, int] = {}
    """The same by cause."""
    explained: dict[str, int] = {}
    """``<hooks> <yes or no>`` to turns whose reason the evidence gave, or did not."""
    open_turns: int = 0
    """Turns known of and not counted yet, now."""
    suspicions: dict[str, int] = {}
    continuity: dict[str, int] = {}
    """Counted turns that reached a prefill engine, by what told how their prompt continues the turns before."""
    fabric: list[FabricStatus] = []
    """Nodes whose cards are looked at."""
    clocks: list[ClockStatus] = []
    """Pairs of hosts that could be compared."""
    stepped: list[SteppedClock] = []


class ExporterStatus(msgspec.Struct, kw_only=True):
    """The sidecar's own health."""

    version: str
    uptime_s: float
    otlp_address: str = "127.0.0.1:4317"
    """Where it listens to hooks."""
    otlp_http_address: str = "127.0.0.1:4318"
    """The same over HTTP."""
    replaying: bool = False
    """Still reading its journal after a start: counts are not complete."""
    lag_bytes: int = 0
    """Journalled and not yet in ``assembly`` beside this: 0 means that everything taken in is."""
    rejected_records: int = 0
    """Records that claimed to be turnscope's and could not be read."""
    spans: int = 0
    """Spans of agents taken in."""
    rejected_spans: int = 0
    """Spans that could not be."""
    too_large_requests: int = 0
    """Export requests refused for good, with all that was in them, since they were longer than the limit."""
    max_message_bytes: int | None = None
    """That limit."""
    misdirected: dict[str, int] = {}
    """What came to ``otlp_http_address`` and is no OTLP over HTTP: connections by ``grpc`` and ``tls``, posts by
    ``path``."""
    journal_error: str | None = None
    """The last failure of a write, None when the last write succeeded. The same for the store and traces."""
    journal_damage: str | None = None
    """What of the journal could not be read, and where it is kept; None when all of it could."""
    store_error: str | None = None
    traces_error: str | None = None
    traces_endpoint: str | None = None
    passing_on_error: str | None = None
    passing_on_endpoint: str | None = None
    proxy_ttl_s: float | None = None
    """How long the proxy keeps a handle, as the sidecar was told."""
    last_scrape_s: float | None = None
    """Since ``/metrics`` was last read; None when it never was."""


class SystemStatus(msgspec.Struct, kw_only=True):
    """The whole answer of ``GET /status``."""

    assembly: AssemblyStatus
    exporter: ExporterStatus
