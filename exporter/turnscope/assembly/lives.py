"""Lives of engines: what their starts, restarts, ends and silence do to what they held."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.agenda import Agenda
from turnscope.assembly.emitters import STOPPED
from turnscope.assembly.engines import SCHEDULER, End, Engines
from turnscope.assembly.handles import Handles
from turnscope.assembly.holds import Holds
from turnscope.assembly.moments import moment
from turnscope.assembly.settings import AssemblySettings
from turnscope.model import EngineState, Event

ENGINE: Final = "engine"
HOLD: Final = "hold"
"""Kinds of things on the agenda."""


def _at(event: Event) -> End:
    return End(event.wall_ns, moment(event))


class Lives:
    """Notices each end of an engine and takes its holds with it."""

    def __init__(
        self, settings: AssemblySettings, engines: Engines, holds: Holds, handles: Handles, agenda: Agenda
    ) -> None:
        self._settings = settings
        self._engines = engines
        self._holds = holds
        self._handles = handles
        self._agenda = agenda

    def see(self, event: Event, arrival_ns: int) -> None:
        """Note the engine of an event, and what the event tells of an end: its own, or that of another before it."""
        engine = event.engine
        if engine is None:
            return
        known = self._engines.get(engine.id)
        begins = known is None or known.silent
        replaced = self._engines.replaces(event)
        restarted = self._engines.see(event, arrival_ns)
        if replaced is not None:
            self._engines.inherit(engine.id, replaced)
            self._lose(replaced, None, _at(event), arrival_ns)
        if begins:
            self._agenda.push(arrival_ns + self._settings.engine_lost_ns, ENGINE, engine.id)
        if restarted:
            self._lose(engine.id, engine.generation, _at(event), arrival_ns)
        elif isinstance(event.body, EngineState):
            self._says(event, event.body, arrival_ns)

    def _says(self, event: Event, body: EngineState, arrival_ns: int) -> None:
        known = self._engines.get(event.engine.id) if event.engine is not None else None
        if known is None or event.engine is None or event.engine.generation != known.engine.generation:
            return
        if body.state == "stopping" and event.emitter.kind == SCHEDULER:
            known.stopped = True
            self._lose(event.engine.id, None, _at(event), arrival_ns)
        elif body.state not in STOPPED:
            known.stopped = False

    def due(self, engine_id: str, due_ns: int) -> None:
        """An engine that may have been silent for too long."""
        engine = self._engines.get(engine_id)
        if engine is None:
            return
        silent_from = engine.last_ns + self._settings.engine_lost_ns
        if silent_from > due_ns:
            self._agenda.push(silent_from, ENGINE, engine_id)
            return
        engine.silent = True
        # It ended some time after it was last heard: nothing tells when.
        self._lose(engine_id, None, End(engine.last_wall_ns, engine.last), due_ns)

    def _lose(self, engine_id: str, survivor: str | None, end: End, now_ns: int) -> None:
        for hold in self._holds.lose(engine_id, survivor, end):
            self._handles.lost(hold.hold_id, end.wall_ns)
            self._agenda.push(self._holds.schedule(hold, now_ns), HOLD, hold.hold_id)
