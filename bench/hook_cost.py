"""What the hook costs an engine's thread per event, beside an OpenTelemetry SDK span with the same attributes.

The engine's own methods are replaced by ones that return at once, so that wrapped minus plain is the hook. Hook and
span take turns in one process, and both are timed in the thread's own CPU time, so that other work on the machine
counts for neither. Also: in what slices the
background thread holds the interpreter.
"""

# The signatures are vLLM's.
# ruff: noqa: ARG002

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median, quantiles
from time import thread_time_ns
from typing import Any

import msgspec
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.slices import sliced
from tests.hook import fakes
from turnscope.decode import codec
from turnscope.emit.emitter import Emitter
from turnscope.emit.guard import Guard
from turnscope.emit.ring import Rings
from turnscope.emit.secret import Secret
from turnscope.emit.sender import Outcome
from turnscope.emit.settings import Endpoint, Settings
from turnscope.hook.digests import Digests
from turnscope.hook.engine_facts import engine_facts, group_bytes
from turnscope.hook.identity import digest_facts
from turnscope.hook.scheduler import SchedulerWatch
from turnscope.hook.worker import WorkerWatch
from turnscope.model import Emitter as Source
from turnscope.model import Event

ROUNDS = 150
CALLS = 200
ENDINGS = 30
HEARTBEATS = 120
WAITING = 2_000
BLOCKS = ([*range(700)],)
"""A hold of about 11,000 tokens in blocks of 16."""

Row = dict[str, Any]


class BareScheduler:
    """The two calls that are wrapped, with nothing in them."""

    def __init__(self) -> None:
        self.requests: dict[str, Any] = {}
        self.answer: Any = (None, None)

    def add_request(self, request: Any) -> None:
        return None

    def _free_request(self, request: Any, delay_free_blocks: bool = False) -> Any:
        return self.answer


class BareNixl(fakes.NixlWrapper):
    """NIXL that costs nothing and remembers nothing."""

    HANDLE = fakes.XferHandle(7)
    TELEMETRY = fakes.NixlWrapper().get_xfer_telemetry(HANDLE)

    def make_prepped_xfer(self, *args: Any, notif_msg: bytes = b"") -> Any:
        return self.HANDLE

    def get_xfer_telemetry(self, handle: Any) -> Any:
        return self.TELEMETRY


class BareWorker(fakes.ConnectorWorker):
    """A worker with one read, one notice and one completion, bare."""

    RESULTS = fakes.SimpleNamespace(finished_sending=set(), finished_recving=set(), failed_recving=set())

    def _read_blocks_for_req(self, req_id: str, meta: Any) -> None:
        self.nixl_wrapper.make_prepped_xfer("READ", notif_msg=b"x:1")

    def get_transfer_results(self) -> Any:
        return self.RESULTS


class Subject:
    """One thing to time: ``plain`` and ``hooked`` run once each per call, ``after`` clears up untimed."""

    def __init__(self, name: str, events: int, plain: Callable[[int], Any], hooked: Callable[[int], Any]) -> None:
        self.name = name
        self.events = events
        self.plain = plain
        self.hooked = hooked
        self.costs: list[float] = []


def rows() -> list[Row]:
    """The table's lines; about ten seconds of work."""
    rings = Rings()
    watch, digests = scheduler_watch(rings)
    subjects = [*scheduler_subjects(watch), *_worker_subjects(rings)]
    span, attributes = _span(watch)
    span_costs: list[float] = []
    for warm_up in (True, False):
        for _ in range(5 if warm_up else ROUNDS):
            for subject in subjects:
                cost = (timed(subject.hooked) - timed(subject.plain)) / subject.events
                for entry in rings.take(1 << 20):
                    entry.build(entry.payload)
                digests.forget()
                if not warm_up:
                    subject.costs.append(cost)
            cost = timed(span)
            if not warm_up:
                span_costs.append(cost)
    span_us = median(span_costs)
    out = []
    for subject in subjects:
        value = median(subject.costs)
        out.append(row(f"hook: {subject.name}, on the engine's thread", value, "us", 2.0, subject.costs))
    out.append(
        row(f"OpenTelemetry SDK span with the {attributes} attributes of a request", span_us, "us", None, span_costs)
    )
    ratios = [hook / span for hook, span in zip(subjects[0].costs, span_costs, strict=True)]
    out.append(row("hook: request event over that span", median(ratios), "ratio", 0.05, ratios))
    return [*out, *_slices(watch, digests, rings)]


