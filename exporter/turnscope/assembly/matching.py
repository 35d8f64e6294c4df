"""Joins by inference: attempts that do not name their P leg, and the legs that they may have been."""

from __future__ import annotations

from enum import Enum

from turnscope.assembly.settler import started_ns
from turnscope.assembly.state import State, TurnState
from turnscope.assembly.turns import Turns, hold_id
from turnscope.model import Attempt


class NoMatch(Enum):
    """Why an attempt stays alone."""

    NO_LEG = "no_leg"
    """It reached no engine, or none whose requests are seen: it is a turn by itself."""
    AMBIGUOUS = "ambiguous"
    """Its leg is one of several and is counted without it: the attempt must not count once more."""


class Matching:
    """A match must be the only one; of several attempts of one client request, each gets its leg in their order."""

    def __init__(self, state: State, turns: Turns) -> None:
        self._state = state
        self._turns = turns

    def needed(self, turn: TurnState) -> bool:
        """Whether this is an attempt that no engine's identity joins to a leg."""
        return turn.attempt is not None and turn.prefill is None and turn.prefill_request_id is None

    def find(self, turn: TurnState) -> TurnState | NoMatch:
        """The turn whose leg the attempt was."""
        attempt = turn.attempt
        if attempt is None:
            return NoMatch.NO_LEG
        for keys in (self._by_name(attempt), self._by_handle(attempt)):
            legs = [leg for leg in map(self._turns.get, dict.fromkeys(keys)) if leg is not None and _free(leg)]
            legs.sort(key=lambda leg: (started_ns(leg), leg.turn_id))
            alike = self._alike(attempt)
            if turn.turn_id in alike and len(legs) == len(alike):
                return legs[alike.index(turn.turn_id)]
            if legs:
                return NoMatch.AMBIGUOUS
        return NoMatch.NO_LEG

    def _by_name(self, attempt: Attempt) -> list[str]:
        return self._state.named.get(attempt.x_request_id, []) if attempt.x_request_id is not None else []

    def _by_handle(self, attempt: Attempt) -> list[str]:
        if attempt.handle_given is None:
            return []
        return [use.turn_id for use in self._state.uses.get(hold_id(attempt.handle_given), [])]

    def _alike(self, attempt: Attempt) -> list[str]:
        """Attempts of the same client request that have no leg yet, in their order."""
        proxy_turn = self._state.proxy_turns[attempt.proxy_turn_id]
        refs = [ref.turn_id for _, ref in sorted(proxy_turn.attempts.items())]
        return [key for key in refs if key in self._state.turns and self.needed(self._state.turns[key])]


def _free(turn: TurnState) -> bool:
    return turn.attempt is None and turn.prefill is not None
