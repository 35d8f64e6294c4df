"""What hooks send: one body a kind of event, and the record around it."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from turnscope.model.sources import Emitter, Engine
from turnscope.semconv import Direction, EventName, HoldKind, Leg, StuckCause, TransferState


class Handle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A ``kv_transfer_params`` seen going in or out. Its identity is (engine_id, request_id)."""

    engine_id: str
    request_id: str
    tokens: int | None = None
    blocks: int | None = None
    expiry_s: float | None = None
    """``remote_blocks_expiry_time``: the *holder's* ``perf_counter``; None when the field is missing."""


class Body(msgspec.Struct, kw_only=True, tag=True, omit_defaults=True, gc=False):
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
    idle_requests: list[str] = []
    """Open requests of an engine that computed no token since the heartbeat before."""
    idle_turns: list[str] = []
    """The turns that they belong to, one each: 32 hex digits."""


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


class Stuck(Body, kw_only=True):
    """The engine promised a load for this request and queued no read: it waits for ever, while the engine says
    running = waiting = 0. Sent at once."""

    EVENT = EventName.STUCK
    request_id: str
    cause: StuckCause
    promised_tokens: int | None = None
    handle: Handle | None = None
    """D's handle that was to be read."""


class Emptied(Body, kw_only=True):
    """The engine's prefix cache was emptied (``reset_prefix_cache``): no request scheduled later finds what was in it.
    An emptying that the engine refused, since blocks were in use, is none."""

    EVENT = EventName.EMPTIED


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
    parent_session_id: str | None = None
    """The session that started this one."""
    agent_id: str | None = None
    """Which of several agents of one session asks."""
    parent_agent_id: str | None = None
    prefill: Handle | None = None
    """P's own identity of the P leg, from its answer: (P engine id, P request id)."""
    x_request_id: str | None = None
    """The ``X-Request-Id`` that the P leg (the whole one on an aggregated engine) was sent with: the engine makes its
    request id of it, and where no answer names P's own identity, that is what joins them."""
    handle_given: Handle | None = None
    """D's handle of an earlier turn that the proxy put into the prefill request."""
    handle_out: Handle | None = None
    """The handle seen in D's answer."""
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
    """Oldest first."""
    message_chars: list[int] = []
    """Characters of text, reasoning and tool calls, beside ``message_roles``."""
    message_digests: bytes = b""
    """8 bytes a message, keyed: of its role and of what it puts into the prompt. Empty without a key."""
    part_names: list[str] = []
    """Fields beside the messages that are rendered too: ``system``, ``tools``, ``prompt``, ``parameters``."""
    part_chars: list[int] = []
    part_digests: bytes = b""
    answer_chars: int | None = None
    """Of D's answer as a message: text, reasoning and tool calls. None unless it is one whole chat answer."""
    answer_reasoning_chars: int | None = None
    """How many of them are reasoning."""
    answer_digests: bytes = b""
    """8 bytes each, as of a message: the answer whole, without its reasoning, and so without blanks around it."""
    digest_key_id: str = ""
    """Hex; digests compare only under one key. Empty where there are none."""
    started_wall_ns: int | None = None
    started_mono_ns: int | None = None
    """The same moment by the proxy's monotonic clock."""
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


class Digest(Body, kw_only=True):
    """What a request's tokens were, to be compared and not to be read. Sent after its end, once it is computed.

    Keyed by (engine of the batch, request_id). ``turnscope.marks`` makes and compares them; where the marks stand
    follows from ``tokens`` and ``anchor_tokens``.
    """

    EVENT = EventName.DIGEST
    request_id: str
    leg: Leg
    tokens: int
    """How many ids it covers: the prompt and, unless on P, the answer's tokens whose KV exists."""
    input_tokens: int
    key_id: str = ""
    """Hex; digests compare only under one key. Empty where there are no marks."""
    marks: bytes = b""
    """8 bytes a mark: with the chunks before it, it stands for all tokens before it, LoRA, salt and media included."""
    anchor_tokens: int | None = None
    """Round what the marks are fine: on P the length of the given handle, on D what it holds."""
    chunks: bytes = b""
    """8 bytes a chunk, whose ends its content decides: 6 of its digest, all of these first, and 2 of its length."""
    unverifiable: str | None = None
    """Why there are no marks: ``prompt_embeds, media, too_long, dropped, strange_ids, no_key, unsupported``.

    Never taken for equal.
    """


class Fabric(Body, kw_only=True):
    """What the cards of one node counted between two looks at them: the sidecar's own collector sends it.

    Increases are summed over devices by raw counter name; a counter that no device has is absent. Names ending in
    ``_bytes`` are bytes.
    """

    EVENT = EventName.FABRIC
    node: str
    hosts: list[str] = []
    """Host names, or patterns of them, of the emitters on this node."""
    interval_ns: int | None = None
    """Monotonic time since the look before, which ends at the event's own; None at the first: nothing to compare."""
    efa_devices: int = 0
    """Ports with EFA counters that were found."""
    efa_counters: list[str] = []
    efa_increases: list[int] = []
    """One for each of ``efa_counters``."""
    efa_partial: bool = False
    """A device or counter came, went or began anew in between: the increases are lower bounds."""
    ethernet_devices: int = 0
    ethernet_counters: list[str] = []
    ethernet_increases: list[int] = []
    ethernet_partial: bool = False


AnyBody = EngineState | Heartbeat | Request | Hold | HoldUse | Transfer | Stuck | Emptied | Attempt | Digest | Fabric
BODIES: tuple[type[Body], ...] = (
    EngineState,
    Heartbeat,
    Request,
    Hold,
    HoldUse,
    Transfer,
    Stuck,
    Emptied,
    Attempt,
    Digest,
    Fabric,
)


class Event(msgspec.Struct, kw_only=True, gc=False):
    """One decoded log record."""

    emitter: Emitter
    engine: Engine | None
    """None from a proxy and from the sidecar's own collector."""
    seq: int
    """Numbered per emitter from 1, before any drop."""
    wall_ns: int
    mono_ns: int
    body: AnyBody
