"""Settler: what needs several turns. Sessions, their order, which turn left and used which hold, attempts."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Final, NamedTuple

from turnscope.assembly.clocks import Clocks, begun, ended, first_leg
from turnscope.assembly.engines import Engines
from turnscope.assembly.kept import attempt_of, find_hold
from turnscope.assembly.moments import Moment
from turnscope.assembly.outcome import how_it_ended
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import AttemptRef, Past, ProxyTurn, SessionState, State, TurnState, Use
from turnscope.assembly.traits import computed, digests_of, fetched_from_hold, read_end_ns, shape, started_ns
from turnscope.assembly.turns import decode, given_handle, hold_id, left_handle, left_handles
from turnscope.model import Attempt
from turnscope.semconv import HoldKind, Leg

CHAINED: Final = "chained"
ENGINE: Final = "engine"
"""Where a session id came from that only the engine's request had: the proxy's word is better."""
UNNAMED: Final = "attempt"
"""A proxy had it, and does not say where."""
CUT_SHORT: Final = ("error", "aborted")
"""Endings of turns that left nothing to go on from."""
MAX_TURNS: Final = 64
"""Of a session remembered; older ones are only counted."""


def _by_trust(source: str) -> tuple[bool, bool, bool, str]:
    """The proxy's word first, and of its words the one that says where it was found."""
    return source == CHAINED, source == ENGINE, source == UNNAMED, source


def _by_begin(past: Past) -> tuple[int, str]:
    return past.started_ns, past.turn_id


def _place_of(session: SessionState, turn_id: str) -> int | None:
    return next((n for n, past in enumerate(session.turns) if past.turn_id == turn_id), None)


def _take_out(session: SessionState, place: int) -> set[str]:
    """The turns after it."""
    del session.turns[place]
    return {after.turn_id for after in session.turns[place:]}


def _holds_left(turn: TurnState) -> list[str]:
    """The holds that it left, by D's word and by its answer's."""
    left = left_handle(turn)
    return [hold_id(handle) for handle in (*left_handles(turn), *([left] if left is not None else []))]


class Concerned(NamedTuple):
    """Whom news of a turn concern, besides itself: they are to be looked at again."""

    turns: set[str]
    holds: set[str]


