"""The HTTP side, asked over a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from turnscope.outputs import http


class Site:
    """A running server whose answers a test sets."""

    def __init__(self) -> None:
        self.not_ready: str | None = None
        self.unhealthy: str | None = None
        self.troubles: list[str] = []
        self.asked: list[tuple[str | None, str]] = []
        self.server = http.HttpServer("127.0.0.1", 0)
        self.server.start(
            http.app(
                metrics=self._metrics,
                not_ready=lambda: self.not_ready,
                unhealthy=lambda: self.unhealthy,
                troubles=lambda: self.troubles,
                status=lambda: b'{"ok":1}',
            )
        )

    def _metrics(self, scraper: str | None, accept: str) -> tuple[bytes, str]:
        self.asked.append((scraper, accept))
        return b"a 1\n" * 1000, "text/plain; version=0.0.4"

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.server.port}{path}", headers=headers, trust_env=False)


@pytest.fixture
def site() -> Iterator[Site]:
    """Stopped after the test."""
    running = Site()
    yield running
    running.server.stop()


def test_metrics_are_served_compressed_where_asked(site: Site) -> None:
    answer = site.get("/metrics")
    assert answer.text == "a 1\n" * 1000
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["content-encoding"] == "gzip"


def test_only_scrapers_count_as_scrapers(site: Site) -> None:
    site.get("/metrics", **{"User-Agent": "curl/8", "Accept": "*/*"})
    site.get("/metrics", **{"User-Agent": "Prometheus/3", "X-Prometheus-Scrape-Timeout-Seconds": "10", "Accept": "x"})
    assert site.asked == [(None, "*/*"), ("127.0.0.1 Prometheus/3", "x")]


def test_until_the_replay_is_done_there_are_no_metrics(site: Site) -> None:
    site.not_ready = "replaying"
    assert (site.get("/metrics").status_code, site.get("/metrics").text) == (503, "replaying\n")
    assert site.get("/readyz").status_code == 503
    assert site.get("/healthz").status_code == 200
    assert site.asked == []
    site.not_ready = None
    assert site.get("/readyz").text == "ready\n"


def test_health_names_every_trouble_and_fails_for_what_stops_the_intake(site: Site) -> None:
    assert (site.get("/healthz").status_code, site.get("/healthz").text) == (200, "ok\n")
    site.troubles = ["the store is unreachable"]
    assert (site.get("/healthz").status_code, site.get("/healthz").text) == (200, "the store is unreachable\n")
    site.unhealthy = "disk full"
    site.troubles.append("disk full")
    assert (site.get("/healthz").status_code, site.get("/healthz").text) == (
        503,
        "the store is unreachable\ndisk full\n",
    )


def test_what_can_take_nothing_in_is_not_ready_and_says_why_and_still_has_metrics(site: Site) -> None:
    site.unhealthy = "the journal cannot be written (No space left on device)"
    answer = site.get("/readyz")
    assert (answer.status_code, answer.text) == (503, f"{site.unhealthy}\n")
    assert site.get("/metrics").status_code == 200
    site.unhealthy = None
    assert site.get("/readyz").text == "ready\n"


def test_status_and_the_index_answer(site: Site) -> None:
    assert site.get("/status").json() == {"ok": 1}
    assert "/metrics" in site.get("/").text


def test_a_taken_port_is_an_error(site: Site) -> None:
    with pytest.raises(OSError, match="in use"):
        http.HttpServer("127.0.0.1", site.server.port)


def test_a_port_is_taken_before_the_first_answer() -> None:
    first = http.HttpServer("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="in use"):
            http.HttpServer("127.0.0.1", first.port)
    finally:
        first.stop()


def test_a_port_is_free_again_after_stop() -> None:
    first = Site()
    first.get("/healthz")
    first.server.stop()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", first.server.port))
