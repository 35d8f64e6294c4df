"""Turns as they are remembered: open ones as they are, counted ones encoded, since there are many."""

from __future__ import annotations

from typing import Final

import msgspec

from turnscope.assembly.state import HoldState, State, TurnState
from turnscope.model import Attempt

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(TurnState)


def find(state: State, key: str) -> TurnState | None:
    """The turn as known, whether counted or not."""
    turn = state.turns.get(key)
    if turn is None:
        old = state.old_turns.get(key)
        turn = _DECODER.decode(old[1]) if old is not None else None
    return turn


def find_hold(state: State, key: str) -> HoldState | None:
    """The hold or lease as known, whether over or not."""
    return state.holds.get(key) or state.old_holds.get(key)


class _Attempted(msgspec.Struct):
    """What of a counted turn is asked for most often: the rest of it is passed over, not decoded."""

    attempt: Attempt | None = None


_ATTEMPTED: Final = msgspec.msgpack.Decoder(_Attempted)


def attempt_of(state: State, key: str) -> Attempt | None:
    """What the proxy saw of a turn, whether counted or not."""
    turn, old = state.turns.get(key), state.old_turns.get(key)
    if turn is not None or old is None:
        return turn.attempt if turn is not None else None
    return _ATTEMPTED.decode(old[1]).attempt


def keep(state: State, turn: TurnState) -> None:
    """Keep a counted turn."""
    state.turns.pop(turn.turn_id, None)
    first = state.old_turns.get(turn.turn_id, (state.now_ns, b""))[0]
    state.old_turns[turn.turn_id] = first, _ENCODER.encode(turn)


def keep_joined(state: State, turn: TurnState) -> None:
    """Of one that was shown and is another turn's now, its last row's revision: more of it may come, as further samples
    do, and a row of that has to be newer than the one that was withdrawn."""
    if turn.row is not None:
        state.joined[turn.turn_id] = state.now_ns, turn.revision


def forget(state: State, before_ns: int) -> None:
    """Forget turns that were counted, or taken into others, before."""
    for turn_id in [t for t, (since, _) in state.old_turns.items() if since < before_ns]:
        del state.old_turns[turn_id]
    for turn_id in [t for t, (since, _) in state.joined.items() if since < before_ns]:
        del state.joined[turn_id]
