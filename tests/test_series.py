"""How many series there are: few, whatever engines, sessions and texts the traffic brings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.builders import D, P, Pair, read
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.assembly.gauges import MAX_CONNECTORS
from turnscope.assembly.pairs import MAX_HOLDERS
from turnscope.catalog import METRICS, Kind, label_sets
from turnscope.catalog.labels import PAIR_STATES
from turnscope.model import Attempt, Emitter, Event, Final, Hold, Request
from turnscope.outputs import exposition
from turnscope.outputs.metrics import MetricState
from turnscope.semconv import Direction, Role, TransferState

PER_ENGINE = 500
"""Sample lines on ``/metrics`` that one value of the label ``engine`` may have."""
NAMES = 8
PROCESSES = 200


class Page:
    """An assembler and its metrics, without the sidecar around them."""

    def __init__(self, names: int = NAMES) -> None:
        self.assembler = Assembler(AssemblySettings(max_engine_names=names, grace_ns=1))
        self.metrics = MetricState(METRICS, now_s=lambda: 0.0)
        self.now_ns = 0
        self.received = PROCESSES

    def feed(self, events: list[Event]) -> None:
        """From many processes in turn, numbered so that nothing is taken for a duplicate."""
        for event in events:
            self.received += 1
            event.seq, process = divmod(self.received, PROCESSES)
            event.emitter = msgspec.structs.replace(event.emitter, id=f"{process:016x}")
            self.now_ns += 1000
            self.assembler.feed(event, self.now_ns)
        self.now_ns += 10**8
        self.assembler.tick(self.now_ns)
        finals = [fact for fact in self.assembler.take() if isinstance(fact, Final)]
        assert self.metrics.add_all(c for final in finals for c in final.contributions) == []

    def samples(self) -> list[str]:
        """The page's sample lines without their values, every known label set declared as the sidecar does."""
        status = self.assembler.status(self.now_ns)
        engines = {engine.name: Role(engine.engine.role) for engine in status.engines}
        for metric in METRICS.values():
            if metric.kind in (Kind.COUNTER, Kind.HISTOGRAM):
                self.metrics.declare(metric.name, label_sets(metric, engines))
        self.metrics.sample(self.assembler.samples(self.now_ns))
        page = exposition.render(self.metrics.points(), "")[0].decode()
        return [line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")]


def per_engine(samples: list[str]) -> Counter[str]:
    return Counter(found[1] for found in (re.search(r'engine="([^"]*)"', line) for line in samples) if found)


def engines_made_up(count: int, **fields: Any) -> Iterator[Pair]:
    """Pairs whose engines have ids, and say things, that no other engine has."""
    for n in range(count):
        texts = {"model": f"model {n}", "vllm_version": f"0.{n}", "connector": f"Connector{n}"}
        roles = {name: value.format(n) for name, value in fields.items()}
        yield Pair(
            msgspec.structs.replace(P, id=f"p{n}", generation=f"g{n}", **texts, **roles),
            msgspec.structs.replace(D, id=f"d{n}", generation=f"g{n}", **texts, **roles),
        )


@pytest.mark.parametrize("fields", [{}, {"name": "made-up-{}"}, {"role": "role-{}"}, {"role": "both"}])
def test_thousands_of_engine_ids_have_few_names_with_few_series_each(fields: dict[str, str]) -> None:
    page = Page()
    for n, pair in enumerate(engines_made_up(1500, **fields)):
        page.feed(pair.turn("1", at_ms=100 * n))
    samples = page.samples()
    assert len(set(samples)) == len(samples)
    found = per_engine(samples)
    shared = {f"{role}-other" for role in Role}
    assert len(found.keys() - shared - {"none"}) == NAMES
    assert found.keys() & shared
    assert max(found.values()) <= PER_ENGINE


@pytest.mark.parametrize("role", [Role.PREFILL, Role.BOTH])
def test_a_reader_of_many_holders_tells_a_few_of_them_apart_and_loses_no_read(role: Role) -> None:
    holders = 40
    page = Page(names=2 * holders)
    reader = msgspec.structs.replace(P, role=role, connectors=[f"Connector{n}" for n in range(20)])
    for n in range(holders):
        pair = Pair(reader, msgspec.structs.replace(D, id=f"d{n}"))
        known = pair.d.started(1000 * n)
        reads = [
            pair.pw.say(read(Direction.REVERSE_FETCH, local=f"p{n}", remote=(f"d{n}", "x"), state=state), 1000 * n)
            for state in TransferState
        ]
        page.feed([known, *reads, *pair.turn(str(n), at_ms=1000 * n)])
    mine = f"{role}-0"
    counted = next(points for metric, points in page.metrics.points() if metric.name == "turnscope_pair_reads_total")
    found = {point.labels[1:]: point.value for point in counted if point.labels[0] == mine}
    assert len({holder for holder, _ in found}) == MAX_HOLDERS + 1
    assert sum(found.values()) == holders * len(PAIR_STATES)
    assert found["other", "failed"] == holders - MAX_HOLDERS
    assert per_engine(page.samples())[mine] <= PER_ENGINE


def test_what_one_engine_can_have_is_bounded_by_the_catalogue() -> None:
    for role in Role:
        lines = (MAX_HOLDERS + 1) * len(PAIR_STATES) + MAX_CONNECTORS - 1
        for metric in METRICS.values():
            if "engine" not in metric.label_names:
                continue
            sets = [labels for labels in label_sets(metric, {"x": role}) if "x" in labels]
            lines += len(sets) * (len(metric.buckets) + 3 if metric.kind is Kind.HISTOGRAM else 1)
            lines += metric.kind is Kind.INFO
        assert lines <= PER_ENGINE, role


def test_sessions_and_free_texts_make_no_series() -> None:
    page, pair = Page(), Pair()
    page.feed(pair.start())
    page.feed(pair.turn("0"))
    before = page.samples()
    for n in range(1, 2000):
        events = pair.turn(str(n), at_ms=n)
        for event in events:
            body: Any = event.body
            if isinstance(body, Request):
                body.finish_reason = f"stopped because of request {n}"
            elif isinstance(body, Attempt):
                body.session_id, body.session_source = f"session-{n}", f"header.{n}"
                body.finish_reason, body.error_stage, body.outcome = f"reason {n}", f"stage {n}", f"outcome {n}"
                body.model, body.last_role = f"model {n}", f"role {n}"
            elif isinstance(body, Hold):
                body.phase = f"phase {n}" if n % 2 else body.phase
            event.emitter = Emitter(id="", kind=f"{event.emitter.kind} {n}" if n % 3 == 0 else event.emitter.kind)
        page.feed(events)
    after = page.samples()
    assert set(after) == set(before)


def test_ten_thousand_sessions_have_at_most_five_hundred_series_an_engine() -> None:
    page, pair = Page(), Pair()
    page.feed(pair.start())
    for first in range(0, 10_000, 100):
        for n in range(first, first + 100):
            page.now_ns += 1000
            for event in pair.turn(str(n), at_ms=10 * n, session=f"session {n}"):
                page.assembler.feed(event, page.now_ns)
        page.feed([])
    counted = next(points for metric, points in page.metrics.points() if metric.name == "turnscope_turns_total")
    assert sum(point.value for point in counted) == 10_000
    found = per_engine(page.samples())
    assert set(found) == {"prefill-0", "decode-0", "none"}
    assert max(found.values()) <= PER_ENGINE
