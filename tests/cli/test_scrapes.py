"""``/metrics`` of a running sidecar under scrapers that are many, slow, or come while it ends and begins."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.builders import Pair
from tests.cli.served import Served, served

ASKING = {
    "Accept": "application/openmetrics-text; version=1.0.0",
    "X-Prometheus-Scrape-Timeout-Seconds": "10",
    "User-Agent": "Prometheus/3",
}
PARALLEL = 50


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Served]:
    """With one turn counted."""
    with served(tmp_path, "--grace-seconds", "0.1") as running:
        pair = Pair()
        running.send([*pair.start(), *pair.turn("1")])
        running.settled(1)
        yield running


def scrape(sidecar: Served) -> httpx.Response:
    return httpx.get(f"{sidecar.url}/metrics", headers=ASKING, trust_env=False, timeout=60)


def turns(page: str) -> float:
    """Of a whole page: one that is cut off is refused by the parser."""
    families = {family.name: family for family in text_string_to_metric_families(page)}
    return sum(sample.value for sample in families["turnscope_turns"].samples)


@pytest.mark.timeout(300)
def test_many_scrapes_at_once_are_all_answered_whole(sidecar: Served) -> None:
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(lambda _: scrape(sidecar), range(PARALLEL)))
    assert {answer.status_code for answer in answers} == {200}
    assert {turns(answer.text) for answer in answers} <= {0.0, 1.0}
    assert turns(scrape(sidecar).text) == 1


@pytest.mark.timeout(300)
def test_scrapers_that_do_not_read_keep_nobody_waiting_and_do_not_keep_it_from_ending(sidecar: Served) -> None:
    slow = []
    try:
        for request in [b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"] * 20 + [b"GET /met", b""]:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.connect(("127.0.0.1", sidecar.http))
            connection.sendall(request)
            slow.append(connection)
        scrape(sidecar)
        assert turns(scrape(sidecar).text) == 1
        assert httpx.get(f"{sidecar.url}/healthz", trust_env=False, timeout=30).text == "ok\n"
        assert sidecar.end(signal.SIGTERM) == 0
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_scrape_while_it_restarts_has_a_whole_page_or_none(sidecar: Served, number: signal.Signals) -> None:
    pages: list[str] = []
    refused: list[int] = []
    done = threading.Event()

    def go_on() -> None:
        while not done.is_set():
            try:
                answer = scrape(sidecar)
            except httpx.TransportError:
                refused.append(0)
                continue
            if answer.status_code == 200:
                pages.append(answer.text)
            else:
                refused.append(answer.status_code)

    scraper = threading.Thread(target=go_on)
    scraper.start()
    try:
        sidecar.end(number)
        sidecar.start()
        seen = len(pages)
        while len(pages) < seen + 2:
            assert scraper.is_alive()
    finally:
        done.set()
        scraper.join(60)
    assert set(refused) <= {0, 503}
    assert 0 in refused
    assert {turns(page) for page in pages} <= {0.0, 1.0}
    assert turns(pages[-1]) == 0
