"""Turns that stand still: named at once where the engine's hook saw why, else after a limit, even when the engine's own
gauges show nothing. Heartbeats list every request that takes no step.
"""

from __future__ import annotations

from turnscope.assembly.engines import Engines
from turnscope.assembly.kept import find_hold
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.sources import EmitterState, Idle
from turnscope.assembly.state import EndedRequest, HoldState, StandsStill, State, TurnState
from turnscope.assembly.tokens import FINISHED
from turnscope.assembly.turns import Turns, hold_id_of, turn_id
from turnscope.model import Event, Stuck
from turnscope.semconv import Direction, Role, StuckCause, TransferState


class Standstill:
    """Marks turns as stuck, and no longer so when they move after all."""

    def __init__(self, state: State, settings: AssemblySettings, engines: Engines, turns: Turns) -> None:
        self._state = state
        self._settings = settings
        self._engines = engines
        self._turns = turns

    def said(self, turn: TurnState, event: Event, body: Stuck) -> bool:
        """P promised a load and queued none. Whether this is news: of several samples the first is enough."""
        news = turn.stuck is None or turn.stuck.cause is StuckCause.UNKNOWN
        if news:
            turn.stuck = StandsStill(
                stage="prefill",
                cause=body.cause,
                request_id=body.request_id,
                wall_ns=event.wall_ns,
                handle=body.handle,
            )
        return news

    def moved(self, emitter: EmitterState, before: dict[str, Idle]) -> set[str]:
        """Turns that are not stuck any more: what of them stood still in this engine's last heartbeat (``before``) has
        moved since."""
        listed = {id_: idle for id_, idle in before.items() if id_ not in emitter.idle and id_ in emitter.open}
        return {idle.turn_id for request_id, idle in listed.items() if self._goes_on(request_id, idle)}

    def beat(self, emitter: EmitterState, arrival_ns: int) -> list[TurnState]:
        """Turns that have taken no step for longer than the limit, by this engine's heartbeat, and were not stuck
        before."""
        found = []
        for request_id, idle in emitter.idle.items():
            if arrival_ns - idle.since_ns < self._settings.stuck_ns:
                continue
            turn = self._turns.open(idle.turn_id, arrival_ns)
            if turn.stuck is None:
                self._mark(turn, emitter, request_id, idle)
                found.append(turn)
        return found

    def left_open(self, turn: TurnState) -> str | None:
        """The stage of a turn that P has done its part of and nobody tells the end of, though D's hook would: D read,
        and had not answered when it was last heard of, or was gone; or D did not read, and P gave its blocks up, or
        holds them still."""
        leg = turn.prefill
        if leg is None or leg.request.finish_reason not in FINISHED:
            return None
        if turn.decode_request_id is not None:
            return "decode" if self._never_answers(turn, turn.decode_engine_id or "", turn.decode_request_id) else None
        lease = self._lease(leg)
        read = lease is None or (lease.complete and not any(report.expired for report in lease.reports.values()))
        return "handoff" if not read and self._decode_is_seen() else None

    def _never_answers(self, turn: TurnState, engine_id: str, request_id: str) -> bool:
        if any(e.engine_id == engine_id and request_id in e.open for e in self._state.emitters.values()):
            return True
        taken = max((read.wall_ns for read in turn.reads if read.transfer.request_id == request_id), default=None)
        return taken is not None and self._engines.lost(engine_id, None, taken) is not None

    def _lease(self, leg: EndedRequest) -> HoldState | None:
        return find_hold(self._state, hold_id_of(leg.engine_id, leg.request.request_id))

    def _decode_is_seen(self) -> bool:
        return any(engine.engine.role in (Role.DECODE, Role.BOTH) for engine in self._engines.present())

    def _goes_on(self, request_id: str, idle: Idle) -> bool:
        turn = self._state.turns.get(idle.turn_id)
        if turn is None or turn.stuck is None:
            return False
        if turn.stuck.request_id != request_id or turn.stuck.cause is not StuckCause.UNKNOWN:
            return False
        turn.stuck = None
        return True

    def _mark(self, turn: TurnState, emitter: EmitterState, request_id: str, idle: Idle) -> None:
        engine_id = emitter.engine_id or ""
        if turn_id(engine_id, request_id) == idle.turn_id:
            stage = "decode" if self._only_decodes(engine_id) else "prefill"
            turn.prefill_engine_id, turn.prefill_request_id = engine_id, request_id
        else:
            stage = "decode" if self._handed_over(turn, request_id) else "handoff"
            turn.decode_engine_id, turn.decode_request_id = engine_id, request_id
        turn.stuck = StandsStill(
            stage=stage, cause=StuckCause.UNKNOWN, request_id=request_id, wall_ns=idle.since_wall_ns
        )

    def _only_decodes(self, engine_id: str) -> bool:
        engine = self._engines.get(engine_id)
        return engine is not None and engine.engine.role == Role.DECODE

    def _handed_over(self, turn: TurnState, request_id: str) -> bool:
        return any(
            read.transfer.request_id == request_id and read.transfer.state is TransferState.DONE
            for read in turn.reads
            if read.transfer.direction is Direction.HANDOFF
        )
