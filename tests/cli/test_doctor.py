"""``turnscope doctor`` asks a sidecar over HTTP and says what is wrong."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from tests.measures.healthy import healthy_status
from turnscope.cli.doctor import MAX_ENGINES, ask, doctor
from turnscope.cli.errors import Sorry
from turnscope.model import FabricStatus, FabricWindow, SystemStatus


@contextmanager
def sidecar(answer: bytes, code: int = 200) -> Iterator[str]:
    """A server on a free port that gives ``answer`` to ``GET /status``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, status = (answer, code) if self.path == "/status" else (b"", 404)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests' output stays clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(doctor)
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout


def _bytes(status: SystemStatus) -> bytes:
    return msgspec.json.encode(status)


def test_a_healthy_system_ends_with_exit_code_0() -> None:
    with sidecar(_bytes(healthy_status())) as address:
        code, out = _run("--address", address)
    assert code == 0
    assert "2 engines in 2 processes, 1 proxy process, 20 client requests" in out
    assert "Nothing found" in out


def test_a_finding_is_shown_with_its_fix_and_ends_with_exit_code_1() -> None:
    status = healthy_status()
    status.assembly.engines[1].streamed_handles = 0
    with sidecar(_bytes(status)) as address:
        code, out = _run("--address", address + "/")
    text = " ".join(out.split())
    assert code == 1
    assert "ERROR decode-0 Reverse transfer is enabled, and of 20 streamed answers none carried a handle" in text
    assert "fix: vLLM up to 0.32 leaves kv_transfer_params out of streamed answers" in text
    assert text.endswith("1 error.")


def test_what_is_the_same_at_several_engines_is_said_once_with_their_names() -> None:
    status = healthy_status()
    prefill = status.assembly.engines[0]
    for name in ("prefill-1", "prefill-2"):
        status.assembly.engines.append(msgspec.structs.replace(prefill, name=name))
    for engine in status.assembly.engines:
        engine.engine = msgspec.structs.replace(engine.engine, connector="LMCacheConnectorV1")
    with sidecar(_bytes(status)) as address:
        text = " ".join(_run("--address", address)[1].split())
        answer = json.loads(_run("--address", address, "--json")[1])
    assert text.count("Its connector is LMCacheConnectorV1") == 1
    assert "each of 4 engines: prefill-0, decode-0, prefill-1, prefill-2" in text
    # Scripts get one for each.
    assert len([f for f in answer["findings"] if f["check"] == "no_connector"]) == 4


@pytest.mark.parametrize("columns", ["20", "80"])
def test_no_engines_name_is_cut_in_a_narrow_window(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    status = healthy_status()
    names = ["prefill-of-the-customer-support-cluster-in-europe-west-1-blue", "d" * 100]
    for engine, source, name in zip(status.assembly.engines, status.assembly.emitters, names, strict=False):
        engine.name = source.engine = name
    status.assembly.emitters[0].silent_s = 99.0
    with sidecar(_bytes(status)) as address:
        code, out = _run("--address", address)
    assert code == 1
    lines = out.splitlines()
    assert [name for name in names if name not in lines] == []
    assert names[0] in "".join(out.split())
    assert "…" not in out


def test_of_very_many_engines_the_first_are_listed_and_the_rest_counted() -> None:
    status = healthy_status()
    status.assembly.engines *= 30
    with sidecar(_bytes(status)) as address:
        _, out = _run("--address", address)
    assert out.count("vLLM 0.32.0") == MAX_ENGINES
    assert "... and 20 more: --json lists them all." in out


def test_a_replayed_proxy_that_has_ended_since_was_heard_all_the_same() -> None:
    status = healthy_status()
    proxy = status.assembly.emitters[2]
    proxy.emitter, proxy.state = msgspec.structs.replace(proxy.emitter, replayed=True), "stopping"
    with sidecar(_bytes(status)) as address:
        assert "1 proxy process, 20 client requests" in _run("--address", address)[1]


def test_each_nodes_cards_are_shown_with_what_carried_its_last_transfers() -> None:
    status = healthy_status()
    window = FabricWindow(
        transport="efa",
        inferred_from="EFA counters moved by as much: NIXL 5 B",
        ended_s=3.0,
        seconds=60.0,
        transfers=1,
        across_bytes=5,
        within_bytes=0,
    )
    status.assembly.fabric = [
        FabricStatus(node="a", silent_s=1.0, efa_devices=1, ethernet_devices=2, windows=[window]),
        FabricStatus(node="b", silent_s=1.0, efa_devices=0, ethernet_devices=1),
    ]
    with sidecar(_bytes(status)) as address:
        code, out = _run("--address", address)
    text = " ".join(out.split())
    assert code == 0
    assert (
        "Cards of a: 1 EFA port, 2 Ethernet interfaces; transfers: efa (EFA counters moved by as much: NIXL 5 B)."
        in text
    )
    assert "Cards of b: 0 EFA ports, 1 Ethernet interface; transfers: none seen yet." in text


def test_notes_alone_are_no_failure() -> None:
    status = healthy_status()
    status.exporter.last_scrape_s = 500.0
    with sidecar(_bytes(status)) as address:
        code, out = _run("--address", address)
    assert code == 0
    assert "Last scraped 500 s ago" in out


def test_json_carries_findings_and_status() -> None:
    status = healthy_status()
    status.assembly.stuck_turns = 3
    with sidecar(_bytes(status)) as address:
        code, out = _run("--address", address, "--json")
    answer = json.loads(out)
    assert code == 1
    assert [(f["severity"], f["check"]) for f in answer["findings"]] == [("error", "stuck")]
    assert answer["status"]["assembly"]["stuck_turns"] == 3


def test_text_from_a_hook_is_shown_as_it_is_and_not_as_markup() -> None:
    status = healthy_status()
    status.assembly.emitters[0].state, status.assembly.emitters[0].message = "switched_off", "[bold]list index[/nope]"
    status.assembly.engines[1].name = "[/d]"
    with sidecar(_bytes(status)) as address:
        code, out = _run("--address", address)
    assert code == 1
    assert "[bold]list index[/nope]" in out
    assert "[/d]" in out


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "127.0.0.1:9464", "http://[", "ftp://x"])
def test_no_sidecar_is_one_sentence_that_says_what_to_do(address: str) -> None:
    with pytest.raises(Sorry) as error:
        ask(address)
    assert address in str(error.value)
    assert "\n" not in str(error.value)
    assert "turnscope serve" in str(error.value) or "write it like http://127.0.0.1:9464" in str(error.value)


@pytest.mark.parametrize(("answer", "code"), [(b"nope", 200), (b"{}", 200), (b"", 404), (b"", 503)])
def test_something_else_on_the_port_is_named(answer: bytes, code: int) -> None:
    with sidecar(answer, code) as address, pytest.raises(Sorry, match="turnscope sidecar"):
        ask(address)


def test_the_command_ends_with_exit_code_2_when_no_sidecar_answers() -> None:
    command = [Path(sys.executable).with_name("turnscope"), "doctor", "--address", "http://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_newer_sidecars_extra_fields_are_no_trouble() -> None:
    answer = json.loads(_bytes(healthy_status()))
    answer["assembly"]["from_the_future"] = 1
    with sidecar(json.dumps(answer).encode()) as address:
        assert _run("--address", address)[0] == 0
