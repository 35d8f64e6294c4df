"""The glue: events to their owners, time to what is due, facts out."""

from __future__ import annotations

from typing import Final

import msgspec

from turnscope.assembly import counts, kept, status
from turnscope.assembly.agenda import Agenda
from turnscope.assembly.agent_spans import AgentSpans
from turnscope.assembly.attribution import Attribution
from turnscope.assembly.clocks import Clocks
from turnscope.assembly.closing import Closing
from turnscope.assembly.continuity import Continuity
from turnscope.assembly.digests import Digests
from turnscope.assembly.emitters import PROXY, TALLY, Emitters
from turnscope.assembly.engines import Engines
from turnscope.assembly.fabric import Fabric
from turnscope.assembly.gauges import gauges
from turnscope.assembly.handles import Handles
from turnscope.assembly.holds import EXPIRED, HELD, LATE, Holds
from turnscope.assembly.joining import TURN, Joining
from turnscope.assembly.ledger import Ledger, one
from turnscope.assembly.lives import ENGINE, HOLD, Lives
from turnscope.assembly.matching import Matching
from turnscope.assembly.settings import SECOND, AssemblySettings
from turnscope.assembly.settler import Settler
from turnscope.assembly.sources import EmitterState, Idle
from turnscope.assembly.state import State
from turnscope.assembly.stuck import Standstill
from turnscope.assembly.suspicions import Suspicions
from turnscope.assembly.taint import Taint
from turnscope.assembly.turns import Turns
from turnscope.model import (
    AgentSpan,
    AssemblyStatus,
    Attempt,
    Digest,
    Emptied,
    EngineState,
    Event,
    Fact,
    Heartbeat,
    Hold,
    HoldUse,
    Request,
    Sample,
    Stuck,
    Transfer,
)
from turnscope.model import Fabric as Look
from turnscope.semconv import HoldKind

EMITTER: Final = "emitter"
FABRIC: Final = "fabric"
SETTLE: Final = "settle"
PRUNE_NS: Final = 60 * SECOND


