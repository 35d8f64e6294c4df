"""Every column of every table on the screens: its heading, what it means, and how its values are written."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """How a value is written. The frames hold it in the unit named here."""

    TEXT = "text"
    COUNT = "count"
    TOKENS = "tokens"
    BYTES = "bytes"
    MS = "milliseconds"
    SECONDS = "seconds"
    TIME = "UTC time"
    SHARE = "percent"
    LIST = "list of text"


class Column(NamedTuple):
    """One column: the frame's name for it is the key of the table below."""

    heading: str
    help: str
    kind: Kind = Kind.TEXT
    width: int | None = None
    """Pixels; None lets the table choose."""


SESSIONS: Final[dict[str, Column]] = {
    "session": Column("Session", "The conversation's id, as the client sent it (gen_ai.conversation.id)."),
    "last": Column("Last activity (UTC)", "When the session's newest turn ended.", Kind.TIME),
    "turns": Column("Turns", "How many model calls turnscope saw in this session.", Kind.COUNT),
    "warnings": Column(
        "Check", "Turns whose answer may be wrong, and turns that were not answered. Open the session.", width=150
    ),
    "reused": Column(
        "Reused",
        "Share of the prompt tokens that were not computed: already there, fetched back, or from another store.",
        Kind.SHARE,
        130,
    ),
    "reason": Column(
        "Most often in the way", "The most frequent reason why no more was fetched back, after first turns."
    ),
    "ttft": Column(
        "First token, median (ms)",
        "Half of the turns had their first content byte within this time, measured at the proxy.",
        Kind.MS,
    ),
    "prompt_tokens": Column("Prompt (tokens)", "Prompt tokens of all its turns together.", Kind.TOKENS),
    "local_hit_tokens": Column(
        "Already there (tokens)", "Found in the prefill worker's own cache (local hit).", Kind.TOKENS
    ),
    "fetched_tokens": Column(
        "Fetched back (tokens)", "Read back from the decode worker that had kept them (reverse fetch).", Kind.TOKENS
    ),
    "computed_tokens": Column("Computed (tokens)", "Computed on the prefill worker, new text included.", Kind.TOKENS),
    "recomputed_tokens": Column(
        "Computed again (tokens)", "Of those, computed in this session before: wasted work (recomputed).", Kind.TOKENS
    ),
    "fetched_bytes": Column("Fetched back (bytes)", "Data moved from decode to prefill workers.", Kind.BYTES),
    "models": Column("Model", "The models that served it.", Kind.LIST),
}

TURNS: Final[dict[str, Column]] = {
    "turn": Column("Turn", "Its number in the session, from 1 for the first one that turnscope saw.", Kind.COUNT),
    "mark": Column("Check", "⚠ the answer may be wrong · ✕ not answered. The story is below the table."),
    "started": Column("Started (UTC)", "When the request came in.", Kind.TIME),
    "path": Column("Reuse", "Where the reused part of the prompt came from (path)."),
    "reason": Column(
        "Why no more was fetched back", "The one reason, in the closed list that the About page explains."
    ),
    "prompt_tokens": Column("Prompt (tokens)", "Length of the prompt.", Kind.TOKENS),
    "local_hit_tokens": SESSIONS["local_hit_tokens"],
    "fetched_tokens": SESSIONS["fetched_tokens"],
    "external_tokens": Column("Other store (tokens)", "Loaded from a separate KV cache store (external).", Kind.TOKENS),
    "computed_tokens": SESSIONS["computed_tokens"],
    "recomputed_tokens": SESSIONS["recomputed_tokens"],
    "new_tokens": Column("New text (tokens)", "Computed and never seen in this session before (new).", Kind.TOKENS),
    "output_tokens": Column("Answer (tokens)", "Length of the answer.", Kind.TOKENS),
    "fetched_bytes": SESSIONS["fetched_bytes"],
    "handoff_bytes": Column(
        "Handed over (bytes)", "Data moved from the prefill to the decode worker for this turn (handoff).", Kind.BYTES
    ),
    "ttft": Column(
        "First token (ms)", "From the request reaching the proxy to the first content byte of the answer.", Kind.MS
    ),
    "queue": Column("Queue (ms)", "Waiting on the prefill engine before it was scheduled.", Kind.MS),
    "prefill": Column("Prefill (ms)", "On the prefill engine, from accepting the request to its end.", Kind.MS),
    "fetch": Column(
        "Fetch (ms)", "Reading back from the decode worker; an upper bound, it includes up to one engine step.", Kind.MS
    ),
    "decode": Column("Decode (ms)", "On the decode engine, from accepting the request to its end.", Kind.MS),
    "duration": Column(
        "Whole turn (ms)", "From the request reaching the proxy to the last byte of the answer.", Kind.MS
    ),
    "kept": Column(
        "Kept for the next turn", "What became of the blocks this turn left on the decode worker (hold outcome)."
    ),
    "kept_for": Column("Kept for (s)", "How long they were kept, by the decode worker's own clock.", Kind.SECONDS),
    "status": Column("Ended", "Whether the turn was answered (status)."),
    "turn_id": Column("Trace id", "The turn's trace in your tracing backend, and its id everywhere in turnscope."),
}

WORDS: Final[dict[str, Column]] = {
    "plain": Column("In plain words", "As the tables here say it.", width=200),
    "term": Column("In metrics and traces", "The value of the label or attribute.", width=220),
    "turns": Column("Turns", "How many turns of this store have it.", Kind.COUNT, 70),
    "share": Column("Share", "Of all turns in this store.", Kind.SHARE, 130),
    "story": Column("What it means", "One sentence for someone who meets it for the first time.", width=620),
}

HOLDS: Final[dict[str, Column]] = WORDS | {
    "turns": Column("Holds", "How many holds of this store ended so.", Kind.COUNT, 70),
    "share": Column("Share", "Of all holds in this store.", Kind.SHARE, 130),
}

COVERAGE: Final[dict[str, Column]] = {
    "what": Column("What", "A kind of measurement."),
    "turns": Column("Turns that have it", "How many turns of this store.", Kind.COUNT),
    "share": Column("Share", "Of all turns in this store.", Kind.SHARE),
    "missing": Column("What it needs", "What to switch on where it is missing."),
}

TABLES: Final = {"sessions": SESSIONS, "turns": TURNS, "words": WORDS, "holds": HOLDS, "coverage": COVERAGE}
