"""Every field of a turn that is shown: its label, unit and explanation, once.

The table of turns and the details of one turn are both made from ``GROUPS``. A new field of the model gets an entry
here, or a reason in ``ELSEWHERE``: a test names the ones that have neither.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from turnscope.semconv import Status
from turnscope_app import words
from turnscope_app.columns import Column, Kind, Row

NONE: Final = "none"
NOT_SEEN: Final = "not seen"


class Group(NamedTuple):
    """Figures of a turn that belong together."""

    title: str
    listed: tuple[Column, ...]
    """Shown in the table of turns as well."""
    more: tuple[Column, ...] = ()
    """Shown in the details of one turn only."""


def _mark(row: Row) -> str:
    marks = ["⚠"] if row["suspicions"] else []
    if row["status"] != Status.OK:
        marks.append("✕")
    return " ".join(marks)


def hold_fate(row: Row) -> str | None:
    """What became of the blocks a turn left; None when a hold is known to exist and nothing was reported of it."""
    if row["left_hold_id"] is None:
        return words.NO_HOLD
    fate: str | None = row["hold_fate"]
    return fate


HEAD: Final = (
    Column(
        "number",
        "Turn",
        "Its number in the session, from 1 for the first one that turnscope saw.",
        Kind.COUNT,
        width=60,
    ),
    Column(
        "mark",
        "Check",
        "⚠ the answer may be wrong · ✕ not answered. The story is below the table.",
        width=70,
        value=_mark,
    ),
)
"""Columns of the table of turns that are no figures."""

GROUPS: Final = (
    Group(
        "What happened",
        (
            Column("started_ns", "Started", "When the request came in.", Kind.TIME),
            Column(
                "path",
                "Reuse",
                "Where the reused part of the prompt came from (path).",
                Kind.WORD,
                vocabulary=words.PATHS,
            ),
            Column(
                "reason",
                "Why no more was fetched back",
                "The one reason, in the closed list that the About page explains.",
                Kind.WORD,
                vocabulary=words.REASONS,
            ),
            Column("status", "Ended", "Whether the turn was answered (status).", Kind.WORD, vocabulary=words.STATUSES),
        ),
        (
            Column(
                "suspicions",
                "Possibly wrong",
                "Evidence that reused memory did not belong to this prompt (suspicion).",
                Kind.WORDS,
                vocabulary=words.SUSPICIONS,
                absent="no evidence of it",
            ),
            Column("stage", "Trouble at", "Where it failed, was cancelled or is stuck.", absent=NONE),
            Column("finish_reason", "Answer ended by", "The engine's finish reason: stop, length, tool_calls."),
            Column("attempts", "Attempts", "How often the proxy tried; more than 1 means retries.", Kind.COUNT),
            Column("preemptions", "Pushed out", "How often an engine preempted it to make room.", Kind.COUNT),
        ),
    ),
    Group(
        "Tokens",
        (
            Column("prompt_tokens", "Prompt", "Length of the prompt.", Kind.TOKENS),
            Column(
                "local_hit_tokens",
                "Already there",
                "Found in the prefill worker's own cache (local hit).",
                Kind.TOKENS,
            ),
            Column(
                "fetched_tokens",
                "Fetched back",
                "Read back from the decode worker that had kept them (reverse fetch).",
                Kind.TOKENS,
            ),
            Column("external_tokens", "Other store", "Loaded from a separate KV cache store (external).", Kind.TOKENS),
            Column("computed_tokens", "Computed", "Computed on the prefill worker, new text included.", Kind.TOKENS),
            Column(
                "recomputed_tokens",
                "Computed again",
                "Of those, computed in this session before: wasted work (recomputed).",
                Kind.TOKENS,
            ),
            Column(
                "new_tokens", "New text", "Of those, never seen in this session before: unavoidable (new).", Kind.TOKENS
            ),
            Column("output_tokens", "Answer", "Length of the answer.", Kind.TOKENS),
        ),
        (
            Column(
                "offered_tokens",
                "Offered",
                "What the handle that the turn brought along offered to fetch.",
                Kind.TOKENS,
                absent="nothing was offered",
            ),
            Column(
                "threshold_tokens",
                "Least worth fetching",
                "Below it the prefill worker computes instead (kv_recompute_threshold).",
                Kind.TOKENS,
            ),
            Column(
                "handoff_tokens",
                "Handed over",
                "What the decode worker read from the prefill worker (handoff).",
                Kind.TOKENS,
            ),
        ),
    ),
    Group(
        "Times",
        (
            Column(
                "ttft_ns",
                "First token",
                "From the request reaching the proxy to the first content byte of the answer.",
                Kind.MS,
            ),
            Column("prefill_queue_ns", "Queue", "Waiting on the prefill engine before it was scheduled.", Kind.MS),
            Column("prefill_ns", "Prefill", "On the prefill engine, from accepting the request to its end.", Kind.MS),
            Column(
                "fetch_ns",
                "Fetch",
                "Reading back from the decode worker; an upper bound, it includes up to one engine step.",
                Kind.MS,
            ),
            Column("decode_ns", "Decode", "On the decode engine, from accepting the request to its end.", Kind.MS),
            Column(
                "duration_ns",
                "Whole turn",
                "From the request reaching the proxy to the last byte of the answer.",
                Kind.MS,
            ),
        ),
        (
            Column(
                "handoff_ns",
                "Handing over",
                "The decode worker reading from the prefill worker; an upper bound as well.",
                Kind.MS,
            ),
        ),
    ),
    Group(
        "Moved between workers",
        (
            Column("fetched_bytes", "Fetched back", "Data moved from the decode to the prefill worker.", Kind.BYTES),
            Column(
                "handoff_bytes",
                "Handed over",
                "Data moved from the prefill to the decode worker for this turn (handoff).",
                Kind.BYTES,
            ),
        ),
        (
            Column("fetch_reads", "Reads, fetched back", "Reads of single ranks that make up the fetch.", Kind.COUNT),
            Column("handoff_reads", "Reads, handed over", "Reads of single ranks that make it up.", Kind.COUNT),
        ),
    ),
    Group(
        "Kept for the next turn",
        (
            Column(
                "hold_fate",
                "Kept for the next turn",
                "What became of the blocks this turn left on the decode worker (hold outcome).",
                Kind.WORD,
                vocabulary=words.FATES,
                value=hold_fate,
            ),
            Column("hold_held_ns", "Kept for", "How long, by the decode worker's own clock.", Kind.SECONDS),
        ),
        (
            Column(
                "hold_pause_ns",
                "Pause until the next turn",
                "From the end of this turn to the start of the next of its session.",
                Kind.SECONDS,
                absent="no later turn seen",
            ),
            Column("hold_ttl_ns", "Time limit", "The decode worker's (decoder_kv_blocks_ttl).", Kind.SECONDS),
            Column("hold_tokens", "Kept", "How much of the conversation the kept blocks hold.", Kind.TOKENS),
            Column("hold_bytes", "Kept", "Memory on the decode worker.", Kind.BYTES),
        ),
    ),
    Group(
        "Request",
        (),
        (
            Column("model", "Model", "As the client asked for it.", absent=NOT_SEEN),
            Column("prefill_engine", "Prefill engine", "Where the prompt was read.", absent=NOT_SEEN),
            Column("decode_engine", "Decode engine", "Where the answer was written.", absent=NOT_SEEN),
            Column("streamed", "Streamed", "Whether the client got the answer piece by piece.", Kind.YES_NO),
            Column("tool_calls", "Tool calls", "How many the answer asked for.", Kind.COUNT),
            Column(
                "session_source", "Session id from", "Where in the request the session's id was found.", absent=NONE
            ),
            Column("join", "Joined", "exact: by ids that pass between the parts; inferred: by time alone (join)."),
            Column("late", "Late facts", "Whether facts came after the turn had been counted.", Kind.YES_NO),
            Column("prefill_request_id", "Request on prefill", "The id in the prefill engine's log.", absent=NOT_SEEN),
            Column("decode_request_id", "Request on decode", "The id in the decode engine's log.", absent=NOT_SEEN),
            Column("caller_trace_id", "Caller's trace", "The trace that the request belonged to.", absent=NONE),
            Column("turn_id", "Trace id", "The turn's trace in your tracing backend, and its id in turnscope."),
        ),
    ),
)

TURNS: Final = (*HEAD, *(column for group in GROUPS for column in group.listed))

ELSEWHERE: Final = {
    "session_id": "the page's title",
    "turn_index": "the turn's number",
    "previous_turn_id": "links between traces",
    "revision": "of the row, not of the turn",
    "prefill_engine_id": "the engine's name is shown",
    "decode_engine_id": "the engine's name is shown",
    "has_prefill": "what is not measured says so",
    "has_decode": "what is not measured says so",
    "has_attempt": "what is not measured says so",
    "used_hold_id": "the hold's own row",
    "left_hold_id": "the hold's own row",
    "fetch_started_ns": "the turn's trace",
    "handoff_started_ns": "the turn's trace",
    "prefill_started_ns": "the turn's trace",
    "decode_started_ns": "the turn's trace",
    "ended_ns": "start and duration are shown",
    "caller_span_id": "the turn's trace",
    "server_trace_id": "the turn's trace",
    "server_span_id": "the turn's trace",
}
"""Fields of a turn without an entry, and why."""
