"""Looks at engines' own ``/metrics`` from time to time: what they run, what waits, how full their memory is.

An engine that cannot be read is shown as such, and what it had said before is no longer shown.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from turnscope.model import Count, Sample

_LOG: Final = logging.getLogger(__name__)

TIMEOUT_S: Final = 2.0
"""For the whole answer, however it drips."""
MAX_RANKS: Final = 64
"""Data-parallel engines behind one address that are told apart."""
MAX_BYTES: Final = 8 * 2**20
"""Of one page: vLLM's has some hundred KB."""
GAUGES: Final = {
    "vllm:num_requests_running": "turnscope_engine_requests_running",
    "vllm:num_requests_waiting": "turnscope_engine_requests_waiting",
    "vllm:kv_cache_usage_perc": "turnscope_engine_kv_usage_ratio",
    "vllm:gpu_cache_usage_perc": "turnscope_engine_kv_usage_ratio",
}
"""vLLM's name, older ones too, to ours. Its usage is a ratio, whatever it is called."""
PREEMPTIONS: Final = "vllm:num_preemptions_total"
_NAMES: Final = (*GAUGES, PREEMPTIONS)
_TOTAL: Final = "turnscope_engine_preemptions_total"
_MEANS: Final = frozenset({"turnscope_engine_kv_usage_ratio"})
"""Of several series of one rank: taken on average, not added up."""

Values = dict[tuple[str, str], float]
"""(metric of ours, rank) to value."""


class Unreadable(Exception):
    """The page cannot be had, or is not an engine's. One sentence."""


def read(page: str) -> Values:
    """What a page of vLLM's metrics says. Raises ``Unreadable`` for one that has none of them."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    # The parser takes half a second for a megabyte, and nearly all of it is histograms that nobody asks for.
    asked_for = "\n".join(line for line in page.splitlines() if line.startswith(_NAMES))
    try:
        for family in text_string_to_metric_families(asked_for):
            for sample in family.samples:
                ours = _TOTAL if sample.name == PREEMPTIONS else GAUGES.get(sample.name)
                if ours is not None and 0 <= sample.value < math.inf:
                    found[ours, _rank(sample.labels.get("engine", "0"))].append(sample.value)
    except ValueError as error:
        raise Unreadable(f"its page is not in Prometheus' format: {error}") from None
    if not found:
        raise Unreadable("its page has none of vLLM's metrics")
    return {
        (metric, rank): sum(values) / (len(values) if metric in _MEANS else 1)
        for (metric, rank), values in found.items()
    }


def _rank(told: str) -> str:
    return told if told.isdecimal() and int(told) < MAX_RANKS else "other"


def _names(target: str, values: Values) -> dict[str, str]:
    """Rank to the engine's name in labels."""
    ranks = {rank for _, rank in values}
    return {rank: f"{target}-dp{rank}" if len(ranks) > 1 else target for rank in ranks}


def fetch(url: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """The page at ``url``. Raises ``Unreadable``."""
    try:
        return asyncio.run(_fetch(url, timeout_s))
    except TimeoutError:
        raise Unreadable(f"its page did not come within {timeout_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unreadable(f"it cannot be reached: {error}") from None


async def _fetch(url: str, timeout_s: float) -> str:
    """httpx's own timeouts begin anew with every byte, and its blocking reads cannot be cut short."""
    body = bytearray()
    async with (
        asyncio.timeout(timeout_s),
        httpx.AsyncClient(timeout=None, trust_env=False) as client,
        client.stream("GET", url) as answer,
    ):
        if answer.status_code != 200:
            raise Unreadable(f"it answered {answer.status_code}")
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > MAX_BYTES:
                raise Unreadable(f"its page is longer than {MAX_BYTES} bytes")
    return body.decode(errors="replace")


class EngineMetrics:
    """One thread an engine. ``look`` may also be called by hand.

    ``sample(samples, source)`` replaces the gauges of one engine; ``count`` adds what was preempted since the look
    before.
    """

    def __init__(
        self,
        targets: Mapping[str, str],
        *,
        sample: Callable[[list[Sample], str], None],
        count: Count,
        every_s: float,
        fetch: Callable[[str], str] = fetch,
    ) -> None:
        self._targets = dict(targets)
        self._sample = sample
        self._count = count
        self._every_s = every_s
        self._fetch = fetch
        self._preempted: dict[str, float] = {}
        self._troubles: dict[str, str] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(name,), name=f"turnscope-engine-{n}", daemon=True)
            for n, name in enumerate(self._targets)
        ]

    def start(self) -> None:
        """Look now and then."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * TIMEOUT_S)

    @property
    def troubles(self) -> list[str]:
        """Which engines could not be read at the last look, and why."""
        return [f"the metrics of {name} cannot be read: {why}" for name, why in sorted(self._troubles.items())]

    def _run(self, name: str) -> None:
        while True:
            try:
                self.look(name)
            except Exception:
                _LOG.exception("the metrics of %s could not be looked at", name)
            if self._stop.wait(self._every_s):
                return

    def look(self, name: str) -> None:
        """Read one engine's page and hand in what it says."""
        try:
            values = read(self._fetch(self._targets[name]))
        except Unreadable as error:
            self._report(name, str(error))
            self._sample([Sample("turnscope_engine_metrics_up", (name,), 0)], f"engine {name}")
            return
        self._report(name, None)
        names = _names(name, values)
        shown = [Sample("turnscope_engine_metrics_up", (name,), 1)]
        for (metric, rank), value in values.items():
            if metric == _TOTAL:
                self._add(names[rank], value)
            else:
                shown.append(Sample(metric, (names[rank],), value))
        self._sample(shown, f"engine {name}")

    def _add(self, engine: str, total: float) -> None:
        """What came since the look before; an engine that counts from 0 again has been started anew."""
        before = self._preempted.get(engine)
        self._preempted[engine] = total
        since = 0.0 if before is None else total - before if total >= before else total
        self._count(_TOTAL, (engine,), since)

    def _report(self, name: str, trouble: str | None) -> None:
        before = self._troubles.pop(name, None)
        if trouble is not None:
            self._troubles[name] = trouble
            if before is None:
                _LOG.warning("the metrics of %s cannot be read: %s", name, trouble)
        elif before is not None:
            _LOG.info("the metrics of %s can be read again", name)
