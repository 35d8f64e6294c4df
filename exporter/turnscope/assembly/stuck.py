"""Turns that stand still: named at once where the engine's hook saw why, else after a limit, even when the engine's own
gauges show nothing. Heartbeats list every request that takes no step.
"""

from __future__ import annotations

from turnscope.assembly.engines import Engines
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.sources import EmitterState, Idle
from turnscope.assembly.state import StandsStill, State, TurnState
from turnscope.assembly.turns import Turns, turn_id
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

    def beat(self, emitter: EmitterState, before: dict[str, Idle], arrival_ns: int) -> list[TurnState]:
        """Turns that have taken no step for longer than the limit, by this engine\'s heartbeat, and were not stuck
        before. ``before``: what its last heartbeat listed; what has moved since is not stuck any more."""
        for request_id, idle in before.items():
            if request_id not in emitter.idle and request_id in emitter.open:
                self._moved(request_id, idle)
        found = []
        for request_id, idle in emitter.idle.items():
            if arrival_ns - idle.since_ns < self._settings.stuck_ns:
                continue
            turn = self._turns.open(idle.turn_id, arrival_ns)
            if turn.stuck is None:
                self._mark(turn, emitter, request_id, idle)
                found.append(turn)
        return found

    def _moved(self, request_id: str, idle: Idle) -> None:
        turn = self._state.turns.get(idle.turn_id)
        if turn is None or turn.stuck is None:
            return
        if turn.stuck.request_id == request_id and turn.stuck.cause is StuckCause.UNKNOWN:
            turn.stuck = None

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
