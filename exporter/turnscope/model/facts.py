"""What assembly makes of events: turns and holds, as they are stored."""

from __future__ import annotations

from typing import Final

import msgspec

from turnscope.semconv import Detail


class TurnAttempt(msgspec.Struct, kw_only=True, gc=False):
    """One attempt of a client request that took several."""

    number: int
    final: bool
    """The one whose turn this is; the others were given up."""
    turn_id: str
    """Of its own P leg: what the engines' events are keyed by."""
    path: str
    status: str
    stage: str | None = None
    prefill_engine: str | None = None
    started_ns: int | None = None
    duration_ns: int | None = None
    moved_bytes: int | None = None
    """Read for it, in both directions."""


class Turn(msgspec.Struct, kw_only=True, gc=False):
    """One turn, as stored: a row of the ``turns`` table and the content of its trace.

    Token law, whenever every term is known: local_hit + fetched + external + computed = prompt, and
    recomputed + new = computed once there is evidence for the split.
    """

    turn_id: str
    """32 hex digits: the trace id."""
    revision: int = 1
    source: str = "hooks"
    """``hooks``, or the name of the importer that it comes from: then what a field holds is what that file told."""
    run: str | None = None
    """The benchmark run that it was imported as a part of."""
    session_id: str | None = None
    session_source: str | None = None
    """Where the id came from. Inferred: ``span``, the calling agent's; ``chained``, made up where turns were joined by
    their handles alone."""
    turn_index: int | None = None
    """1 for the first turn of its session that turnscope saw."""
    previous_turn_id: str | None = None
    parent_session_id: str | None = None
    """The session that started this one."""
    agent_id: str | None = None
    """Which of several agents of one session asked."""
    parent_agent_id: str | None = None
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
    diverged_message: int | None = None
    """The first message in which the request differs from the turn before, from 0; None where no message does."""
    diverged_role: str | None = None
    """Its role; ``model, system, tools, parameters`` of a field beside the messages. None: not seen to differ."""
    diverged_kind: str | None = None
    """``edited, removed, inserted, truncated, compacted, answer_changed, reasoning_stripped``."""
    diverged_chars_before: int | None = None
    """Characters that stood there in the turn before, of all messages that were replaced; None: nothing did."""
    diverged_chars: int | None = None
    """Characters that stand there now."""
    diverged_evidence: str | None = None
    """``digests``, or by ``lengths`` alone: then it differs there at the latest. Of a model, ``names``."""
    prompt_tokens: int | None = None
    local_hit_tokens: int | None = None
    fetched_tokens: int | None = None
    external_tokens: int | None = None
    computed_tokens: int | None = None
    recomputed_tokens: int | None = None
    new_tokens: int | None = None
    rewritten_tokens: int | None = None
    """The part of the new ones that the session had seen before, at another place."""
    suspect_tokens: int | None = None
    """The part of the reused tokens that may be of other text than the prompt: never "saved". Stays in its source."""
    mismatch_evidence: str | None = None
    """What speaks for it: ``digests, lengths, inferred``; None where nothing does."""
    continuity_evidence: str = "unknown"
    """``digests, first_turn, lengths, unverifiable, unknown``: all but the first two leave computed tokens unsplit."""
    diverged_after: int | None = None
    """The prompt is known to continue what D holds (else the previous turn) for so many tokens ..."""
    diverged_before: int | None = None
    """... and known not to for so many; None for both where it was not seen to part. Where the mismatch is inferred:
    between them begins the KV that may be wrong."""
    local_miss: str = "unknown"
    output_tokens: int | None = None
    samples: int = 1
    """Requests to P that brought the same prompt (n > 1); it is counted once, with the split of the first."""
    reported_local_tokens: int | None = None
    """As P's engine reported them, possible or not; what really became of the prompt stands above."""
    reported_external_tokens: int | None = None
    reported_computed_tokens: int | None = None
    offered_tokens: int | None = None
    """What the given handle offered (``remote_num_tokens``)."""
    offered_by_engine_id: str | None = None
    """The engine that the given handle names."""
    replaced_by_engine_id: str | None = None
    """The engine that has come to listen in its place."""
    threshold_tokens: int | None = None
    remainder_tokens: int | None = None
    """What the handle offered beyond the local hit, at most the prompt: fetched if at least the threshold."""
    handoff_tokens: int | None = None
    """P->D: never "saved"."""
    decode_computed_tokens: int | None = None
    """Prompt tokens that D computed itself: one where all was handed over."""
    fetched_bytes: int | None = None
    """On the wire, all ranks; partial where not all of them were seen. Copies to and from host buffers are no part."""
    fetch_started_ns: int | None = None
    """Wall time, like every ``_started_ns``; on the clock of the process that measured the duration beside it."""
    fetch_ns: int | None = None
    """Of the one logical transfer: from its first rank's begin to its last rank's end, where one clock tells, else its
    longest read. ``handoff_ns`` likewise. Net gain takes the same, and what a failed read took besides."""
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
    recompute_ns: int | None = None
    """What it took to compute the recomputed tokens, by this engine's measured rate. None until the rate is known."""
    recompute_low_ns: int | None = None
    """Nine in ten times it lies between these two."""
    recompute_high_ns: int | None = None
    refetch_ns: int | None = None
    """What it would have taken to fetch them instead."""
    refetch_low_ns: int | None = None
    refetch_high_ns: int | None = None
    refetch_basis: str | None = None
    """``measured``: by this engine's own fetches; ``assumed``: before it had enough of them."""
    late_by_ns: int | None = None
    """When P used the handle, less its hold's true expiry: negative is before it. P declines from 5 s before it on.
    None where the two hosts' clocks cannot be compared."""
    late_by_error_ns: int | None = None
    """Of ``late_by_ns``, either way; 0 where one clock timed both."""
    streamed: bool | None = None
    speculative: bool | None = None
    """The engine that decoded drafts tokens: its draft model's KV is not handed over, which slows the first step."""
    tool_calls: int | None = None
    """How many tools its answer asked for; None without the proxy hook."""
    last_role: str | None = None
    """Role of the request's last message: ``user`` or ``tool`` tells what the wait before it was. None without the
    proxy hook, or where the request has no messages."""
    preemptions: int | None = None
    attempts: int = 1
    attempts_made: list[TurnAttempt] = []
    """Each of them, where there were several."""
    wasted_bytes: int | None = None
    """Read for attempts that were given up, or for an answer that never came; None where no read was measured."""
    retry_of: str | None = None
    """The turn that failed and was sent again by this one: inferred from session, messages' lengths and prompt."""
    fork_of: str | None = None
    """The same, of a turn that was answered: a regeneration."""
    stuck_cause: str | None = None
    """Why the engine never ran it: ``bidirectional_off, host_buffer, preempted, load_failed, unknown``."""
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
    withdrawn: bool = False
    """Shown while it stood still, until it was known that it is no turn by itself, or went on: readers leave it out."""
    part_of: str | None = None
    """Of one that is withdrawn: the turn that it is an attempt or a part of."""


TTFT_FIELDS: Final = {
    Detail.PROXY: "ttft_proxy_ns",
    Detail.QUEUE: "ttft_queue_ns",
    Detail.REVERSE_FETCH: "ttft_fetch_ns",
    Detail.PREFILL: "ttft_prefill_ns",
    Detail.HANDOFF: "ttft_handoff_ns",
    Detail.FIRST_STEP: "ttft_first_step_ns",
    Detail.UNATTRIBUTED: "ttft_unattributed_ns",
}
"""The fields of a turn that sum to its time to first token, in the order in which they mostly come; the proxy's part,
which is on both sides of the prefill, comes first."""


class HoldRecord(msgspec.Struct, kw_only=True, gc=False):
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
    steps: list[str] = []
    """Of the handle's life, ``<step> <observer>``: who saw it issued, held, given, read, released. Empty of a lease."""
