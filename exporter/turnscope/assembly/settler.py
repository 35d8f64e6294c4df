"""Settler: what needs several turns. Sessions, their order, which turn left and used which hold, attempts."""

from __future__ import annotations

from bisect import insort
from typing import Final

from turnscope.assembly.engines import Engines
from turnscope.assembly.outcome import how_it_ended
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import AttemptRef, Past, ProxyTurn, SessionState, State, TurnState, Use
from turnscope.assembly.tokens import split
from turnscope.assembly.turns import decode, find, given_handle, hold_id, left_handle
from turnscope.model import Attempt
from turnscope.semconv import Direction, Leg, TransferState

CHAINED: Final = "chained"
ENGINE: Final = "engine"
"""Where a session id came from that only the engine's request had: the proxy's word is better."""
CUT_SHORT: Final = ("error", "aborted")
"""Endings of turns that left nothing to go on from."""
MAX_TURNS: Final = 64
"""Of a session remembered; older ones are only counted."""


def started_ns(turn: TurnState) -> int:
    """Wall time of the turn's begin: the proxy's, else the engine frontend's, else the engine's, else an event's."""
    if turn.attempt is not None and turn.attempt.started_wall_ns is not None:
        return turn.attempt.started_wall_ns
    for leg in (turn.prefill, *turn.decodes):
        if leg is not None:
            return leg.request.arrival_wall_ns or leg.started_wall_ns
    return min((read.wall_ns for read in turn.reads), default=0)


def ended_ns(turn: TurnState) -> int | None:
    """Wall time of the turn's end: the proxy's last byte, else the last leg's end."""
    attempt = turn.attempt
    if attempt is not None and attempt.started_wall_ns is not None:
        offsets = (attempt.last_byte_ns, attempt.first_byte_ns, attempt.decode_start_ns, attempt.prefill_end_ns)
        known = [offset for offset in offsets if offset is not None]
        if known:
            return attempt.started_wall_ns + max(known)
    last = decode(turn) or turn.prefill
    return last.wall_ns if last is not None else None


def read_of(turn: TurnState) -> bool | None:
    """Whether its P leg fetched from the hold it was given; None while nothing tells."""
    states = {read.transfer.state for read in turn.reads if read.transfer.direction is not Direction.HANDOFF}
    if TransferState.DONE in states:
        return True
    if turn.prefill is None:
        return False if states else None
    fetched = split(turn.prefill.request, [read.transfer for read in turn.reads], has_handle=True).fetched
    return bool(fetched) if fetched is not None else (False if states else None)


