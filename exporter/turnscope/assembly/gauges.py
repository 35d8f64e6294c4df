"""Present values, worked out from state whenever they are asked for."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.emitters import Emitters, emitter_kind
from turnscope.assembly.engines import SCHEDULER, Engines
from turnscope.assembly.held import held_now
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import EmitterState, State
from turnscope.catalog.labels import EMITTER_KINDS
from turnscope.model import Sample
from turnscope.semconv import Role

_NS: Final = 1e9


def gauges(state: State, settings: AssemblySettings, engines: Engines, emitters: Emitters, now_ns: int) -> list[Sample]:
    """All gauges of assembly, those at 0 too."""
    alive = [e for e in state.emitters.values() if emitters.alive(e, now_ns)]
    out = [
        Sample("turnscope_emitters_alive", (kind,), sum(emitter_kind(e.emitter.kind) == kind for e in alive))
        for kind in EMITTER_KINDS
    ]
    running, stuck = open_turns(state, settings, alive, now_ns)
    out += [
        Sample("turnscope_turns_open", ("running",), running),
        Sample("turnscope_turns_open", ("stuck",), stuck),
    ]
    return out + _held(state, settings, engines, now_ns) + _infos(engines)


def open_turns(state: State, settings: AssemblySettings, alive: list[EmitterState], now_ns: int) -> tuple[int, int]:
    """Running and stuck, by heartbeats: a proxy's list is of turns; without one, a turn is either at P or at D."""
    schedulers = [e for e in alive if e.emitter.kind == SCHEDULER]
    prefills = [e for e in schedulers if _role(state, e) in (Role.PREFILL, Role.BOTH)]
    stuck = sum(now_ns - since > settings.stuck_ns for e in prefills for since in e.open.values())
    proxies = [e for e in alive if e.emitter.kind == "proxy"]
    total = sum(len(e.open) + e.open_more for e in proxies or schedulers)
    return max(0, total - stuck), stuck


def _role(state: State, emitter: EmitterState) -> str | None:
    engine = state.engines.get(emitter.engine_id or "")
    return engine.engine.role if engine is not None else None


def _held(state: State, settings: AssemblySettings, engines: Engines, now_ns: int) -> list[Sample]:
    out = []
    for labels, held in held_now(state, settings, engines, now_ns).items():
        out += [
            Sample("turnscope_held_requests", labels, held.requests),
            Sample("turnscope_held_tokens", labels, held.tokens),
            Sample("turnscope_held_blocks", labels, held.blocks),
            Sample("turnscope_held_bytes", labels, held.bytes),
            Sample("turnscope_held_oldest_seconds", labels, held.oldest_ns / _NS),
            Sample("turnscope_held_overdue", labels, held.overdue),
        ]
    for engine in engines.present():
        if engine.engine.num_blocks is not None:
            out.append(Sample("turnscope_engine_blocks", (engine.name,), engine.engine.num_blocks))
    return out


def _infos(engines: Engines) -> list[Sample]:
    """``engine_info``: 1 for what there is."""
    out = []
    for known in engines.present():
        facts = known.engine
        on = "unknown" if facts.bidirectional is None else "yes" if facts.bidirectional else "no"
        labels = (known.name, facts.role, facts.model or "", facts.vllm_version or "", facts.connector or "", on)
        out.append(Sample("turnscope_engine_info", labels, 1))
    return out
