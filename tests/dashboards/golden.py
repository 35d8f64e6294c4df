"""The golden scenario as a scraper would have seen it: the recorded run of two real pairs, scraped every 15 seconds.

Turns, holds and transfers come from the recording through the real assembly; card counters, which it need not
have, are looked at every 2 seconds beside it; what a sidecar says of itself and of engines comes from a running one.
"""

from __future__ import annotations

import http.server
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec

from tests.cli.served import Served, served
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.catalog import METRICS, Kind, label_sets
from turnscope.decode import codec, jsonlines
from turnscope.measures.session_counts import contributions
from turnscope.measures.sessions import summarise
from turnscope.model import Contribution, Emitter, Event, Fabric, Fact, Final, Turn
from turnscope.outputs import exposition
from turnscope.outputs.metrics import MetricState
from turnscope.semconv import Role

RECORDING = Path(__file__).parents[2] / "recordings" / "pair.jsonl"
SECOND = 1_000_000_000
SCRAPE_S = 15
REST_S = 60
AFTER_S = 120
"""Scrapes go on until everything is counted."""
OWN = ("exporter", "engine metrics")
"""Who counts what only a running sidecar has."""
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}
Arrived = tuple[int, Event]


class Scenario(NamedTuple):
    """Of the scrapes, in seconds; and what there was to see."""

    first: float
    busy: float
    """The last while the engines still spoke."""
    last: float
    turns: list[Turn]
    """As they would be stored."""


def recorded() -> list[Arrived]:
    """Every event with its arrival time."""
    found: list[Arrived] = []
    for line in RECORDING.read_bytes().splitlines():
        request = jsonlines.read(line)
        arrival = jsonlines.observed_ns(request) or 0
        found += [(arrival, event) for event in codec.decode(request).events]
    return found


def looks(events: list[Arrived]) -> Iterator[Arrived]:
    """At the cards of a node where EFA carries nothing, and Ethernet a little of something else."""
    begin, told = events[0]
    emitter = Emitter(id="ca4d" * 4, kind="collector", host=told.emitter.host, clock=told.emitter.clock)
    for n, arrival in enumerate(range(begin, events[-1][0], 2 * SECOND)):
        body = Fabric(
            node="node-0",
            hosts=[told.emitter.host],
            interval_ns=2 * SECOND if n else None,
            efa_devices=1,
            efa_counters=["rdma_read_bytes", "rx_bytes", "rx_pkts"],
            efa_increases=[0, 0, 0],
            ethernet_devices=1,
            ethernet_counters=["rx_bytes", "tx_bytes"],
            ethernet_increases=[1000, 2000] if n else [0, 0],
        )
        mono_ns = told.mono_ns + arrival - begin
        yield arrival, Event(emitter=emitter, engine=None, seq=n + 1, wall_ns=arrival, mono_ns=mono_ns, body=body)


