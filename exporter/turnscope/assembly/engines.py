"""Engines by id: their present start, and names that stay few however often engines come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from turnscope.assembly.moments import Moment, clock_of, moment
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.sources import EngineState, Start
from turnscope.assembly.state import State
from turnscope.catalog import NO_ENGINE, SHARED_NAMES, label_text
from turnscope.model import Engine, Event, Heartbeat
from turnscope.model import EngineState as EngineStarted
from turnscope.semconv import Role

SCHEDULER: Final = "engine"
"""The kind of emitter that is an engine's scheduler process."""
MAX_HOSTS: Final = 64
_ROLES: Final = frozenset(Role)
_RESERVED: Final = SHARED_NAMES | {NO_ENGINE, ""}
"""Names that no engine can give itself: they mean something else."""


def _role(engine: Engine) -> Role:
    """Of a role that this version does not know, the one that promises nothing."""
    return Role(engine.role) if engine.role in _ROLES else Role.AGGREGATED


def _facts(engine: Engine) -> Engine:
    """What is so for all processes of the engine."""
    return msgspec.structs.replace(engine, rank=None, role=_role(engine))


def _given(engine: Engine) -> str | None:
    """The name that somebody gave it, as a label can have it, apart by data-parallel rank."""
    name = label_text(engine.name or "")
    if name in _RESERVED:
        return None
    rank = engine.dp_rank
    apart = rank is None or name.endswith((f"_dp{rank}", f"-dp{rank}"))
    return name if apart or not engine.id.endswith(f"_dp{rank}") else f"{name}-dp{rank}"


class End(NamedTuple):
    """When an engine's start was found to have ended."""

    wall_ns: int
    at: Moment


