"""Turn shard: the legs, reads and attempt of one turn, and when it has them all."""

from __future__ import annotations

from bisect import insort
from functools import lru_cache
from typing import Final

from turnscope import semconv
from turnscope.assembly.emitters import Emitters
from turnscope.assembly.kept import find, keep
from turnscope.assembly.moments import clock_of
from turnscope.assembly.ranks import as_read
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import EndedRequest, Read, State, TurnState
from turnscope.model import Attempt, Event, Handle, HoldUse, Request, Stuck, Transfer
from turnscope.semconv import Direction, Role

NO_DECODE: Final = ("error", "abort")
"""Finish reasons of a P leg after which no D leg comes."""


MAX_READS: Final = 2048
"""Of one turn remembered, the first that come: sixteen ranks, each in pieces, for many samples. Counters have all."""


@lru_cache(maxsize=16_384)
def turn_id(engine_id: str, request_id: str) -> str:
    """Of the turn whose P leg is (engine, request)."""
    return semconv.turn_key(engine_id, request_id).hex()


@lru_cache(maxsize=16_384)
def hold_id_of(engine_id: str, request_id: str) -> str:
    """Of the hold or lease that (engine, request) left on its engine."""
    return semconv.hold_key(engine_id, request_id).hex()


def hold_id(handle: Handle) -> str:
    """Of the hold that a handle names."""
    return hold_id_of(handle.engine_id, handle.request_id)


def given_handle(turn: TurnState) -> Handle | None:
    """D's handle of an earlier turn that this one's P leg was given."""
    if turn.prefill is not None and turn.prefill.request.handle_in is not None:
        return turn.prefill.request.handle_in
    if turn.hold_use is not None:
        return turn.hold_use.handle
    if turn.stuck is not None and turn.stuck.handle is not None:
        return turn.stuck.handle
    return turn.attempt.handle_given if turn.attempt is not None else None


def decode(turn: TurnState) -> EndedRequest | None:
    """The D leg; of several (a retried or an n > 1 request) the one that ended last."""
    return turn.decodes[-1] if turn.decodes else None


def answering(turn: TurnState) -> list[EndedRequest]:
    """The D legs that made the answer: all samples of the last request to D. Earlier ones were given up."""
    last = decode(turn)
    if last is None:
        return []
    mine = semconv.request_of(last.request.request_id)
    return [leg for leg in turn.decodes if semconv.request_of(leg.request.request_id) == mine]


def left_handles(turn: TurnState) -> list[Handle]:
    """The handles that D made for it: one for each sample."""
    return [leg.request.handle_out for leg in turn.decodes if leg.request.handle_out is not None]


def left_handle(turn: TurnState) -> Handle | None:
    """The handle that its answer left."""
    leg = decode(turn)
    if leg is not None:
        return leg.request.handle_out
    if turn.prefill is not None and turn.prefill.request.leg is semconv.Leg.WHOLE:
        return None
    return turn.attempt.handle_out if turn.attempt is not None else None


def brings_answers(turn: TurnState) -> bool | None:
    """Whether the request brings earlier answers along: it is none of the first then. None without the proxy's word."""
    roles = turn.attempt.message_roles if turn.attempt is not None else []
    return "assistant" in roles if roles else None


def names_in(request_id: str) -> list[str]:
    """The ``X-Request-Id`` values that an engine may have made ``<endpoint>-<id>[-<n>]-<random>`` of."""
    request_id = semconv.request_of(request_id)
    for prefix in ("chatcmpl-", "cmpl-", "resp_"):
        if request_id.startswith(prefix):
            stem = request_id.removeprefix(prefix).rpartition("-")[0]
            shorter, _, number = stem.rpartition("-")
            return [name for name in (stem, shorter if number.isdecimal() else "") if name]
    return []


def _by_end(read: Read) -> tuple[int, str, int, str, str]:
    rank = read.rank if read.rank is not None else -1
    return read.mono_ns, read.engine_id, rank, read.transfer.request_id or "", read.transfer.state


