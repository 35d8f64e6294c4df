"""``turnscope serve`` as a process of its own, on free ports."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from prometheus_client.parser import text_string_to_metric_families

from turnscope.decode import codec
from turnscope.model import Event, SystemStatus

TURNSCOPE = Path(sys.executable).parent / "turnscope"
START_S = 120.0
"""A busy machine takes its time to import everything."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run(*arguments: str, timeout: float = START_S) -> subprocess.CompletedProcess[str]:
    """``turnscope ARGUMENTS`` to its end."""
    return subprocess.run([TURNSCOPE, *arguments], capture_output=True, text=True, timeout=timeout, check=False)


class Served:
    """A sidecar that can be killed and started again on the same ports and data."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.otlp, self.otlp_http, self.http = free_port(), free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http}"
        self.data = folder / "data"
        self.log = folder / "serve.log"
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it is ready."""
        command = [TURNSCOPE, "serve", "--otlp-grpc", f"127.0.0.1:{self.otlp}", "--http", f"127.0.0.1:{self.http}"]
        command += ["--otlp-http", f"127.0.0.1:{self.otlp_http}"]
        # This machine's own cards are no part of what tests send.
        command += ["--fabric-seconds", "0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--data-dir", self.data, *self.options], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_S
        while not self.ready():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False, timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait; the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def send(self, events: list[Event]) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self.otlp}") as channel:
            LogsServiceStub(channel).Export(codec.encode(events, observed_ns=1), timeout=30, wait_for_ready=True)

    def counts(self) -> dict[str, float]:
        """The sum of each counter over its labels, as anybody but a scraper sees them."""
        page = httpx.get(f"{self.url}/metrics", trust_env=False, timeout=30).text
        return {
            family.name: sum(s.value for s in family.samples if s.name.endswith("_total"))
            for family in text_string_to_metric_families(page)
        }

    def status(self) -> SystemStatus:
        return msgspec.json.decode(
            httpx.get(f"{self.url}/status", trust_env=False, timeout=30).content, type=SystemStatus
        )

    def settled(self, turns: int) -> None:
        """Wait until that many turns are counted by this process."""
        deadline = time.monotonic() + 60
        while (found := self.counts()["turnscope_turns"]) != turns:
            assert found < turns, found
            assert time.monotonic() < deadline, f"{found} of {turns} turns\n{self.log.read_text()}"
            time.sleep(0.1)


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """Ended on the way out."""
    sidecar = Served(folder, *options)
    try:
        yield sidecar
    finally:
        assert sidecar.process is not None
        if sidecar.process.poll() is None:
            sidecar.end(signal.SIGTERM)
