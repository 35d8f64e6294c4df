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
    """From P accepting the request to its first step, less the reverse fetch, which engines count as waiting."""
    prefill_started_ns: int | None = None
    prefill_ns: int | None = None
    """P leg, from its engine accepting the request to its end."""
    decode_started_ns: int | None = None
    decode_ns: int | None = None
    ttft_ns: int | None = None
    """Client's request reaching the proxy to its first content byte; None without the proxy hook."""
    ttft_proxy_ns: int | None = None
    """Parts of ``ttft_ns``: they add up to it. Not measured is None, and its time is in ``unattributed``.
    In the proxy, before and between its requests to P and D."""
    ttft_queue_ns: int | None = None
    """Accepted by P, and by D, and neither loading nor computing."""
    ttft_fetch_ns: int | None = None
    """P reading back what D held."""
    ttft_prefill_ns: int | None = None
    """Computing the prompt: from the request's first step to the end of the P leg."""
    ttft_handoff_ns: int | None = None
    """D reading P's blocks."""
    ttft_first_step_ns: int | None = None
    """From D having the blocks to the first byte, the way back included; at most what is usual on this engine where it
    took unusually long."""
    ttft_unattributed_ns: int | None = None
    """On the way, in front ends, in earlier attempts, in an unusually slow first step, or not measured."""
    first_step_ns: int | None = None
    """From D having the blocks to the first byte, whole."""
    first_step_usual_ns: int | None = None
    """The median of this engine when the turn was counted; None until it has enough turns."""
    duration_ns: int | None = None
    net_gain_ns: int | None = None
    """What the fetch saved: the compute that it spared by this engine's measured rate, less its own time. Negative when
    computing would have been faster. None until the engine's rate is known. Suspect tokens spare nothing."""
    net_gain_low_ns: int | None = None
    """Nine in ten times it lies between these two."""
    net_gain_high_ns: int | None = None
    late_by_ns: int | None = None
    """When P used the handle, less its hold's true expiry: negative is before it. P declines from 5 s before it on.
    None where the two hosts' clocks cannot be compared."""
    late_by_error_ns: int | None = None
    """Of ``late_by_ns``, either way; 0 where one clock timed both."""
    streamed: bool | None = None
    speculative: bool | None = None
    """The engine that decoded drafts tokens: its draft model's KV is not handed over, which slows the first step."""
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
    """By the holder's monotonic clock; of a lost holder, until it was last heard or its next start."""
    deadline_ns: int | None = None
    """When it ends if nobody reads it, by the holder's clock. A lease's is its first one: D renews it while it queues
    the request."""
    overdue_ns: int | None = None
    """How long past its deadline its observed release came; None when before it. Not of leases, which D renews."""
    outcome: str | None = None
    """None while held."""
    readers_expected: int | None = None
    readers_seen: int | None = None
    late_notices: int = 0
    """Readers' notices, one per rank, that came after it had been given up: they had read what was no longer held."""
    late_notice_ns: int | None = None
    """From its begin to the last of them, by the holder's monotonic clock."""
