"""What stands between the clients and a live pair: a proxy under turnscope's hook, the same as it is, or a router that
nobody here wrote."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from live import router_setup
from live.engines import TURNSCOPE, Pair, alive, free_ports, start, stop, wait_ready

START_SECONDS = 180
STOP_SECONDS = 5
"""A proxy waits for its last answers, and one of them never comes."""
PROXY_SCRIPT = Path(__file__).parent / "proxy.py"
SESSION_HEADER = "x-session-id"


class Front(StrEnum):
    """Which proxy."""

    HOOKED = "hooked"
    """``live/proxy.py``, which keeps D's handles, under ``turnscope run``."""
    BARE = "bare"
    """The same without it; it passes the header on by which engines know a session."""
    ROUTER = "router"
    """vllm-router: it keeps no handle, and passes no such header on."""


@dataclass(frozen=True)
class RunningFront:
    """A proxy that answers."""

    url: str
    pid: int


@contextlib.contextmanager
def running_front(
    front: Front,
    pair: Pair,
    log: Path,
    *,
    hook: Mapping[str, str],
    options: tuple[str, ...] = (),
    around_spare: bool = False,
) -> Iterator[RunningFront]:
    """Start it in front of ``pair``, ``around_spare``: without its second D. ``hook`` is the hook's environment; empty:
    there is none. ``options`` are for a proxy of ours."""
    (port,) = free_ports(1)
    environment = hook if front is Front.HOOKED else {}
    decodes = pair.decodes[:1] if around_spare else pair.decodes
    engines = ["--prefill", pair.prefill.url, *(part for engine in decodes for part in ("--decode", engine.url))]
    process = start([*_command(front, engines, port, hooked=bool(environment)), *options], log, environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(f"{url}/health", alive(f"the {front} proxy", process, log), seconds=START_SECONDS)
        yield RunningFront(url, process.pid)
    finally:
        stop(process, STOP_SECONDS)


def _command(front: Front, engines: list[str], port: int, *, hooked: bool) -> list[str]:
    if front is Front.ROUTER:
        here = ["--host", "127.0.0.1", "--port", str(port)]
        metrics = ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_ports(1)[0])]
        split = ["--vllm-pd-disaggregation", *engines, "--kv-connector", "nixl", "--policy", "round_robin"]
        return [str(router_setup.command()), *here, *metrics, *split]
    forward = ["--forward", SESSION_HEADER] if front is Front.BARE else []
    return [
        *([str(TURNSCOPE), "run"] if hooked else [sys.executable]),
        str(PROXY_SCRIPT),
        "--port",
        str(port),
        *engines,
        *forward,
    ]
