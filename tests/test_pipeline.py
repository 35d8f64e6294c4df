"""From received events to outputs, and what a restart makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.builders import SECOND, P, Pair, Process
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.catalog import METRICS
from turnscope.journal import checkpoint as checkpoints
from turnscope.journal.folder import JournalUnavailable
from turnscope.journal.journal import Journal
from turnscope.journal.records import Batch, Counted
from turnscope.journal.segments import SegmentFile
from turnscope.model import (
    AgentSpan,
    AssemblyStatus,
    Attempt,
    Contribution,
    Event,
    Fact,
    Final,
    HoldRecord,
    Turn,
)
from turnscope.outputs.metrics import MetricState, Point
from turnscope.outputs.sampling import Sampler
from turnscope.pipeline import Pipeline
from turnscope.receivers.errors import Unavailable

QUICK = AssemblySettings(grace_ns=1)
"""Counts a turn as soon as it is complete."""
PATIENT = AssemblySettings(grace_ns=3600 * 10**9)
"""Counts nothing while a test runs."""


class FakeRows:
    """A store that has every row at once; a checkpoint is saved when ``checkpoint`` says so."""

    def __init__(self) -> None:
        self.turns: dict[tuple[str, int], Turn] = {}
        self.holds: dict[tuple[str, int], HoldRecord] = {}
        self.spans: dict[tuple[str, int], AgentSpan] = {}
        self.seen: list[tuple[int, bool]] = []
        """Of how many processes the rows were told, and whether for the last time."""
        self.checkpoint = True
        self.turns_at_checkpoint = 0
        """That the last flush made readable."""

    def see(self, status: AssemblyStatus, *, last: bool = False) -> None:
        self.seen.append((len(status.emitters), last))

    def add_span(self, span: AgentSpan) -> None:
        self.spans[span.span_id, span.revision] = span

    def add(self, turn: Turn | None, hold: HoldRecord | None) -> None:
        if turn is not None:
            self.turns[turn.turn_id, turn.revision] = turn
        if hold is not None:
            self.holds[hold.hold_id, hold.revision] = hold

    def request_checkpoint(self, save: Callable[[], None]) -> bool:
        self.turns_at_checkpoint = len(self.turns)
        if self.checkpoint:
            save()
        return True

    def close(self, save: Callable[[], None] | None) -> None:
        if save is not None and self.checkpoint:
            save()


class FakeTraces:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)


class FakeRecording:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spans: list[AgentSpan] = []

    def write(self, events: list[Event], _wall_ns: int) -> None:
        self.events += events

    def write_spans(self, spans: list[AgentSpan]) -> None:
        self.spans += spans


class Box:
    """One run of the sidecar's inside on ``folder``."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: AssemblySettings = QUICK,
        checkpoint_s: float = 3600,
        create: Callable[[Path], SegmentFile] = SegmentFile,
        assembly: Callable[[], Assembler] | None = None,
        engine_names: dict[str, str] | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        self.folder = folder
        self.metrics = MetricState(METRICS, now_s=time.monotonic)
        self.rows, self.traces, self.recording = FakeRows(), FakeTraces(), FakeRecording()
        known = max((c.now_ns for c in checkpoints.load(folder)), default=0)
        self.journal = Journal(folder, count=self.metrics.add, start_ns=known, create=create)
        self.pipeline = Pipeline(
            self.journal,
            folder,
            assembly=assembly or (lambda: Assembler(settings)),
            metrics=self.metrics,
            rows=self.rows,
            traces=self.traces,
            sampler=sampler,
            recording=self.recording,
            engine_names=engine_names,
            checkpoint_s=checkpoint_s,
        )
        self.pipeline.start()
        self.eventually(lambda: not self.pipeline.replaying)

    def eventually(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it did not come about in a minute"
            assert self.pipeline.failure is None
            time.sleep(0.01)

    def count(self, metric: str) -> float:
        return self.metrics.total(f"turnscope_{metric}_total")

    def settled(self, turns: int) -> None:
        """Wait until that many turns are counted and everything is read."""
        self.eventually(lambda: self.count("turns") == turns and self.pipeline.lag_bytes == 0)

    def close(self) -> None:
        self.pipeline.close()
        self.journal.close()

    def crash(self) -> None:
        """As a kill leaves it: no checkpoint, no flush; what is not in the journal is gone."""
        self.rows.checkpoint = False
        self.close()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Callable[..., Box]]:
    """Starts runs on one folder, and ends those a test leaves."""
    boxes: list[Box] = []

    def start(**options: object) -> Box:
        boxes.append(Box(tmp_path, **options))  # type: ignore[arg-type]
        return boxes[-1]

    yield start
    for one in boxes:
        one.crash()


