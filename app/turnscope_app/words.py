"""The words on the screens: what a newcomer understands first, the engine's word second, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from turnscope.semconv import Detail, Evidence, Part, Path, Reason, Status, Suspicion, TokenSource
from turnscope.store.fates import Fate

NOT_MEASURED: Final = "not measured"
NOT_THIS: Final = (
    "What this is not: the memory meant here is the model server's working memory of a prompt (its KV cache), not what "
    "an agent remembers. These pages tell how long answers took and whether reuse may have spoiled them, not how good "
    "they are."
)
UNATTRIBUTED: Final = "Turns without a session id"
NOTHING: Final = "Nothing"
"""What was in the way of a session that had no obstacle."""


class Word(NamedTuple):
    """One value of a closed vocabulary."""

    plain: str
    term: str
    """The engine's or turnscope's own word, as in metrics and traces."""
    story: str
    """A whole sentence for someone who meets it for the first time."""

    @property
    def value(self) -> str:
        """The label's or attribute's value in metrics and traces."""
        return self.term.replace(" ", "_")

    @property
    def shown(self) -> str:
        """``Fetched back (reverse fetch)``; the plain word alone where both are the same."""
        return self.plain if self.plain.lower() == self.term.lower() else f"{self.plain} ({self.term})"


PATHS: Final[dict[str, Word]] = {
    Path.RECOMPUTE: Word(
        "Nothing reused",
        "recompute",
        "Nothing could be reused: the server that reads prompts (prefill engine) computed the whole of it.",
    ),
    Path.LOCAL_HIT: Word(
        "Own memory",
        "local hit",
        "What was reused was still in the own memory of the server that reads prompts (prefill engine's cache).",
    ),
    Path.REVERSE_FETCH: Word(
        "Fetched back",
        "reverse fetch",
        "What was reused was fetched back from the server that writes answers (decode engine), which had kept it.",
    ),
    Path.MIXED: Word(
        "Partly own, partly fetched",
        "mixed",
        "One part was in the own memory of the server that reads prompts (prefill engine), another was fetched back.",
    ),
    Path.EXTERNAL_HIT: Word(
        "From another store", "external hit", "At least a part came from a separate store of such memory (KV cache)."
    ),
    Path.UNKNOWN: Word(
        "Unknown",
        "unknown",
        "The server that reads prompts (prefill engine) did not report where the prompt's tokens came from.",
    ),
}

REASONS: Final[dict[str, Word]] = {
    Reason.NONE: Word("Nothing in the way", "none", "Everything that could be fetched back was fetched back."),
    Reason.FIRST_TURN: Word(
        "First turn", "first turn", "It is the session's first turn: there was nothing to fetch back yet."
    ),
    Reason.NO_SESSION_ID: Word(
        "No session id",
        "no session id",
        "The request named no session, so the proxy could not know which earlier turn it continues. "
        "Let the client send a conversation id.",
    ),
    Reason.REJECTED_BY_FRONTEND: Word(
        "Request refused",
        "rejected by frontend",
        "The engine's front door refused the request, so no cache was looked at. See the status code at the proxy.",
    ),
    Reason.NO_HANDLE_FROM_DECODE: Word(
        "Answer brought no handle",
        "no handle from decode",
        "The previous answer came without a handle: what a next turn asks for the memory by that was kept for it. "
        "Streamed answers lack it in current vLLM.",
    ),
    Reason.FEATURE_OFF_PREFILL: Word(
        "Switched off where prompts are read",
        "feature off prefill",
        "Fetching back is not enabled on the server that reads prompts (prefill engine): set bidirectional_kv_xfer "
        "there.",
    ),
    Reason.FEATURE_OFF_DECODE: Word(
        "Switched off where answers are written",
        "feature off decode",
        "Keeping memory for the next turn is not enabled on the server that writes answers (decode engine): set "
        "bidirectional_kv_xfer there.",
    ),
    Reason.PROXY_ENTRY_EXPIRED: Word(
        "Proxy forgot the handle",
        "proxy entry expired",
        "The pause between turns was longer than the proxy keeps a handle, so it had none to give.",
    ),
    Reason.HANDLE_NOT_GIVEN: Word(
        "Proxy did not pass the handle on",
        "handle not given",
        "The proxy had seen a handle for this session and did not put it into the request.",
    ),
    Reason.DECLINED_EXPIRED: Word(
        "Too late, declined",
        "declined expired",
        "What was kept for this turn was about to be let go, or had been (the hold on the decode engine), so it was "
        "not read. "
        "Let the proxy forget a handle 5 s before decoder_kv_blocks_ttl. To reach longer pauses, raise "
        "decoder_kv_blocks_ttl first and the proxy's limit with it.",
    ),
    Reason.BELOW_THRESHOLD: Word(
        "Too little to be worth it",
        "below threshold",
        "What could be fetched was less than kv_recompute_threshold: computing it is quicker. This is as intended.",
    ),
    Reason.LOCAL_HIT_COVERS: Word(
        "Already had everything",
        "local hit covers",
        "The server that reads prompts (prefill engine) still had all that could have been fetched. This is the best "
        "case.",
    ),
    Reason.HANDLE_CONSUMED_BY_RETRY: Word(
        "Used up by a retry",
        "handle consumed by retry",
        "An earlier attempt of this turn used the handle, and it works only once.",
    ),
    Reason.HANDLE_TAKEN_BY_SIBLING: Word(
        "Taken by a parallel turn",
        "handle taken by sibling",
        "Another turn of the session ran at the same time and took the handle first.",
    ),
    Reason.PREVIOUS_TURN_ABORTED: Word(
        "Previous turn did not finish",
        "previous turn aborted",
        "The previous turn failed or was broken off, and such a turn leaves nothing to fetch back: look there first.",
    ),
    Reason.STOPPED_BY_STRING: Word(
        "Ended by a stop string",
        "stopped by string",
        "The previous answer ended at a stop string. To the engine that looks like an abort, and it keeps nothing.",
    ),
    Reason.HOLDER_LOST: Word(
        "Memory gone with its server",
        "holder lost",
        "The server that had kept the memory (decode engine) was restarted or lost.",
    ),
    Reason.HANDSHAKE_FAILED: Word(
        "Could not connect",
        "handshake failed",
        "The server that reads prompts could not connect to the one that had kept the memory (prefill to decode "
        "engine).",
    ),
    Reason.TRANSFER_FAILED: Word(
        "Transfer failed", "transfer failed", "Reading what was kept began and failed (from the decode engine)."
    ),
    Reason.EMPTY_HANDOFF_AFTER_PREEMPTION: Word(
        "Handed over empty",
        "empty handoff after preemption",
        "The request was pushed out and resumed, and its handover to the server that writes answers carried no "
        "memory (to "
        "decode, after a preemption).",
    ),
    Reason.PREFIX_DIVERGED: Word(
        "History was changed",
        "prefix diverged",
        "This prompt does not begin with the previous turn's text: the client edited or shortened the history.",
    ),
    Reason.STUCK: Word(
        "Stuck",
        "stuck",
        "The engine waits for a transfer that nobody started: the turn will never end, and no engine gauge shows it.",
    ),
    Reason.OTHER: Word("Something else", "other", "The engine gave a reason that turnscope does not know."),
    Reason.UNKNOWN: Word("Unknown", "unknown", "There is not enough evidence to say why; see which hooks report."),
}

SUSPICIONS: Final[dict[str, Word]] = {
    Suspicion.KV_MISMATCH: Word(
        "Reused memory of other text",
        "kv mismatch",
        "Memory was reused for a prompt that it was not made of: the answer may rest on another text, although the "
        "model server reports success. It looks at where in a prompt memory belongs, not at which text it is of "
        "(engines check a block's position, not its tokens).",
    ),
    Suspicion.READ_AFTER_RELEASE: Word(
        "Read after release",
        "read after release",
        "Memory was read after the server that kept it (decode engine) had given it back: it may already have been of "
        "another text.",
    ),
    Suspicion.STALE_HANDLE: Word(
        "Old handle",
        "stale handle",
        "The handle, by which a turn asks for memory that was kept for it, was used after that memory was let go.",
    ),
    Suspicion.DUPLICATE_HANDLE: Word(
        "Handle used twice",
        "duplicate handle",
        "The same handle, by which a turn asks for memory that was kept for it, was given to more than one request; "
        "the later one may have read memory that was let go.",
    ),
    Suspicion.ANSWERED_AFTER_FAILED_LOAD: Word(
        "Answered after a failed load",
        "answered after failed load",
        "Fetching back failed, and the turn was answered all the same: its memory may have gaps.",
    ),
}

FATES: Final[dict[str, Word]] = {
    Fate.READ: Word("Fetched by the next turn", "read", "A later turn read the kept memory: keeping it paid off."),
    Fate.NOTIFIED: Word(
        "Released early",
        "notified",
        "The next turn did not need the kept memory (it had it, or too little was missing) and let it go.",
    ),
    Fate.HELD: Word("Still kept", "held", "The memory is kept; nobody has asked for it yet."),
    Fate.NOT_CONTINUED: Word(
        "Nobody came back",
        "ttl",
        "No later turn of the session has come, so the memory was let go at its time limit. "
        "This is normal: every session has a last turn.",
    ),
    Fate.TOO_LATE: Word(
        "Let go before the next turn",
        "ttl",
        "The next turn came after the time limit, when the memory was gone: "
        "with a longer decoder_kv_blocks_ttl it could have fetched it back.",
    ),
    Fate.NOT_ASKED: Word(
        "Next turn did not ask",
        "ttl",
        "A later turn came in time and did not fetch the memory, so it was kept until its time limit: "
        "the reason of that turn says why.",
    ),
    Fate.NO_SESSION: Word(
        "No session to come back to",
        "ttl",
        "The turn named no session, so no later turn could ask for its memory: "
        "it was kept until its time limit for nothing.",
    ),
    Fate.TTL: Word(
        "Let go at the time limit",
        "ttl",
        "The memory was let go at its time limit. Whether a later turn came is not known: "
        "the turn that left it is not in the store.",
    ),
    Fate.LEASE: Word("Lease ran out", "lease", "The reader did not come before the lease ended."),
    Fate.HOLDER_LOST: Word(
        "Gone with its server", "holder lost", "The server that kept the memory (decode engine) went away."
    ),
    Fate.ABORTED: Word("Broken off", "aborted", "It was given up because its request was aborted."),
    Fate.UNKNOWN: Word("Unknown", "unknown", "The memory was let go, and how was not seen."),
}
"""What became of the blocks a turn left. The engine's word is the hold's outcome; ``ttl`` has several meanings."""
_MISSED: Final = "Missed or lost"
_LIMIT: Final = "Let go at the time limit"
ENDS: Final[dict[Fate, str]] = {
    Fate.READ: FATES[Fate.READ].plain,
    Fate.NOTIFIED: FATES[Fate.NOTIFIED].plain,
    Fate.HELD: FATES[Fate.HELD].plain,
    Fate.NOT_CONTINUED: _LIMIT,
    Fate.NO_SESSION: _LIMIT,
    Fate.TTL: _LIMIT,
    Fate.TOO_LATE: _MISSED,
    Fate.NOT_ASKED: _MISSED,
    Fate.LEASE: _MISSED,
    Fate.HOLDER_LOST: _MISSED,
    Fate.ABORTED: _MISSED,
    Fate.UNKNOWN: FATES[Fate.UNKNOWN].plain,
}
"""The same in few words, for charts: each has a colour (``colours.FATES``)."""
NO_HOLD: Final = "Nothing kept"
ALL_NEW: Final = "All new text"
"""How a turn reused that had nothing to reuse."""

STATUSES: Final[dict[str, Word]] = {
    Status.OK: Word("Answered", "ok", "The turn was answered."),
    Status.ERROR: Word("Failed", "error", "The turn ended with an error."),
    Status.CANCELLED: Word("Cancelled", "cancelled", "The client went away before the answer was complete."),
    Status.STUCK: Word("Stuck", "stuck", "The turn waits for something that will never come."),
}

PARTS: Final[dict[str, Word]] = {
    Part.INPUT_PROCESSING: Word(
        "Reading the prompt", "input processing", "The model server reads the prompt, until the first word comes."
    ),
    Part.GENERATION: Word("Writing the answer", "generation", "The model writes, from its first word to its last."),
    Part.TOOL_WAIT: Word("Waiting for tools", "tool wait", "Tools that the model asked for run."),
    Part.APPLICATION_WORK: Word("The agent's own program", "application work", "The application's code between calls."),
    Part.USER_WAIT: Word("Waiting for a person", "user wait", "The agent waits for the next message, or for consent."),
    Part.UNKNOWN: Word("Unknown", "unknown", "Nothing tells what this time was spent on."),
}
"""What a session's time was spent on, in the order in which it is stacked."""

