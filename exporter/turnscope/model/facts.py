"""What assembly makes of events: turns and holds, as they are stored."""

from __future__ import annotations

import msgspec


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
    prefill_dp_rank: int | None = None
    """Which of several data-parallel engines; None where it is alone."""
    decode_dp_rank: int | None = None
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
    """On the wire, all ranks; partial where not all of them were seen. Copies to and from host buffers are no part."""
    fetch_started_ns: int | None = None
    """Wall time, like every ``_started_ns``; on the clock of the process that measured the duration beside it."""
    fetch_ns: int | None = None
    fetch_reads: int | None = None
    """Reads of single ranks that make up the one logical transfer."""
    fetch_logical_bytes: int | None = None
    """KV that was moved, each part once: less than on the wire where several ranks read the same; None: not known."""
    fetch_transfers: int | None = None
    """Logical transfers: one, unless the request was tried again."""
    fetch_ranks_seen: int | None = None
    fetch_ranks_expected: int | None = None
    handoff_bytes: int | None = None
    handoff_started_ns: int | None = None
    handoff_ns: int | None = None
    handoff_reads: int | None = None
    handoff_logical_bytes: int | None = None
    handoff_transfers: int | None = None
    handoff_ranks_seen: int | None = None
    handoff_ranks_expected: int | None = None
    transport: str | None = None
    """``efa, tcp, local`` or ``unknown``: what carried its transfers; None when it had none."""
    transport_inferred_from: str | None = None
    """The counters that say so; "upper bound" where other traffic shared the card."""
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
