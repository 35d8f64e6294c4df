"""Real agents with real instrumentations, each unmodified and with the capture of content on, against a real sidecar.

The model is a stub that asks for one tool and then answers. What each gives is held against ``catalogue``; what they
captured may be found in what was passed on to the user's own backend, and nowhere else.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.agents import model_server, setup
from tests.agents.catalogue import ALL, Instrumentation, gives, table
from tests.cli.served import Served
from turnscope.outputs.http import HttpServer
from turnscope.receivers import otlp_http
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.misdirected import Misdirected
from turnscope.store import StoreReader

PROGRAMS = Path(__file__).resolve().parent / "programs"
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
LIMIT = 2**24
PATIENCE_S = 400
CLOCK_NS = 2_000_000
"""JavaScript's spans begin at whole milliseconds."""
pytestmark = pytest.mark.timeout(600)


def session(one: Instrumentation) -> str:
    return f"session-{ALL.index(one)}"


def question(one: Instrumentation) -> str:
    """What only its prompt says."""
    return f"{model_server.CANARIES['prompt']}-{ALL.index(one)}"


class Run:
    """All of them once, and what became of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.passed_on: list[bytes] = []
        self.output: dict[str, str] = {}
        self.backend = HttpServer("127.0.0.1", 0)
        traces = SpansIntake(
            lambda _: None, lambda *_: None, max_bytes=LIMIT, pass_on=lambda body, _: self.passed_on.append(body)
        )
        logs = LogsIntake(lambda _: None, lambda *_: None, max_bytes=LIMIT)
        self.backend.start(otlp_http.app(logs, traces, max_bytes=LIMIT, misdirected=Misdirected(lambda *_: None)))
        self.sidecar = Served(
            folder,
            *("--export-spans", f"http://127.0.0.1:{self.backend.port}/v1/traces"),
            *("--record", str(folder / "recording.jsonl"), "--checkpoint-seconds", "1", "--log-level", "debug"),
        )
        with model_server.serving() as url, ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda one: self.run(one, url), ALL))
        self.pages = "".join(
            httpx.get(f"{self.sidecar.url}{path}", trust_env=False, timeout=30).text for path in ("/metrics", "/status")
        )
        self.status = self.sidecar.status()
        assert self.sidecar.end(signal.SIGTERM) == 0
        self.backend.stop()
        self.reader = StoreReader(str(self.sidecar.data / "store"))

    def run(self, one: Instrumentation, model_url: str) -> None:
        """One program to its end."""
        port = self.sidecar.otlp if one.variables.get("PROTOCOL") == "grpc" else self.sidecar.otlp_http
        canaries = {f"CANARY_{name.upper()}": text for name, text in model_server.CANARIES.items()}
        canaries["CANARY_PROMPT"] = question(one)
        home = self.folder / f"home-{ALL.index(one)}"
        home.mkdir()
        variables = {
            "HOME": str(home),
            "OPENAI_BASE_URL": model_url,
            "OPENAI_API_BASE": model_url,
            "OPENAI_API_KEY": "none",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_SERVICE_NAME": "desk",
            "OTEL_RESOURCE_ATTRIBUTES": "service.version=3,deployment.environment.name=test",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
            "TRACELOOP_TRACE_CONTENT": "true",
            "SESSION": session(one),
            "MODULES": str(setup.FOLDER / setup.JS / "package.json"),
            **canaries,
            **one.variables,
        }
        interpreter = ["node"] if one.environment == setup.JS else [str(setup.python(one.environment))]
        done = subprocess.run(
            [*interpreter, str(PROGRAMS / one.program)],
            env={**os.environ, **variables},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        self.output[one.title] = f"exit code {done.returncode}\n{done.stderr[-3000:]}"

    def rows(self, one: Instrumentation) -> list[dict[str, Any]]:
        """Its session's spans, oldest first."""
        found: list[dict[str, Any]] = self.reader.spans(session(one)).table.to_pylist()
        assert found, self.output[one.title]
        return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Everything that is needed must be there: a test without it fails."""
    missing = [name for name in (*setup.PYTHONS, setup.JS) if not setup.complete(name)]
    assert not missing, f"{', '.join(missing)} missing in {setup.FOLDER}: run tests/agents/setup.py"
    made = Run(tmp_path_factory.mktemp("agents"))
    yield made
    made.reader.close()


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.title)
def test_each_gives_its_session_with_its_model_calls_and_tools(run: Run, one: Instrumentation) -> None:
    rows = run.rows(one)
    calls, tools = of_kind(rows, "model_call"), of_kind(rows, "tool")
    assert len(calls) == 2, Counter(row["kind"] for row in rows)
    assert [tool["tool_name"] for tool in tools] == (["weather"] if one.tools else [])
    for call in calls:
        assert (call["model"], call["input_tokens"], call["output_tokens"]) == ("stub-model", 120, 12)
    for row in rows:
        assert (row["service_name"], row["service_version"], row["deployment"]) == ("desk", "3", "test")
        assert row["ended_ns"] >= row["started_ns"]
    if tools:
        first, tool, second = calls[0], tools[0], calls[1]
        assert first["ended_ns"] <= tool["started_ns"] + CLOCK_NS
        assert tool["ended_ns"] <= second["started_ns"] + CLOCK_NS


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.title)
def test_what_each_gives_and_lacks_is_what_the_table_says(run: Run, one: Instrumentation) -> None:
    rows = run.rows(one)
    calls = of_kind(rows, "model_call")
    found = {
        "session": True,
        "model calls": bool(calls),
        "tools": bool(of_kind(rows, "tool")),
        "names of agents": any(row["agent_name"] == "forecaster" for row in of_kind(rows, "agent")),
        "tokens": all(call["input_tokens"] and call["output_tokens"] for call in calls),
        "cached tokens": all(call["cached_tokens"] == 100 for call in calls),
        "time to first token": any(call["time_to_first_token_ns"] is not None for call in calls),
        "tool calls asked": calls[0]["tool_calls"] == 1,
    }
    assert found == gives(one)


def test_the_page_has_this_table() -> None:
    assert table() in (DOCS / "agents.md").read_text(), "print it with: python -m tests.agents.catalogue"


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.title)
def test_each_had_its_capture_of_content_on(run: Run, one: Instrumentation) -> None:
    if one.content_in_logs:
        (foreign,) = re.findall(r"^turnscope_exporter_records_foreign_total (\S+)", run.pages, re.MULTILINE)
        assert float(foreign) > 0
    else:
        assert question(one).encode() in b"".join(run.passed_on)


def test_content_was_captured_and_passed_on_and_is_nowhere_else(run: Run) -> None:
    sent = b"".join(run.passed_on)
    for name, canary in model_server.CANARIES.items():
        assert canary.encode() in sent, f"nobody captured the {name}"
    kept = {
        str(path): path.read_bytes() for path in run.folder.rglob("*") if path.is_file() and "home-" not in str(path)
    }
    kept["pages"] = run.pages.encode()
    for path in run.folder.rglob("*.parquet"):
        kept[f"{path} unpacked"] = str(pq.read_table(path).to_pylist()).encode()
    assert any("spans" in name and "weather" in text.decode(errors="replace") for name, text in kept.items())
    for canary in model_server.CANARIES.values():
        assert [name for name, text in kept.items() if canary.encode() in text] == []


def test_nothing_was_rejected_and_everything_was_passed_on(run: Run) -> None:
    assert run.status.exporter.rejected_spans == 0
    assert run.status.exporter.spans > 30
    assert run.status.exporter.passing_on_error is None
