"""Data that crosses module borders: the events hooks send, and the facts assembly makes of them.

Units are in the names: ``_ns`` integer nanoseconds, ``_bytes`` integer bytes, ``_tokens`` integer tokens.
``wall_ns`` is Unix time; ``mono_ns`` is the emitting process's ``time.monotonic_ns()``, comparable only
within one host. ``None`` always means "not measured", never zero.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from turnscope.semconv import Direction, EventName, HoldKind, Leg, TransferState


class Emitter(msgspec.Struct, frozen=True, kw_only=True):
    """The process that sent an event; resource attributes ``turnscope.emitter.*``."""

    id: str
    """16 hex digits, random per process."""
    kind: str
    """``engine`` (scheduler process), ``worker`` or ``proxy``."""
    pid: int = 0
    host: str = ""
    version: str = ""
    """turnscope's version in that process."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is and how it is set; resource attributes ``turnscope.engine.*`` of every batch."""

    id: str
    """vLLM's ``engine_id`` (with its ``_dp<rank>`` suffix), or one made up where no connector is configured."""
    generation: str
    """Random hex, new at every start of the engine and shared with its workers; survives no restart."""
    role: str
    name: str | None = None
    """``TURNSCOPE_ENGINE_NAME``; else the sidecar gives a role and an ordinal."""
    model: str | None = None
    vllm_version: str | None = None
    connector: str | None = None
    block_size: int | None = None
    num_blocks: int | None = None
    block_bytes: int | None = None
    """KV bytes of one block on one rank; an estimate from the KV cache configuration."""
    bidirectional: bool | None = None
    recompute_threshold: int | None = None
    hold_ttl_ns: int | None = None
    lease_ns: int | None = None
    load_failure_policy: str | None = None
    prefix_caching: bool | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    dp_rank: int | None = None
    rank: int | None = None
    """The worker's rank; None from a scheduler process."""


class Handle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A ``kv_transfer_params`` seen going in or out. Its identity is (engine_id, request_id)."""

    engine_id: str
    request_id: str
    tokens: int | None = None
    blocks: int | None = None
    expiry_s: float | None = None
    """``remote_blocks_expiry_time``: the *holder's* ``perf_counter``; None when the field is missing."""


class Body(msgspec.Struct, kw_only=True, tag=True, omit_defaults=True):
    """Base of every event body: a flat record plus ``Handle`` fields, encoded as ``turnscope.<kind>.<field>``.

    Tagged with its class name, so that journal and snapshots can read a union of bodies back.
    """

    EVENT: ClassVar[EventName]


class EngineState(Body, kw_only=True):
    """The hook is active in a process (``started``) or going away (``stopping``, ``switched_off``)."""

    EVENT = EventName.ENGINE
    state: str
    wrapped: list[str] = []
    """What the hook holds on to in this process, e.g. ``scheduler``, ``nixl_wrapper``."""
    message: str | None = None


class Heartbeat(Body, kw_only=True):
    """Sent every few seconds by every emitter."""

    EVENT = EventName.HEARTBEAT
    last_seq: int
    """The highest sequence number given so far, before any drop."""
    dropped: int = 0
    """Events dropped so far by this process (ring full, send failed for good)."""
    errors: int = 0
    """Exceptions caught so far inside hook bodies."""
    open_requests: list[str] = []
    """Request ids (proxy: turn ids) added and not ended, oldest first."""
    open_more: int = 0
    """How many more there are than listed."""


class Request(Body, kw_only=True):
    """One engine request, sent once when the engine frees it."""

    EVENT = EventName.REQUEST
    request_id: str
    leg: Leg
    session_id: str | None = None
    traceparent: str | None = None
    input_tokens: int
    output_tokens: int
    computed_tokens: int | None = None
    """As the engine reported: ``prefill_stats``; None when it was never scheduled."""
    local_hit_tokens: int | None = None
    external_tokens: int | None = None
    """As reported: keeps its value after a failed load. Assembly decides what was really fetched."""
    stats_sent: bool = False
    """The engine handed ``prefill_stats`` to its own counters."""
    finish_reason: str
    """vLLM's FinishReason: ``stop, length, abort, error, repetition``; else its status in lower case."""
    preemptions: int = 0
    skip_cache: bool = False
    arrival_wall_ns: int | None = None
    """When vLLM's frontend got it."""
    added_mono_ns: int
    scheduled_mono_ns: int | None = None
    """First scheduled; None where the engine keeps no request events."""
    handle_in: Handle | None = None
    handle_out: Handle | None = None