class Settler:
    """Works by session; every turn is noted again whenever something of it changed."""

    def __init__(self, state: State, settings: AssemblySettings, engines: Engines, clocks: Clocks) -> None:
        self._state = state
        self._settings = settings
        self._engines = engines
        self._clocks = clocks

    def attempt(self, turn: TurnState, attempt: Attempt, arrival_ns: int) -> set[str]:
        """Note one attempt of a client request; the turns of the others, of which another may now be the last."""
        proxy = self._state.proxy_turns.setdefault(attempt.proxy_turn_id, ProxyTurn(last_ns=arrival_ns))
        proxy.last_ns = max(proxy.last_ns, arrival_ns)
        used = hold_id(attempt.handle_given) if attempt.handle_given is not None else None
        proxy.attempts[attempt.number] = AttemptRef(turn.turn_id, used, attempt.final)
        return {ref.turn_id for ref in proxy.attempts.values()} - {turn.turn_id}

    def is_final(self, attempt: Attempt) -> bool:
        """The last attempt, or the highest one known when the last never came."""
        refs = self._state.proxy_turns[attempt.proxy_turn_id].attempts
        return attempt.final or (not any(ref.final for ref in refs.values()) and attempt.number == max(refs))

    def counted_as(self, attempt: Attempt) -> str:
        """The turn of the last attempt of the same client request, which tells of all of them."""
        refs = self._state.proxy_turns[attempt.proxy_turn_id].attempts
        return next((ref.turn_id for ref in refs.values() if ref.final), refs[max(refs)].turn_id)

    def attempts(self, attempt: Attempt) -> dict[int, AttemptRef]:
        """All attempts of the same client request, by number."""
        return self._state.proxy_turns[attempt.proxy_turn_id].attempts

    # --- noting ---------------------------------------------------------------------------------------
    def note(self, turn: TurnState) -> Concerned:
        """Take the turn into its session, its uses and its hold; whom it concerns what is new of it."""
        touched: set[str] = set()
        concerned: set[str] = set()
        started = started_ns(turn)
        given = given_handle(turn)
        used = hold_id(given) if given is not None else None
        if used is not None:
            others = self._use(used, Use(turn.turn_id, started, fetched_from_hold(turn), read_end_ns(turn)))
            if others is not None:
                touched |= others
                concerned.add(used)
        if turn.attempt is not None and not self.is_final(turn.attempt):
            touched |= self.forget(turn.turn_id) | {self.counted_as(turn.attempt)}
            return Concerned(touched - {turn.turn_id}, concerned)
        left = left_handle(turn)
        left_id = hold_id(left) if left is not None else None
        holds = _holds_left(turn)
        made = {hold_id(handle) for handle in left_handles(turn)}
        for hold in holds:
            known = self._state.left_by.get(hold)
            # D's own word on who made the handle outweighs that an answer had it, which may yet be joined to its turn.
            if known is None or (hold in made and known != turn.turn_id):
                self._state.left_by[hold] = turn.turn_id
                touched |= {use.turn_id for use in self._state.uses.get(hold, ())}
                concerned.add(hold)
        key, source = self._session(turn, used)
        if key is None or source is None:
            return Concerned(touched, concerned)
        session = self._state.sessions.get(key)
        if session is None:
            session = self._state.sessions[key] = SessionState(source=source, last_ns=turn.last_ns)
        session.source = min(session.source, source, key=_by_trust)
        session.last_ns = max(session.last_ns, turn.last_ns)
        if self._state.session_of.get(turn.turn_id) != key:
            # Turns that name no session are of the one whose hold they were given.
            touched |= {use.turn_id for hold in holds for use in self._state.uses.get(hold, ())}
            concerned |= set(holds)
        touched |= self._place(session, key, self._past(turn, started, left_id))
        if source == CHAINED and used is not None:
            adopted = self._adopt(self._state.left_by.get(used), key)
            touched |= adopted
            concerned |= {used} if adopted else set()
        return Concerned(touched - {turn.turn_id}, concerned)

    def _session(self, turn: TurnState, used: str | None) -> tuple[str | None, str | None]:
        if turn.attempt is not None and turn.attempt.session_id is not None:
            return turn.attempt.session_id, turn.attempt.session_source or UNNAMED
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

    def _use(self, used: str, use: Use) -> set[str] | None:
        """Turns that were given the same hold; None where nothing is new."""
        uses = self._state.uses.setdefault(used, [])
        others = {other.turn_id for other in uses if other.turn_id != use.turn_id}
        if use in uses:
            return None
        others_and_it = [u for u in uses if u.turn_id != use.turn_id] + [use]
        uses[:] = sorted(others_and_it, key=lambda u: (u.read_ns or u.started_ns, u.turn_id))
        return others

    def _past(self, turn: TurnState, started: int, left_id: str | None) -> Past:
        engine = self._engines.get(turn.decode_engine_id)
        attempt, leg = turn.attempt, turn.prefill
        return Past(
            turn_id=turn.turn_id,
            started_ns=started,
            ended_ns=self.ended_ns(turn),
            ended_at=ended(turn),
            ending=how_it_ended(turn, self._settings),
            left_hold=left_id,
            handle_seen=attempt.handle_out is not None if attempt is not None else None,
            decode_engine_id=turn.decode_engine_id,
            decode_bidirectional=engine.engine.bidirectional if engine is not None else None,
            whole=leg is not None and leg.request.leg is Leg.WHOLE,
            prefill=(leg.engine_id, leg.generation) if leg is not None and computed(leg) else None,
            prompt_tokens=leg.request.input_tokens if leg is not None else 0,
            digests=digests_of(turn),
            shape=shape(turn),
            agent_id=attempt.agent_id if attempt is not None else None,
        )

    def _place(self, session: SessionState, key: str, past: Past) -> set[str]:
        """Where its begin belongs; if anything of it is news, the turns after it, which are judged by it. One that the
        session has forgotten stays of it, and has no place any more: nothing is judged by it."""
        touched: set[str] = set()
        before = self._state.session_of.get(past.turn_id)
        if before is not None and before != key:
            touched = self.forget(past.turn_id)
        self._state.session_of[past.turn_id] = key
        known = _place_of(session, past.turn_id)
        if known is not None and session.turns[known] == past:
            return touched
        if known is None and session.forgotten_until is not None and _by_begin(past) <= session.forgotten_until:
            return touched
        if known is not None:
            touched |= _take_out(session, known)
        insort(session.turns, past, key=_by_begin)
        touched |= {
            after.turn_id for after in session.turns[bisect_right(session.turns, _by_begin(past), key=_by_begin) :]
        }
        while len(session.turns) > MAX_TURNS:
            session.forgotten_until = _by_begin(session.turns.pop(0))
            session.forgotten += 1
        return touched

    def let_go(self, turn: TurnState) -> Concerned:
        """It is a part of another turn, which is to be noted: what it left and was given is that one's. The turns after
        it in its session, and those that were given the same."""
        touched = self.forget(turn.turn_id)
        concerned = set(_holds_left(turn))
        for hold in concerned:
            if self._state.left_by.get(hold) == turn.turn_id:
                del self._state.left_by[hold]
        given = given_handle(turn)
        uses = self._state.uses.get(hold_id(given), []) if given is not None else []
        mine = [use for use in uses if use.turn_id == turn.turn_id]
        if given is not None and mine:
            uses.remove(mine[0])
            touched |= {use.turn_id for use in uses}
            concerned.add(hold_id(given))
        return Concerned(touched, concerned)

    def forget(self, turn_id: str) -> set[str]:
        """Take the turn out of its session; the turns after it, which were judged by it."""
        key = self._state.session_of.pop(turn_id, None)
        session = self._state.sessions.get(key or "")
        place = _place_of(session, turn_id) if session is not None else None
        return _take_out(session, place) if session is not None and place is not None else set()

    # --- what others ask ------------------------------------------------------------------------------
    def session(self, turn_id: str) -> tuple[str, SessionState] | None:
        """The turn's session and its id."""
        key = self._state.session_of.get(turn_id)
        session = self._state.sessions.get(key) if key is not None else None
        return (key, session) if key is not None and session is not None else None

    def forgot(self, turn_id: str) -> bool:
        """Whether the turn's session remembers no more where in it the turn stood."""
        found = self.session(turn_id)
        return found is not None and _place_of(found[1], turn_id) is None

    def index(self, turn_id: str) -> int | None:
        """1 for the first turn of its session that was seen."""
        found = self.session(turn_id)
        if found is None:
            return None
        place = _place_of(found[1], turn_id)
        return None if place is None else found[1].forgotten + place + 1

    def previous(self, turn: TurnState) -> Past | None:
        """The turn that this one continues: the one that left the hold it was given, else the last of its session
        that had ended when it began, else the last that had begun."""
        given = given_handle(turn)
        before = self.leaver(hold_id(given)) if given is not None else None
        for past in self._begun(turn):
            if past.turn_id == before:
                return past
        return next(reversed(self.earlier(turn)), None)

    def _begun(self, turn: TurnState) -> list[Past]:
        found = self.session(turn.turn_id)
        if found is None:
            return []
        started = started_ns(turn)
        return [p for p in found[1].turns if (p.started_ns, p.turn_id) < (started, turn.turn_id)]

    def earlier(self, turn: TurnState) -> list[Past]:
        """The turns of its session that had ended when it began, by start; where none had, those that had begun."""
        begun, started = self._begun(turn), started_ns(turn)
        done = [p for p in begun if p.ended_ns is not None and p.ended_ns <= started + self._slack_ns(turn, p)]
        return done or begun

    def history(self, turn: TurnState, past: Past | None) -> Attempt | None:
        """What the proxy saw of the turn that this one goes on from: of ``past``, the one before it, if it was given
        its hold, else of the last of the same agent that was not cut short. Agents of one session each have a history
        of their own."""
        mine = turn.attempt
        if past is None or mine is None:
            return None
        if given_handle(turn) is None:
            found = self.session(turn.turn_id)
            last = (past.started_ns, past.turn_id)
            whole = [p for p in found[1].turns if p.ending not in CUT_SHORT] if found is not None else []
            own = (p for p in reversed(whole) if p.agent_id == mine.agent_id and (p.started_ns, p.turn_id) <= last)
            past = next(own, None)
        return attempt_of(self._state, past.turn_id) if past is not None else None

    def _slack_ns(self, turn: TurnState, past: Past) -> int:
        """Times that the proxy took are of one clock; engines' clocks may differ."""
        return 0 if turn.attempt is not None and past.handle_seen is not None else self._settings.clock_ns

    def leaver(self, hold: str) -> str | None:
        """The turn that left the hold."""
        return self._state.left_by.get(hold)

    def repeats(self, turn: TurnState) -> Past | None:
        """The earlier turn of its session that this one sends again: the first of several. Inferred."""
        found = self.session(turn.turn_id)
        mine = shape(turn)
        if found is None or mine is None:
            return None
        before = (started_ns(turn), turn.turn_id)
        return next((p for p in found[1].turns if p.shape == mine and (p.started_ns, p.turn_id) < before), None)

    def users(self, hold: str) -> list[Use]:
        """P legs that were given the hold, in the order of their reads, else of their starts."""
        return self._state.uses.get(hold, [])

    def ended_ns(self, turn: TurnState) -> int | None:
        """Wall time of the turn's end: the proxy's last byte, else the last leg's end. Reckoned from its begin where
        clocks allow it: a wall clock that was set meanwhile must not stretch it."""
        attempt = turn.attempt
        if attempt is not None and attempt.started_wall_ns is not None:
            offsets = (attempt.last_byte_ns, attempt.first_byte_ns, attempt.decode_start_ns, attempt.prefill_end_ns)
            measured = [offset for offset in offsets if offset is not None]
            if measured:
                return attempt.started_wall_ns + max(measured)
        first, last = first_leg(turn), decode(turn) or turn.prefill
        if first is None or last is None:
            return None
        begin, end = Moment(first.clock, first.request.added_mono_ns), Moment(last.clock, last.mono_ns)
        took = self._clocks.between(begin, end)
        return first.started_wall_ns + max(0, took.ns) if took is not None else last.wall_ns

    def since_ns(self, past: Past, turn: TurnState) -> int | None:
        """From an earlier turn's end to this one's begin; None where their clocks cannot be compared."""
        pause = self._clocks.between(past.ended_at, begun(turn))
        return pause.ns if pause is not None else None

    def deadline(self, hold: str) -> Moment | None:
        """When its holder gives the hold up if nobody reads it, by the holder's clock."""
        found = find_hold(self._state, hold)
        if found is None or found.held_at is None or found.ttl_ns is None or found.kind is not HoldKind.HOLD:
            return None
        return Moment(found.held_at.clock, found.held_at.mono_ns + found.ttl_ns)

    def ttl_ns(self, hold: str) -> int | None:
        """How long its holder keeps the hold."""
        found = find_hold(self._state, hold)
        return found.ttl_ns if found is not None else None

    def prune(self, now_ns: int) -> None:
        """Forget idle sessions, and uses, holds and attempts of turns that are forgotten."""
        old = now_ns - self._settings.session_memory_ns
        for key in [k for k, s in self._state.sessions.items() if s.last_ns < old]:
            for past in self._state.sessions.pop(key).turns:
                self._state.session_of.pop(past.turn_id, None)
        known = self._state.turns.keys() | self._state.old_turns.keys()
        state = self._state
        placed = {past.turn_id for session in state.sessions.values() for past in session.turns}
        for turn_id in [t for t in state.session_of if t not in known and t not in placed]:
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
