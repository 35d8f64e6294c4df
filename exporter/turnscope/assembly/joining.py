"""Turns that are due: each is joined to the turn that it is a part of, or counted by itself."""

from __future__ import annotations

from typing import Final

from turnscope.assembly import kept
from turnscope.assembly.agenda import Agenda
from turnscope.assembly.closing import Closing
from turnscope.assembly.matching import Matching, NoMatch
from turnscope.assembly.state import State, TurnState
from turnscope.assembly.stuck import Standstill
from turnscope.assembly.turns import Turns

TURN: Final = "turn"
"""A kind of thing on the agenda."""


class Joining:
    """Whatever is counted has seen every join that what was told of the time before it allows."""

    def __init__(
        self,
        state: State,
        turns: Turns,
        matching: Matching,
        closing: Closing,
        standstill: Standstill,
        agenda: Agenda,
    ) -> None:
        self._state = state
        self._turns = turns
        self._matching = matching
        self._closing = closing
        self._standstill = standstill
        self._agenda = agenda

    def look_at(self, turn: TurnState, now_ns: int) -> None:
        """Look at an open turn that is due: once more later, if something still works on it."""
        if self._turns.awaited(turn, now_ns):
            self._agenda.push(turn.due_ns, TURN, turn.turn_id)
            return
        self._closing.settle()
        prefill = self._matching.prefill_of(turn)
        if prefill is not None:
            self._closing.concern(self._matching.hand_over(turn, prefill))
            self._joined(turn, prefill, now_ns)
            return
        match = self._matching.find(turn) if self._matching.needed(turn) else NoMatch.NO_LEG
        if isinstance(match, TurnState):
            self._merge(turn, match, now_ns)
        elif match is NoMatch.AMBIGUOUS:
            self._closing.drop_attempt(turn)
        else:
            self._join_earlier(turn, now_ns)
            turn.left_open = self._standstill.left_open(turn)
            self._closing.close_turn(turn)
        self._closing.settle()

    def _join_earlier(self, turn: TurnState, now_ns: int) -> None:
        """Attempts that began before a turn get their legs before it is counted, whichever of them came first."""
        for other in self._matching.earlier(turn):
            match = self._matching.find(other)
            if isinstance(match, TurnState):
                self._merge(other, match, now_ns)
        self._closing.settle()

    def _merge(self, turn: TurnState, target: TurnState, now_ns: int) -> None:
        self._closing.concern(self._matching.merge(turn, target))
        self._joined(turn, target, now_ns)

    def _joined(self, turn: TurnState, target: TurnState, now_ns: int) -> None:
        self._closing.withdraw(turn, target.turn_id)
        kept.keep_joined(self._state, turn)
        if target.counted:
            target.late = True
            self._turns.put(target)
        else:
            target.last_ns = max(target.last_ns, turn.last_ns)
            self._agenda.push(self._turns.schedule(target, now_ns), TURN, target.turn_id)
