"""Attribute keys and closed vocabularies, each spelled once.

Keys are literal strings, not the constants of ``opentelemetry-semantic-conventions``: those for GenAI
are in development and their Python names are deprecated as they move.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Final

# --- OTLP ---------------------------------------------------------------------------------------
SCOPE: Final = "turnscope"
EVENT_NAME: Final = "event.name"
"""Every record carries its event name twice: some collectors drop the OTLP field of that name."""

CONVERSATION_ID: Final = "gen_ai.conversation.id"
AGENT_ID: Final = "gen_ai.agent.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
OPERATION_NAME: Final = "gen_ai.operation.name"
FINISH_REASON: Final = "gen_ai.response.finish_reasons"
EVALUATION_RESULT: Final = "gen_ai.evaluation.result"
"""An event, of a span or in a log record."""
REQUEST_MODEL: Final = "gen_ai.request.model"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
TURN_ID: Final = "turnscope.turn_id"
"""On the proxy's spans: the turn's trace id, 32 hex digits."""

DIGEST_KEY: Final = "turnscope-digest-key"
"""gRPC metadata: with a batch, the name of the key that the hook has; with the answer, the sidecar's, if it is another.
"""


class EventName(StrEnum):
    """The ``event_name`` of every OTLP log record turnscope's hooks send."""

    ENGINE = "turnscope.engine"
    HEARTBEAT = "turnscope.heartbeat"
    REQUEST = "turnscope.request"
    HOLD = "turnscope.hold"
    HOLD_USE = "turnscope.hold_use"
    TRANSFER = "turnscope.transfer"
    STUCK = "turnscope.stuck"
    EMPTIED = "turnscope.emptied"
    ATTEMPT = "turnscope.attempt"
    DIGEST = "turnscope.digest"
    FABRIC = "turnscope.fabric"


# --- closed vocabularies --------------------------------------------------------------------------
class Path(StrEnum):
    """Where reused prompt tokens on P came from."""

    RECOMPUTE = "recompute"
    LOCAL_HIT = "local_hit"
    REVERSE_FETCH = "reverse_fetch"
    MIXED = "mixed"
    EXTERNAL_HIT = "external_hit"
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """Why there was no (more) reverse fetch."""

    NONE = "none"
    FIRST_TURN = "first_turn"
    NO_SESSION_ID = "no_session_id"
    REJECTED_BY_FRONTEND = "rejected_by_frontend"
    NO_HANDLE_FROM_DECODE = "no_handle_from_decode"
    FEATURE_OFF_PREFILL = "feature_off_prefill"
    FEATURE_OFF_DECODE = "feature_off_decode"
    PROXY_ENTRY_EXPIRED = "proxy_entry_expired"
    HANDLE_NOT_GIVEN = "handle_not_given"
    DECLINED_EXPIRED = "declined_expired"
    BELOW_THRESHOLD = "below_threshold"
    LOCAL_HIT_COVERS = "local_hit_covers"
    HANDLE_CONSUMED_BY_RETRY = "handle_consumed_by_retry"
    HANDLE_TAKEN_BY_SIBLING = "handle_taken_by_sibling"
    PREVIOUS_TURN_ABORTED = "previous_turn_aborted"
    STOPPED_BY_STRING = "stopped_by_string"
    HOLDER_LOST = "holder_lost"
    HANDSHAKE_FAILED = "handshake_failed"
    TRANSFER_FAILED = "transfer_failed"
    EMPTY_HANDOFF_AFTER_PREEMPTION = "empty_handoff_after_preemption"
    PREFIX_DIVERGED = "prefix_diverged"
    STUCK = "stuck"
    OTHER = "other"
    UNKNOWN = "unknown"


NO_OBSTACLE: Final = (Reason.NONE, Reason.FIRST_TURN, Reason.LOCAL_HIT_COVERS, Reason.BELOW_THRESHOLD)
"""Reasons with which all is well: nothing was there to fetch, or it was not worth fetching."""


class Status(StrEnum):
    """How a turn ended, as far as the serving side can tell."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    STUCK = "stuck"


class StuckCause(StrEnum):
    """Why an engine will never run a request: it promised a load and queued no read. ``unknown``: it takes no step."""

    BIDIRECTIONAL_OFF = "bidirectional_off"
    HOST_BUFFER = "host_buffer"
    PREEMPTED = "preempted"
    LOAD_FAILED = "load_failed"
    UNKNOWN = "unknown"


class SpanKind(StrEnum):
    """What a span of an agent stands for."""

    MODEL_CALL = "model_call"
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    AGENT = "agent"
    USER_WAIT = "user_wait"
    OTHER = "other"


class Timing(StrEnum):
    """How a span's start and end are known: see ``AgentSpan.timing``."""

    MEASURED = "measured"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