class Hold(Body, kw_only=True):
    """A step in the life of a hold or lease, seen on its holder. Keyed by (engine of the batch, request_id)."""

    EVENT = EventName.HOLD
    request_id: str
    kind: HoldKind
    phase: str
    """``held`` (scheduler), ``released`` / ``expired`` / ``late_notice`` (workers, one per rank)."""
    tokens: int | None = None
    blocks: int | None = None
    bytes: int | None = None
    """Of this engine, all ranks: an estimate."""
    ttl_ns: int | None = None
    readers_expected: int | None = None
    readers_seen: int | None = None


class HoldUse(Body, kw_only=True):
    """On P, at the end of a P leg whose request carried D's handle: what was asked and what came of it."""

    EVENT = EventName.HOLD_USE
    request_id: str
    handle: Handle
    input_tokens: int
    local_hit_tokens: int | None = None
    external_tokens: int | None = None
    processed: bool = False
    """The connector took the handle up (it read, or told the holder that it need not)."""


class Transfer(Body, kw_only=True):
    """One rank's read of another engine's blocks, or its decision not to read. One per NIXL transfer handle."""

    EVENT = EventName.TRANSFER
    request_id: str
    """The reader's request, or "" where the transfer could not be tied to one."""
    direction: Direction
    state: TransferState
    remote_engine_id: str | None = None
    remote_request_id: str | None = None
    bytes: int | None = None
    descriptors: int | None = None
    duration_ns: int | None = None
    """NIXL's ``xferDuration``: an upper bound, includes up to one engine step."""
    post_ns: int | None = None
    started_mono_ns: int | None = None


class Attempt(Body, kw_only=True):
    """One prefill leg as the proxy saw it, with the decode leg that followed when it was the last."""

    EVENT = EventName.ATTEMPT
    proxy_turn_id: str
    """Random; shared by the attempts of one client request."""
    number: int = 1
    final: bool = True
    """The last attempt: everything below the prefill leg is filled in."""
    model: str | None = None
    session_id: str | None = None
    session_source: str | None = None
    """Where it was found, e.g. ``body.conversation_id``, ``header.x-session-id``."""
    prefill: Handle | None = None
    """P's own identity of the P leg, from its answer: (P engine id, P request id)."""
    x_request_id: str | None = None
    """The ``X-Request-Id`` that the P leg (the whole one on an aggregated engine) was sent with: the engine makes its
    request id of it, and where no answer names P's own identity, that is what joins them."""
    handle_given: Handle | None = None
    """D's handle of an earlier turn that the proxy put into the prefill request."""
    handle_out: Handle | None = None
    """The handle seen in D's answer."""
    handle_stored: bool | None = None
    """False when D's answer carried a handle that a later turn of the session was not given."""
    prefill_status: int | None = None
    decode_status: int | None = None
    status_code: int | None = None
    """What the client got; None when it left before the response began."""
    outcome: str = "ok"
    """``ok, error, cancelled``."""
    error_stage: str | None = None
    """``proxy, prefill, decode``."""
    streamed: bool = False
    finish_reason: str | None = None
    tool_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    last_role: str | None = None
    """Role of the request's last message: ``user`` or ``tool`` tells what the wait before it was."""
    message_roles: list[str] = []
    message_chars: list[int] = []
    started_wall_ns: int | None = None
    prefill_start_ns: int | None = None
    """All of these are offsets from the client's request reaching the proxy, one monotonic clock."""
    prefill_end_ns: int | None = None
    decode_start_ns: int | None = None
    first_byte_ns: int | None = None
    """First byte of the response body that carries content handed to the client's connection."""
    last_byte_ns: int | None = None
    caller_trace_id: str | None = None
    caller_span_id: str | None = None
    server_trace_id: str | None = None
    server_span_id: str | None = None


BODIES: tuple[type[Body], ...] = (EngineState, Heartbeat, Request, Hold, HoldUse, Transfer, Attempt)


class Event(msgspec.Struct, kw_only=True):
    """One decoded log record."""

    emitter: Emitter
    engine: Engine | None
    """None from a proxy."""
    seq: int
    """Numbered per emitter from 1, before any drop."""
    wall_ns: int
    mono_ns: int
    body: EngineState | Heartbeat | Request | Hold | HoldUse | Transfer | Attempt


