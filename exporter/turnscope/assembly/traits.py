"""What other turns ask of one turn, told by itself alone: when it began, what it read, which KV it left."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import Final

from turnscope.assembly.settings import SECOND
from turnscope.assembly.state import EndedRequest, TurnState
from turnscope.assembly.tokens import FINISHED, split
from turnscope.assembly.turns import decode, hold_id, hold_id_of
from turnscope.semconv import Direction, Leg, TransferState

FRONTEND_NS: Final = 60 * SECOND
"""Longest time between an engine's frontend and the engine itself."""


def started_ns(turn: TurnState) -> int:
    """Wall time of the turn's begin: the proxy's, else the engine frontend's, else the engine's, else an event's.

    The frontend's not when it is far from the engine's: then the wall clock was set in between.
    """
    if turn.attempt is not None and turn.attempt.started_wall_ns is not None:
        return turn.attempt.started_wall_ns
    for leg in (turn.prefill, *turn.decodes):
        if leg is not None:
            accepted = leg.started_wall_ns
            arrival = leg.request.arrival_wall_ns
            return arrival if arrival is not None and 0 <= accepted - arrival < FRONTEND_NS else accepted
    seen = [read.wall_ns for read in turn.reads]
    return min(seen, default=turn.stuck.wall_ns if turn.stuck is not None else 0)


def fetched_from_hold(turn: TurnState) -> bool | None:
    """Whether its P leg fetched from the hold it was given; None while nothing tells."""
    states = {read.transfer.state for read in turn.reads if read.transfer.direction is not Direction.HANDOFF}
    if TransferState.DONE in states:
        return True
    if turn.prefill is None:
        return False if states else None
    fetched = split(turn.prefill.request, [read.transfer for read in turn.reads], has_handle=True).fetched
    return bool(fetched) if fetched is not None else (False if states else None)


def computed(leg: EndedRequest | None) -> bool:
    """Whether it left KV for all of its prompt. Of a load that failed, or an early abort, nobody knows what it left."""
    if leg is None or leg.request.computed_tokens is None:
        return False
    return leg.request.finish_reason in FINISHED or leg.request.output_tokens > 0


def digests_of(turn: TurnState) -> list[str]:
    """Keys of the digests of what its engines computed, the most telling first: D's, which cover the prompt and the
    answer, then P's. Where D answered and nothing says as which request, the first is one that never comes."""
    attempt, leg, last = turn.attempt, turn.prefill, decode(turn)
    if leg is not None and leg.request.leg is Leg.WHOLE:
        return [turn.turn_id] if computed(leg) else []
    if last is not None:
        others = (other for other in turn.decodes if other is not last)
        return [*(hold_id_of(d.engine_id, d.request.request_id) for d in (last, *others)), turn.turn_id]
    if attempt is not None and attempt.handle_out is not None:
        return [hold_id(attempt.handle_out), turn.turn_id]
    if turn.decode_engine_id is not None and turn.decode_request_id is not None:
        return [hold_id_of(turn.decode_engine_id, turn.decode_request_id), turn.turn_id]
    if attempt is not None and attempt.decode_start_ns is None:
        return [turn.turn_id] if computed(leg) else []
    answered = attempt is not None or (leg is not None and leg.request.finish_reason in FINISHED)
    return [hold_id_of("", turn.turn_id), turn.turn_id] if answered else []


def read_end_ns(turn: TurnState) -> int | None:
    """Wall time at which its P leg's fetch was found to be done, on all ranks that said so."""
    done = [
        read.wall_ns
        for read in turn.reads
        if read.transfer.direction is not Direction.HANDOFF and read.transfer.state is TransferState.DONE
    ]
    return max(done, default=None)


def shape(turn: TurnState) -> str | None:
    """Equal for a request that is sent again: its messages by role and length, and how long its prompt is. None where
    no proxy saw the messages or nobody counted the prompt."""
    attempt, leg = turn.attempt, turn.prefill
    prompt = leg.request.input_tokens if leg is not None else attempt.input_tokens if attempt is not None else None
    if attempt is None or not attempt.message_roles or prompt is None:
        return None
    messages = "\0".join(attempt.message_roles).encode() + array("q", attempt.message_chars).tobytes()
    return f"{prompt} {blake2b(messages, digest_size=8).hexdigest()}"