class Scrapes:
    """Lines of OpenMetrics with timestamps, by family: a family's have to stand together."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}
        self._heads: dict[str, list[str]] = {}

    def add(self, page: str, at_s: float) -> None:
        """One page, as scraped then."""
        family = ""
        for line in page.splitlines():
            if line.startswith("# EOF"):
                continue
            if line.startswith("#"):
                family = line.split()[2]
                heads = self._heads.setdefault(family, [])
                if line not in heads:
                    heads.append(line)
                continue
            found = re.fullmatch(r"(\w+)(?:{(.*)})? (\S+)(?: # .*)?", line)
            assert found, line
            labels = ",".join(filter(None, ('job="turnscope",instance="sidecar:9464"', found[2])))
            self._families.setdefault(family, []).append(f"{found[1]}{{{labels}}} {found[3]} {at_s:.3f}")

    def text(self) -> str:
        """The file that ``promtool tsdb create-blocks-from openmetrics`` reads."""
        lines = [line for family, heads in self._heads.items() for line in (*heads, *self._families.get(family, ()))]
        return "\n".join([*lines, "# EOF", ""])


def openmetrics(folder: Path) -> tuple[str, Scenario]:
    """The whole scenario as one file's text, and what it has."""
    events = recorded()
    own = sidecar_page(folder)
    assembler = Assembler(AssemblySettings())
    now_s = [0.0]
    metrics = MetricState({n: m for n, m in METRICS.items() if m.owner not in OWN}, now_s=lambda: now_s[0])
    scrapes = Scrapes()
    coming = iter(sorted([*events, *looks(events)], key=lambda pair: pair[0]))
    waiting = next(coming, None)
    begin, end = events[0][0] - 2 * SCRAPE_S * SECOND, events[-1][0] + AFTER_S * SECOND
    busy = begin
    turns: dict[str, Turn] = {}
    rested: set[str] = set()
    for now in range(begin, end, SCRAPE_S * SECOND):
        while waiting is not None and waiting[0] <= now:
            assembler.feed(waiting[1], waiting[0], waiting[0])
            waiting = next(coming, None)
        assembler.tick(now)
        now_s[0] = now / SECOND
        facts = assembler.take()
        turns |= {fact.turn.turn_id: fact.turn for fact in facts if fact.turn is not None}
        turns = {turn_id: turn for turn_id, turn in turns.items() if not turn.withdrawn}
        _count(facts, assembler, metrics, now)
        assert metrics.add_all(_at_rest(turns.values(), rested, now - REST_S * SECOND)) == []
        page = exposition.render(metrics.points("prometheus"), OPENMETRICS["Accept"])[0].decode()
        scrapes.add("# TYPE up gauge\nup 1\n" + page, now / SECOND)
        scrapes.add(own, now / SECOND)
        if waiting is not None:
            busy = now
    return scrapes.text(), Scenario(begin / SECOND, busy / SECOND, now / SECOND, list(turns.values()))


def _at_rest(turns: Iterable[Turn], rested: set[str], since_ns: int) -> Iterator[Contribution]:
    """What sessions add of which nothing has come since then, each once."""
    sessions: dict[str, list[Turn]] = {}
    for turn in turns:
        if turn.session_id and turn.session_id not in rested:
            sessions.setdefault(turn.session_id, []).append(turn)
    for session_id, its in sessions.items():
        summed = summarise(session_id, its, [])
        if summed is not None and summed.summary.ended_ns < since_ns:
            rested.add(session_id)
            yield from contributions(summed, 0)


def _count(facts: list[Fact], assembler: Assembler, metrics: MetricState, now: int) -> None:
    """As the sidecar's pipeline does it: facts, then gauges, then label sets of engines just met."""
    finals = [fact for fact in facts if isinstance(fact, Final)]
    assert metrics.add_all(c for final in finals for c in final.contributions) == []
    metrics.sample(assembler.samples(now))
    engines = {e.name: Role(e.engine.role) for e in assembler.status(now).engines}
    for name, metric in METRICS.items():
        if metric.owner not in OWN and metric.kind in (Kind.COUNTER, Kind.HISTOGRAM):
            metrics.declare(name, label_sets(metric, engines))


# --- a running sidecar ----------------------------------------------------------------------------------
ENGINE_PAGE = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="tiny"} 2.0
"""


@contextmanager
def engine_serving(page: str) -> Iterator[str]:
    """The address of an engine's metrics."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sidecar_page(folder: Path) -> str:
    """What a sidecar says of itself, and of an engine that it reads."""
    with engine_serving(ENGINE_PAGE) as url, served(folder, "--engine-metrics", f"decode-0={url}") as running:
        running.send([msgspec.structs.replace(event) for _, event in recorded()[:50]])
        page = _waited_for(running, 'turnscope_engine_metrics_up{engine="decode-0"} 1.0')
    kept, owner = [], ""
    for line in page.splitlines():
        if line.startswith("#") and len(line.split()) > 2:
            name = line.split()[2]
            known = next((METRICS[n] for n in (name, f"{name}_total", f"{name}_info") if n in METRICS), None)
            owner = known.owner if known is not None else ""
        if owner in OWN and not line.startswith("# EOF"):
            kept.append(line)
    return "\n".join(kept) + "\n"


def _waited_for(running: Served, line: str) -> str:
    deadline = time.monotonic() + 60
    while True:
        page = httpx.get(f"{running.url}/metrics", headers=OPENMETRICS, trust_env=False, timeout=30).text
        if line in page:
            return page
        assert time.monotonic() < deadline, page[-2000:]
        time.sleep(0.1)