def row(name: str, value: float, unit: str, target: float | None, samples: Sequence[float]) -> Row:
    tenths = quantiles(samples, n=10)
    return {
        "name": name,
        "value": round(value, 4),
        "unit": unit,
        "target": None if target is None else f"<= {target:g}",
        "ok": None if target is None else value <= target,
        "n": len(samples),
        "spread": f"p10-p90 {tenths[0]:.3g}-{tenths[-1]:.3g}",
    }


def timed(call: Callable[[int], Any]) -> float:
    """Microseconds per call, over ``CALLS`` calls."""
    started = thread_time_ns()
    for number in range(CALLS):
        call(number)
    return (thread_time_ns() - started) / 1e3 / CALLS


def scheduler_watch(rings: Rings, *, digesting: bool = True) -> tuple[SchedulerWatch, Digests]:
    """With digests, as it is used, or without."""
    config, cache = fakes.vllm_config("kv_producer", engine_id="prefill-0-" + "ab" * 8), fakes.kv_cache_config()
    connector = fakes.NixlConnector(None, fakes.SCHEDULER, None)
    digests = Digests(Secret("a secret for benchmarks"), digest_facts(config))
    watch = SchedulerWatch(
        rings=rings,
        guard=Guard("scheduler hook"),
        emitter=Source(id="ab" * 8, kind="engine", pid=1, host="host", version="0"),
        engine=engine_facts(config, cache, connector, generation="cd" * 8, name="prefill-0"),
        group_bytes=group_bytes(cache),
        ranks=2,
        digests=digests if digesting else None,
    )
    return watch, digests


def _requests(params: Any) -> list[fakes.Request]:
    made = []
    for number in range(CALLS):
        request = fakes.Request(f"chatcmpl-{number}-{'ab' * 16}", prompt=100, params=params)
        fakes.Scheduler(None, None).schedule(request, external=90 if params else 0)
        request.status = fakes.RequestStatus.FINISHED_LENGTH_CAPPED
        made.append(request)
    return made


def scheduler_subjects(watch: SchedulerWatch) -> list[Subject]:
    given = fakes.handle("d0", "chatcmpl-1-" + "cd" * 16, remote_block_ids=BLOCKS)
    subjects = []
    for name, events, params, answer in (
        ("request event (added and freed)", 1, None, None),
        ("request, hold and hold_use events of one turn, per event", 3, given, given),
    ):
        requests = _requests(params)
        plain, hooked = BareScheduler(), BareScheduler()
        watch.attach(hooked)
        for scheduler in (plain, hooked):
            scheduler.requests = {request.request_id: request for request in requests}
            scheduler.answer = (answer, None)
        subjects.append(Subject(name, events, _turn(plain, requests), _turn(hooked, requests)))
    return subjects


def _turn(scheduler: Any, requests: list[fakes.Request]) -> Callable[[int], None]:
    def run(number: int) -> None:
        request = requests[number]
        scheduler.add_request(request)
        scheduler._free_request(request)

    return run


def _worker_subjects(rings: Rings) -> list[Subject]:
    plain, hooked = BareWorker(BareNixl()), BareWorker(BareNixl())
    config = fakes.vllm_config("kv_consumer", engine_id="d0")
    watch = WorkerWatch(
        rings=rings,
        guard=Guard("NIXL hook"),
        emitter=Source(id="ab" * 8, kind="worker", pid=2, host="host", version="0"),
        engine=engine_facts(config, None, None, generation="cd" * 8, name="decode-0", rank=0),
    )
    ending = fakes.SimpleNamespace(value=BareWorker.RESULTS)
    hooked.get_transfer_results = lambda: ending.value
    watch.attach(hooked)
    metas = [fakes.remote("p0", f"chatcmpl-{number}-{'ab' * 16}") for number in range(CALLS)]
    names = [f"chatcmpl-{number}-{'cd' * 16}" for number in range(CALLS)]
    notices = [{"agent": [f"{name}:1".encode()]} for name in names]
    ends = [fakes.SimpleNamespace(finished_sending={name}, finished_recving=set()) for name in names]
    for worker in (plain, hooked):
        worker._reqs_to_process = set(names)
        worker._remote_agents["p0"] = {}

    def read(worker: Any) -> Callable[[int], None]:
        def run(number: int) -> None:
            worker._read_blocks_for_req(names[number], metas[number])
            worker.nixl_wrapper.get_xfer_telemetry(BareNixl.HANDLE)
            worker.nixl_wrapper.release_xfer_handle(BareNixl.HANDLE)

        return run

    def idle(worker: Any) -> Callable[[int], None]:
        def run(_number: int) -> None:
            worker.nixl_wrapper.get_new_notifs()
            worker.get_transfer_results()

        return run

    def end(number: int) -> None:
        hooked.nixl_wrapper.notices = notices[number]
        hooked.nixl_wrapper.get_new_notifs()
        ending.value = ends[number]
        hooked.get_transfer_results()
        ending.value = BareWorker.RESULTS

    def end_plain(number: int) -> None:
        plain.nixl_wrapper.notices = notices[number]
        plain.nixl_wrapper.get_new_notifs()
        ending.value = ends[number]
        plain.get_transfer_results()
        ending.value = BareWorker.RESULTS

    return [
        Subject("transfer event (made, done, released)", 1, read(plain), read(hooked)),
        Subject("hold ended (notice and completion)", 1, end_plain, end),
        Subject("a step of the worker in which nothing happened", 1, idle(plain), idle(hooked)),
    ]