class Settler:
    """Works by session; every turn is noted again whenever something of it changed."""

    def __init__(self, state: State, settings: AssemblySettings, engines: Engines) -> None:
        self._state = state
        self._settings = settings
        self._engines = engines

    def attempt(self, turn: TurnState, attempt: Attempt, arrival_ns: int) -> None:
        """Note one attempt of a client request."""
        proxy = self._state.proxy_turns.setdefault(attempt.proxy_turn_id, ProxyTurn(last_ns=arrival_ns))
        proxy.last_ns = max(proxy.last_ns, arrival_ns)
        used = hold_id(attempt.handle_given) if attempt.handle_given is not None else None
        proxy.attempts[attempt.number] = AttemptRef(turn.turn_id, used, attempt.final)

    def is_final(self, attempt: Attempt) -> bool:
        """The last attempt, or the highest one known when the last never came."""
        refs = self._state.proxy_turns[attempt.proxy_turn_id].attempts
        return attempt.final or (not any(ref.final for ref in refs.values()) and attempt.number == max(refs))

    def attempts(self, attempt: Attempt) -> dict[int, AttemptRef]:
        """All attempts of the same client request, by number."""
        return self._state.proxy_turns[attempt.proxy_turn_id].attempts

    # --- noting ---------------------------------------------------------------------------------------
    def note(self, turn: TurnState) -> set[str]:
        """Take the turn into its session, its uses and its hold; other turns to be looked at again."""
        touched: set[str] = set()
        started = started_ns(turn)
        given = given_handle(turn)
        used = hold_id(given) if given is not None else None
        if used is not None:
            touched |= self._use(used, Use(turn.turn_id, started, read_of(turn)))
        if turn.attempt is not None and not self.is_final(turn.attempt):
            self.forget(turn.turn_id)
            return touched
        left = left_handle(turn)
        left_id = hold_id(left) if left is not None else None
        if left_id is not None and left_id not in self._state.left_by:
            self._state.left_by[left_id] = turn.turn_id
            touched |= {use.turn_id for use in self._state.uses.get(left_id, ())}
        key, source = self._session(turn, used)
        if key is None or source is None:
            return touched
        session = self._state.sessions.get(key)
        if session is None:
            session = self._state.sessions[key] = SessionState(source=source, last_ns=turn.last_ns)
        elif session.source == ENGINE and source != CHAINED:
            session.source = source
        session.last_ns = max(session.last_ns, turn.last_ns)
        self._place(session, key, self._past(turn, started, left_id))
        if source == CHAINED and used is not None:
            touched |= self._adopt(self._state.left_by.get(used), key)
        return touched - {turn.turn_id}

    def _session(self, turn: TurnState, used: str | None) -> tuple[str | None, str | None]:
        if turn.attempt is not None and turn.attempt.session_id is not None:
            return turn.attempt.session_id, turn.attempt.session_source or "attempt"
        for leg in (turn.prefill, *turn.decodes):
            if leg is not None and leg.request.session_id is not None:
                return leg.request.session_id, ENGINE
        before = self._state.left_by.get(used) if used is not None else None
        if before is not None and before != turn.turn_id:
            known = self._state.session_of.get(before)
            return known or f"{CHAINED}-{before[:16]}", CHAINED
        # Adopted before by a turn that was given its hold.
        known = self._state.session_of.get(turn.turn_id)
        return (known, CHAINED) if known is not None and known.startswith(CHAINED) else (None, None)

    def _adopt(self, before: str | None, key: str) -> set[str]:
        """The turn that left the hold joins the chain it begins."""
        if before is None or before in self._state.session_of:
            return set()
        self._state.session_of[before] = key
        return {before}

    def _use(self, used: str, use: Use) -> set[str]:
        uses = self._state.uses.setdefault(used, [])
        others = {other.turn_id for other in uses if other.turn_id != use.turn_id}
        if use in uses:
            return set()
        uses[:] = sorted([u for u in uses if u.turn_id != use.turn_id] + [use], key=lambda u: (u.started_ns, u.turn_id))
        return others

    def _past(self, turn: TurnState, started: int, left_id: str | None) -> Past:
        engine = self._engines.get(turn.decode_engine_id)
        attempt = turn.attempt
        return Past(
            turn_id=turn.turn_id,
            started_ns=started,
            ended_ns=ended_ns(turn),
            ending=how_it_ended(turn, self._settings),
            left_hold=left_id,
            handle_seen=attempt.handle_out is not None if attempt is not None else None,
            decode_engine_id=turn.decode_engine_id,
            decode_bidirectional=engine.engine.bidirectional if engine is not None else None,
            whole=turn.prefill is not None and turn.prefill.request.leg is Leg.WHOLE,
            agent_id=attempt.agent_id if attempt is not None else None,
        )

    def _place(self, session: SessionState, key: str, past: Past) -> None:
        before = self._state.session_of.get(past.turn_id)
        if before is not None and before != key:
            self.forget(past.turn_id)
        self._state.session_of[past.turn_id] = key
        session.turns = [other for other in session.turns if other.turn_id != past.turn_id]
        insort(session.turns, past, key=lambda p: (p.started_ns, p.turn_id))
        while len(session.turns) > MAX_TURNS:
            self._state.session_of.pop(session.turns.pop(0).turn_id, None)
            session.forgotten += 1

    def forget(self, turn_id: str) -> None:
        """Take the turn out of its session."""
        key = self._state.session_of.pop(turn_id, None)
        session = self._state.sessions.get(key or "")
        if session is not None:
            session.turns = [other for other in session.turns if other.turn_id != turn_id]

    # --- what others ask ------------------------------------------------------------------------------
    def session(self, turn_id: str) -> tuple[str, SessionState] | None:
        """The turn's session and its id."""
        key = self._state.session_of.get(turn_id)
        session = self._state.sessions.get(key) if key is not None else None
        return (key, session) if key is not None and session is not None else None

    def index(self, turn_id: str) -> int | None:
        """1 for the first turn of its session that was seen."""
        found = self.session(turn_id)
        if found is None:
            return None
        places = (n for n, past in enumerate(found[1].turns) if past.turn_id == turn_id)
        place = next(places, None)
        return None if place is None else found[1].forgotten + place + 1

    def previous(self, turn: TurnState) -> Past | None:
        """The turn that this one continues: the one that left the hold it was given, else the last of its session
        that had ended when it began, else the last that had begun."""
        found = self.session(turn.turn_id)
        if found is None:
            return None
        given = given_handle(turn)
        before = self._state.left_by.get(hold_id(given)) if given is not None else None
        started = started_ns(turn)
        earlier = [p for p in found[1].turns if (p.started_ns, p.turn_id) < (started, turn.turn_id)]
        for past in earlier:
            if past.turn_id == before:
                return past
        done = [p for p in earlier if p.ended_ns is not None and p.ended_ns <= started + self._slack_ns(turn, p)]
        return next(reversed(done or earlier), None)

    def history(self, turn: TurnState) -> Attempt | None:
        """What the proxy saw of the turn that this one goes on from: the one whose hold it was given, else the last of
        the same agent that was not cut short. Agents of one session each have a history of their own."""
        past, mine = self.previous(turn), turn.attempt
        if past is None or mine is None:
            return None
        if given_handle(turn) is None:
            found = self.session(turn.turn_id)
            last = (past.started_ns, past.turn_id)
            whole = [p for p in found[1].turns if p.ending not in CUT_SHORT] if found is not None else []
            own = (p for p in reversed(whole) if p.agent_id == mine.agent_id and (p.started_ns, p.turn_id) <= last)
            past = next(own, None)
        known = find(self._state, past.turn_id) if past is not None else None
        return known.attempt if known is not None else None

    def _slack_ns(self, turn: TurnState, past: Past) -> int:
        """Times that the proxy took are of one clock; engines' clocks may differ."""
        return 0 if turn.attempt is not None and past.handle_seen is not None else self._settings.clock_ns

    def users(self, hold: str) -> list[Use]:
        """P legs that were given the hold, by start."""
        return self._state.uses.get(hold, [])

    def ttl_ns(self, hold: str) -> int | None:
        """How long its holder keeps the hold."""
        found = self._state.holds.get(hold) or self._state.old_holds.get(hold)
        return found.ttl_ns if found is not None else None

    def prune(self, now_ns: int) -> None:
        """Forget idle sessions, and uses, holds and attempts of turns that are forgotten."""
        old = now_ns - self._settings.session_memory_ns
        for key in [k for k, s in self._state.sessions.items() if s.last_ns < old]:
            for past in self._state.sessions.pop(key).turns:
                self._state.session_of.pop(past.turn_id, None)
        known = self._state.turns.keys() | self._state.old_turns.keys()
        state = self._state
        for turn_id in [t for t, k in state.session_of.items() if k not in state.sessions and t not in known]:
            del state.session_of[turn_id]
        for hold in [h for h, t in state.left_by.items() if t not in known and t not in state.session_of]:
            del state.left_by[hold]
        for hold in [h for h, uses in state.uses.items() if not any(u.turn_id in known for u in uses)]:
            del state.uses[hold]
        forgotten = now_ns - self._settings.memory_ns
        for proxy_turn in [p for p, t in state.proxy_turns.items() if t.last_ns < forgotten]:
            if not any(ref.turn_id in known for ref in state.proxy_turns[proxy_turn].attempts.values()):
                del state.proxy_turns[proxy_turn]
        for index in (state.named, state.unplaced):
            for name in [n for n, turns in index.items() if not any(t in known for t in turns)]:
                del index[name]
