"""Processes with a hook: their numbers, heartbeats and losses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from turnscope.assembly.ledger import Ledger, one
from turnscope.assembly.sequence import MAX_SPANS, Arrival, Sequence
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.sources import EmitterState, Idle
from turnscope.assembly.state import State
from turnscope.catalog.labels import EMITTER_KINDS
from turnscope.model import Attempt, Digest, EngineState, Event, Heartbeat
from turnscope.semconv import request_of

PROXY: Final = "proxy"
"""The kind of emitter whose word on each turn is awaited while it lives."""
TALLY: Final = "tally:"
"""What the keys of tallies begin with; the emitter's id, which may hold anything, and a number follow."""
STOPPED: Final = ("stopping", "switched_off")


def emitter_kind(kind: str) -> str:
    """As a label value."""
    return kind if kind in EMITTER_KINDS else "other"


class Emitters:
    """Takes every event first."""

    def __init__(self, state: State, settings: AssemblySettings, ledger: Ledger) -> None:
        self._state = state
        self._settings = settings
        self._ledger = ledger

    def receive(self, event: Event, arrival_ns: int, wall_ns: int | None) -> EmitterState | None:
        """Note an event; its emitter, or None for one that had come before."""
        emitter = self._state.emitters.get(event.emitter.id)
        if emitter is None:
            emitter = EmitterState(
                emitter=event.emitter, first_ns=arrival_ns, last_ns=arrival_ns, sequence=Sequence(), rank=None
            )
            self._state.emitters[event.emitter.id] = emitter
            if event.emitter.kind == PROXY:
                self._state.proxies.append(event.emitter.id)
        if event.engine is not None:
            emitter.engine_id, emitter.generation = event.engine.id, event.engine.generation
            emitter.rank = event.engine.rank
        emitter.received += 1
        name = event.body.EVENT.removeprefix("turnscope.")
        self._tally(emitter, "turnscope_events_received_total", name)
        arrival = emitter.sequence.take(event.seq, arrival_ns)
        if arrival is Arrival.DUPLICATE:
            self._tally(emitter, "turnscope_events_duplicate_total", name)
            return None
        # Only now: what is sent twice tells nothing of whether its sender still lives.
        emitter.last_ns = arrival_ns
        if arrival is Arrival.RECOVERED:
            emitter.missing -= 1
            self._tally(emitter, "turnscope_events_recovered_total", emitter_kind(event.emitter.kind))
        if len(emitter.sequence.gaps) > MAX_SPANS:
            self.give_up(event.emitter.id, arrival_ns)
        delay = arrival_ns - event.mono_ns
        if emitter.delay_ns is None or delay < emitter.delay_ns:
            emitter.delay_ns = delay
        if wall_ns is not None:
            clock = wall_ns - event.wall_ns
            emitter.clock_ns = clock if emitter.clock_ns is None else min(clock, emitter.clock_ns)
        if isinstance(event.body, Heartbeat):
            self._heartbeat(emitter, event, event.body, arrival_ns)
        elif isinstance(event.body, Digest):
            emitter.digest_key_id = event.body.key_id or emitter.digest_key_id
        elif isinstance(event.body, Attempt):
            emitter.digest_key_id = event.body.digest_key_id or emitter.digest_key_id
        elif isinstance(event.body, EngineState):
            emitter.state, emitter.message = event.body.state, event.body.message
            if event.body.state in STOPPED:
                emitter.open, emitter.open_more, emitter.idle = {}, 0, {}
        return emitter

    def _heartbeat(self, emitter: EmitterState, event: Event, beat: Heartbeat, arrival_ns: int) -> None:
        # The heartbeat's own number may be below last_seq's: the sequence already has it.
        newer = beat.last_seq >= emitter.sequence.high
        emitter.sequence.announce(beat.last_seq, arrival_ns)
        kind = emitter_kind(emitter.emitter.kind)
        if beat.dropped > emitter.dropped:
            self._tally(emitter, "turnscope_hook_dropped_total", kind, beat.dropped - emitter.dropped)
            emitter.dropped = beat.dropped
        if beat.errors > emitter.errors:
            self._tally(emitter, "turnscope_hook_errors_total", kind, beat.errors - emitter.errors)
            emitter.errors = beat.errors
        if newer:
            if emitter.beat_mono_ns is not None:
                emitter.beat_every_ns = event.mono_ns - emitter.beat_mono_ns
            emitter.beat_mono_ns = event.mono_ns
            emitter.open = {name: emitter.open.get(name, arrival_ns) for name in beat.open_requests}
            emitter.open_more = beat.open_more
            emitter.idle = {
                name: emitter.idle.get(name) or Idle(turn_id, arrival_ns, event.wall_ns)
                for name, turn_id in zip(beat.idle_requests, beat.idle_turns, strict=False)
            }

    def _tally(self, emitter: EmitterState, metric: str, label: str, value: int = 1) -> None:
        if emitter.received > self._state.tallied.get(emitter.emitter.id, 0):
            key = f"{metric}/{label}"
            emitter.tally[key] = emitter.tally.get(key, 0) + value

    def flush(self) -> None:
        """Hand out what was tallied: one key per emitter and number of events, so that replay can tell."""
        for emitter in self._state.emitters.values():
            if emitter.tally:
                counts = [one(*key.split("/"), value=value) for key, value in emitter.tally.items()]
                self._ledger.count(f"{TALLY}{emitter.emitter.id}:{emitter.received}", counts)
                emitter.tally = {}

    def mark(self, key: str) -> None:
        """A tally is in the journal: events up to its number count no more."""
        emitter_id, _, received = key.removeprefix(TALLY).rpartition(":")
        self._state.tallied[emitter_id] = max(int(received), self._state.tallied.get(emitter_id, 0))

    def forget(self, emitter_id: str) -> None:
        """A process that has been silent for as long as anything is remembered."""
        del self._state.emitters[emitter_id]
        self._state.tallied.pop(emitter_id, None)
        if emitter_id in self._state.proxies:
            self._state.proxies.remove(emitter_id)

    # --- time -----------------------------------------------------------------------------------------
    def next_due_ns(self, emitter_id: str) -> int | None:
        """When its oldest gap becomes a loss; None while it has none."""
        emitter = self._state.emitters.get(emitter_id)
        if emitter is None or not emitter.sequence.gaps:
            return None
        oldest = emitter.sequence.oldest_ns()
        return None if oldest is None else oldest + self._settings.max_wait_ns

    def give_up(self, emitter_id: str, now_ns: int) -> None:
        """Count gaps that are too old as losses."""
        emitter = self._state.emitters[emitter_id]
        for span in emitter.sequence.give_up(now_ns - self._settings.max_wait_ns):
            count = span.high - span.low + 1
            emitter.missing += count
            self._ledger.count(
                f"missing:{emitter_id}/{span.low}-{span.high}",
                [one("turnscope_events_missing_total", emitter_kind(emitter.emitter.kind), value=count)],
            )

    # --- what others ask ------------------------------------------------------------------------------
    def alive(self, emitter: EmitterState, now_ns: int) -> bool:
        """Heard of lately and not stopped."""
        return emitter.state not in STOPPED and now_ns - emitter.last_ns <= self._settings.alive_ns

    def proxy_alive(self, now_ns: int) -> bool:
        """Whether an attempt can be expected."""
        return any(self.alive(self._state.emitters[proxy], now_ns) for proxy in self._state.proxies)

    def engine_alive(self, now_ns: int) -> bool:
        """Whether the requests of any engine are seen."""
        return any(e.emitter.kind == "engine" and self.alive(e, now_ns) for e in self._state.emitters.values())

    def open_since(self, engine_id: str | None, request_id: str | None, now_ns: int) -> int | None:
        """Since when heartbeats of this engine list this request; None when they do not."""
        return self._listed((e for e in self._state.emitters.values() if e.engine_id == engine_id), request_id, now_ns)

    def open_sample(self, engine_id: str | None, request_id: str, now_ns: int) -> bool:
        """Whether heartbeats of this engine list another sample of the same request."""
        mine = request_of(request_id)
        return any(
            name != request_id and request_of(name) == mine
            for emitter in self._state.emitters.values()
            if emitter.engine_id == engine_id and self.alive(emitter, now_ns)
            for name in emitter.open
        )

    def open_turn(self, proxy_turn_id: str, now_ns: int) -> bool:
        """Whether a proxy still works on this client request."""
        proxies = (self._state.emitters[proxy] for proxy in self._state.proxies)
        return self._listed(proxies, proxy_turn_id, now_ns) is not None

    def idle_turn(self, turn_id: str, now_ns: int) -> bool:
        """Whether an engine has a request of this turn that takes no step."""
        return any(
            idle.turn_id == turn_id
            for emitter in self._state.emitters.values()
            if emitter.idle and self.alive(emitter, now_ns)
            for idle in emitter.idle.values()
        )

    def _listed(self, emitters: Iterable[EmitterState], name: str | None, now_ns: int) -> int | None:
        for emitter in emitters:
            if name is not None and name in emitter.open and self.alive(emitter, now_ns):
                return emitter.open[name]
        return None