def _add_prefill(turn: TurnState, leg: EndedRequest) -> None:
    """Of several samples the one with the lowest number speaks for the prompt, in whatever order they come."""
    first, *rest = sorted(
        [leg, *([turn.prefill] if turn.prefill is not None else []), *turn.samples],
        key=lambda one: (len(one.request.request_id), one.request.request_id),
    )
    turn.prefill, turn.samples = first, rest
    turn.prefill_engine_id, turn.prefill_request_id = first.engine_id, first.request.request_id


def anchored(turn: TurnState) -> bool:
    """Whether it has what makes it a turn: the P leg (or whole request), P's word that it will never run one, else the
    proxy's word."""
    parked = turn.stuck is not None and turn.stuck.stage == "prefill"
    return turn.prefill is not None or turn.attempt is not None or parked


class Turns:
    """Turns by id, whether counted or not."""

    def __init__(self, state: State, settings: AssemblySettings, emitters: Emitters) -> None:
        self._state = state
        self._settings = settings
        self._emitters = emitters

    def key(self, event: Event) -> str | None:
        """The turn that an event is about; None when it is about none."""
        body, engine_id = event.body, event.engine.id if event.engine else ""
        match body:
            case Request(leg=semconv.Leg.DECODE):
                handle = body.handle_in
                return turn_id(handle.engine_id, handle.request_id) if handle is not None else None
            case Request() | HoldUse() | Stuck():
                return turn_id(engine_id, body.request_id)
            case Transfer(direction=Direction.HANDOFF):
                remote = body.remote_engine_id, body.remote_request_id
                return turn_id(remote[0], remote[1]) if remote[0] and remote[1] else None
            case Transfer():
                return turn_id(engine_id, body.request_id) if body.request_id else None
            case Attempt():
                return self._attempt_key(body)
        return None

    def _attempt_key(self, attempt: Attempt) -> str:
        prefill = attempt.prefill
        if prefill is not None and prefill.engine_id:
            return turn_id(prefill.engine_id, prefill.request_id)
        if attempt.final:
            return turn_id("", attempt.proxy_turn_id)
        return turn_id("", f"{attempt.proxy_turn_id}/{attempt.number}")

    def get(self, key: str) -> TurnState | None:
        """The turn as known, whether counted or not; ``put`` it back after changing a counted one."""
        return find(self._state, key)

    def open(self, key: str, arrival_ns: int) -> TurnState:
        """The turn, begun if new."""
        turn = self.get(key)
        if turn is None:
            _, revision = self._state.joined.get(key, (0, 0))
            turn = TurnState(turn_id=key, first_ns=arrival_ns, last_ns=arrival_ns, revision=revision)
            self._state.turns[key] = turn
        return turn

    def put(self, turn: TurnState) -> None:
        """Keep a counted turn."""
        keep(self._state, turn)

    def reopen(self, turn: TurnState) -> None:
        """A fragment whose anchor has come after all is a turn, not counted yet."""
        if turn.closed == "fragment" and anchored(turn) and not self._unclaimed(turn):
            turn.counted, turn.closed, turn.late, turn.ready_ns = False, None, False, None
            self._state.old_turns.pop(turn.turn_id, None)
            self._state.turns[turn.turn_id] = turn

    def apply(self, turn: TurnState, event: Event, arrival_ns: int) -> None:
        """Add what the event says."""
        turn.last_ns = max(turn.last_ns, arrival_ns)
        engine_id, generation = (event.engine.id, event.engine.generation) if event.engine else ("", "")
        clock = clock_of(event.emitter)
        match event.body:
            case Request() as request:
                leg = EndedRequest(
                    engine_id=engine_id,
                    generation=generation,
                    wall_ns=event.wall_ns,
                    mono_ns=event.mono_ns,
                    clock=clock,
                    request=request,
                )
                if request.leg is semconv.Leg.DECODE:
                    self.add_decode(turn, leg)
                    if request.handle_in is not None:
                        self._prefill_is(turn, request.handle_in.engine_id, request.handle_in.request_id)
                else:
                    _add_prefill(turn, leg)
                    self._prefill_is(turn, engine_id, request.request_id)
                    for name in names_in(request.request_id):
                        self._state.named.setdefault(name, []).append(turn.turn_id)
            case HoldUse() as use:
                if turn.hold_use is None or use.request_id < turn.hold_use.request_id:
                    turn.hold_use = use
                self._prefill_is(turn, engine_id, use.request_id)
            case Transfer() as transfer:
                if len(turn.reads) < MAX_READS:
                    insort(turn.reads, as_read(event, transfer), key=_by_end)
                if transfer.direction is not Direction.HANDOFF:
                    self._prefill_is(turn, engine_id, transfer.request_id)
                else:
                    self._prefill_is(turn, transfer.remote_engine_id, transfer.remote_request_id)
                    if turn.decode_request_id is None and transfer.request_id:
                        turn.decode_engine_id, turn.decode_request_id = engine_id, transfer.request_id
            case Stuck() as stuck:
                self._prefill_is(turn, engine_id, stuck.request_id)
            case Attempt() as attempt:
                turn.attempt, turn.attempt_clock = attempt, clock
                if attempt.prefill is None and attempt.x_request_id is not None:
                    self._state.unplaced.setdefault(attempt.x_request_id, []).append(turn.turn_id)
                if attempt.prefill is not None and attempt.prefill.engine_id:
                    self._prefill_is(turn, attempt.prefill.engine_id, attempt.prefill.request_id)

    def add_decode(self, turn: TurnState, leg: EndedRequest) -> None:
        """A D leg of the turn."""
        insort(turn.decodes, leg, key=lambda leg: (leg.wall_ns, leg.request.request_id))
        last = decode(turn)
        assert last is not None
        turn.decode_engine_id, turn.decode_request_id = last.engine_id, last.request.request_id

    def handed_nothing(self, turn: TurnState) -> bool:
        """Whether this is a whole request on an engine that is there to decode: its prefill, somewhere else, handed
        nothing over."""
        leg = turn.prefill
        if leg is None or leg.request.leg is not semconv.Leg.WHOLE:
            return False
        engine = self._state.engines.get(leg.engine_id)
        return engine is not None and engine.engine.role == Role.DECODE

    def _prefill_is(self, turn: TurnState, engine_id: str | None, request_id: str | None) -> None:
        if turn.prefill_request_id is None:
            turn.prefill_engine_id, turn.prefill_request_id = engine_id, request_id

    # --- readiness ------------------------------------------------------------------------------------
    def ready(self, turn: TurnState, now_ns: int) -> bool:
        """Whether everything that can be expected has come."""
        attempt, leg = turn.attempt, turn.prefill
        if self.handed_nothing(turn):
            return self._has_namesake(turn) or not self._unclaimed(turn)
        if attempt is None and self._emitters.proxy_alive(now_ns):
            return False
        if leg is None:
            return attempt is not None and turn.prefill_request_id is None and not self._expects_leg(attempt, now_ns)
        if leg.request.leg is semconv.Leg.WHOLE:
            return bool(self._state.proxies) or not self._unclaimed(turn)
        if turn.decodes:
            return True
        if leg.request.finish_reason in NO_DECODE:
            return True
        return (
            attempt is not None and attempt.decode_start_ns is None and (not attempt.final or attempt.outcome != "ok")
        )

    def _has_namesake(self, turn: TurnState) -> bool:
        """Whether another request was made of the same client's id: its prefill."""
        assert turn.prefill is not None
        names = names_in(turn.prefill.request.request_id)
        return any(other != turn.turn_id for name in names for other in self._state.named.get(name, ()))

    def direct(self, turn: TurnState) -> bool:
        """Whether it is no client's turn: a request sent straight to one engine of a pair, past a proxy that is known,
        as warm-ups and health checks are. Without a proxy's hook nothing can tell, and it is a turn."""
        return self._unclaimed(turn) and bool(self._state.proxies)

    def before_the_proxy(self, now_ns: int) -> list[TurnState]:
        """A proxy is heard, the first or after a silence: what came before it, and nothing ties to a client, waits for
        no attempt any more; and what was taken for complete without one has to wait for it."""
        found = []
        for turn in self._state.turns.values():
            if self._unclaimed(turn):
                turn.ready_ns = turn.ready_ns or now_ns
                found.append(turn)
            elif turn.ready_ns is not None and not self.ready(turn, now_ns):
                turn.ready_ns = None
                found.append(turn)
        return found

    def _unclaimed(self, turn: TurnState) -> bool:
        """A whole request at an engine that works in a pair: no handle, no attempt and no session id tie it to a
        client. While no proxy is known it waits: one that starts after its engines' warm-up will show itself."""
        leg = turn.prefill
        if leg is None or leg.request.leg is not semconv.Leg.WHOLE or leg.request.session_id is not None:
            return False
        if turn.attempt is not None or any(name in self._state.unplaced for name in names_in(leg.request.request_id)):
            return False
        engine = self._state.engines.get(leg.engine_id)
        return engine is not None and engine.engine.role != semconv.Role.AGGREGATED

    def _expects_leg(self, attempt: Attempt, now_ns: int) -> bool:
        """An engine answered, engines have hooks, and no P leg that it may have been has come yet."""
        answered = any(
            status is not None and status < 400 for status in (attempt.prefill_status, attempt.decode_status)
        )
        known = attempt.x_request_id in self._state.named
        return answered and not known and attempt.x_request_id is not None and self._emitters.engine_alive(now_ns)

    def waiting_attempts(self, request_id: str) -> list[TurnState]:
        """Open attempts that the P leg with this id may belong to."""
        keys = [key for name in names_in(request_id) for key in self._state.unplaced.get(name, ())]
        return [self._state.turns[key] for key in keys if key in self._state.turns]

    def schedule(self, turn: TurnState, now_ns: int) -> int:
        """When to look at the turn next, given that something of it came at ``now_ns``."""
        if turn.ready_ns is None and self.ready(turn, now_ns):
            turn.ready_ns = now_ns
        due = turn.last_ns + self._settings.max_wait_ns
        if turn.ready_ns is not None:
            due = min(due, turn.ready_ns + self._settings.grace_ns)
        if turn.ran:
            # It was due before: what has come now is given its grace all the same.
            due = max(due, now_ns + self._settings.grace_ns)
        turn.due_ns, turn.ran = due, False
        return due

    def awaited(self, turn: TurnState, now_ns: int) -> bool:
        """Whether a turn that is due is to be looked at again, and when: something still works on it, or did when it
        was last due. When in between that ended is not known, so what follows it is given a whole grace from now."""
        running = self._running(turn, now_ns)
        awaited = running or turn.ran
        turn.ran = running
        if awaited:
            turn.due_ns = now_ns + self._settings.grace_ns
        return awaited

    def _running(self, turn: TurnState, now_ns: int) -> bool:
        """Whether something still works on a turn that is not ready: silence must not finalise it."""
        if self._samples_run(turn, now_ns):
            return True
        if turn.ready_ns is not None:
            return False
        if self._emitters.open_since(turn.prefill_engine_id, turn.prefill_request_id, now_ns) is not None:
            return True
        if self._emitters.open_since(turn.decode_engine_id, turn.decode_request_id, now_ns) is not None:
            return True
        if turn.attempt is not None and self._emitters.open_turn(turn.attempt.proxy_turn_id, now_ns):
            return True
        if self._emitters.idle_turn(turn.turn_id, now_ns):
            return True
        return self._waits_for_decode(turn, now_ns)

    def _samples_run(self, turn: TurnState, now_ns: int) -> bool:
        """Whether another sample (n > 1) of a leg that has ended is not done yet."""
        legs = (turn.prefill_engine_id, turn.prefill_request_id), (turn.decode_engine_id, turn.decode_request_id)
        return any(
            self._emitters.open_sample(engine_id, request_id, now_ns)
            for engine_id, request_id in legs
            if request_id is not None and semconv.request_of(request_id) != request_id
        )

    def _waits_for_decode(self, turn: TurnState, now_ns: int) -> bool:
        """D has not read yet, and P still holds the blocks for it: it queues. Bounded, should the release be lost."""
        if turn.decode_request_id is not None or turn.prefill_engine_id is None or turn.prefill_request_id is None:
            return False
        lease = hold_id_of(turn.prefill_engine_id, turn.prefill_request_id)
        held = self._state.holds.get(lease)
        if held is None or held.reports or held.lost_wall_ns is not None:
            return False
        return now_ns - turn.last_ns <= self._settings.stuck_ns