def conversation(turns: int) -> list[list[Event]]:
    pair = Pair()
    return [pair.start()] + [pair.turn(str(n), at_ms=1000 * n) for n in range(1, turns + 1)]


def test_a_turn_is_counted_stored_and_traced_once(box: Callable[..., Box]) -> None:
    run = box()
    for events in conversation(3):
        run.pipeline.accept(events)
    run.settled(3)
    assert sorted(t.prefill_request_id or "" for t in run.traces.turns) == ["p1", "p2", "p3"]
    assert {t.turn_id for t in run.traces.turns} == {turn_id for turn_id, _ in run.rows.turns}
    assert run.count("prompt_tokens") == 3 * 1000


def test_everything_received_is_recorded_once(box: Callable[..., Box]) -> None:
    run = box()
    batches = conversation(2)
    for events in batches:
        run.pipeline.accept(events)
    run.settled(2)
    run.crash()
    assert run.recording.events == [e for events in batches for e in events]
    again = box()
    assert again.recording.events == []


def test_what_is_counted_is_journalled_first(box: Callable[..., Box]) -> None:
    run = box()
    for events in conversation(2):
        run.pipeline.accept(events)
    run.settled(2)
    keys = [key for r, _ in run.journal.read(run.journal.start()) if isinstance(r, Counted) for key, _ in r.finals]
    assert len([k for k in keys if k.startswith("turn:")]) == 2
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("ending", ["crash", "close"])
def test_after_a_restart_nothing_counted_before_counts_again(box: Callable[..., Box], ending: str) -> None:
    run = box()
    for events in conversation(2):
        run.pipeline.accept(events)
    run.settled(2)
    getattr(run, ending)()
    again = box()
    again.eventually(lambda: again.pipeline.lag_bytes == 0)
    assert again.count("turns") == 0
    assert again.count("events_received") == 0
    assert again.traces.turns == []
    assert again.metrics.total("turnscope_requests_total") == 0


def test_damage_in_the_middle_of_the_journal_makes_nothing_behind_it_count_again(box: Callable[..., Box]) -> None:
    pair = Pair()
    run = box()
    for events in (pair.start(), *(pair.turn(str(n), at_ms=1000 * n) for n in (1, 2, 3))):
        run.pipeline.accept(events)
    run.settled(3)
    batches = [at.offset for record, at in run.journal.read(run.journal.start()) if isinstance(record, Batch)]
    run.crash()
    (segment,) = run.folder.glob("*.journal")
    data = bytearray(segment.read_bytes())
    data[batches[1] - 100] ^= 1  # in the second batch: the first turn's events
    segment.write_bytes(data)
    again = box()
    again.pipeline.accept(pair.turn("4", at_ms=4000))
    again.settled(1)
    assert again.metrics.total("turnscope_requests_total") == 2
    assert {turn.prefill_request_id for turn in again.traces.turns} == {"p4"}
    assert {turn.prefill_request_id for turn in again.rows.turns.values()} == {"p2", "p3", "p4"}
    assert again.journal.damage is not None


