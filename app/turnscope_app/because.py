"""Why a turn computed something again, as the end of a sentence: ``because its handle had expired 12 s before``."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from turnscope.semconv import Reason, Status
from turnscope_app import text

CLAUSES: Final[dict[str, str]] = {
    Reason.NO_SESSION_ID: "its request named no session",
    Reason.REJECTED_BY_FRONTEND: "the engine's front door refused the request",
    Reason.NO_HANDLE_FROM_DECODE: "the answer before it had come without a handle",
    Reason.FEATURE_OFF_PREFILL: "fetching back is switched off on the server that reads prompts (prefill engine)",
    Reason.FEATURE_OFF_DECODE: "keeping memory for the next turn is switched off on the server that writes answers "
    "(decode engine)",
    Reason.PROXY_ENTRY_EXPIRED: "the pause before it was longer than the proxy keeps a handle",
    Reason.HANDLE_NOT_GIVEN: "the proxy did not pass its handle on",
    Reason.DECLINED_EXPIRED: "its handle had expired, or was about to",
    Reason.BELOW_THRESHOLD: "there was too little to fetch to be worth it (kv_recompute_threshold)",
    Reason.HANDLE_CONSUMED_BY_RETRY: "an earlier attempt of it had used up the handle",
    Reason.HANDLE_TAKEN_BY_SIBLING: "a turn beside it had taken the handle",
    Reason.PREVIOUS_TURN_ABORTED: "the turn before it did not finish and left nothing to fetch",
    Reason.STOPPED_BY_STRING: "the answer before it ended at a stop string, after which the engine keeps nothing",
    Reason.HOLDER_LOST: "the server that kept its memory (decode engine) was gone",
    Reason.HANDSHAKE_FAILED: "the server that reads prompts could not connect to the one that had kept its memory "
    "(prefill to decode engine)",
    Reason.TRANSFER_FAILED: "reading what was kept for it failed (from the decode engine)",
    Reason.EMPTY_HANDOFF_AFTER_PREEMPTION: "it was pushed out and resumed, and was then handed over empty",
    Reason.PREFIX_DIVERGED: "its history was not that of the turn before any more (the client changed it)",
    Reason.STUCK: "it waits for a transfer that nobody began",
}
"""Of every reason that stands in the way of fetching back."""


_ENDED: Final[dict[str, str]] = {
    Status.CANCELLED: "was cancelled",
    Status.ERROR: "failed",
    Status.STUCK: "got stuck",
}


class Before(NamedTuple):
    """The turn that another goes on from."""

    number: int
    status: str


def because(turn: dict[str, Any], before: Before | None = None) -> str:
    """The clause of one turn, with its own figures; empty where nothing stood in the way, or nobody knows what."""
    if turn["reason"] == Reason.PREVIOUS_TURN_ABORTED and before is not None:
        ended = _ENDED.get(before.status, "did not finish")
        return f"turn {before.number:,} {ended} and left nothing to fetch"
    late = turn["late_by_ns"]
    if turn["reason"] == Reason.DECLINED_EXPIRED and late is not None:
        error = turn["late_by_error_ns"]
        about = f" (give or take {text.duration(error)})" if error else ""
        if late >= 0:
            return f"its handle had expired {text.duration(late)} before{about}"
        return f"its handle was to expire within {text.duration(-late)}{about}"
    if turn["reason"] == Reason.PREFIX_DIVERGED and turn["diverged_role"] is not None:
        where = "the messages" if turn["diverged_message"] is None else f"message {turn['diverged_message']}"
        return f"its history was not that of the turn before any more, from {where} on (the client changed it)"
    return CLAUSES.get(turn["reason"], "")