class Assembler:
    """Pure: the same events with the same arrival times make the same facts, however often ``tick`` is called.

    Arrival times are monotonic nanoseconds and never go back. After a restart: ``restore`` the last checkpoint,
    ``mark_counted`` every key that the journal has since, then ``feed`` the journal's events again.
    """

    def __init__(self, settings: AssemblySettings) -> None:
        self._settings = settings
        self._load(State())

    def _load(self, state: State) -> None:
        settings = self._settings
        self._state = state
        self._ledger = Ledger(state.counted)
        self._emitters = Emitters(state, settings, self._ledger)
        self._spans = AgentSpans(state.spans, self._ledger, memory_ns=settings.memory_ns)
        self._ledger.hear = lambda turn: self._spans.hear(turn, state.now_ns)
        self._engines = Engines(state, settings)
        self._clocks = Clocks(state)
        self._turns = Turns(state, settings, self._emitters)
        self._settler = Settler(state, settings, self._engines, self._clocks)
        self._holds = Holds(state, settings, self._engines, self._settler, self._turns)
        self._matching = Matching(state, self._turns, self._settler)
        self._digests = Digests(state, settings)
        self._taint = Taint(state)
        self._continuity = Continuity(self._settler, self._digests, self._taint)
        self._handles = Handles(state)
        self._standstill = Standstill(state, settings, self._engines, self._turns)
        suspicions = Suspicions(state, settings, self._engines, self._settler, self._handles, self._clocks)
        attribution = Attribution(state, self._engines)
        self._fabric = Fabric(state, settings, self._ledger, self._engines)
        self._closing = Closing(
            state,
            settings,
            self._ledger,
            self._engines,
            self._turns,
            self._settler,
            self._holds,
            self._continuity,
            self._handles,
            suspicions,
            attribution,
            self._clocks,
            self._spans,
        )
        self._agenda = Agenda()
        self._push = self._agenda.push
        self._joining = Joining(state, self._turns, self._matching, self._closing, self._standstill, self._agenda)
        self._lives = Lives(settings, self._engines, self._holds, self._handles, self._agenda)
        for turn in state.turns.values():
            self._push(turn.due_ns, TURN, turn.turn_id)
        for hold in state.holds.values():
            self._push(hold.due_ns, HOLD, hold.hold_id)
        for emitter_id in state.emitters:
            self._push(self._emitters.next_due_ns(emitter_id), EMITTER, emitter_id)
        for engine_id, engine in state.engines.items():
            if engine.silent:
                continue
            self._push(engine.last_ns + settings.engine_lost_ns, ENGINE, engine_id)
        for node in state.nodes:
            self._push(self._fabric.next_due_ns(node), FABRIC, node)

    # --- in -------------------------------------------------------------------------------------------
    def feed(self, event: Event, arrival_ns: int, wall_ns: int | None = None) -> None:
        """Take one event that arrived at ``arrival_ns`` (and ``wall_ns``, Unix time, for clock differences)."""
        self._run(arrival_ns)
        speaker = self._state.emitters.get(event.emitter.id)
        idle = speaker.idle if speaker is not None else {}
        unexpected = event.emitter.kind == PROXY and not self._emitters.proxy_alive(arrival_ns)
        emitter = self._emitters.receive(event, arrival_ns, wall_ns)
        if emitter is None:
            return
        if emitter.sequence.gaps:
            self._push(self._emitters.next_due_ns(event.emitter.id), EMITTER, event.emitter.id)
        if isinstance(event.body, (Heartbeat, EngineState)):
            self._clocks.see(emitter, event, arrival_ns)
        if unexpected:
            for turn in self._turns.before_the_proxy(arrival_ns):
                self._push(self._turns.schedule(turn, arrival_ns), TURN, turn.turn_id)
        self._lives.see(event, arrival_ns)
        self._closing.dirty_holds |= self._handles.see(event, arrival_ns)
        if isinstance(event.body, Heartbeat):
            self._look_for_idle(emitter, idle, arrival_ns)
        else:
            self._apply(event, emitter, arrival_ns)
        if self._closing.unsettled:
            self._push(arrival_ns + self._settings.grace_ns, SETTLE, "")

    def feed_spans(self, spans: list[AgentSpan], arrival_ns: int) -> None:
        """Take spans of agents, as their senders told them, that arrived at ``arrival_ns``."""
        self._run(arrival_ns)
        self._spans.feed(spans, arrival_ns)
        if self._spans.moved:
            self._closing.dirty |= self._spans.moved
            self._spans.moved.clear()
            self._closing.settle()

    def _apply(self, event: Event, emitter: EmitterState, arrival_ns: int) -> None:
        body, unique = event.body, f"{event.emitter.id}/{event.seq}"
        engine = self._engines.name(event.engine.id if event.engine else None)
        match body:
            case EngineState():
                return
            case Digest():
                self._digest(event, body, unique, emitter, arrival_ns)
                return
            case Emptied():
                self._closing.dirty |= self._continuity.emptied(event)
                self._closing.settle()
                return
            case Request():
                generation = event.engine.generation if event.engine else ""
                engine_id = event.engine.id if event.engine else ""
                self._ledger.count(f"leg:{engine_id}/{generation}/{body.request_id}", counts.leg(engine, body))
                status.note_leg(self._state, self._engines.get(engine_id), body)
            case Transfer():
                self._ledger.count(f"read:{unique}", counts.read(engine, body))
                status.note_read(self._engines.get(event.engine.id if event.engine else None), body)
                self._fabric.read(event, body)
            case Look():
                self._fabric.look(event, body, arrival_ns)
                self._push(self._fabric.next_due_ns(body.node), FABRIC, body.node)
                return
            case Attempt():
                self._state.attempts += body.final
                self._state.attempts_without_session += body.final and body.session_id is None
            case Hold():
                self._hold(event, body, engine, unique, emitter, arrival_ns)
                return
            case HoldUse() | Stuck():
                pass
        self._turn(event, unique, emitter, arrival_ns)

    # --- turns ----------------------------------------------------------------------------------------
    def _turn(self, event: Event, unique: str, emitter: EmitterState, arrival_ns: int) -> None:
        key = self._turns.key(event)
        if key is None:
            kind = "decode" if isinstance(event.body, Request) else "transfer"
            self._ledger.count(f"fragment:{unique}", [one("turnscope_fragments_total", kind)])
            return
        if self._too_old(event, emitter, arrival_ns) and self._turns.get(key) is None:
            self._ledger.count(f"late:{unique}", [one("turnscope_late_facts_total", TURN)])
            return
        turn = self._turns.open(key, arrival_ns)
        self._turns.apply(turn, event, arrival_ns)
        if isinstance(event.body, Attempt):
            self._closing.dirty |= self._settler.attempt(turn, event.body, arrival_ns)
            self._matching.seeks(turn)
        news = isinstance(event.body, Stuck) and self._standstill.said(turn, event, event.body)
        self._turns.reopen(turn)
        if not turn.counted:
            self._closing.dirty.add(key)
            self._push(self._turns.schedule(turn, arrival_ns), TURN, key)
            if news:
                self._closing.stands(turn)
            if isinstance(event.body, Request):
                for waiting in self._turns.waiting_attempts(event.body.request_id):
                    self._push(self._turns.schedule(waiting, arrival_ns), TURN, waiting.turn_id)
            return
        if turn.closed != "attempt":
            turn.late = True
            self._ledger.count(f"late:{unique}", [one("turnscope_late_facts_total", TURN)])
        self._turns.put(turn)
        self._closing.dirty.add(key)
        self._closing.settle()

    def _digest(self, event: Event, body: Digest, unique: str, emitter: EmitterState, arrival_ns: int) -> None:
        """Kept for the turns to come. One that turns were counted without is a late fact of theirs."""
        late = [one("turnscope_late_facts_total", TURN)]
        if self._too_old(event, emitter, arrival_ns):
            self._ledger.count(f"late:{unique}", late)
            return
        missed = self._digests.take(event, body, arrival_ns)
        self._closing.dirty.update(missed)
        counted = [turn for turn in map(self._turns.get, missed) if turn is not None and turn.counted]
        if not counted:
            return
        self._ledger.count(f"late:{unique}", late)
        for turn in counted:
            turn.late = True
            self._turns.put(turn)
        self._closing.settle()

    def _look_for_idle(self, emitter: EmitterState, before: dict[str, Idle], arrival_ns: int) -> None:
        self._closing.dirty |= self._standstill.moved(emitter, before)
        for turn in self._standstill.beat(emitter, arrival_ns):
            if turn.counted:
                self._turns.put(turn)
            else:
                self._push(self._turns.schedule(turn, arrival_ns), TURN, turn.turn_id)
            self._closing.stands(turn)

    def _too_old(self, event: Event, emitter: EmitterState, arrival_ns: int) -> bool:
        """Whether it is older than what is remembered: it opens nothing."""
        delay = arrival_ns - event.mono_ns - (emitter.delay_ns or 0)
        return delay > self._settings.memory_ns

    # --- holds ----------------------------------------------------------------------------------------
    def _hold(self, event: Event, body: Hold, engine: str, unique: str, emitter: EmitterState, arrival_ns: int) -> None:
        if body.phase == EXPIRED:
            what = "hold" if body.kind is HoldKind.HOLD else "lease"
            self._ledger.count(f"expiry:{unique}", [one("turnscope_kv_expired_total", engine, what)])
        elif body.phase == LATE:
            self._ledger.count(f"notice:{unique}", [one("turnscope_late_notices_total", engine)])
        if self._too_old(event, emitter, arrival_ns):
            self._ledger.count(f"late:{unique}", [one("turnscope_late_facts_total", HOLD)])
            return
        hold = self._holds.apply(event, body, arrival_ns)
        if body.phase == HELD:
            self._closing.dirty |= self._holds.users(hold)
        self._holds.reopen(hold)
        if not hold.counted:
            self._push(self._holds.schedule(hold, arrival_ns), HOLD, hold.hold_id)
            return
        if body.phase != LATE:
            self._ledger.count(f"late:{unique}", [one("turnscope_late_facts_total", HOLD)])
        self._closing.dirty_holds.add(hold.hold_id)
        self._closing.settle()

    # --- time -----------------------------------------------------------------------------------------
    def tick(self, now_ns: int) -> None:
        """Finalise what is due."""
        self._run(now_ns)
        self._emitters.flush()

    def _run(self, now_ns: int) -> None:
        """Everything due until ``now_ns``, each at its own time, so that ticks make no difference."""
        for due_ns, kind, key in self._agenda.until(now_ns):
            self._state.now_ns = due_ns
            if kind == TURN:
                turn = self._state.turns.get(key)
                if turn is not None and turn.due_ns <= due_ns:
                    self._joining.look_at(turn, due_ns)
                elif turn is not None:
                    self._push(turn.due_ns, TURN, key)
            elif kind == HOLD:
                hold = self._state.holds.get(key)
                if hold is not None and hold.due_ns is not None and hold.due_ns <= due_ns:
                    self._closing.settle()
                    self._closing.close_hold(hold)
                    self._closing.settle()
                elif hold is not None:
                    self._push(hold.due_ns, HOLD, key)
            elif kind == EMITTER:
                if key in self._state.emitters:
                    self._emitters.give_up(key, due_ns)
                self._push(self._emitters.next_due_ns(key), EMITTER, key)
            elif kind == SETTLE:
                self._closing.settle()
            elif kind == FABRIC:
                self._closing.dirty |= self._fabric.due(key, due_ns)
                self._closing.settle()
                self._push(self._fabric.next_due_ns(key), FABRIC, key)
            else:
                self._lives.due(key, due_ns)
        self._state.now_ns = now_ns
        if self._state.now_ns - self._state.pruned_ns >= PRUNE_NS:
            self._prune()

    def _prune(self) -> None:
        state = self._state
        state.pruned_ns = state.now_ns
        old = state.now_ns - self._settings.memory_ns
        kept.forget(state, old)
        for hold_id in [h for h, hold in state.old_holds.items() if hold.last_ns < old]:
            del state.old_holds[hold_id]
        for emitter_id in [e for e, emitter in state.emitters.items() if emitter.last_ns < old and not emitter.tally]:
            self._emitters.forget(emitter_id)
        for key in [k for k, since in state.counted.items() if since < old]:
            del state.counted[key]
        self._engines.prune(old)
        self._settler.prune(state.now_ns)
        self._matching.prune()
        self._digests.prune(state.now_ns)
        self._taint.prune()
        self._handles.prune(old)
        self._fabric.prune(old)
        self._clocks.prune(old)
        self._spans.prune(state.now_ns)

    # --- out ------------------------------------------------------------------------------------------
    def take(self) -> list[Fact]:
        """Facts since the last call, in the order in which they came about."""
        return self._ledger.take()

    def samples(self, now_ns: int) -> list[Sample]:
        """The present values of all gauges and info metrics of assembly."""
        return gauges(self._state, self._settings, self._engines, self._emitters, now_ns) + self._fabric.samples()

    def status(self, now_ns: int) -> AssemblyStatus:
        """What is known of the sources."""
        found = status.build(self._state, self._settings, self._engines, self._clocks, now_ns)
        found.fabric = self._fabric.status(now_ns)
        found.spans_without_session = self._spans.loose(now_ns)
        return found

    # --- restart --------------------------------------------------------------------------------------
    def mark_counted(self, key: str, arrival_ns: int) -> None:
        """The journal has this key: it contributes nothing again. To be called before its events are fed again."""
        if key.startswith(TALLY):
            self._emitters.mark(key)
        else:
            self._state.counted[key] = arrival_ns

    def snapshot(self) -> bytes:
        """The whole state. Facts not taken yet are no part of it: take them first."""
        return _ENCODER.encode(self._state)

    def restore(self, data: bytes) -> None:
        """Begin from a ``snapshot``. Raises ``msgspec.ValidationError`` for what this version cannot read."""
        self._load(_DECODER.decode(data))


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(State)
