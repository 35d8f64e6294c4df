"""Every field of a turn that is shown: its label, unit and explanation, once.

The table of turns and the details of one turn are both made from ``GROUPS``. A new field of the model gets an entry
here, or a reason in ``ELSEWHERE``: a test names the ones that have neither.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from turnscope.semconv import Path, Status
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


def path(row: Row) -> str | None:
    """How the turn's prompt was reused; of a prompt that held nothing known, that all of it was new."""
    if row["path"] == Path.RECOMPUTE and row["recomputed_tokens"] == 0:
        return words.ALL_NEW
    found: str | None = row["path"]
    return found


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
                value=path,
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
            Column(
                "mismatch_evidence",
                "Known from",
                "What speaks for wrong memory: digests of the tokens, lengths alone, or inferred from an earlier turn.",
                absent=NONE,
            ),
            Column("stage", "Trouble at", "Where it failed, was cancelled or is stuck.", absent=NONE),
            Column("stuck_cause", "Stuck because", "Why the engine never ran it.", absent=NONE),
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
                "Reused, own memory",
                "Found in the own memory of the server that reads prompts (local hit in the prefill engine's cache).",
                Kind.TOKENS,
            ),
            Column(
                "fetched_tokens",
                "Reused, fetched back",
                "Read back from the server that writes answers, which had kept them (reverse fetch from the decode "
                "engine).",
                Kind.TOKENS,
            ),
            Column(
                "external_tokens",
                "Other store",
                "From a separate store of such memory (external).",
                Kind.TOKENS,
            ),
            Column(
                "computed_tokens",
                "Computed",
                "Computed by the prompt's reader (prefill engine), new text included.",
                Kind.TOKENS,
            ),
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
                "rewritten_tokens",
                "Moved text",
                "Of the new text, seen before in this session at another place (rewritten).",
                Kind.TOKENS,
            ),
            Column(
                "suspect_tokens",
                "Reused, maybe wrong",
                "Of the reused part, what may be memory of other text; it saved nothing (suspect).",
                Kind.TOKENS,
            ),
            Column(
                "diverged_after",
                "Same text up to",
                "The prompt is known to go on from the turn before for so long ...",
                Kind.TOKENS,
                absent="not seen to part",
            ),
            Column(
                "diverged_before",
                "Other text from",
                "... and to be another one from here at the latest.",
                Kind.TOKENS,
                absent="not seen to part",
            ),
            Column(
                "local_miss",
                "Not in the reader's own memory because",
                "Why the engine did not find what the session had computed before (local miss).",
            ),
            Column(
                "continuity_evidence",
                "Compared by",
                "What told old text from new: digests of the tokens, lengths alone, or nothing.",
            ),
            Column(
                "remainder_tokens",
                "Left to fetch",
                "What was offered beyond the engine's own cache, at most the prompt.",
                Kind.TOKENS,
                absent="nothing was offered",
            ),
            Column(
                "decode_computed_tokens",
                "Computed where the answer was written",
                "Of the prompt, what the server that writes answers (decode engine) computed itself; 1 where all was "
                "handed over.",
                Kind.TOKENS,
            ),
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
                "Below it the prompt's reader (prefill engine) computes instead (kv_recompute_threshold).",
                Kind.TOKENS,
            ),
            Column(
                "handoff_tokens",
                "Handed over",
                "What the writer of the answer took over from the reader of the prompt (handoff, decode from prefill "
                "engine).",
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
            Column(
                "prefill_queue_ns",
                "Queue",
                "Waiting at the prompt's reader (prefill engine) before it was scheduled.",
                Kind.MS,
            ),
            Column(
                "prefill_ns",
                "Prefill",
                "At the prompt's reader (prefill engine), from accepting the request to its end.",
                Kind.MS,
            ),
            Column(
                "fetch_ns",
                "Fetch",
                "Reading back what was kept (from the decode engine); an upper bound, it includes up to one engine "
                "step.",
                Kind.MS,
            ),
            Column(
                "decode_ns",
                "Decode",
                "At the answer's writer (decode engine), from accepting the request to its end.",
                Kind.MS,
            ),
            Column(
                "duration_ns",
                "Whole turn",
                "From the request reaching the proxy to the last byte of the answer.",
                Kind.MS,
            ),
        ),
        (
            Column("ttft_proxy_ns", "First token: proxy", "The proxy's own part of the time to it.", Kind.MS),
            Column("ttft_queue_ns", "First token: queues", "Waiting in the engines' queues.", Kind.MS),
            Column(
                "ttft_fetch_ns", "First token: fetch", "Reading back what was kept (from the decode engine).", Kind.MS
            ),
            Column("ttft_prefill_ns", "First token: computing", "Computing the rest of the prompt.", Kind.MS),
            Column(
                "ttft_handoff_ns",
                "First token: handing over",
                "The writer taking over the prompt's memory (handoff).",
                Kind.MS,
            ),
            Column(
                "ttft_first_step_ns",
                "First token: first step",
                "The usual first step of the answer's writer (decode engine).",
                Kind.MS,
            ),
            Column(
                "ttft_unattributed_ns",
                "First token: not attributed",
                "What none of these parts explains. All parts together are the time to the first token.",
                Kind.MS,
            ),
            Column(
                "first_step_ns",
                "First step",
                "The first step of the answer's writer (decode engine), as it was.",
                Kind.MS,
            ),
            Column("first_step_usual_ns", "First step, usually", "Its median on this engine.", Kind.MS),
            Column(
                "net_gain_ns",
                "Gained by fetching",
                "Time that computing would have taken, less what fetching took; below 0 where computing was faster. "
                "Estimated from this engine's own speed.",
                Kind.MS,
            ),
            Column("net_gain_low_ns", "... at least", "The lower end of that estimate.", Kind.MS),
            Column("net_gain_high_ns", "... at most", "The upper end of that estimate.", Kind.MS),
            Column(
                "recompute_ns",
                "Spent on computing again",
                "What computing it once more took, by this engine's own speed.",
                Kind.MS,
            ),
            Column("recompute_low_ns", "... at least", "The lower end of that estimate.", Kind.MS),
            Column("recompute_high_ns", "... at most", "The upper end of that estimate.", Kind.MS),
            Column("refetch_ns", "Fetching it instead", "What fetching the same would have taken.", Kind.MS),
            Column("refetch_low_ns", "... at least", "The lower end of that estimate.", Kind.MS),
            Column("refetch_high_ns", "... at most", "The upper end of that estimate.", Kind.MS),
            Column(
                "refetch_basis",
                "Estimated by",
                "measured: this engine's own fetches; assumed: the published reference, while there are too few.",
                absent=NONE,
            ),
            Column(
                "late_by_ns",
                "Came too late by",
                "Against the time limit of what was kept (the hold's end), before which the reader wants 5 s; below "
                "0: so long "
                "before it.",
                Kind.SECONDS,
                absent="not too late",
            ),
            Column(
                "late_by_error_ns", "... give or take", "How far the clocks may be apart.", Kind.SECONDS, absent=NONE
            ),
            Column(
                "handoff_ns",
                "Handing over",
                "The writer of the answer taking over what the prompt's reader had (prefill to decode); an upper "
                "bound as well.",
                Kind.MS,
            ),
        ),
    ),
    Group(
        "Moved between engines",
        (
            Column(
                "fetched_bytes",
                "Fetched back",
                "Data moved back to the prompt's reader (from the decode to the prefill engine).",
                Kind.BYTES,
            ),
            Column(
                "handoff_bytes",
                "Handed over",
                "Data moved on to the answer's writer (from the prefill to the decode engine: handoff).",
                Kind.BYTES,
            ),
        ),
        (
            Column(
                "transport",
                "Carried by",
                "efa, tcp, local or unknown: what the node's network cards say carried the data (transport).",
                absent="nothing was moved",
            ),
            Column("transport_inferred_from", "Says", "The counters that say so.", absent=NONE),
            Column(
                "wasted_bytes",
                "Moved for nothing",
                "For attempts that were given up, or for an answer that never came.",
                Kind.BYTES,
            ),
            Column(
                "fetch_logical_bytes",
                "Fetched back, once",
                "Each part counted once, however many ranks read it (logical bytes).",
                Kind.BYTES,
            ),
            Column("handoff_logical_bytes", "Handed over, once", "The same of the handoff.", Kind.BYTES),
            Column(
                "fetch_ranks_seen", "Ranks seen, fetched back", "Of the reader's ranks, those that told.", Kind.COUNT
            ),
            Column("fetch_ranks_expected", "Ranks, fetched back", "How many the reader has.", Kind.COUNT),
            Column(
                "handoff_ranks_seen", "Ranks seen, handed over", "Of the reader's ranks, those that told.", Kind.COUNT
            ),
            Column("handoff_ranks_expected", "Ranks, handed over", "How many the reader has.", Kind.COUNT),
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
                "What became of the memory that was kept of this turn (hold outcome).",
                Kind.WORD,
                vocabulary=words.FATES,
                value=hold_fate,
            ),
            Column(
                "hold_held_ns",
                "Kept for",
                "How long, by the own clock of the server that kept it (decode engine).",
                Kind.SECONDS,
            ),
        ),
        (
            Column(
                "hold_pause_ns",
                "Pause until the next turn",
                "From the end of this turn to the start of the next of its session.",
                Kind.SECONDS,
                absent="no later turn seen",
            ),
            Column("hold_ttl_ns", "Time limit", "Of the server that kept it (decoder_kv_blocks_ttl).", Kind.SECONDS),
            Column("hold_tokens", "Kept", "How much of the conversation was kept.", Kind.TOKENS),
            Column("hold_bytes", "Kept", "Memory on the server that wrote the answer (decode engine).", Kind.BYTES),
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
                "last_role",
                "Last message by",
                "Who wrote the request's last message: after a user it is a new question, after a tool its result.",
                absent=NOT_SEEN,
            ),
            Column(
                "session_source", "Session id from", "Where in the request the session's id was found.", absent=NONE
            ),
            Column("join", "Joined", "exact: by ids that pass between the parts; inferred: by time alone (join)."),
            Column(
                "samples",
                "Answers asked for",
                "How many answers to one prompt (n); the prompt counts once.",
                Kind.COUNT,
            ),
            Column("retry_of", "Retry of", "The turn that failed and was sent again by this one.", absent=NONE),
            Column("fork_of", "Regenerates", "The turn that was answered and is asked again by this one.", absent=NONE),
            Column("agent_id", "Agent", "Which of several agents of one session asked.", absent=NONE),
            Column("parent_session_id", "Parent session", "The session that started this one.", absent=NONE),
            Column(
                "speculative",
                "Speculative decoding",
                "Whether the writer of answers (decode engine) drafts ahead.",
                Kind.YES_NO,
            ),
            Column("late", "Late facts", "Whether facts came after the turn had been counted.", Kind.YES_NO),
            Column("source", "Told by", "hooks, or the kind of file that it was imported from."),
            Column("run", "Benchmark run", "The imported run that it is a part of.", absent=NONE),
            Column(
                "prefill_request_id",
                "Request on prefill",
                "The id in the log of the prompt's reader (prefill engine).",
                absent=NOT_SEEN,
            ),
            Column(
                "decode_request_id",
                "Request on decode",
                "The id in the log of the answer's writer (decode engine).",
                absent=NOT_SEEN,
            ),
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
    "withdrawn": "readers leave such rows out",
    "part_of": "the same",
    "diverged_message": "the story says where the request parts from the turn before",
    "diverged_role": "the same",
    "diverged_kind": "the same",
    "diverged_chars": "the same",
    "diverged_chars_before": "the same",
    "diverged_evidence": "the same",
    "parent_agent_id": "the agent is shown",
    "prefill_dp_rank": "part of the engine's name",
    "decode_dp_rank": "part of the engine's name",
    "reported_local_tokens": "what became of the prompt is shown",
    "reported_external_tokens": "what became of the prompt is shown",
    "reported_computed_tokens": "what became of the prompt is shown",
    "offered_by_engine_id": "the hold's own row",
    "replaced_by_engine_id": "the hold's own row",
    "fetch_transfers": "the reads are shown",
    "handoff_transfers": "the reads are shown",
    "attempts_made": "their number is shown",
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
