"""How a turn ended, and where."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.knowledge import Ending
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import EndedRequest, TurnState
from turnscope.assembly.tokens import FINISHED, LOAD_FAILED, prefilled
from turnscope.assembly.turns import decode, given_handle
from turnscope.model import Attempt
from turnscope.semconv import Direction, Leg, Status

_ENDINGS: Final = {Status.OK: Ending.OK, Status.CANCELLED: Ending.ABORTED}


def stuck_at(turn: TurnState, settings: AssemblySettings) -> str | None:
    """The stage at which the turn stands still, or stood still until somebody gave it up. What was answered, and what
    an engine failed, ended so: it is not stuck."""
    if turn.attempt is not None and turn.attempt.outcome == "ok":
        return None
    if _parked(turn, settings):
        return "prefill"
    if turn.stuck is None or turn.stuck.stage == "prefill":
        return None
    last = decode(turn)
    return turn.stuck.stage if last is None or last.request.finish_reason == "abort" else None


def _parked(turn: TurnState, settings: AssemblySettings) -> bool:
    """P never ran it: as P said, or it was given a handle, sent nothing, and was given up only after the limit."""
    leg = turn.prefill
    if leg is None:
        return turn.stuck is not None and turn.stuck.stage == "prefill" and not turn.decodes
    if leg.request.finish_reason == "error" or prefilled(leg.request):
        return False
    if turn.stuck is not None and turn.stuck.stage == "prefill":
        return True
    waited_ns, given = leg.duration_ns, given_handle(turn) is not None
    return given and leg.request.leg is Leg.PREFILL and waited_ns is not None and waited_ns >= settings.stuck_ns


def ending(turn: TurnState, settings: AssemblySettings) -> tuple[Status, str | None]:
    """Status, and the stage of anything but ``ok``. What an engine says of an error outweighs an answer of 200."""
    stage = stuck_at(turn, settings)
    if stage is not None:
        return Status.STUCK, stage
    last = decode(turn)
    if last is not None and last.request.finish_reason == "error":
        return Status.ERROR, _decode_stage(turn, last)
    if turn.attempt is not None:
        return _by_attempt(turn, turn.attempt)
    if last is None and turn.left_open is not None:
        return Status.STUCK, turn.left_open
    leg = turn.prefill
    if last is None and leg is not None and leg.request.finish_reason not in FINISHED:
        stage = "prefill" if leg.request.leg is Leg.PREFILL or not prefilled(leg.request) else "decode"
        return (Status.CANCELLED if leg.request.finish_reason == "abort" else Status.ERROR), stage
    if last is not None and last.request.finish_reason == "abort":
        return Status.CANCELLED, "decode"
    return Status.OK, None


def _by_attempt(turn: TurnState, attempt: Attempt) -> tuple[Status, str | None]:
    if attempt.outcome == "ok" and attempt.finish_reason != "error" and (attempt.status_code or 0) < 400:
        return Status.OK, None
    stage = attempt.error_stage or _reached(attempt)
    if stage == "decode":
        stage = _decode_stage(turn, decode(turn))
    return (Status.CANCELLED if attempt.outcome == "cancelled" else Status.ERROR), stage


def _decode_stage(turn: TurnState, leg: EndedRequest | None) -> str:
    """``handoff`` where D failed to take P's blocks over."""
    mine = ("", leg.request.request_id) if leg is not None else None
    failed = any(
        read.transfer.direction is Direction.HANDOFF
        and read.transfer.state in LOAD_FAILED
        and (mine is None or read.transfer.request_id in mine)
        for read in turn.reads
    )
    return "handoff" if failed else "decode"


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


def how_it_ended(turn: TurnState, settings: AssemblySettings) -> Ending | None:
    """For the next turn's reason; None while nothing tells."""
    leg = turn.prefill
    last = decode(turn) or (leg if leg is not None and leg.request.leg is Leg.WHOLE else None)
    if last is not None and last.request.finish_reason == "abort":
        if turn.attempt is None:
            return Ending.UNCLEAR
        if finish_reason(turn) in ("stop", "tool_calls"):
            return Ending.STOP_STRING
    status, _ = ending(turn, settings)
    if status is Status.OK and turn.attempt is None and last is None:
        return None
    return _ENDINGS.get(status, Ending.ERROR)
