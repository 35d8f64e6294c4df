"""Present values, worked out from state whenever they are asked for."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Final

from turnscope.assembly.emitters import Emitters, emitter_kind
from turnscope.assembly.engines import SCHEDULER, Engines
from turnscope.assembly.held import Held, held_now
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.sources import EmitterState
from turnscope.assembly.state import StandsStill, State, TurnState
from turnscope.catalog.labels import EMITTER_KINDS, label_text
from turnscope.model import SECOND_NS, Sample
from turnscope.semconv import HoldKind

MAX_CONNECTORS: Final = 8
"""Children of one composite connector that are shown."""


def gauges(state: State, settings: AssemblySettings, engines: Engines, emitters: Emitters, now_ns: int) -> list[Sample]:
    """All gauges of assembly, those at 0 too."""
    alive = [e for e in state.emitters.values() if emitters.alive(e, now_ns)]
    out = [
        Sample("turnscope_emitters_alive", (kind,), sum(emitter_kind(e.emitter.kind) == kind for e in alive))
        for kind in EMITTER_KINDS
    ]
    running, stuck = open_turns(state, alive)
    out += [
        Sample("turnscope_turns_open", ("running",), running),
        Sample("turnscope_turns_open", ("stuck",), stuck),
    ]
    return out + _held(state, settings, engines, now_ns) + _infos(engines)


def open_turns(state: State, alive: list[EmitterState]) -> tuple[int, int]:
    """Running and stuck. All by heartbeats: a proxy's list is of turns; without one, a turn is either at P or at D."""
    proxies = [e for e in alive if e.emitter.kind == "proxy"]
    schedulers = [e for e in alive if e.emitter.kind == SCHEDULER]
    stuck = len(standing_still(state))
    return max(0, sum(len(e.open) + e.open_more for e in proxies or schedulers) - stuck), stuck


def standing_still(state: State) -> list[StandsStill]:
    """Of the turns that are stuck now: whose request has not ended after all."""
    return [t.stuck for t in state.turns.values() if t.stuck is not None and not _ended(t, t.stuck.request_id)]


def _ended(turn: TurnState, request_id: str) -> bool:
    legs = (turn.prefill, *turn.samples, *turn.decodes)
    return any(leg is not None and leg.request.request_id == request_id for leg in legs)


def _held(state: State, settings: AssemblySettings, engines: Engines, now_ns: int) -> list[Sample]:
    out = []
    none = {(engine.name, str(kind)): Held() for engine in engines.present() for kind in HoldKind}
    for labels, held in (none | held_now(state, settings, now_ns, engines.name)).items():
        out += [
            Sample("turnscope_held_requests", labels, held.requests),
            Sample("turnscope_held_tokens", labels, held.tokens),
            Sample("turnscope_held_blocks", labels, held.blocks),
            Sample("turnscope_held_bytes", labels, held.bytes),
            Sample("turnscope_held_oldest_seconds", labels, held.oldest_ns / SECOND_NS),
            Sample("turnscope_held_overdue", labels, held.overdue),
        ]
    blocks: Counter[str] = Counter()
    for engine in engines.present():
        if engine.engine.num_blocks is not None:
            blocks[engine.name] += engine.engine.num_blocks
    return out + [Sample("turnscope_engine_blocks", (name,), number) for name, number in blocks.items()]


def _infos(engines: Engines) -> list[Sample]:
    """``engine_info`` and ``connector_info``: 1 for what there is, one a name."""
    out = []
    for known in engines.named():
        facts = known.engine
        on = "unknown" if facts.bidirectional is None else "yes" if facts.bidirectional else "no"
        texts = (label_text(text or "") for text in (facts.model, facts.vllm_version, facts.connector))
        out.append(Sample("turnscope_engine_info", (known.name, facts.role, *texts, on), 1))
        if facts.hold_ttl_ns is not None:
            out.append(Sample("turnscope_engine_hold_ttl_seconds", (known.name,), facts.hold_ttl_ns / SECOND_NS))
        children = dict.fromkeys(map(label_text, facts.connectors or filter(None, (facts.connector,))))
        for name in itertools.islice(children, MAX_CONNECTORS):
            measured = "yes" if name.startswith("Nixl") else "no"
            out.append(Sample("turnscope_connector_info", (known.name, name, measured), 1))
    return out
