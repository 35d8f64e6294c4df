"""The recorded real run through the real assembly, against the counters that the engines had at its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from turnscope.assembly import Assembler, AssemblySettings
from turnscope.catalog import METRICS, label_sets
from turnscope.decode import codec, jsonlines
from turnscope.measures import reconcile
from turnscope.model import Event, Final, Request, Transfer
from turnscope.outputs import exposition
from turnscope.outputs.metrics import MetricState
from turnscope.semconv import Leg, Role, TransferState

RECORDINGS = sorted((Path(__file__).parents[2] / "recordings").glob("*.jsonl"))
Arrived = tuple[int, Event]
HOUR = 3_600_000_000_000


def recorded(path: Path) -> list[Arrived]:
    """Every event with its arrival time."""
    found: list[Arrived] = []
    for line in path.read_bytes().splitlines():
        request = jsonlines.read(line)
        arrival = jsonlines.observed_ns(request) or 0
        found += [(arrival, event) for event in codec.decode(request).events]
    return found


def counted(events: Iterable[Arrived]) -> dict[str, reconcile.Values]:
    """What the sidecar's ``/metrics`` says after these events, as the reconciliation reads it."""
    assembler = Assembler(AssemblySettings())
    metrics = MetricState(METRICS, now_s=lambda: 0.0)
    last = 0
    for arrival, event in events:
        last = max(last, arrival)
        assembler.feed(event, last)
    status = assembler.status(last)
    assembler.tick(last + HOUR // 2)
    for metric in METRICS.values():
        if metric.name.startswith("turnscope_") and metric.kind.value in ("counter", "histogram"):
            metrics.declare(metric.name, label_sets(metric, {e.name: Role(e.engine.role) for e in status.engines}))
    for fact in assembler.take():
        if isinstance(fact, Final):
            metrics.add_all(fact.contributions)
    page, _ = exposition.render(metrics.points(), "text/plain")
    return reconcile.ours(page.decode())


def engine_counters(recording: Path) -> dict[str, reconcile.Values]:
    """What the engines said at the end of the run."""
    content = json.loads(recording.with_suffix(".counters.json").read_text())
    return dict(content["engines"])


def first(events: list[Arrived], wanted: Callable[[Event], bool]) -> int:
    """Where the first such event is."""
    return next(i for i, (_, event) in enumerate(events) if wanted(event))


def doubled(events: list[Arrived], index: int) -> list[Arrived]:
    """The event once more, as a hook would send it that counted twice: with a number of its own."""
    arrival, event = events[index]
    number = 1 + max(e.seq for _, e in events if e.emitter.id == event.emitter.id)
    return [*events, (arrival, msgspec.structs.replace(event, seq=number))]


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> Path:
    """Each committed recording."""
    path: Path = request.param
    return path


def test_there_is_a_recording_of_a_real_run() -> None:
    assert RECORDINGS


def test_a_recorded_run_comes_to_exactly_what_its_engines_counted(recording: Path) -> None:
    rows = reconcile.compare(counted(recorded(recording)), engine_counters(recording))
    assert len(rows) == len(engine_counters(recording)) * len(reconcile.QUANTITIES)
    assert reconcile.differences(rows) == [], reconcile.table(rows)


def test_events_that_come_twice_change_nothing(recording: Path) -> None:
    events = recorded(recording)
    rows = reconcile.compare(counted([e for e in events for _ in range(2)]), engine_counters(recording))
    assert reconcile.differences(rows) == [], reconcile.table(rows)


def test_a_dropped_request_and_a_doubled_transfer_are_seen_and_printed(recording: Path) -> None:
    events = recorded(recording)
    transfer_at = first(
        events, lambda e: isinstance(e.body, Transfer) and e.body.state is TransferState.DONE and bool(e.body.bytes)
    )
    request_at = first(
        events, lambda e: isinstance(e.body, Request) and e.body.leg is Leg.PREFILL and bool(e.body.computed_tokens)
    )
    transfer, request = events[transfer_at][1], events[request_at][1]
    assert isinstance(transfer.body, Transfer)
    assert isinstance(request.body, Request)
    assert transfer.engine is not None
    assert request.engine is not None
    changed = doubled(events, transfer_at)
    del changed[request_at]
    rows = reconcile.compare(counted(changed), engine_counters(recording))
    wrong = {(row.engine, row.quantity): row.difference for row in reconcile.differences(rows)}
    expected = {
        (transfer.engine.name, "transfers"): 1,
        (transfer.engine.name, "transfer bytes"): transfer.body.bytes,
        (request.engine.name, "prompt tokens, local_compute"): -(request.body.computed_tokens or 0),
        (request.engine.name, "prompt tokens, local_cache_hit"): -(request.body.local_hit_tokens or 0),
        (request.engine.name, "prompt tokens, external_kv_transfer"): -(request.body.external_tokens or 0),
    }
    assert wrong == {where: by for where, by in expected.items() if by}
    shown = reconcile.table(rows)
    assert shown.count("<--") == len(wrong)
    assert f"{len(wrong)} differences" in shown
