"""Why there was no (more) reverse fetch: one table, first match wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from turnscope.semconv import Path, Reason


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one turn, flat. None: nothing tells."""

    path: Path = Path.UNKNOWN
    # the turn itself
    rejected: bool = False
    """The frontend refused it (4xx) before any engine had it."""
    stuck: bool = False
    handle_at_prefill: bool = False
    """P was given a handle of D's."""
    local_tokens: int | None = None
    remainder_tokens: int | None = None
    """What the handle offered beyond the local hit, at most the prompt."""
    threshold_tokens: int | None = None
    feature_on_prefill: bool | None = None
    declined: bool = False
    handshake_failed: bool = False
    load_failed: bool = False
    holder_lost: bool = False
    """The engine that held has ended or restarted since."""
    empty_handoff: bool = False
    """P was preempted and handed no blocks over."""
    spent_by_attempt: bool = False
    """An earlier attempt of the same client request had the handle."""
    # the session
    session: bool | None = None
    """It has a session id; None where no proxy could tell."""
    history: bool | None = None
    """The request brings earlier answers along; None without the proxy's word."""
    previous: bool = False
    """An earlier turn of the session is known."""
    previous_ending: str | None = None
    """``ok, aborted, stop_string, error``."""
    feature_on_decode: bool | None = None
    """Of the engine that decoded the previous turn."""
    handle_left: bool | None = None
    """The previous turn's answer carried a handle to the proxy; without a proxy: D made one."""
    entry_expired: bool = False
    """The previous turn is longer ago than the proxy keeps handles, or than D held."""
    diverged: bool = False
    """The prompt parts from the previous turn's text before there was more to fetch than P had, by digests."""
    taken_by_sibling: bool = False
    """Another turn was given the previous turn's handle."""


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    reason: Reason
    when: Callable[[Evidence], bool]


def _covered(e: Evidence) -> bool:
    return e.remainder_tokens is not None and e.remainder_tokens <= 0 and (e.local_tokens or 0) > 0


def _below(e: Evidence) -> bool:
    return (
        e.remainder_tokens is not None
        and e.threshold_tokens is not None
        and 0 < e.remainder_tokens < e.threshold_tokens
    )


TABLE: Final[tuple[Row, ...]] = (
    # It was fetched.
    Row(Reason.NONE, lambda e: e.path in (Path.REVERSE_FETCH, Path.MIXED)),
    # It never got to the question.
    Row(Reason.REJECTED_BY_FRONTEND, lambda e: e.rejected),
    # P had a handle: what came of it.
    Row(Reason.FEATURE_OFF_PREFILL, lambda e: e.handle_at_prefill and e.feature_on_prefill is False),
    Row(Reason.STUCK, lambda e: e.stuck),
    Row(Reason.DECLINED_EXPIRED, lambda e: e.declined),
    Row(Reason.HANDSHAKE_FAILED, lambda e: e.handshake_failed),
    Row(Reason.HOLDER_LOST, lambda e: e.handle_at_prefill and e.load_failed and e.holder_lost),
    Row(Reason.TRANSFER_FAILED, lambda e: e.load_failed),
    Row(Reason.EMPTY_HANDOFF_AFTER_PREEMPTION, lambda e: e.empty_handoff),
    Row(Reason.LOCAL_HIT_COVERS, lambda e: e.handle_at_prefill and e.path is not Path.UNKNOWN and _covered(e)),
    Row(Reason.BELOW_THRESHOLD, lambda e: e.handle_at_prefill and e.path is not Path.UNKNOWN and _below(e)),
    Row(Reason.HOLDER_LOST, lambda e: e.handle_at_prefill and e.holder_lost),
    Row(Reason.OTHER, lambda e: e.handle_at_prefill and e.path is not Path.UNKNOWN),
    Row(Reason.UNKNOWN, lambda e: e.handle_at_prefill),
    # P had none: why not.
    Row(Reason.HANDLE_CONSUMED_BY_RETRY, lambda e: e.spent_by_attempt),
    Row(Reason.NO_SESSION_ID, lambda e: e.session is False),
    Row(Reason.FIRST_TURN, lambda e: e.session is True and not e.previous and e.history is not True),
    Row(Reason.UNKNOWN, lambda e: not e.previous),
    Row(Reason.STOPPED_BY_STRING, lambda e: e.previous_ending == "stop_string"),
    Row(Reason.PREVIOUS_TURN_ABORTED, lambda e: e.previous_ending in ("aborted", "error")),
    Row(Reason.PREFIX_DIVERGED, lambda e: e.diverged),
    Row(Reason.FEATURE_OFF_DECODE, lambda e: e.feature_on_decode is False),
    Row(Reason.NO_HANDLE_FROM_DECODE, lambda e: e.handle_left is False),
    Row(Reason.HANDLE_TAKEN_BY_SIBLING, lambda e: e.taken_by_sibling),
    Row(Reason.PROXY_ENTRY_EXPIRED, lambda e: e.handle_left is True and e.entry_expired),
    Row(Reason.HOLDER_LOST, lambda e: e.holder_lost),
    Row(Reason.HANDLE_NOT_GIVEN, lambda e: e.handle_left is True),
)
"""In the order in which they are asked. ``unknown`` is the fallback."""


def reason(evidence: Evidence) -> Reason:
    """The first row that matches."""
    return next((row.reason for row in TABLE if row.when(evidence)), Reason.UNKNOWN)