# --- facts -----------------------------------------------------------------------------------------
class Turn(msgspec.Struct, kw_only=True):
    """One turn, as stored: a row of the ``turns`` table and the content of its trace.

    Token law, whenever every term is known: local_hit + fetched + external + computed = prompt, and
    recomputed + new = computed once there is evidence for the split.
    """

    turn_id: str
    """32 hex digits: the trace id."""
    revision: int = 1
    session_id: str | None = None
    session_source: str | None = None
    """Where the id came from; ``chained`` when turns were joined by their handles alone."""
    turn_index: int | None = None
    """1 for the first turn of its session that turnscope saw."""
    previous_turn_id: str | None = None
    started_ns: int
    ended_ns: int | None = None
    model: str | None = None
    prefill_engine: str | None = None
    """Bounded engine names, as in metric labels."""
    decode_engine: str | None = None
    prefill_engine_id: str | None = None
    prefill_request_id: str | None = None
    decode_engine_id: str | None = None
    decode_request_id: str | None = None
    join: str = "exact"
    """``exact`` or ``inferred``."""
    path: str = "unknown"
    reason: str = "unknown"
    status: str = "ok"
    stage: str | None = None
    """Where it failed, was cancelled or is stuck: ``proxy, prefill, handoff, decode``."""
    finish_reason: str | None = None
    suspicions: list[str] = []
    prompt_tokens: int | None = None
    local_hit_tokens: int | None = None
    fetched_tokens: int | None = None
    external_tokens: int | None = None
    computed_tokens: int | None = None
    recomputed_tokens: int | None = None
    new_tokens: int | None = None
    output_tokens: int | None = None
    offered_tokens: int | None = None
    """What the given handle offered (``remote_num_tokens``)."""
    threshold_tokens: int | None = None
    handoff_tokens: int | None = None
    """P->D: never "saved"."""
    fetched_bytes: int | None = None
    fetch_started_ns: int | None = None
    """Wall time, like every ``_started_ns``; on the clock of the process that measured the duration beside it."""
    fetch_ns: int | None = None
    fetch_reads: int | None = None
    """Reads of single ranks that make up the one logical transfer."""
    handoff_bytes: int | None = None
    handoff_started_ns: int | None = None
    handoff_ns: int | None = None
    handoff_reads: int | None = None
    prefill_queue_ns: int | None = None
    prefill_started_ns: int | None = None
    prefill_ns: int | None = None
    """P leg, from its engine accepting the request to its end."""
    decode_started_ns: int | None = None
    decode_ns: int | None = None
    ttft_ns: int | None = None
    """Client's request reaching the proxy to its first content byte; None without the proxy hook."""
    duration_ns: int | None = None
    streamed: bool | None = None
    tool_calls: int | None = None
    preemptions: int | None = None
    attempts: int = 1
    used_hold_id: str | None = None
    """The hold this turn was offered."""
    left_hold_id: str | None = None
    """The hold its answer left on D, or None when there is none."""
    has_prefill: bool = False
    has_decode: bool = False
    has_attempt: bool = False
    caller_trace_id: str | None = None
    caller_span_id: str | None = None
    server_trace_id: str | None = None
    server_span_id: str | None = None
    late: bool = False
    """A fact arrived after the turn was counted."""


class HoldRecord(msgspec.Struct, kw_only=True):
    """One hold or lease, as stored: a row of the ``holds`` table."""

    hold_id: str
    revision: int = 1
    kind: str
    engine: str
    engine_id: str
    generation: str
    request_id: str
    session_id: str | None = None
    turn_id: str | None = None
    """The turn that left it."""
    used_by_turn_id: str | None = None
    tokens: int | None = None
    blocks: int | None = None
    bytes: int | None = None
    started_ns: int
    ttl_ns: int | None = None
    ended_ns: int | None = None
    """Observed release; None while held. Never start + TTL where the release was observed."""
    held_ns: int | None = None
    """By the holder's monotonic clock."""
    outcome: str | None = None
    """None while held."""
    readers_expected: int | None = None
    readers_seen: int | None = None
    late_notices: int = 0


# --- what assembly hands to the outputs ---------------------------------------------------------------
class Contribution(msgspec.Struct, frozen=True, array_like=True):
    """One addition to a counter, or one observation of a histogram, of the catalogue."""

    metric: str
    labels: tuple[str, ...]
    """In the order the catalogue names them."""
    value: float


class Final(msgspec.Struct, kw_only=True, tag=True):
    """An entity counted: once per key, ever. Journalled before its contributions are added."""

    key: str
    """``turn:<id>``, ``hold:<id>``, ``leg:<engine>/<generation>/<request>``, ``latch:<turn id>/<suspicion>`` ..."""
    contributions: list[Contribution]
    turn: Turn | None = None
    hold: HoldRecord | None = None


class Revision(msgspec.Struct, kw_only=True, tag=True):
    """A newer row for the store. Adds nothing to the counters of its entity."""

    turn: Turn | None = None
    hold: HoldRecord | None = None


Fact = Final | Revision


class Sample(msgspec.Struct, frozen=True):
    """The present value of a gauge of the catalogue."""

    metric: str
    labels: tuple[str, ...]
    value: float


# --- what the sidecar knows of its sources and of itself: `GET /status`, read by `turnscope doctor` ----------------
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
