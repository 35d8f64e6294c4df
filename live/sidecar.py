"""The sidecar under test, as a process of its own, as a user starts it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from live.engines import TURNSCOPE, alive, free_ports, start, stop, wait_ready
from live.unknown import Share
from turnscope.measures import reconcile

START_SECONDS = 180
HEARTBEATS_BYTES = 16 * 1024
"""Of events, which always come: what is behind by less is nothing that anybody waits for."""


@dataclass(frozen=True)
class Sidecar:
    """A running ``turnscope serve``."""

    endpoint: str
    """For ``TURNSCOPE_ENDPOINT``."""
    url: str
    log: Path
    store: Path

    def counts(self) -> dict[str, reconcile.Values]:
        """What it has counted, by engine."""
        return reconcile.ours(self.page("/metrics"))

    def explained(self) -> Share:
        """Of the turns that it has counted and that engines and a proxy told of."""
        known, unknown = (
            int(self._sum("turnscope_turns_explained_total", 'hooks="both"', f'explained="{answer}"'))
            for answer in ("yes", "no")
        )
        return Share(known + unknown, unknown)

    def windows(self, transport: str) -> int:
        """Windows of which it said that this carried what was moved."""
        return int(self._sum("turnscope_fabric_windows_total", f'transport="{transport}"'))

    def hooks(self) -> int:
        """Processes of engines and proxies whose hook is heard."""
        kinds = ("engine", "worker", "proxy")
        return int(sum(self._sum("turnscope_emitters_alive", f'emitter_kind="{kind}"') for kind in kinds))

    def busy(self, *, while_held: bool = False) -> int:
        """Turns that are still to be counted, and holds unless they may stay (``while_held``); events on their way."""
        status = json.loads(self.page("/status"))
        held = 0.0 if while_held else self._sum("turnscope_held_requests")
        behind = status["exporter"]["lag_bytes"] // HEARTBEATS_BYTES
        return int(status["assembly"]["open_turns"] + held + behind)

    def running(self) -> int:
        """Turns that were under way by the last heartbeats."""
        return int(self._sum("turnscope_turns_open", 'state="running"'))

    def _sum(self, name: str, *labels: str) -> float:
        lines = [line for line in self.page("/metrics").splitlines() if line.startswith(f"{name}{{")]
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(label in line for label in labels))

    def page(self, path: str) -> str:
        """What it serves there."""
        return httpx.get(f"{self.url}{path}", timeout=30).raise_for_status().text


@contextlib.contextmanager
def running_sidecar(
    folder: Path, *, record: Path | None = None, export_otlp: str | None = None, arguments: Sequence[str] = ()
) -> Iterator[Sidecar]:
    """Start it on free ports with an empty journal and store under ``folder``; stop it on the way out."""
    otlp, http = free_ports(2)
    log = folder / "sidecar.log"
    command = [str(TURNSCOPE), "serve", "--data-dir", str(folder / "data")]
    command += ["--otlp-grpc", f"127.0.0.1:{otlp}", "--http", f"127.0.0.1:{http}"]
    command += ["--otlp-http", "127.0.0.1:0", *arguments]
    if record:
        command += ["--record", str(record)]
    if export_otlp:
        command += ["--export-otlp", export_otlp]
    process = start(command, log, {})
    sidecar = Sidecar(f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{http}", log, folder / "data" / "store")
    try:
        wait_ready(f"{sidecar.url}/readyz", alive("the sidecar", process, log), seconds=START_SECONDS)
        yield sidecar
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


def wait_rested(sidecar: Sidecar, *, seconds: float) -> None:
    """Until the last heartbeats of all that was done have passed, which list what was under way."""
    deadline = time.monotonic() + seconds
    while sidecar.running() and time.monotonic() < deadline:
        time.sleep(1)
