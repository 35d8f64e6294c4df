"""A stateful proxy between stub engines, watched by the hook; receivers for what the hook sends."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hook.receiver import Receiver, receiving
from tests.proxy import stubs
from tests.proxy.span_receiver import SpanReceiver, receiving_spans
from turnscope.model import Attempt

ROOT = Path(__file__).parents[2]
START_S = 200
"""A process may take this long to start on a busy machine."""
SCRIPT = Path(__file__).with_name("proxy_script.py")


class Proxy:
    """A running proxy and everything around it."""

    def __init__(self, url: str, prefill: stubs.Engine, decode: stubs.Engine, events: Receiver, spans: SpanReceiver):
        self.url = url
        self.prefill = prefill
        self.decode = decode
        self.events = events
        self.spans = spans
        self.client = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def send(self, body: dict[str, Any] | None = None, **headers: str) -> tuple[httpx.Response, str]:
        """One chat request under a trace of its own; the response and the trace id."""
        trace_id = secrets.token_hex(16)
        content = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **(body or {})}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.client.post("/v1/chat/completions", json=content, headers={**traceparent(trace_id), **named})
        return response, trace_id

    def attempts(self, trace_id: str, count: int = 1) -> list[Attempt]:
        """The attempts of the request sent under ``trace_id``, once there are ``count`` and the last is final."""

        def found() -> list[Attempt]:
            return [a for a in self.events.bodies(Attempt) if a.caller_trace_id == trace_id]

        self.events.wait_for(lambda: len(found()) >= count and found()[-1].final, 20)
        assert len(found()) == count
        return found()


def traceparent(trace_id: str) -> dict[str, str]:
    """The header of a sampled caller."""
    return {"traceparent": f"00-{trace_id}-{'c' * 16}-01"}


@contextlib.contextmanager
def process(command: list[str], environment: dict[str, str], url: str) -> Iterator[None]:
    """A process that serves ``url``; its output is printed when it does not come up."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "TURNSCOPE_"))}
    # A file and no pipe: nobody reads, and what an application says of its exceptions would fill one.
    with tempfile.TemporaryFile() as said:
        started = subprocess.Popen(
            command, env={**kept, **environment}, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + START_S
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"{url}/health", trust_env=False, timeout=5).status_code == 200:
                        break
                if started.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    pytest.fail(f"the proxy did not start: {said.read().decode()}")
                time.sleep(0.1)
            yield
        finally:
            started.terminate()
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


@pytest.fixture(scope="session")
def engines() -> Iterator[tuple[stubs.Engine, stubs.Engine]]:
    with stubs.running(stubs.Engine("p0")) as prefill, stubs.running(stubs.Engine("d0")) as decode:
        yield prefill, decode


@pytest.fixture(scope="session")
def sidecar() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def backend() -> Iterator[SpanReceiver]:
    with receiving_spans() as receiver:
        yield receiver


def arguments(engines: tuple[stubs.Engine, stubs.Engine], port: int) -> list[str]:
    """The proxy script's arguments."""
    return ["--port", str(port), "--prefill", engines[0].url, "--decode", engines[1].url]


TURNSCOPE = [str(Path(sys.executable).with_name("turnscope"))]

Start = Callable[..., contextlib.AbstractContextManager[Proxy]]


@pytest.fixture(scope="session")
def start(engines: tuple[stubs.Engine, stubs.Engine], sidecar: Receiver, backend: SpanReceiver) -> Start:
    """Starts the script under ``turnscope run`` with more environment and arguments."""

    @contextlib.contextmanager
    def begin(environment: dict[str, str], *more: str, command: list[str] | None = None) -> Iterator[Proxy]:
        port = stubs.free_port()
        url = f"http://127.0.0.1:{port}"
        line = [*(command or [*TURNSCOPE, "run", str(SCRIPT)]), *arguments(engines, port), *more]
        common = {
            "TURNSCOPE_ENDPOINT": f"grpc://127.0.0.1:{sidecar.port}",
            "TURNSCOPE_HEARTBEAT_SECONDS": "0.2",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        with process(line, {**common, **environment}, url):
            proxy = Proxy(url, *engines, sidecar, backend)
            with proxy.client:
                yield proxy

    begin.parts = (engines, sidecar, backend)  # type: ignore[attr-defined]
    return begin


@pytest.fixture(scope="session")
def watched(start: Start, backend: SpanReceiver) -> Iterator[Proxy]:
    """The script under ``turnscope run``, its spans going to ``backend``."""
    address = f"http://127.0.0.1:{backend.port}"
    with start({"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "proxy"}) as running:
        yield running


@pytest.fixture
def proxy(watched: Proxy) -> Proxy:
    """The watched proxy before well-behaved engines."""
    watched.prefill.reset()
    watched.decode.reset()
    return watched


def events_of(content: bytes) -> list[Any]:
    """The JSON of a streamed answer's events."""
    lines = [line[6:] for line in content.decode().split("\n\n") if line and line != "data: [DONE]"]
    return [json.loads(line) for line in lines]