class Part(StrEnum):
    """What a session's wall time is spent on: disjoint, and they sum to it."""

    INPUT_PROCESSING = "input_processing"
    GENERATION = "generation"
    TOOL_WAIT = "tool_wait"
    APPLICATION_WORK = "application_work"
    USER_WAIT = "user_wait"
    UNKNOWN = "unknown"


class Detail(StrEnum):
    """What a part is made of, where more is known."""

    PROXY = "proxy"
    QUEUE = "queue"
    REVERSE_FETCH = "reverse_fetch"
    PREFILL = "prefill"
    HANDOFF = "handoff"
    FIRST_STEP = "first_step"
    UNATTRIBUTED = "unattributed"
    """These seven are of input processing: of a streamed answer they sum to its time to first token."""
    CLIENT = "client"
    """Of a model call, outside the proxy: the agent's own client and the way, before the request and after the answer.
    """
    RETRIEVAL = "retrieval"
    """Of tool wait."""
    MODEL_CALL = "model_call"
    """Of unknown: in a model call whose first token nobody timed."""


class Evidence(StrEnum):
    """How it is known what a stretch of time was spent on."""

    MEASURED = "measured"
    INFERRED = "inferred"
    """From what came before and after it."""
    NONE = "none"
    """Of unknown."""


class TaskOutcome(StrEnum):
    """How a task ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"
    UNKNOWN = "unknown"


class Suspicion(StrEnum):
    """Evidence that an answer may be wrong. Never mixed with failures."""

    KV_MISMATCH = "kv_mismatch"
    READ_AFTER_RELEASE = "read_after_release"
    STALE_HANDLE = "stale_handle"
    DUPLICATE_HANDLE = "duplicate_handle"
    ANSWERED_AFTER_FAILED_LOAD = "answered_after_failed_load"


def diverges_in(message: int | None, role: str) -> str:
    """For people: ``message 0, system``; ``the tools`` where no message differs."""
    return f"message {message}, {role}" if message is not None else f"the {role}"


class Divergence(StrEnum):
    """What a request did to the history that the turn before had, at the first place where the two differ."""

    EDITED = "edited"
    REMOVED = "removed"
    INSERTED = "inserted"
    TRUNCATED = "truncated"
    """It ends where the turn before went on: nothing else was changed."""
    COMPACTED = "compacted"
    """Fewer stand in the place of several."""
    ANSWER_CHANGED = "answer_changed"
    """The history is whole, and the answer in it is not the one that was given."""
    REASONING_STRIPPED = "reasoning_stripped"
    """As ``answer_changed``, and what is missing is the answer's reasoning."""


DIVERGENCES: Final[dict[Divergence, str]] = {
    Divergence.EDITED: "edited",
    Divergence.REMOVED: "left out",
    Divergence.INSERTED: "put in",
    Divergence.TRUNCATED: "the request ends before it",
    Divergence.COMPACTED: "several were compacted",
    Divergence.ANSWER_CHANGED: "not the answer that was given",
    Divergence.REASONING_STRIPPED: "the answer without its reasoning",
}
"""For people: what became of the message that differs."""


class HoldKind(StrEnum):
    """``hold``: kept on D for the next turn. ``lease``: kept on P until D has read. Never mixed."""

    HOLD = "hold"
    LEASE = "lease"


class HoldOutcome(StrEnum):
    """What became of a hold or lease."""

    READ = "read"
    NOTIFIED = "notified"
    TTL = "ttl"
    LEASE = "lease"
    HOLDER_LOST = "holder_lost"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class HandleStep(StrEnum):
    """A step in the life of D's handle, in the order in which they usually come."""

    ISSUED = "issued"
    HELD = "held"
    GIVEN = "given"
    READ = "read"
    NOTIFIED = "notified"
    DECLINED = "declined"
    FAILED = "failed"
    RELEASED = "released"
    EXPIRED = "expired"
    READ_LATE = "read_late"
    LOST = "lost"


class Observer(StrEnum):
    """Who saw a step."""

    DECODE = "decode"
    PROXY = "proxy"
    PREFILL = "prefill"
    SIDECAR = "sidecar"