def _span(watch: SchedulerWatch) -> tuple[Callable[[int], None], int]:
    """A span with a request event's attributes, through the SDK as applications use it."""
    request = _requests(fakes.handle("d0", "chatcmpl-1-" + "cd" * 16))[0]
    scheduler = BareScheduler()
    scheduler.requests = {request.request_id: request}
    rings = Rings()
    own = SchedulerWatch(
        rings=rings, guard=watch.guard, emitter=watch.emitter, engine=watch.engine, group_bytes=[131_072], ranks=1
    )
    scheduler.answer = (fakes.handle("p0", request.request_id), None)
    own.attach(scheduler)
    scheduler.add_request(request)
    scheduler._free_request(request)
    entry = rings["request"].take(1)[0]
    body = entry.build(entry.payload)
    event = Event(emitter=own.emitter, engine=own.engine, seq=1, wall_ns=1, mono_ns=1, body=body)
    record = codec.encode([event], observed_ns=1).resource_logs[0].scope_logs[0].log_records[0]
    attributes = {
        item.key: getattr(item.value, item.value.WhichOneof("value") or "string_value") for item in record.attributes
    }
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter(), max_queue_size=1 << 16))
    tracer = provider.get_tracer("bench")

    def span(_number: int) -> None:
        started = tracer.start_span("llm_request")
        for key, value in attributes.items():
            started.set_attribute(key, value)
        started.end()

    return span, len(attributes)


class _Nowhere:
    """A sender that takes everything at once."""

    def send(self, body: bytes, timeout_s: float) -> tuple[Outcome, str]:
        return Outcome.SENT, ""

    def close(self) -> None:
        return None


def _slices(watch: SchedulerWatch, digests: Digests, rings: Rings) -> list[Row]:
    """Of rounds of the background thread: with the events of ``CALLS`` turns, and with ``WAITING`` requests."""
    found: list[Row] = []
    for name, rounds in (
        (f"{CALLS} turns ended", _turns_ended(watch)),
        (f"{WAITING:,} requests waiting", _waiting(watch)),
    ):
        with sliced() as slices:
            emitter = Emitter(
                settings=Settings(endpoint=Endpoint("127.0.0.1:1")),
                rings=rings,
                watches=[watch],
                jobs=[digests],
                sender=_Nowhere(),
                log=logging.getLogger("bench"),
                pause=slices.pause,
            )
            for number, _ in enumerate(rounds):
                if number == 2:
                    slices.forget()
                slices.run(partial(emitter.cycle, number * 10_000_000_000))
            watch.forget()
            found.extend(slices.rows(f"hook: background thread, {name}"))
    return found


def _turns_ended(watch: SchedulerWatch) -> Iterator[None]:
    """Each time ``CALLS`` turns more have ended, with all events that a turn can have."""
    given = fakes.handle("d0", "chatcmpl-1-" + "cd" * 16, remote_block_ids=BLOCKS)
    requests = _requests(given)
    scheduler = _watched(watch, requests)
    scheduler.answer = (given, None)
    for _ in range(ENDINGS):
        for request in requests:
            scheduler.add_request(request)
            scheduler._free_request(request)
        yield


def _waiting(watch: SchedulerWatch) -> Iterator[None]:
    """``WAITING`` requests stand in the engine's queue."""
    requests = [fakes.Request(f"chatcmpl-{number}-{'ef' * 16}", prompt=100) for number in range(WAITING)]
    scheduler = _watched(watch, requests)
    for request in requests:
        scheduler.add_request(request)
    for _ in range(HEARTBEATS):
        yield


def _watched(watch: SchedulerWatch, requests: list[fakes.Request]) -> BareScheduler:
    scheduler = BareScheduler()
    scheduler.requests = {request.request_id: request for request in requests}
    watch.attach(scheduler)
    return scheduler


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(rows())).decode())
