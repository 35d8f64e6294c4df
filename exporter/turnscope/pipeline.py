"""From the journal to the outputs: the one thread that owns assembly.

Received events are journalled and acknowledged; this thread reads them back in order, feeds assembly, and hands
facts out: what is counted is journalled first, then added to the metrics, stored and sent as a trace. After a
restart it does the same from the last checkpoint on, where keys already in the journal count no more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from turnscope import model
from turnscope.assembly.settings import MEMORY_NS
from turnscope.catalog import METRICS, SHARED_NAMES, Kind, label_sets
from turnscope.journal import checkpoint as checkpoints
from turnscope.journal.checkpoint import Checkpoint
from turnscope.journal.folder import JournalUnavailable
from turnscope.journal.journal import Journal
from turnscope.journal.records import Batch, Counted, Spans
from turnscope.journal.segments import Position
from turnscope.model import AgentSpan, AssemblyStatus, Event, Fact, HoldRecord, Sample, Turn
from turnscope.outputs.metrics import MetricState
from turnscope.outputs.sampling import Sampler
from turnscope.receivers.errors import Unavailable
from turnscope.semconv import Role

_LOG: Final = logging.getLogger(__name__)

SETTLE_EVERY: Final = 64
"""Records between two hand-outs while there is more to read."""
CHECKPOINT_EVENTS: Final = 50_000
"""Events after which a checkpoint is due whatever the time: the next replay takes seconds."""
REFRESH_S: Final = 1.0
"""Age of gauges and status."""


class Assembling(Protocol):
    """Assembly as this module uses it. Times are journal times; how often ``tick`` is called makes no difference."""

    def feed(self, event: Event, arrival_ns: int, wall_ns: int | None = None) -> None: ...

    def feed_spans(self, spans: list[AgentSpan], arrival_ns: int) -> None: ...

    def tick(self, now_ns: int) -> None: ...

    def take(self) -> list[Fact]: ...

    def samples(self, now_ns: int) -> list[Sample]: ...

    def status(self, now_ns: int) -> AssemblyStatus: ...

    def mark_counted(self, key: str, arrival_ns: int) -> None: ...

    def snapshot(self) -> bytes: ...

    def restore(self, state: bytes) -> None: ...


class Rows(Protocol):
    """Where rows go."""

    def add(self, turn: Turn | None, hold: HoldRecord | None) -> None: ...

    def add_span(self, span: AgentSpan) -> None: ...

    def see(self, status: AssemblyStatus, *, last: bool = False) -> None: ...

    def request_checkpoint(self, save: Callable[[], None]) -> bool: ...

    def close(self, save: Callable[[], None] | None) -> None: ...


class Traces(Protocol):
    """Where turn traces go."""

    def add(self, turn: Turn) -> None: ...


class Recording(Protocol):
    """Where what was received goes, if it is recorded."""

    def write(self, events: list[Event], wall_ns: int) -> None: ...

    def write_spans(self, spans: list[AgentSpan]) -> None: ...


class Pipeline:
    """Owns assembly; everything public may be called from any thread."""

    def __init__(
        self,
        journal: Journal,
        folder: Path,
        *,
        assembly: Callable[[], Assembling],
        metrics: MetricState,
        rows: Rows,
        traces: Traces | None = None,
        sampler: Sampler | None = None,
        recording: Recording | None = None,
        engine_names: Mapping[str, str] | None = None,
        checkpoint_s: float = 60.0,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._folder = folder
        self._make = assembly
        self._metrics = metrics
        self._rows = rows
        self._traces = traces
        self._sampler = sampler or Sampler()
        self._recording = recording
        self._names = engine_names or {}
        self._checkpoint_s = checkpoint_s
        self._clock_s = clock_s
        self._stop = threading.Event()
        self._replaying = True
        self._failure: str | None = None
        self._view = AssemblyStatus(), journal.start()
        self._engines: dict[str, tuple[Role, bool]] = {}
        """By name: its role, and whether its transfers may be measured."""
        self._position = journal.start()
        self._events = 0
        """Read since the last checkpoint."""
        self._rows_out = False
        """Rows were handed out since then: a turn is counted when nothing comes any more."""
        self._checkpoint_at = self._refresh_at = clock_s()
        self._unsettled = False
        for metric in METRICS.values():
            self._declare(metric.name, {})
        self._thread = threading.Thread(target=self._run, name="turnscope-assembly", daemon=True)

    # --- what others ask ------------------------------------------------------------------------------
    @property
    def replaying(self) -> bool:
        """The journal is still being replayed after the start."""
        return self._replaying

    @property
    def failure(self) -> str | None:
        """Why assembly stopped, if it did."""
        return self._failure

    @property
    def status(self) -> tuple[AssemblyStatus, int]:
        """What assembly knows of its sources, and how many bytes of the journal came too late for that."""
        status, position = self._view
        return status, self._journal.behind(position)

    @property
    def lag_bytes(self) -> int:
        """Journalled and not assembled yet."""
        return self._journal.behind(self._position)

    def accept(self, events: list[Event]) -> None:
        """Journal ``events``; they are safe when this returns. Raises ``Unavailable``."""
        self._check()
        try:
            self._journal.append_events(events)
        except JournalUnavailable as error:
            raise Unavailable(str(error)) from None

    def accept_spans(self, spans: list[AgentSpan]) -> None:
        """Journal ``spans``; they are safe when this returns. Raises ``Unavailable``."""
        self._check()
        try:
            self._journal.append_spans(spans)
        except JournalUnavailable as error:
            raise Unavailable(str(error)) from None

    def _check(self) -> None:
        if self._failure is not None:
            raise Unavailable(self._failure)

    def start(self) -> None:
        """Replay, then go on."""
        self._thread.start()

    def close(self) -> None:
        """Assemble what is journalled, flush the store and make a checkpoint. Receivers must have stopped."""
        self._stop.set()
        self._thread.join()

    # --- the thread -------------------------------------------------------------------------------------
    def _run(self) -> None:
        save = None
        try:
            assembly = self._replay()
            self._replaying = False
            while not self._stop.is_set():
                self._step(assembly)
                self._journal.wait(self._position, 0.25)
            self._step(assembly)
            self._drain(assembly)
            self._rows.see(assembly.status(self._journal.clock.now()), last=True)
            if not self._unsettled:
                save = self._checkpoint(assembly)
        except Exception as error:
            _LOG.exception("assembly stopped")
            self._failure = f"assembly stopped ({type(error).__name__}: {error}): see the log, then restart the sidecar"
        self._rows.close(save)

    def _replay(self) -> Assembling:
        started = self._clock_s()
        assembly, self._position = self._restore()
        start = self._position
        keys = 0
        for record, _ in self._journal.read(start):
            if isinstance(record, Counted):
                for key, _contributions in record.finals:
                    assembly.mark_counted(key, record.now_ns)
                    keys += 1
        end = self._journal.end()
        while self._position < end and not self._stop.is_set():
            self._drain(assembly, replay_until=end)
        seconds = self._clock_s() - started
        self._metrics.gauge("turnscope_exporter_replay_seconds", (), seconds)
        self._refresh(assembly)
        if self._events:
            _LOG.info("replayed %d events in %.2f s; %d keys were counted before", self._events, seconds, keys)
        return assembly

    def _restore(self) -> tuple[Assembling, Position]:
        for checkpoint in checkpoints.load(self._folder):
            assembly = self._make()
            try:
                assembly.restore(checkpoint.state)
            except (ValueError, TypeError, KeyError, msgspec.MsgspecError) as error:
                _LOG.warning("a checkpoint of another version cannot be used (%s): replaying more instead", error)
                continue
            return assembly, checkpoint.position
        return self._make(), self._journal.start()

    def _step(self, assembly: Assembling) -> None:
        self._drain(assembly)
        now = self._journal.quiet_now(self._position)
        if now is not None:
            self._settle(assembly, now)
        if self._clock_s() - self._refresh_at >= REFRESH_S:
            self._refresh(assembly)
        due = self._events >= CHECKPOINT_EVENTS or self._clock_s() - self._checkpoint_at >= self._checkpoint_s
        due = due and (self._events > 0 or self._rows_out) and not self._unsettled
        if due and self._rows.request_checkpoint(self._checkpoint(assembly)):
            self._events, self._rows_out, self._checkpoint_at = 0, False, self._clock_s()

    def _drain(self, assembly: Assembling, *, replay_until: Position | None = None) -> None:
        now = 0
        for n, (record, position) in enumerate(self._journal.read(self._position), 1):
            if isinstance(record, Batch):
                self._feed(assembly, record, live=replay_until is None)
                now = record.arrival_ns
                self._events += len(record.entries)
            elif isinstance(record, Spans):
                self._feed_spans(assembly, record, live=replay_until is None)
                now = record.arrival_ns
                self._events += len(record.spans)
            self._position = position
            if n % SETTLE_EVERY == 0:
                self._settle(assembly, now)
            if replay_until is not None and position >= replay_until:
                break
        self._settle(assembly, now)

    def _feed(self, assembly: Assembling, record: Batch, *, live: bool) -> None:
        events = list(record.events(self._names))
        for event in events:
            try:
                assembly.feed(event, record.arrival_ns, record.wall_ns)
            except Exception:
                _LOG.exception("an event could not be assembled and is passed over: %s", event.body.EVENT)
                self._metrics.add("turnscope_exporter_assembly_errors_total", (), 1)
        if live and self._recording is not None:
            self._recording.write(events, record.wall_ns)

    def _feed_spans(self, assembly: Assembling, record: Spans, *, live: bool) -> None:
        try:
            assembly.feed_spans(record.spans, record.arrival_ns)
        except Exception:
            _LOG.exception("%d spans could not be assembled and are passed over", len(record.spans))
            self._metrics.add("turnscope_exporter_assembly_errors_total", (), 1)
        if live and self._recording is not None:
            self._recording.write_spans(record.spans)

    def _settle(self, assembly: Assembling, now_ns: int) -> None:
        """Hand out facts. What is counted is on disk before it is added."""
        assembly.tick(now_ns)
        facts = assembly.take()
        finals = [fact for fact in facts if isinstance(fact, model.Final)]
        if finals and not self._journal_counted(now_ns, finals):
            return
        # A number that cannot be added (a count below zero) costs this number, not the sidecar.
        refused = [sentence for final in finals for sentence in final.refused]
        refused += self._metrics.add_all(c for final in finals for c in final.contributions)
        for sentence in refused:
            _LOG.error("a count is passed over: %s", sentence)
        if refused:
            self._metrics.add("turnscope_exporter_assembly_errors_total", (), len(refused))
        self._rows_out = self._rows_out or bool(facts)
        for fact in facts:
            self._rows.add(fact.turn, fact.hold)
            if isinstance(fact, model.Revision) and fact.span is not None:
                self._rows.add_span(fact.span)
            if fact.turn is not None and self._traces is not None:
                self._trace(self._traces, fact, fact.turn)

    def _trace(self, traces: Traces, fact: Fact, turn: Turn) -> None:
        """Send the turn's trace if it is kept; then its observations may name it."""
        if isinstance(fact, model.Revision):
            if self._sampler.keeps_late(turn):
                traces.add(turn)
        elif self._sampler.keeps(turn):
            traces.add(turn)
            self._metrics.exemplify(fact.contributions, turn.turn_id)
        else:
            self._metrics.add("turnscope_exporter_traces_left_out_total", (), 1)

    def _journal_counted(self, now_ns: int, finals: list[model.Final]) -> bool:
        """False when the sidecar is stopped before it could be written: the next start counts them."""
        while True:
            try:
                self._journal.append_counted(now_ns, [(final.key, final.contributions) for final in finals])
                return True
            except JournalUnavailable:
                if self._stop.wait(0.5):
                    self._unsettled = True
                    return False

    # --- gauges, label sets, checkpoints ----------------------------------------------------------------
    def _refresh(self, assembly: Assembling) -> None:
        self._refresh_at = self._clock_s()
        now = self._journal.clock.now()
        self._metrics.sample(assembly.samples(now))
        status = assembly.status(now)
        # Of an engine that only its worker told of, which knows no place, a name that was taken is not the last word.
        engines = {
            e.name: (Role(e.engine.role), e.engine.transfers_measured is not False)
            for e in status.engines
            if e.name not in SHARED_NAMES or e.engine.side_channel_port is not None
        }
        if engines != self._engines:
            self._engines = engines
            for metric in METRICS.values():
                self._declare(metric.name, engines)
        self._view = status, self._position
        self._rows.see(status)
        self._metrics.gauge("turnscope_exporter_journal_size_bytes", (), self._journal.size())
        self._metrics.gauge("turnscope_exporter_journal_lag_bytes", (), self.lag_bytes)

    def _declare(self, metric: str, engines: dict[str, tuple[Role, bool]]) -> None:
        known = METRICS[metric]
        if known.kind in (Kind.COUNTER, Kind.HISTOGRAM):
            roles = {name: role for name, (role, measured) in engines.items() if measured or not known.needs_transfers}
            self._metrics.declare(metric, label_sets(known, roles))

    def _checkpoint(self, assembly: Assembling) -> Callable[[], None]:
        now = self._journal.clock.now()
        checkpoint = Checkpoint(position=self._position, now_ns=now, state=assembly.snapshot())

        def save() -> None:
            try:
                needed = checkpoints.save(self._folder, checkpoint)
                self._journal.drop(needed, unused_since_ns=now - MEMORY_NS)
            except OSError as error:
                _LOG.warning("no checkpoint could be written (%s): the next start takes longer", error)

        return save