class Direction(StrEnum):
    """``handoff`` is P->D, ``reverse_fetch`` is D->P."""

    HANDOFF = "handoff"
    REVERSE_FETCH = "reverse_fetch"
    UNKNOWN = "unknown"


class TransferState(StrEnum):
    """How one rank's read ended."""

    DONE = "done"
    FAILED = "failed"
    DECLINED = "declined"
    HANDSHAKE_FAILED = "handshake_failed"
    NOTICE_ONLY = "notice_only"


class Transport(StrEnum):
    """What carried a transfer's bytes, as far as the node's card counters tell."""

    EFA = "efa"
    TCP = "tcp"
    LOCAL = "local"
    """Between engines of one node, over neither card."""
    UNKNOWN = "unknown"


class TokenSource(StrEnum):
    """Where a prompt token's KV on P came from. ``computed``: computed on P, and not yet told apart as
    ``recomputed`` (computed before in this session) or ``new``; it is never counted together with them."""

    LOCAL_HIT = "local_hit"
    FETCHED = "fetched"
    EXTERNAL = "external"
    COMPUTED = "computed"
    RECOMPUTED = "recomputed"
    NEW = "new"


class LocalMiss(StrEnum):
    """Why P did not find in its own prefix cache what the session had computed before.

    ``none``: it did, or there was nothing. ``evicted``: this P had it. ``other_worker``: another P had it, or this one
    before it was restarted. ``never_here``: only D had it, no P.
    """

    NONE = "none"
    EVICTED = "evicted"
    OTHER_WORKER = "other_worker"
    NEVER_HERE = "never_here"
    CACHING_OFF = "caching_off"
    UNKNOWN = "unknown"


class ContinuityEvidence(StrEnum):
    """What tells how a prompt continues the turns before it.

    ``digests``: of tokens. ``first_turn``: nothing is before it. ``lengths``: of prompt and handle, no more.
    ``unverifiable``: there are digests, and they cannot be compared. ``unknown``: nothing.
    """

    DIGESTS = "digests"
    FIRST_TURN = "first_turn"
    LENGTHS = "lengths"
    UNVERIFIABLE = "unverifiable"
    UNKNOWN = "unknown"


class MismatchEvidence(StrEnum):
    """What speaks for reused KV being of other text than the prompt.

    ``digests``: the prompt differs from what the hold was made of. ``lengths``: it is shorter than that.
    ``inferred``: it descends from KV that a mismatch had put in the wrong place.
    """

    DIGESTS = "digests"
    LENGTHS = "lengths"
    INFERRED = "inferred"


class Role(StrEnum):
    """An engine's part: from vLLM's ``kv_role``."""

    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"
    AGGREGATED = "aggregated"


class Leg(StrEnum):
    """A request's part of its turn: from its incoming ``kv_transfer_params``."""

    PREFILL = "prefill"
    DECODE = "decode"
    WHOLE = "whole"


# --- keys ----------------------------------------------------------------------------------------
MAX_TEXT: Final = 256
"""Longer strings (ids from clients can be 1 MB) are cut and end in a hash of the whole."""
_SAMPLE: Final = re.compile(r"\d+_(?=chatcmpl-|cmpl-|resp_)")
"""What vLLM puts before a request's own id to name its samples (n > 1)."""


def bounded(text: str) -> str:
    """``text``, or its beginning and a hash when it is longer than ``MAX_TEXT``."""
    if len(text) <= MAX_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: MAX_TEXT - 17]}~{digest}"


def request_of(request_id: str) -> str:
    """The request that an engine's request is a sample of; itself when it is the only one."""
    found = _SAMPLE.match(request_id)
    return request_id if found is None else request_id[found.end() :]


def turn_key(prefill_engine_id: str, prefill_request_id: str) -> bytes:
    """The 16-byte trace id of the turn whose P leg is (engine, request): every process can derive it, of an id in
    full length and of a bounded one. All samples of one request have the same."""
    return _key("turnscope/turn", prefill_engine_id, request_of(bounded(prefill_request_id)))


def hold_key(decode_engine_id: str, decode_request_id: str) -> bytes:
    """The 16-byte trace id of the hold left by (engine, request) on its holder."""
    return _key("turnscope/hold", decode_engine_id, bounded(decode_request_id))


def span_key(trace_id: bytes, part: str = "turn") -> bytes:
    """The 8-byte id of one span of a turn's trace; ``turn`` is its root. A proxy links to it before it exists."""
    return hashlib.sha256(b"turnscope/span\0" + trace_id + b"\0" + part.encode()).digest()[:8]


def _key(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()[:16]
