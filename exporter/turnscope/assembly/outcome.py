"""How a turn ended, and where."""

from __future__ import annotations

from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import TurnState
from turnscope.assembly.turns import decode, given_handle
from turnscope.model import Attempt
from turnscope.semconv import Leg, Status

FINISHED = ("stop", "length", "repetition")


def stuck(turn: TurnState, settings: AssemblySettings) -> bool:
    """Its prefill was given a handle, was never scheduled, and ended only after the stuck limit, by the client."""
    leg = turn.prefill
    return (
        leg is not None
        and leg.request.leg is Leg.PREFILL
        and given_handle(turn) is not None
        and leg.request.computed_tokens is None
        and leg.request.finish_reason not in FINISHED
        and leg.duration_ns >= settings.stuck_ns
    )


def ending(turn: TurnState, settings: AssemblySettings) -> tuple[Status, str | None]:
    """Status, and the stage of anything but ``ok``. What an engine says of an error outweighs an answer of 200."""
    if stuck(turn, settings):
        return Status.STUCK, "prefill"
    last = decode(turn)
    if last is not None and last.request.finish_reason == "error":
        return Status.ERROR, "decode"
    if turn.attempt is not None:
        return _by_attempt(turn.attempt)
    leg = turn.prefill
    if leg is not None and leg.request.finish_reason not in FINISHED and last is None:
        return (Status.CANCELLED if leg.request.finish_reason == "abort" else Status.ERROR), "prefill"
    if last is not None and last.request.finish_reason == "abort":
        return Status.CANCELLED, "decode"
    return Status.OK, None


def _by_attempt(attempt: Attempt) -> tuple[Status, str | None]:
    if attempt.outcome == "cancelled":
        return Status.CANCELLED, attempt.error_stage or _reached(attempt)
    if attempt.outcome != "ok" or attempt.finish_reason == "error" or (attempt.status_code or 0) >= 400:
        return Status.ERROR, attempt.error_stage or _reached(attempt)
    return Status.OK, None


def _reached(attempt: Attempt) -> str:
    if attempt.decode_start_ns is not None:
        return "decode"
    return "prefill" if attempt.prefill_start_ns is not None else "proxy"


def finish_reason(turn: TurnState) -> str | None:
    """The answer's: the proxy's word before the engine's, which takes a stop string for an abort."""
    if turn.attempt is not None and turn.attempt.finish_reason is not None:
        return turn.attempt.finish_reason
    last = decode(turn)
    if last is not None:
        return last.request.finish_reason
    leg = turn.prefill
    return leg.request.finish_reason if leg is not None and leg.request.leg is Leg.WHOLE else None


def how_it_ended(turn: TurnState, settings: AssemblySettings) -> str | None:
    """For the next turn's reason: ``ok, aborted, stop_string, error``, or None while nothing tells."""
    last = decode(turn)
    if last is not None and last.request.finish_reason == "abort" and finish_reason(turn) in ("stop", "tool_calls"):
        return "stop_string"
    if turn.attempt is None and last is None and (turn.prefill is None or turn.prefill.request.leg is Leg.PREFILL):
        return None
    status, _ = ending(turn, settings)
    return {Status.OK: "ok", Status.CANCELLED: "aborted"}.get(status, "error")
