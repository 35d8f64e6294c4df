"""``turnscope run`` and the middleware: the application runs as it would without them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hook.receiver import Receiver
from tests.proxy import proxy_script, stubs
from tests.proxy.conftest import SCRIPT, TURNSCOPE, Proxy, Start
from tests.proxy.span_receiver import SpanReceiver
from turnscope.cli.run import main
from turnscope.model import Attempt, EngineState
from turnscope.proxy import Middleware

pytestmark = pytest.mark.timeout(300)  # starts processes

SHOW = """
import json, sys, os
print(json.dumps({
    "argv": sys.argv, "name": __name__, "file": __file__, "path": sys.path[0],
    "autoload": [p for p in sys.path if "autoload" in p],
    "finders": [type(f).__module__ for f in sys.meta_path],
    "heavy": sorted({"httpx", "starlette", "grpc", "opentelemetry"} & set(sys.modules)),
}))
"""


def run(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "TURNSCOPE_", "PYTHONPATH"))}
    return subprocess.run(
        [*TURNSCOPE, "run", *arguments],
        env={**kept, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


ON = {"TURNSCOPE_ENDPOINT": "grpc://127.0.0.1:9"}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "show.py"
    path.write_text(SHOW)
    return path


def test_a_script_runs_as_it_would_under_python(script: Path) -> None:
    done = run(str(script), "--port", "8000", "--help", **ON)
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert shown["argv"] == [str(script), "--port", "8000", "--help"]
    assert (shown["name"], shown["file"], shown["path"]) == ("__main__", str(script), str(script.parent))
    assert shown["autoload"] == []
    assert "turnscope.emit.after_import" in shown["finders"]
    assert shown["heavy"] == []


def test_without_an_endpoint_the_script_runs_unwatched_and_that_is_said(script: Path) -> None:
    done = run(str(script))
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "TURNSCOPE_ENDPOINT is not set" in done.stderr
    assert "turnscope.emit.after_import" not in json.loads(done.stdout)["finders"]


def test_the_scripts_exit_code_is_the_commands(script: Path) -> None:
    script.write_text("raise SystemExit(7)")
    assert run(str(script), **ON).returncode == 7


def test_modules_and_commands_run_too(script: Path) -> None:
    done = run("-m", "show", "x", cwd=script.parent, **ON)
    assert json.loads(done.stdout)["argv"] == [str(script), "x"]
    (script.parent / "bin").mkdir()
    command = script.parent / "bin" / "show-it"
    command.write_text(f"#!{sys.executable}\n{SHOW}")
    command.chmod(0o755)
    done = run("show-it", "y", PATH=f"{command.parent}:{os.environ['PATH']}", **ON)
    assert json.loads(done.stdout)["argv"] == [str(command), "y"]
    assert "turnscope.emit.after_import" in json.loads(done.stdout)["finders"]


def test_a_sitecustomize_of_the_users_own_still_runs(script: Path) -> None:
    (script.parent / "sitecustomize.py").write_text("print('mine')")
    done = run(str(script), PYTHONPATH=str(script.parent), **ON)
    assert done.returncode == 0
    assert done.stderr == ""
    *mine, shown = done.stdout.splitlines()
    assert mine == ["mine", "mine"]  # the command's own process, and the script's
    assert "turnscope.emit.after_import" in json.loads(shown)["finders"]


def test_below_opentelemetry_instrument_both_are_loaded(script: Path) -> None:
    script.write_text(
        "import sys\nprint('opentelemetry.instrumentation.auto_instrumentation' in sys.modules,"
        " 'turnscope.proxy.install' in sys.modules)"
    )
    tool = Path(sys.executable).with_name("opentelemetry-instrument")
    done = subprocess.run(
        [str(tool), "--traces_exporter", "none", *TURNSCOPE, "run", str(script)],
        env={**os.environ, **ON},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        ([], ON, "needs the script"),
        (["-m"], ON, "needs the script"),
        (["no/such/proxy.py"], ON, "no/such/proxy.py"),
        (["no-such-command-anywhere"], ON, "no-such-command-anywhere"),
        ([str(SCRIPT)], {"TURNSCOPE_ENDPOINT": "ftp://x"}, "TURNSCOPE_ENDPOINT=ftp://x"),
        ([str(SCRIPT)], {"TURNSCOPE_ENDPOINT": "http://h:99999"}, "TURNSCOPE_ENDPOINT=http://h:99999"),
        ([str(SCRIPT)], {"TURNSCOPE_ENDPOINT": "http://h:4318"}, "OTLP/HTTP"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_code_2(
    arguments: list[str],
    environment: dict[str, str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("turnscope: ")
    assert said.count("\n") == 1
    assert words in said


def test_help_says_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "turnscope run SCRIPT" in said
    assert "TURNSCOPE_ENDPOINT" in said


def test_the_process_says_once_what_it_watches_and_where_it_sends(start: Start, sidecar: Receiver) -> None:
    with start({}) as proxy:
        proxy.prefill.reset()
        proxy.decode.reset()
        _, trace_id = proxy.send()
        proxy.attempts(trace_id)
        emitter = next(e.emitter for e in sidecar.events if getattr(e.body, "caller_trace_id", "") == trace_id)
        states = lambda: [  # noqa: E731
            e.body for e in sidecar.events if e.emitter == emitter and isinstance(e.body, EngineState)
        ]
        assert (states()[0].state, sorted(states()[0].wrapped)) == ("started", ["httpx", "starlette"])
    sidecar.wait_for(lambda: states()[-1].state == "stopping")


def test_worker_processes_of_the_server_are_watched_each_for_itself(start: Start, tmp_path: Path) -> None:
    (tmp_path / "workers_app.py").write_text(
        textwrap.dedent(
            """
            import os
            from tests.proxy.proxy_script import make_app
            app = make_app(os.environ["TEST_PREFILL"], os.environ["TEST_DECODE"])
            """
        )
    )
    port = stubs.free_port()
    command = [*TURNSCOPE, "run", "uvicorn", "workers_app:app", "--workers", "2", "--port", str(port)]
    with _uvicorn(start, command, port, tmp_path) as proxy:
        for _ in range(3):
            (attempt,) = proxy.attempts(proxy.send()[1])
            assert attempt.outcome == "ok"
        emitters = {e.emitter.id: e.emitter.pid for e in proxy.events.events if isinstance(e.body, EngineState)}
        assert len(set(emitters.values())) >= 2


@contextlib.contextmanager
def _uvicorn(start: Start, command: list[str], port: int, folder: Path) -> Iterator[Proxy]:
    from tests.proxy import conftest

    engines, sidecar, backend = start.parts  # type: ignore[attr-defined]
    environment = {
        "TURNSCOPE_ENDPOINT": f"grpc://127.0.0.1:{sidecar.port}",
        "TEST_PREFILL": engines[0].url,
        "TEST_DECODE": engines[1].url,
        "PYTHONPATH": f"{folder}:{conftest.ROOT}",
    }
    url = f"http://127.0.0.1:{port}"
    with conftest.process(command, environment, url):
        proxy = Proxy(url, *engines, sidecar, backend)
        proxy.prefill.reset()
        proxy.decode.reset()
        with proxy.client:
            yield proxy


# --- the middleware ------------------------------------------------------------------------------------
@pytest.fixture
def in_process(
    engines: tuple[stubs.Engine, stubs.Engine],
    sidecar: Receiver,
    backend: SpanReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Proxy]:
    """The script's application in this process, with one line added."""
    monkeypatch.setenv("TURNSCOPE_ENDPOINT", f"grpc://127.0.0.1:{sidecar.port}")
    for engine in engines:
        engine.reset()
    app = proxy_script.make_app(engines[0].url, engines[1].url)
    app.add_middleware(Middleware)
    with stubs.serving(app) as url:
        proxy = Proxy(url, *engines, sidecar, backend)
        with proxy.client:
            yield proxy


