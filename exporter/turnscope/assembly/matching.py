"""Joins by inference: attempts that do not name their P leg, and requests to D that were handed nothing."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from turnscope.assembly.settler import Concerned, Settler
from turnscope.assembly.state import State, TurnState
from turnscope.assembly.traits import started_ns
from turnscope.assembly.turns import Turns, hold_id, names_in
from turnscope.model import Attempt
from turnscope.semconv import Leg


class NoMatch(Enum):
    """Why a fact stays alone."""

    NO_LEG = "no_leg"
    """It reached no engine, or none whose requests are seen: it is a turn by itself."""
    AMBIGUOUS = "ambiguous"
    """Its leg is one of several and is counted without it: the attempt must not count once more."""


class Matching:
    """A match must be the only one; of several attempts of one client request, each gets its leg in their order."""

    def __init__(self, state: State, turns: Turns, settler: Settler) -> None:
        self._state = state
        self._turns = turns
        self._settler = settler
        self._seeking: dict[str, set[str]] = {}
        """By session, else client request: attempts that were open and had no leg when they came."""
        self.prune()

    def prune(self) -> None:
        """Forget attempts that have a leg by now, or are counted."""
        self._seeking = {}
        for turn in self._state.turns.values():
            self.seeks(turn)

    def needed(self, turn: TurnState) -> bool:
        """Whether this is an attempt that no engine's identity joins to a leg."""
        return turn.attempt is not None and turn.prefill is None and turn.prefill_request_id is None

    def seeks(self, turn: TurnState) -> None:
        """Note an attempt that no engine's identity joins to a leg."""
        if turn.attempt is not None and self.needed(turn):
            self._seeking.setdefault(_group(turn.attempt), set()).add(turn.turn_id)

    def earlier(self, turn: TurnState) -> list[TurnState]:
        """Open attempts that have no leg yet, of the same session or client request, and began no later than it."""
        session = self._settler.session(turn.turn_id)
        groups = {_group(turn.attempt) if turn.attempt is not None else "", session[0] if session is not None else ""}
        found = []
        for group in groups & self._seeking.keys():
            known = [
                t for t in map(self._state.turns.get, self._seeking.pop(group)) if t is not None and self.needed(t)
            ]
            for other in known:
                self.seeks(other)
            found += [t for t in known if t is not turn and started_ns(t) <= started_ns(turn)]
        return sorted(found, key=lambda t: (started_ns(t), t.turn_id))

    def find(self, turn: TurnState) -> TurnState | NoMatch:
        """The turn whose leg the attempt was."""
        attempt = turn.attempt
        if attempt is None:
            return NoMatch.NO_LEG
        for keys, alike in (
            (self._by_name(attempt), self._alike(attempt, lambda other: other.x_request_id == attempt.x_request_id)),
            (self._by_handle(attempt), self._alike(attempt, lambda other: self._same_handle_alone(other, attempt))),
        ):
            legs = [leg for leg in map(self._turns.get, dict.fromkeys(keys)) if leg is not None and _free(leg)]
            if attempt.prefill_start_ns is not None:
                legs = [leg for leg in legs if not self._turns.handed_nothing(leg)]
            legs.sort(key=lambda leg: (started_ns(leg), leg.turn_id))
            if turn.turn_id in alike and len(legs) == len(alike):
                return legs[alike.index(turn.turn_id)]
            if legs:
                return NoMatch.AMBIGUOUS
        return NoMatch.NO_LEG

    def prefill_of(self, turn: TurnState) -> TurnState | None:
        """The turn whose answer this request to D made, though nothing was handed over: of the same client's id, and
        the only one on either side."""
        leg = turn.prefill
        if leg is None or not self._turns.handed_nothing(turn):
            return None
        for name in names_in(leg.request.request_id):
            known = [t for t in map(self._turns.get, dict.fromkeys(self._state.named.get(name, ()))) if t is not None]
            alone = [t for t in known if self._turns.handed_nothing(t)]
            prefills = [t for t in known if t.prefill is not None and t.prefill.request.leg is Leg.PREFILL]
            if len(alone) == len(prefills) == 1 and not prefills[0].decodes:
                return prefills[0]
        return None

    def merge(self, turn: TurnState, target: TurnState) -> Concerned:
        """An attempt that did not name its P leg, and the leg that it turned out to have been; whom it concerns."""
        attempt = turn.attempt
        assert attempt is not None
        target.attempt, target.attempt_clock = attempt, turn.attempt_clock
        others = self._settler.attempt(target, attempt, turn.last_ns)
        turns, holds = self._join(turn, target)
        return Concerned(turns | others, holds)

    def hand_over(self, turn: TurnState, target: TurnState) -> Concerned:
        """A request to D that was handed nothing, and the turn that it made the answer of; whom it concerns."""
        assert turn.prefill is not None
        for leg in (turn.prefill, *turn.samples):
            self._turns.add_decode(target, leg)
        if target.attempt is None:
            target.attempt, target.attempt_clock = turn.attempt, turn.attempt_clock
        return self._join(turn, target)

    def _join(self, turn: TurnState, target: TurnState) -> Concerned:
        del self._state.turns[turn.turn_id]
        target.join = "inferred"
        self._turns.reopen(target)
        turns, holds = self._settler.let_go(turn)
        return Concerned(turns | {target.turn_id}, holds)

    def _by_name(self, attempt: Attempt) -> list[str]:
        return self._state.named.get(attempt.x_request_id, []) if attempt.x_request_id is not None else []

    def _by_handle(self, attempt: Attempt) -> list[str]:
        """Less those that another attempt has by name, whichever of the two is looked at first."""
        if attempt.handle_given is None:
            return []
        used = [use.turn_id for use in self._state.uses.get(hold_id(attempt.handle_given), [])]
        return [key for key in used if not self._sought_by_name(key)]

    def _sought_by_name(self, key: str) -> bool:
        leg = self._turns.get(key)
        names = names_in(leg.prefill.request.request_id) if leg is not None and leg.prefill is not None else []
        seekers = [self._turns.get(turn_id) for name in names for turn_id in self._state.unplaced.get(name, ())]
        return any(seeker is not None and self.needed(seeker) for seeker in seekers)

    def _same_handle_alone(self, other: Attempt, attempt: Attempt) -> bool:
        legs = map(self._turns.get, self._by_name(other))
        return other.handle_given == attempt.handle_given and not any(leg is not None and _free(leg) for leg in legs)

    def _alike(self, attempt: Attempt, like: Callable[[Attempt], bool]) -> list[str]:
        """Attempts of the same client request that have no leg, in their order; those that were given up as well, or
        it would matter which is looked at first."""
        refs = sorted(self._state.proxy_turns[attempt.proxy_turn_id].attempts.items())
        turns = [turn for turn in (self._turns.get(ref.turn_id) for _, ref in refs) if turn is not None]
        return [t.turn_id for t in turns if self.needed(t) and t.attempt is not None and like(t.attempt)]


def _group(attempt: Attempt) -> str:
    return attempt.session_id or attempt.proxy_turn_id


def _free(turn: TurnState) -> bool:
    return turn.attempt is None and turn.prefill is not None
