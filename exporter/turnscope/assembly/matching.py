"""Joins by inference: attempts that do not name their P leg, and the legs that they may have been."""

from __future__ import annotations

from turnscope.assembly.state import State, TurnState
from turnscope.assembly.turns import Turns, hold_id
from turnscope.model import Attempt


class Matching:
    """A match must be the only one; two candidates are none."""

    def __init__(self, state: State, turns: Turns) -> None:
        self._state = state
        self._turns = turns

    def find(self, turn: TurnState) -> TurnState | None:
        """The turn that an attempt without a P leg belongs to; None when it reached no engine, or nothing tells."""
        attempt = turn.attempt
        if attempt is None or turn.prefill is not None or turn.prefill_request_id is not None:
            return None
        keys = dict.fromkeys((*self._by_name(attempt), *self._by_handle(attempt)))
        candidates = [self._turns.get(key) for key in keys if key != turn.turn_id]
        free = [t for t in candidates if t is not None and t.attempt is None and t.prefill is not None]
        return free[0] if len(free) == 1 else None

    def _by_name(self, attempt: Attempt) -> list[str]:
        """By the engine's request id less its random suffix, as an answer's ``id`` has it."""
        if attempt.prefill is None:
            return []
        return self._state.stems.get(attempt.prefill.request_id, [])

    def _by_handle(self, attempt: Attempt) -> list[str]:
        """By the handle that both were given."""
        if attempt.handle_given is None:
            return []
        return [use.turn_id for use in self._state.uses.get(hold_id(attempt.handle_given), [])]