@pytest.mark.parametrize("stream", [False, True])
def test_the_middleware_sees_what_turnscope_run_sees(in_process: Proxy, stream: bool) -> None:
    response, trace_id = in_process.send({"conversation_id": f"middleware-{stream}", "stream": stream})
    assert response.status_code == 200
    (attempt,) = in_process.attempts(trace_id)
    assert (attempt.outcome, attempt.status_code, attempt.streamed) == ("ok", 200, stream)
    assert attempt.prefill is not None
    assert attempt.handle_out is not None
    assert attempt.first_byte_ns is not None


def test_the_middleware_reports_an_application_that_raises(in_process: Proxy) -> None:
    response, trace_id = in_process.send({"proxy_fails": True})
    assert response.status_code == 500
    (attempt,) = in_process.attempts(trace_id)
    assert (attempt.outcome, attempt.error_stage, attempt.status_code) == ("error", "proxy", 500)


def test_an_application_started_anew_is_watched_anew(in_process: Proxy, engines: tuple[Any, Any]) -> None:
    for _ in range(2):
        app = proxy_script.make_app(engines[0].url, engines[1].url)
        app.add_middleware(Middleware)
        with stubs.serving(app) as url:
            proxy = Proxy(url, *engines, in_process.events, in_process.spans)
            with proxy.client:
                _, trace_id = proxy.send()
                proxy.attempts(trace_id)


def test_the_middleware_under_turnscope_run_counts_no_turn_twice(start: Start, sidecar: Receiver) -> None:
    with start({"TEST_DECORATE": "middleware", "TEST_BACKEND": "http://127.0.0.1:9"}, "--decorate", "decorations") as p:
        p.prefill.reset()
        p.decode.reset()
        _, trace_id = p.send()
        p.attempts(trace_id)
        _, later = p.send()
        p.attempts(later)
        assert len([a for a in sidecar.bodies(Attempt) if a.caller_trace_id == trace_id]) == 1
