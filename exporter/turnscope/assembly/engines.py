"""Engines by id: their present start, and names that stay few however often engines come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from turnscope.assembly.moments import Moment, clock_of, moment
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import EngineState, State
from turnscope.catalog import NO_ENGINE
from turnscope.model import Engine, Event, Heartbeat
from turnscope.model import EngineState as EngineStarted
from turnscope.semconv import Role

SCHEDULER: Final = "engine"
"""The kind of emitter that is an engine's scheduler process."""
_ROLES: Final = frozenset(Role)


def _role(engine: Engine) -> Role:
    """Of a role that this version does not know, the one that promises nothing."""
    return Role(engine.role) if engine.role in _ROLES else Role.AGGREGATED


def _facts(engine: Engine) -> Engine:
    """What is so for all processes of the engine."""
    return msgspec.structs.replace(engine, rank=None, role=_role(engine))


class End(NamedTuple):
    """When an engine's start was found to have ended."""

    wall_ns: int
    at: Moment | None


class Engines:
    """The registry. Names: the configured one, else role and ordinal; an engine that restarts keeps its name."""

    def __init__(self, state: State, settings: AssemblySettings) -> None:
        self._state = state
        self._settings = settings

    def see(self, event: Event, arrival_ns: int) -> bool:
        """Note the engine of an event. True when it is a newer start of an engine known before."""
        engine = event.engine
        if engine is None:
            return False
        known, clock = self._state.engines.get(engine.id), clock_of(event.emitter)
        if known is None:
            name = self._name(engine, event.emitter.host)
            self._state.names[name] = engine.id
            self._state.engines[engine.id] = EngineState(
                name=name,
                engine=_facts(engine),
                host=event.emitter.host,
                last_ns=arrival_ns,
                last_wall_ns=event.wall_ns,
                last_clock=clock,
                last_mono_ns=event.mono_ns,
                begun=moment(event),
                starts={engine.generation: event.wall_ns},
            )
            return False
        known.last_ns, known.silent = arrival_ns, False
        if clock != known.last_clock or event.mono_ns >= known.last_mono_ns:
            known.last_clock, known.last_mono_ns, known.last_wall_ns = clock, event.mono_ns, event.wall_ns
        first = known.starts.get(engine.generation)
        if first is None:
            return self._start(known, event, engine)
        if event.wall_ns < first:
            known.starts[engine.generation] = event.wall_ns
            since = moment(event).after(known.begun)
            if engine.generation == known.engine.generation and since is not None and since < 0:
                known.begun = moment(event)
        # What a scheduler says of its engine grows while it starts; its workers know less.
        speaks = event.emitter.kind == SCHEDULER and isinstance(event.body, (Heartbeat, EngineStarted))
        if speaks and engine.generation == known.engine.generation:
            known.engine = _facts(engine)
        return False

    def _start(self, known: EngineState, event: Event, engine: Engine) -> bool:
        # By the host's monotonic clock where it is the same: the wall clock may have been set back meanwhile.
        since = moment(event).after(known.begun)
        newer = since >= 0 if since is not None else event.wall_ns >= known.starts[known.engine.generation]
        known.starts[engine.generation] = event.wall_ns
        if not newer:
            return False
        fresh = EngineState(
            name=known.name,
            engine=_facts(engine),
            host=event.emitter.host,
            last_ns=known.last_ns,
            last_wall_ns=known.last_wall_ns,
            last_clock=known.last_clock,
            last_mono_ns=known.last_mono_ns,
            begun=moment(event),
            starts=dict(list(known.starts.items())[-8:]),
        )
        self._state.engines[engine.id] = fresh
        return True

    def _name(self, engine: Engine, host: str) -> str:
        if engine.name is not None:
            rank = engine.dp_rank
            name = f"{engine.name}-dp{rank}" if rank is not None and engine.id.endswith(f"_dp{rank}") else engine.name
            if self._free(name) or (name not in self._state.names and len(self._state.names) < self._limit):
                return name
            return f"{_role(engine)}-other"
        role = _role(engine)
        taken = [f"{role}-{n}" for n in range(self._settings.max_engine_names)]
        free = [name for name in taken if name in self._state.names and self._free(name)]
        here = [name for name in free if self._state.engines[self._state.names[name]].host == host]
        for name in (*here, *free):
            return name
        return next((name for name in taken if name not in self._state.names), f"{role}-other")

    @property
    def _limit(self) -> int:
        return self._settings.max_engine_names * len(Role)

    def _free(self, name: str) -> bool:
        """Whether the engine that had ``name`` is gone."""
        owner = self._state.engines.get(self._state.names.get(name, ""))
        return owner is not None and owner.gone

    # --- what others ask ------------------------------------------------------------------------------
    def name(self, engine_id: str | None) -> str:
        """The bounded name, or ``none``."""
        known = self._state.engines.get(engine_id or "")
        return known.name if known else NO_ENGINE

    def get(self, engine_id: str | None) -> EngineState | None:
        """The record, None for an engine that no hook told of."""
        return self._state.engines.get(engine_id or "")

    def present(self) -> Iterator[EngineState]:
        """Engines that are not gone."""
        return (engine for engine in self._state.engines.values() if not engine.gone)

    def superseded(self, engine_id: str, generation: str) -> End | None:
        """When this start of the engine was found to have ended, None while it lives."""
        known = self._state.engines.get(engine_id)
        if known is None or generation == known.engine.generation:
            return None
        return End(known.starts[known.engine.generation], known.begun)