def _after(event: Event, at: Moment, wall_ns: int) -> int:
    """From another moment to the event's. By a monotonic clock where both are of the same: a wall clock may have been
    set back meanwhile."""
    since = moment(event).after(at)
    return since if since is not None else event.wall_ns - wall_ns


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
            if not self._room():
                return False
            name = self._name(engine, event.emitter.host)
            if name not in SHARED_NAMES:
                self._state.names[name] = engine.id
            self._state.engines[engine.id] = EngineState(
                name=name,
                engine=_facts(engine),
                host=event.emitter.host,
                hosts=[event.emitter.host],
                last_ns=arrival_ns,
                last_wall_ns=event.wall_ns,
                last_clock=clock,
                last_mono_ns=event.mono_ns,
                starts={engine.generation: Start(event.wall_ns, moment(event))},
            )
            return False
        known.last_ns, known.silent = arrival_ns, False
        if event.emitter.host not in known.hosts and len(known.hosts) < MAX_HOSTS:
            known.hosts.append(event.emitter.host)
        if clock != known.last_clock or event.mono_ns >= known.last_mono_ns:
            known.last_clock, known.last_mono_ns, known.last_wall_ns = clock, event.mono_ns, event.wall_ns
        first = known.starts.get(engine.generation)
        if first is None:
            return self._start(known, event, engine)
        sooner = clock != first.at.clock or not clock or event.mono_ns < first.at.mono_ns
        if sooner and _after(event, first.at, first.wall_ns) < 0:
            known.starts[engine.generation] = Start(event.wall_ns, moment(event))
        # What a scheduler says of its engine grows while it starts; its workers know less.
        speaks = event.emitter.kind == SCHEDULER and isinstance(event.body, (Heartbeat, EngineStarted))
        if speaks and engine.generation == known.engine.generation:
            known.engine = _facts(engine)
        return False

    def replaces(self, event: Event) -> str | None:
        """Of an engine that has just started: the one that listened at the same place until then, which is over. To be
        asked before ``see``: the newcomer takes over the name."""
        engine = event.engine
        started = isinstance(event.body, EngineStarted) and event.body.state == "started"
        if not started or engine is None or engine.side_channel_port is None:
            return None
        place = f"{event.emitter.host}:{engine.side_channel_port}"
        before = self._state.places.get(place)
        other = self._state.engines.get(before or "")
        if before == engine.id or (other is not None and _after(event, other.last, other.last_wall_ns) < 0):
            return None
        self._state.places[place] = engine.id
        if before is not None and other is not None:
            other.replaced_by = engine.id
            other.stopped = True
        return before

    def inherit(self, engine_id: str, before_id: str) -> None:
        """Give an engine the name of the one that it replaced. It has another where a worker of its own spoke first: a
        worker does not know the place, and the name was not free."""
        known, before = self.get(engine_id), self.get(before_id)
        names = self._state.names
        if known is None or before is None or names.get(before.name) != before_id:
            return
        given = _given(known.engine)
        same = before.engine.role == known.engine.role if given is None else given == before.name
        if same and known.name != before.name:
            if names.get(known.name) == engine_id:
                del names[known.name]
            known.name = before.name
            names[before.name] = engine_id

    def _start(self, known: EngineState, event: Event, engine: Engine) -> bool:
        newer = _after(event, known.start.at, known.start.wall_ns) >= 0
        known.starts[engine.generation] = Start(event.wall_ns, moment(event))
        if not newer:
            return False
        fresh = EngineState(
            name=known.name,
            engine=_facts(engine),
            host=event.emitter.host,
            hosts=[event.emitter.host],
            last_ns=known.last_ns,
            last_wall_ns=known.last_wall_ns,
            last_clock=known.last_clock,
            last_mono_ns=known.last_mono_ns,
            starts=dict(list(known.starts.items())[-8:]),
        )
        self._state.engines[engine.id] = fresh
        return True

    def _name(self, engine: Engine, host: str) -> str:
        names, role = self._state.names, _role(engine)
        room = len(names) < self._settings.max_engine_names
        given = _given(engine)
        if given is not None:
            return given if self._free(given) or (room and given not in names) else f"{role}-other"
        ordinals = [f"{role}-{n}" for n in range(self._settings.max_engine_names)]
        free = [name for name in ordinals if name in names and self._free(name)]
        owners = {name: self._state.engines.get(names[name]) for name in free}
        own = [name for name in free if names[name] == engine.id]
        here = [name for name, owner in owners.items() if owner is not None and owner.host == host]
        for name in (*own, *here, *free):
            return name
        return next((name for name in ordinals if room and name not in names), f"{role}-other")

    def _free(self, name: str) -> bool:
        """Whether the engine that had ``name`` is gone, or forgotten."""
        owner = self._state.engines.get(self._state.names.get(name, ""))
        return name in self._state.names and (owner is None or owner.gone)

    # --- room -----------------------------------------------------------------------------------------
    def _room(self) -> bool:
        """Whether one more can be taken in; the one that has been gone longest makes room."""
        engines = self._state.engines
        if len(engines) < self._settings.max_engines:
            return True
        gone = [known for known in engines.values() if known.gone]
        if gone:
            self._forget(min(gone, key=lambda known: known.last_ns).engine.id)
        return bool(gone)

    def prune(self, before_ns: int) -> None:
        """Forget engines that are gone and were last heard before; and failed reads from those that nobody knows."""
        for key in [k for k, known in self._state.engines.items() if known.gone and known.last_ns < before_ns]:
            self._forget(key)
        for known in self._state.engines.values():
            known.failing = {holder: n for holder, n in known.failing.items() if holder in self._state.engines}

    def _forget(self, engine_id: str) -> None:
        """Its name stays its own until another needs it."""
        del self._state.engines[engine_id]
        for place in [place for place, engine in self._state.places.items() if engine == engine_id]:
            del self._state.places[place]

    # --- what others ask ------------------------------------------------------------------------------
    def name(self, engine_id: str | None) -> str:
        """The bounded name, or ``none``."""
        known = self._state.engines.get(engine_id or "")
        return known.name if known else NO_ENGINE

    def get(self, engine_id: str | None) -> EngineState | None:
        """The record, None for an engine that no hook told of."""
        return self._state.engines.get(engine_id or "")

    def facts(self, engine_id: str | None) -> Engine | None:
        """What it is and how it is set; None for an engine that no hook told of."""
        known = self.get(engine_id)
        return known.engine if known is not None else None

    def present(self) -> Iterator[EngineState]:
        """Engines that are not gone."""
        return (engine for engine in self._state.engines.values() if not engine.gone)

    def named(self) -> Iterator[EngineState]:
        """Of those the ones with a name of their own: of several that share one, or had it one after another, one."""
        return (engine for engine in self.present() if self._state.names.get(engine.name) == engine.engine.id)

    def lost(self, engine_id: str, generation: str | None, since_ns: int | None) -> End | None:
        """When that start of the engine is known to have been over; None while it may live.

        Of an unknown ``generation``, whether there was a start after ``since_ns``, wall time.
        """
        known = self._state.engines.get(engine_id)
        if known is None:
            return None
        present = known.start
        if generation is not None and generation != known.engine.generation:
            begun = known.starts[generation].wall_ns if generation in known.starts else 0
            later = (s for g, s in known.starts.items() if g != generation and s.wall_ns >= begun)
            over = min(later, key=lambda start: start.wall_ns, default=present)
            return End(over.wall_ns, over.at)
        if generation is None and since_ns is not None and len(known.starts) > 1 and present.wall_ns > since_ns:
            return End(present.wall_ns, present.at)
        return End(known.last_wall_ns, known.last) if known.gone else None

    def superseded(self, engine_id: str, generation: str) -> End | None:
        """When this start of the engine was found to have ended, None while it lives."""
        known = self._state.engines.get(engine_id)
        if known is None or generation == known.engine.generation:
            return None
        return End(known.start.wall_ns, known.start.at)
