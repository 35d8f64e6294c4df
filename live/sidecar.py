"""The sidecar under test and the proxy under its hook, as processes of their own, as a user starts them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from live.engines import LiveError, Pair, free_ports, start, stop, tail, wait_ready
from turnscope.measures import reconcile

TURNSCOPE = Path(sys.executable).parent / "turnscope"
START_SECONDS = 180
PROXY_SCRIPT = Path(__file__).parent / "proxy.py"


@dataclass(frozen=True)
class Sidecar:
    """A running ``turnscope serve``."""

    endpoint: str
    """For ``TURNSCOPE_ENDPOINT``."""
    url: str
    log: Path

    def counts(self) -> dict[str, reconcile.Values]:
        """What it has counted, by engine."""
        return reconcile.ours(self.page("/metrics"))

    def busy(self, *, while_held: bool = False) -> int:
        """Turns and bytes that are still to be counted, and holds unless they may stay (``while_held``)."""
        status = json.loads(self.page("/status"))
        held = 0.0 if while_held else self._gauge("turnscope_held_requests")
        return int(status["assembly"]["open_turns"] + status["exporter"]["lag_bytes"] + held)

    def _gauge(self, name: str) -> float:
        lines = self.page("/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{"))

    def page(self, path: str) -> str:
        """What it serves there."""
        return httpx.get(f"{self.url}{path}", timeout=30).raise_for_status().text


@contextlib.contextmanager
def running_sidecar(folder: Path, *, record: Path | None = None, export_otlp: str | None = None) -> Iterator[Sidecar]:
    """Start it on free ports with an empty journal and store under ``folder``; stop it on the way out."""
    otlp, http = free_ports(2)
    log = folder / "sidecar.log"
    command = [str(TURNSCOPE), "serve", "--data-dir", str(folder / "data")]
    command += ["--otlp-grpc", f"127.0.0.1:{otlp}", "--http", f"127.0.0.1:{http}", "--otlp-http", "127.0.0.1:0"]
    if record:
        command += ["--record", str(record)]
    if export_otlp:
        command += ["--export-otlp", export_otlp]
    process = start(command, log, {})
    sidecar = Sidecar(f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{http}", log)
    try:
        wait_ready(f"{sidecar.url}/readyz", _alive("the sidecar", process, log), seconds=START_SECONDS)
        yield sidecar
    finally:
        stop(process)


@contextlib.contextmanager
def running_proxy(pair: Pair, log: Path, *, endpoint: str | None) -> Iterator[str]:
    """Start the proxy, under ``turnscope run`` when there is an ``endpoint``; yield its address."""
    (port,) = free_ports(1)
    command = [str(TURNSCOPE), "run"] if endpoint else [sys.executable]
    command += [str(PROXY_SCRIPT), "--port", str(port), "--prefill", pair.prefill.url, "--decode", pair.decode.url]
    process = start(command, log, {"TURNSCOPE_ENDPOINT": endpoint} if endpoint else {})
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(f"{url}/health", _alive("the proxy", process, log), seconds=START_SECONDS)
        yield url
    finally:
        stop(process)


def wait_quiet(sidecar: Sidecar, *, seconds: float, say: Callable[[str], None], while_held: bool = False) -> None:
    """Until everything seen has been counted and everything held released, unless it may stay (``while_held``)."""
    deadline = time.monotonic() + seconds
    quiet_since: float | None = None
    while quiet_since is None or time.monotonic() - quiet_since < 4:
        if time.monotonic() > deadline:
            say(f"  still {sidecar.busy(while_held=while_held)} things open after {seconds:.0f} s: comparing as it is")
            return
        now = time.monotonic()
        quiet_since = None if sidecar.busy(while_held=while_held) else (quiet_since or now)
        time.sleep(1)


def _alive(what: str, process: subprocess.Popen[bytes], log: Path) -> Callable[[], None]:
    def check() -> None:
        if process.poll() is not None:
            raise LiveError(f"{what} ended with code {process.returncode}; the end of {log}:\n{tail(log)}")

    return check
