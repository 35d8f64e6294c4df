"""The counting rule as a real Prometheus sees it: no event is missed, none is seen twice."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live import prometheus
from tests.builders import BLOCK_BYTES, Pair
from tests.cli.served import Served, served
from turnscope.model import Transfer

WAIT_S = 120.0
"""On a busy machine scrapes take longer than their second, and fail."""

_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
scrape_configs:
  - job_name: turnscope
    static_configs: [{{targets: ["{target}"]}}]
"""

_ALERTING = """
rule_files: [rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{manager}"]}}]}}]}}
"""


class Prometheus:
    """A running server that scrapes one target every second."""

    def __init__(self, running: prometheus.Prometheus) -> None:
        self._running = running

    def query(self, text: str) -> list[dict[str, Any]]:
        return self._running.moment(text, time.time())

    def value(self, text: str) -> float:
        found = self.query(text)
        return float(found[0]["value"][1]) if found else 0.0

    def increase(self, metric: str) -> float:
        """The sum over all series of what ``increase()`` adds up, without its extrapolation to the window's ends."""
        total = 0.0
        for series in self.query(f"{metric}[1h]"):
            values = [float(v) for _, v in series["values"]]
            total += sum(b - a if b >= a else b for a, b in itertools.pairwise(values))
        return total

    def wait(self, text: str, value: float) -> None:
        """Until the query has that value."""
        deadline = time.monotonic() + WAIT_S
        while (found := self.value(text)) != value:
            assert time.monotonic() < deadline, f"{text} is {found}, not {value}"
            time.sleep(0.2)

    def scraped(self, times: int = 2) -> None:
        """Until the target was scraped so many times from now on."""
        count = "count_over_time(up[1h])"
        before = self.value(count)
        deadline = time.monotonic() + WAIT_S
        while self.value(count) < before + times:
            assert time.monotonic() < deadline
            time.sleep(0.2)


@contextlib.contextmanager
def scraping(target: str, folder: Path, *, telling: str | None = None) -> Iterator[Prometheus]:
    """``telling``: an Alertmanager's address; then ``rules.yml`` in ``folder`` is evaluated every second."""
    text = _CONFIG.format(target=target) + (_ALERTING.format(manager=telling) if telling else "")
    with prometheus.running_prometheus(folder, config=text) as running:
        yield Prometheus(running)


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Served]:
    """Counts a turn a tenth of a second after it is complete."""
    with served(tmp_path, "--grace-seconds", "0.1") as running:
        yield running


@pytest.fixture
def scraper(sidecar: Served, tmp_path: Path) -> Iterator[Prometheus]:
    """Scraping ``sidecar``."""
    with scraping(f"127.0.0.1:{sidecar.http}", tmp_path) as running:
        running.wait("up", 1)
        yield running


@pytest.mark.timeout(900)
def test_late_facts_duplicates_restarts_and_replay_never_make_increase_wrong(
    sidecar: Served, scraper: Prometheus
) -> None:
    pair = Pair()
    started = pair.start()
    turns = [pair.turn(str(n), at_ms=1000 * n) for n in range(1, 6)]
    again = pair.turn("6", at_ms=6000, given=pair.handle("5", 1199), fetched=960, prompt=1300)
    late = next(e for e in turns[1] if isinstance(e.body, Transfer))

    # The first event of label sets that nobody could know of: this engine was never heard of before.
    scraper.scraped()
    sidecar.send(started + turns[0])
    scraper.wait("sum(turnscope_turns_total)", 1)
    assert scraper.value("sum(increase(turnscope_turns_total[1h]))") > 0
    assert scraper.value('sum(increase(turnscope_prefill_seconds_count{path="recompute"}[1h]))') > 0
    assert scraper.increase("turnscope_turns_total") == 1

    # Duplicates, and a fact that comes after its turn was counted.
    sidecar.send(turns[0])
    sidecar.send([e for e in turns[1] if e is not late])
    scraper.wait("sum(turnscope_turns_total)", 2)
    sidecar.send([late, late])
    scraper.wait("sum(turnscope_late_facts_total)", 1)

    # Killed in mid-traffic: one turn is half there; the senders repeat what they are not sure of.
    sidecar.send(turns[2][:4])
    scraper.scraped()
    sidecar.end(signal.SIGKILL)
    sidecar.start()
    scraper.scraped()
    sidecar.send(turns[1])
    sidecar.send(turns[2])
    scraper.wait("sum(turnscope_turns_total)", 1)

    # Stopped in good order and started again, then everything once more.
    sidecar.send(turns[3])
    scraper.wait("sum(turnscope_turns_total)", 2)
    sidecar.end(signal.SIGTERM)
    sidecar.start()
    for events in turns:
        sidecar.send(events)
    sidecar.send(again)
    scraper.wait("sum(turnscope_turns_total)", 2)
    scraper.scraped()

    assert scraper.increase("turnscope_turns_total") == 6
    assert scraper.increase("turnscope_turns_ended_total") == 6
    assert scraper.increase("turnscope_prompt_tokens_total") == 5 * 1000 + 1300
    assert scraper.increase('turnscope_prompt_tokens_total{source="fetched"}') == 960
    assert scraper.increase('turnscope_transfer_bytes_total{direction="reverse_fetch"}') == 60 * BLOCK_BYTES
    assert scraper.increase("turnscope_prefill_seconds_count") == 6
    assert scraper.increase("turnscope_requests_total") == 12
    assert scraper.increase('turnscope_transfer_bytes_total{direction="handoff"}') == (5 * 63 + 82) * BLOCK_BYTES
    assert scraper.increase("turnscope_late_facts_total") == 1