def test_rows_not_stored_before_a_crash_are_made_again_and_are_the_same(box: Callable[..., Box]) -> None:
    run = box()
    for events in conversation(2):
        run.pipeline.accept(events)
    run.settled(2)
    run.crash()
    again = box()
    again.eventually(lambda: len(again.rows.turns) >= 2)
    assert again.rows.turns == run.rows.turns


@pytest.mark.parametrize("ending", ["crash", "close"])
def test_a_turn_open_across_a_restart_is_counted_once(box: Callable[..., Box], ending: str) -> None:
    first, events = conversation(1)
    run = box(settings=PATIENT)
    run.pipeline.accept(first)
    run.pipeline.accept(events[: len(events) // 2])
    run.eventually(lambda: run.pipeline.lag_bytes == 0)
    assert run.count("turns") == 0
    getattr(run, ending)()
    again = box()
    again.pipeline.accept(events[len(events) // 2 :])
    again.settled(1)
    assert again.count("prompt_tokens") == 1000
    assert [t.has_decode for t in again.traces.turns] == [True]


def test_events_sent_again_after_a_restart_change_nothing(box: Callable[..., Box]) -> None:
    batches = conversation(2)
    run = box()
    for events in batches:
        run.pipeline.accept(events)
    run.settled(2)
    run.crash()
    again = box()
    for events in batches:
        again.pipeline.accept(events)
    again.eventually(lambda: again.count("events_duplicate") == sum(len(b) for b in batches))
    assert again.count("turns") == 0


def test_turns_counted_after_the_last_event_are_flushed_with_the_next_checkpoint(box: Callable[..., Box]) -> None:
    run = box(settings=AssemblySettings(grace_ns=SECOND), checkpoint_s=0.01)
    run.pipeline.accept(Pair().turn("1"))
    run.settled(1)
    run.eventually(lambda: run.rows.turns_at_checkpoint)
    run.close()


def test_a_checkpoint_shortens_the_next_replay(box: Callable[..., Box]) -> None:
    run = box(checkpoint_s=0.01)
    for events in conversation(5):
        run.pipeline.accept(events)
    run.settled(5)
    run.eventually(lambda: list(checkpoints.load(run.folder)))
    run.close()
    newest = next(checkpoints.load(run.folder))
    again = box()
    rest = [r for r, _ in again.journal.read(newest.position) if isinstance(r, Batch)]
    assert rest == []
    again.pipeline.accept(Pair().turn("9", at_ms=9000))
    again.eventually(lambda: again.count("events_duplicate") > 0)
    assert again.count("turns") == 0


def test_an_unusable_checkpoint_costs_time_and_nothing_else(
    box: Callable[..., Box], caplog: pytest.LogCaptureFixture
) -> None:
    run = box()
    for events in conversation(2):
        run.pipeline.accept(events)
    run.settled(2)
    run.close()
    (good,) = checkpoints.load(run.folder)
    checkpoints.save(run.folder, checkpoints.Checkpoint(position=good.position, now_ns=1, state=b"\x93\x01"))
    again = box()
    assert "a checkpoint of another version cannot be used" in caplog.text
    assert again.count("turns") == 0
    again.eventually(lambda: len(again.rows.turns) == 2)


class FullDisk(SegmentFile):
    """A disk that takes so many more writes; a segment's header is one."""

    room = 1_000

    def write(self, data: bytes) -> None:
        if FullDisk.room <= 0:
            raise OSError(28, "No space left on device")
        FullDisk.room -= 1
        super().write(data)


def test_a_full_disk_stops_the_intake_and_counting_and_both_go_on_after_it(box: Callable[..., Box]) -> None:
    FullDisk.room = 1_000
    run = box(create=FullDisk)
    started, events = conversation(1)
    run.pipeline.accept(started)
    run.eventually(lambda: run.count("events_received") == len(started))
    FullDisk.room = 0
    with pytest.raises(Unavailable, match="No space left on device"):
        run.pipeline.accept(events)
    FullDisk.room = 1_000
    run.pipeline.accept(events)
    run.settled(1)


def test_what_cannot_be_journalled_before_the_end_is_counted_by_the_next_run(box: Callable[..., Box]) -> None:
    FullDisk.room = 2
    run = box(create=FullDisk)
    run.pipeline.accept([e for events in conversation(1) for e in events])
    run.eventually(lambda: run.journal.trouble)
    run.close()
    assert run.count("turns") == 0
    FullDisk.room = 1_000
    again = box()
    again.settled(1)
    assert len(again.traces.turns) == 1


class Clumsy(Assembler):
    """An assembler with a bug."""

    def feed(self, event: Event, arrival_ns: int, wall_ns: int | None = None) -> None:
        if event.seq == 2:
            raise ZeroDivisionError
        super().feed(event, arrival_ns, wall_ns)


class Backwards(Assembler):
    """Takes something off a counter with every turn."""

    def take(self) -> list[Fact]:
        facts = super().take()
        for fact in facts:
            if isinstance(fact, Final) and fact.turn is not None:
                fact.contributions.insert(0, Contribution("turnscope_output_tokens_total", ("prefill-0",), -1))
        return facts


def test_an_event_that_cannot_be_assembled_is_passed_over(
    box: Callable[..., Box], caplog: pytest.LogCaptureFixture
) -> None:
    run = box(assembly=lambda: Clumsy(QUICK))
    for events in conversation(2):
        run.pipeline.accept(events)
    run.eventually(lambda: run.count("exporter_assembly_errors") > 0)
    run.eventually(lambda: run.count("turns") >= 1)
    assert "an event could not be assembled" in caplog.text


def test_a_count_below_zero_costs_that_count_and_nothing_else(
    box: Callable[..., Box], caplog: pytest.LogCaptureFixture
) -> None:
    run = box(assembly=lambda: Backwards(QUICK))
    for events in conversation(2):
        run.pipeline.accept(events)
    run.settled(2)
    run.eventually(lambda: run.count("exporter_assembly_errors") == 2)
    assert run.pipeline.failure is None
    assert "a count is passed over" in caplog.text


def test_a_count_that_cannot_be_is_not_journalled(box: Callable[..., Box], caplog: pytest.LogCaptureFixture) -> None:
    run = box()
    started, events = conversation(1)
    for event in events:
        if isinstance(event.body, Attempt):
            event.body.last_byte_ns = -5
    run.pipeline.accept(started)
    run.pipeline.accept(events)
    run.settled(1)
    records = [record for record, _ in run.journal.read(run.journal.start()) if isinstance(record, Counted)]
    journalled = {c.metric for record in records for _, added in record.finals for c in added}
    assert journalled >= {"turnscope_turns_total", "turnscope_prompt_tokens_total"}
    assert "turnscope_turn_duration_seconds" not in journalled
    run.eventually(lambda: run.count("exporter_assembly_errors") == 1)
    assert "a count is passed over: turnscope_turn_duration_seconds{path=recompute} would go back" in caplog.text


def test_a_status_without_lag_holds_everything_accepted_before_it(box: Callable[..., Box]) -> None:
    run = box(settings=PATIENT)
    for events in conversation(1):
        run.eventually(lambda: run.pipeline.status[1] == 0)
        run.pipeline.accept(events)
        # Seen by the thread long before it is in the status, which is made once a second.
        run.eventually(lambda: run.pipeline.lag_bytes == 0)
        status, lag = run.pipeline.status
        assert lag > 0 or status.open_turns == (len(events) > 5)
    run.eventually(lambda: run.pipeline.status[1] == 0)
    assert run.pipeline.status[0].open_turns == 1


def test_configured_engine_names_become_labels(box: Callable[..., Box]) -> None:
    run = box(engine_names={"p": "east-prefill"})
    for events in conversation(1):
        run.pipeline.accept(events)
    run.settled(1)
    points = {m.name: p for m, p in run.metrics.points()}
    assert {p.labels[0] for p in points["turnscope_turns_total"] if p.value} == {"east-prefill"}


def test_label_sets_of_known_engines_are_there_before_anything_is_counted(box: Callable[..., Box]) -> None:
    run = box(settings=PATIENT)
    run.pipeline.accept(Pair().start())
    run.eventually(lambda: run.pipeline.status[0].engines)
    points = {m.name: p for m, p in run.metrics.points()}
    assert ("prefill-0", "recompute", "first_turn") in {p.labels for p in points["turnscope_turns_total"]}
    assert all(p.value == 0 for p in points["turnscope_turns_total"])


@pytest.mark.parametrize("known", [True, False])
def test_an_engine_that_only_its_worker_told_of_is_not_shown_under_a_name_that_it_may_not_keep(
    known: bool, box: Callable[..., Box]
) -> None:
    """It may be the one that has that name, started again; who knows its place can tell."""
    old, new = (
        msgspec.structs.replace(P, id=n, name="east", side_channel_port=port) for n, port in (("a", 1), ("b", 2))
    )
    worker = Process("00000000000000f2", "worker", msgspec.structs.replace(new, rank=0, side_channel_port=None))
    scheduler = Process("00000000000000f3", "engine", new)
    run = box(settings=PATIENT)
    run.pipeline.accept([Process("00000000000000f1", "engine", old).started(), worker.started(1000)])
    if known:
        run.pipeline.accept([scheduler.started(2000)])
    run.eventually(lambda: len(run.pipeline.status[0].engines) == 2)
    run.eventually(lambda: ("prefill-other" in _engines(run)) == known)
    assert _engines(run) - {"none"} == {"east"} | ({"prefill-other"} if known else set())


def _engines(run: Box) -> set[str]:
    points = {m.name: p for m, p in run.metrics.points()}
    return {p.labels[0] for p in points["turnscope_turns_total"]}


@pytest.mark.parametrize(
    ("facts", "measured"),
    [
        ({"connector": "MooncakeConnector"}, "no"),
        ({"connector": "MultiConnector", "connectors": ("MooncakeConnector",)}, "no"),
        ({"connector": "NixlConnector"}, "yes"),
    ],
)
def test_transfers_of_a_connector_that_is_not_measured_are_absent_and_never_0(
    box: Callable[..., Box], facts: dict[str, Any], measured: str
) -> None:
    run = box(settings=PATIENT)
    run.pipeline.accept(Pair(msgspec.structs.replace(P, **facts)).start())
    run.eventually(lambda: run.pipeline.status[0].engines)
    points = {m.name: p for m, p in run.metrics.points()}
    for name in ("reads_total", "bytes_total", "seconds", "wall_seconds", "logical_bytes_total"):
        shown = {p.labels[0] for p in points[f"turnscope_transfer_{name}"]} - {"none"}
        assert shown == {"decode-0"} | ({"prefill-0"} if measured == "yes" else set())
    assert "prefill-0" in {p.labels[0] for p in points["turnscope_requests_total"]}
    run.eventually(lambda: any(p.labels[0] == "prefill-0" for p in info(run)))
    assert {p.labels[2] for p in info(run) if p.labels[0] == "prefill-0"} == {measured}


def info(run: Box) -> list[Point]:
    """One series per connector."""
    return next(p for m, p in run.metrics.points() if m.name == "turnscope_connector_info")


def test_a_journal_that_is_closing_refuses(box: Callable[..., Box]) -> None:
    run = box()
    run.close()
    with pytest.raises(Unavailable, match="stopping"):
        run.pipeline.accept(conversation(1)[1])
    with pytest.raises(JournalUnavailable):
        run.journal.append_events([])


def exemplars(run: Box) -> set[str]:
    """Traces that histograms name."""
    return {e.trace_id for _, points in run.metrics.points() for point in points for _, e in point.exemplars}


def test_observations_name_the_traces_that_were_sent(box: Callable[..., Box]) -> None:
    run = box()
    run.pipeline.accept([event for events in conversation(1) for event in events])
    run.settled(1)
    run.eventually(lambda: run.traces.turns)
    assert exemplars(run) == {turn.turn_id for turn in run.traces.turns}


def test_turns_that_are_left_out_are_counted_and_stored_and_named_by_no_observation(box: Callable[..., Box]) -> None:
    run = box(sampler=Sampler(0.0))
    run.pipeline.accept([event for events in conversation(3) for event in events])
    run.settled(3)
    run.eventually(lambda: run.count("exporter_traces_left_out") == 3)
    assert run.traces.turns == []
    assert exemplars(run) == set()
    assert len(run.rows.turns) >= 3


def test_a_turn_that_was_left_out_is_sent_when_later_facts_make_it_suspicious(box: Callable[..., Box]) -> None:
    run, pair = box(sampler=Sampler(0.0)), Pair()
    events = [*pair.start(), *pair.turn("1")]
    events += pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    unreleased = [e for e in events if getattr(e.body, "phase", "") != "released"]
    run.pipeline.accept(unreleased)
    run.settled(2)
    assert run.traces.turns == []
    run.pipeline.accept([*pair.expired("d1", 4000), *pair.late_notice("d1", 5200)])
    run.eventually(lambda: run.traces.turns)
    assert [(turn.prefill_request_id, turn.suspicions) for turn in run.traces.turns] == [("p2", ["read_after_release"])]


# --- spans of agents ---------------------------------------------------------------------------------------
TOOL = AgentSpan(span_key="t-2", trace_id="t", span_id="2", parent_span_id="1", kind="tool", started_ns=5)
AGENT = AgentSpan(span_key="t-1", trace_id="t", span_id="1", session_id="s", session_source="session.id", started_ns=4)


def test_spans_are_journalled_assembled_stored_and_recorded(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.pipeline.accept_spans([TOOL])
    box.eventually(lambda: box.rows.spans)
    box.pipeline.accept_spans([AGENT])
    box.eventually(lambda: ("2", 2) in box.rows.spans)
    assert box.rows.spans["2", 1].session_id is None
    assert (box.rows.spans["2", 2].session_id, box.rows.spans["2", 2].session_source) == ("s", "parent")
    assert box.recording.spans == [TOOL, AGENT]
    box.close()


@pytest.mark.parametrize("checkpoint", [True, False])
def test_after_a_restart_a_late_parent_still_finds_its_span(tmp_path: Path, checkpoint: bool) -> None:
    box = Box(tmp_path)
    box.rows.checkpoint = checkpoint
    box.pipeline.accept_spans([TOOL])
    box.eventually(lambda: box.rows.spans)
    box.close()
    again = Box(tmp_path)
    again.pipeline.accept_spans([AGENT])
    again.eventually(lambda: ("2", 2) in again.rows.spans)
    assert again.rows.spans["2", 2].session_id == "s"
    assert again.recording.spans == [AGENT]
    again.close()


def test_spans_that_cannot_be_assembled_cost_no_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Assembler):
        def feed_spans(self, spans: list[AgentSpan], arrival_ns: int) -> None:
            if spans == [TOOL]:
                raise ZeroDivisionError
            super().feed_spans(spans, arrival_ns)

    box = Box(tmp_path, assembly=lambda: Failing(QUICK))
    box.pipeline.accept_spans([TOOL])
    box.pipeline.accept_spans([AGENT])
    box.eventually(lambda: box.rows.spans)
    assert list(box.rows.spans) == [("1", 1)]
    assert "1 spans could not be assembled" in caplog.text
    box.close()
