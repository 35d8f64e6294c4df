"""What assembly knows of its sources, for ``/status`` and ``turnscope doctor``."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.clocks import Clocks
from turnscope.assembly.emitters import STOPPED
from turnscope.assembly.engines import Engines
from turnscope.assembly.gauges import open_turns
from turnscope.assembly.held import Held, held_now
from turnscope.assembly.learning import measurements
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import EmitterState, Ended, EngineState, State
from turnscope.model import AssemblyStatus, Attempt, EmitterStatus, EngineStatus, HeldStatus, Request, Turn
from turnscope.semconv import HoldKind

_NS: Final = 1e9


def note_leg(engine: EngineState | None, request: Request) -> None:
    """Count a request's handles on its engine."""
    if engine is None:
        return
    if request.handle_in is not None:
        engine.handles_in += 1
        engine.handles_in_without_expiry += request.handle_in.expiry_s is None
    if request.handle_out is not None:
        engine.handles_out += 1
        engine.handles_out_with_expiry += request.handle_out.expiry_s is not None


def note_answer(engine: EngineState | None, attempt: Attempt) -> None:
    """Count an answer on the engine that decoded it."""
    if engine is None:
        return
    if attempt.streamed:
        engine.streamed_answers += 1
        engine.streamed_handles += attempt.handle_out is not None
    else:
        engine.plain_answers += 1
        engine.plain_handles += attempt.handle_out is not None


def note_reason(engine: EngineState | None, row: Turn) -> None:
    """Count a turn on the engine that did its prefill."""
    if engine is not None:
        engine.reasons[row.reason] = engine.reasons.get(row.reason, 0) + 1


def _emitter(emitter: EmitterState, engines: Engines, now_ns: int) -> EmitterStatus:
    return EmitterStatus(
        emitter=emitter.emitter,
        engine=engines.name(emitter.engine_id) if emitter.engine_id is not None else None,
        generation=emitter.generation,
        rank=emitter.rank,
        silent_s=max(0, now_ns - emitter.last_ns) / _NS,
        heartbeat_s=emitter.beat_every_ns / _NS if emitter.beat_every_ns else None,
        state=emitter.state,
        message=emitter.message,
        received=emitter.received,
        missing=emitter.missing,
        dropped=emitter.dropped,
        errors=emitter.errors,
        clock_offset_s=emitter.clock_ns / _NS if emitter.clock_ns is not None else None,
    )


def _engine(engine: EngineState, held: dict[tuple[str, str], Held]) -> EngineStatus:
    return EngineStatus(
        name=engine.name,
        engine=engine.engine,
        handles_in=engine.handles_in,
        handles_in_without_expiry=engine.handles_in_without_expiry,
        handles_out=engine.handles_out,
        handles_out_with_expiry=engine.handles_out_with_expiry,
        streamed_answers=engine.streamed_answers,
        streamed_handles=engine.streamed_handles,
        plain_answers=engine.plain_answers,
        plain_handles=engine.plain_handles,
        reasons=dict(engine.reasons),
        held={str(kind): _held(engine, held.get((engine.name, str(kind)), Held()), kind) for kind in HoldKind},
        prefill_measurements=measurements(engine),
    )


def _held(engine: EngineState, held: Held, kind: HoldKind) -> HeldStatus:
    ended = engine.ended.get(kind, Ended())
    return HeldStatus(
        requests=held.requests,
        blocks=held.blocks,
        oldest_s=held.oldest_ns / _NS,
        ended=ended.count,
        read_late=ended.read_late,
        latest_read_s=ended.latest_read_ns / _NS,
    )


def build(state: State, settings: AssemblySettings, engines: Engines, clocks: Clocks, now_ns: int) -> AssemblyStatus:
    """The whole."""
    held = held_now(state, settings, engines, now_ns)
    alive = [e for e in state.emitters.values() if e.state not in STOPPED and now_ns - e.last_ns <= settings.alive_ns]
    return AssemblyStatus(
        emitters=[_emitter(e, engines, now_ns) for e in state.emitters.values()],
        engines=[_engine(e, held) for e in state.engines.values()],
        attempts=state.attempts,
        attempts_without_session=state.attempts_without_session,
        stuck_turns=open_turns(state, settings, alive, now_ns)[1],
        open_turns=len(state.turns),
        suspicions=dict(state.suspicions),
        clocks=clocks.compared(),
        stepped=clocks.stepped(),
    )