INPUT: Final[dict[str, Word]] = {
    Detail.PROXY: Word(
        "In the proxy", "proxy", "The proxy's own work, before and between its requests to the engines."
    ),
    Detail.QUEUE: Word("In queues", "queue", "Accepted by an engine, and waiting for its turn there."),
    Detail.REVERSE_FETCH: Word(
        "Fetching back", "reverse fetch", "Reading back what the server that writes answers had kept."
    ),
    Detail.PREFILL: Word(
        "Computing the prompt",
        "prefill compute",
        "The server that reads prompts (prefill engine) computes what was not reused.",
    ),
    Detail.HANDOFF: Word(
        "Handing over",
        "handoff",
        "The server that writes answers reads the prompt's memory from the one that read it (prefill to decode).",
    ),
    Detail.FIRST_STEP: Word(
        "First word",
        "first decode step",
        "The first step of the server that writes answers (decode engine), until the first word is on its way.",
    ),
    Detail.UNATTRIBUTED: Word(
        "Not explained", "unattributed", "None of the other parts explains it: the network, for one."
    ),
    Detail.CLIENT: Word(
        "In the agent's client", "client", "Before the request reached the proxy: the client and the way."
    ),
}
"""What reading a prompt is made of, in the order in which it happens."""

SOURCES: Final[dict[str, Word]] = {
    TokenSource.LOCAL_HIT: Word(
        "Own memory", "local hit", "Found in the own memory of the server that reads prompts (prefill engine's cache)."
    ),
    TokenSource.FETCHED: Word(
        "Fetched back", "fetched", "Read back from the memory of the server that writes answers (decode engine)."
    ),
    TokenSource.EXTERNAL: Word(
        "From another store", "external", "Loaded from a separate store of such memory (KV cache)."
    ),
    TokenSource.RECOMPUTED: Word(
        "Computed again", "recomputed", "Had been computed in this session before: wasted work."
    ),
    TokenSource.NEW: Word("New text", "new", "Had never been seen in this session: unavoidable work."),
    TokenSource.COMPUTED: Word(
        "Computed", "computed", "Computed, without evidence whether it was new or had been computed before."
    ),
}
"""In the order they are stacked: reused first, computed last."""


def shown(table: Mapping[str, Word], value: str | None) -> str | None:
    """The words for ``value``; a value that is not in the table is shown as it is, None stays None."""
    if value is None:
        return None
    word = table.get(value)
    return word.shown if word else value.replace("_", " ")


class Known(StrEnum):
    """How a figure is known. Every figure on a screen says it, where the pointer rests on it."""

    MEASURED = Evidence.MEASURED
    INFERRED = Evidence.INFERRED
    ESTIMATED = "estimated"


KNOWN: Final[dict[str, str]] = {
    Known.MEASURED: "Measured: counted or timed where it happened.",
    Known.INFERRED: "Not timed itself: told by what came before and after it (inferred). It may really be less.",
    Known.ESTIMATED: "Estimated from measured ones: it lies in the given range nine times in ten.",
}


def explained(what: str, known: str) -> str:
    """What a figure means, and how it is known, for the place where the pointer rests."""
    return f"{what} *{KNOWN[known]}*"
