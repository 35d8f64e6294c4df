"""What assembly knows of its sources, for ``/status`` and ``turnscope doctor``."""

from __future__ import annotations

from collections import Counter

from turnscope.assembly.clocks import Clocks
from turnscope.assembly.counts import hooks
from turnscope.assembly.emitters import STOPPED
from turnscope.assembly.engines import Engines
from turnscope.assembly.fabric import COLLECTOR
from turnscope.assembly.gauges import open_turns, standing_still
from turnscope.assembly.held import Held, held_now
from turnscope.assembly.learning import measurements
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.sources import EmitterState, Ended, EngineState
from turnscope.assembly.state import State
from turnscope.assembly.taint import cache_key, spoilers
from turnscope.assembly.tokens import LOAD_FAILED, reported
from turnscope.model import (
    SECOND_NS,
    AssemblyStatus,
    Attempt,
    EmitterStatus,
    EngineStatus,
    HeldStatus,
    Request,
    Transfer,
    Turn,
)
from turnscope.semconv import HoldKind, Leg, Reason, Role, TransferState


def note_leg(state: State, engine: EngineState | None, request: Request) -> None:
    """Count a request's handles on its engine, and D's requests in a row that P handed nothing to."""
    state.prefills += request.leg is Leg.PREFILL
    if engine is None:
        return
    numbers = reported(request)
    if engine.engine.role == Role.DECODE and numbers is not None:
        alone = not numbers.external and numbers.computed > 1
        if alone and not engine.without_handoff:
            engine.prefills_before = state.prefills
        engine.without_handoff = engine.without_handoff + 1 if alone else 0
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


def note_read(engine: EngineState | None, transfer: Transfer) -> None:
    """Count reads from one holder that failed in a row. A declined one says nothing of the way between the two."""
    holder = transfer.remote_engine_id
    if engine is None or not holder:
        return
    if transfer.state is TransferState.DONE:
        engine.failing.pop(holder, None)
    elif transfer.state in LOAD_FAILED - {TransferState.DECLINED}:
        engine.failing[holder] = engine.failing.get(holder, 0) + 1


def note_explained(state: State, row: Turn) -> None:
    """Count a turn by the hooks that told of it, and whether its reason is known."""
    key = f"{hooks(row)} {'no' if row.reason == Reason.UNKNOWN else 'yes'}"
    state.explained[key] = state.explained.get(key, 0) + 1


def note_reason(engine: EngineState | None, row: Turn) -> None:
    """Count a turn on the engine that did its prefill."""
    if engine is not None:
        engine.reasons[row.reason] = engine.reasons.get(row.reason, 0) + 1


def note_continuity(state: State, row: Turn) -> None:
    """Count a turn by what told how its prompt continues the turns before."""
    if row.prefill_engine is not None:
        state.continuity[row.continuity_evidence] = state.continuity.get(row.continuity_evidence, 0) + 1


def _emitter(emitter: EmitterState, engines: Engines, now_ns: int) -> EmitterStatus:
    return EmitterStatus(
        emitter=emitter.emitter,
        engine=engines.name(emitter.engine_id) if emitter.engine_id is not None else None,
        generation=emitter.generation,
        rank=emitter.rank,
        heard_s=max(0, now_ns - emitter.first_ns) / SECOND_NS,
        silent_s=max(0, now_ns - emitter.last_ns) / SECOND_NS,
        heartbeat_s=emitter.beat_every_ns / SECOND_NS if emitter.beat_every_ns else None,
        state=emitter.state,
        message=emitter.message,
        received=emitter.received,
        missing=emitter.missing,
        dropped=emitter.dropped,
        errors=emitter.errors,
        digest_key_id=emitter.digest_key_id,
        clock_offset_s=emitter.clock_ns / SECOND_NS if emitter.clock_ns is not None else None,
    )


def _failing(engine: EngineState, engines: Engines) -> dict[str, int]:
    """By the holders' names; of those that are gone nothing is said, their holds are lost anyway."""
    sums: Counter[str] = Counter()
    for holder_id, failed in engine.failing.items():
        holder = engines.get(holder_id)
        if holder is not None and not holder.gone:
            sums[holder.name] += failed
    return dict(sums)


def _engine(engine: EngineState, engines: Engines, state: State, held: dict[tuple[str, str], Held]) -> EngineStatus:
    cache = state.caches.get(cache_key(engine.engine.id, engine.engine.generation))
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
        without_handoff=engine.without_handoff,
        prefills_meanwhile=state.prefills - engine.prefills_before if engine.without_handoff else 0,
        reasons=dict(engine.reasons),
        failing=_failing(engine, engines),
        spoiled_prefixes=len(spoilers(cache)) if cache is not None else 0,
        held={str(kind): _held(engine, held.get((engine.engine.id, str(kind)), Held()), kind) for kind in HoldKind},
        prefill_measurements=measurements(engine),
    )


def _held(engine: EngineState, held: Held, kind: HoldKind) -> HeldStatus:
    ended = engine.ended.get(kind, Ended())
    return HeldStatus(
        requests=held.requests,
        blocks=held.blocks,
        oldest_s=held.oldest_ns / SECOND_NS,
        ended=ended.count,
        read_late=ended.read_late,
        latest_read_s=ended.latest_read_ns / SECOND_NS,
    )


def build(state: State, settings: AssemblySettings, engines: Engines, clocks: Clocks, now_ns: int) -> AssemblyStatus:
    """The whole."""
    held = held_now(state, settings, now_ns)
    alive = [e for e in state.emitters.values() if e.state not in STOPPED and now_ns - e.last_ns <= settings.alive_ns]
    return AssemblyStatus(
        emitters=[_emitter(e, engines, now_ns) for e in state.emitters.values() if e.emitter.kind != COLLECTOR],
        engines=[_engine(e, engines, state, held) for e in state.engines.values()],
        attempts=state.attempts,
        attempts_without_session=state.attempts_without_session,
        direct_requests=state.direct_requests,
        stuck_turns=open_turns(state, alive)[1],
        stuck_causes=dict(Counter(str(stuck.cause) for stuck in standing_still(state))),
        explained=dict(state.explained),
        open_turns=len(state.turns),
        suspicions=dict(state.suspicions),
        continuity=dict(state.continuity),
        clocks=clocks.compared(),
        stepped=clocks.stepped(),
    )
