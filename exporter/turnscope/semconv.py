"""Attribute keys and closed vocabularies, each spelled once.

Keys are literal strings, not the constants of ``opentelemetry-semantic-conventions``: those for GenAI
are in development and their Python names are deprecated as they move.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

# --- OTLP ---------------------------------------------------------------------------------------
SCOPE: Final = "turnscope"
EVENT_NAME: Final = "event.name"
"""Every record carries its event name twice: some collectors drop the OTLP field of that name."""

CONVERSATION_ID: Final = "gen_ai.conversation.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
OPERATION_NAME: Final = "gen_ai.operation.name"
FINISH_REASON: Final = "gen_ai.response.finish_reasons"
REQUEST_MODEL: Final = "gen_ai.request.model"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
TURN_ID: Final = "turnscope.turn_id"
"""On the proxy's spans: the turn's trace id, 32 hex digits."""


class EventName(StrEnum):
    """The ``event_name`` of every OTLP log record turnscope's hooks send."""

    ENGINE = "turnscope.engine"
    HEARTBEAT = "turnscope.heartbeat"
    REQUEST = "turnscope.request"
    HOLD = "turnscope.hold"
    HOLD_USE = "turnscope.hold_use"
    TRANSFER = "turnscope.transfer"
    ATTEMPT = "turnscope.attempt"
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


class Status(StrEnum):
    """How a turn ended, as far as the serving side can tell."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    STUCK = "stuck"


class Suspicion(StrEnum):
    """Evidence that an answer may be wrong. Never mixed with failures."""

    KV_MISMATCH = "kv_mismatch"
    READ_AFTER_RELEASE = "read_after_release"
    STALE_HANDLE = "stale_handle"
    DUPLICATE_HANDLE = "duplicate_handle"
    ANSWERED_AFTER_FAILED_LOAD = "answered_after_failed_load"


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
def turn_key(prefill_engine_id: str, prefill_request_id: str) -> bytes:
    """The 16-byte trace id of the turn whose P leg is (engine, request): every process can derive it."""
    return _key("turnscope/turn", prefill_engine_id, prefill_request_id)


def hold_key(decode_engine_id: str, decode_request_id: str) -> bytes:
    """The 16-byte trace id of the hold left by (engine, request) on its holder."""
    return _key("turnscope/hold", decode_engine_id, decode_request_id)


def span_key(trace_id: bytes, part: str = "turn") -> bytes:
    """The 8-byte id of one span of a turn's trace; ``turn`` is its root. A proxy links to it before it exists."""
    return hashlib.sha256(b"turnscope/span\0" + trace_id + b"\0" + part.encode()).digest()[:8]


def _key(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()[:16]
