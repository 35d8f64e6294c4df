"""``turnscope serve``: what it keeps when it ends, and what it says when it cannot begin."""

from __future__ import annotations

import shutil
import signal
import socket
import time
from pathlib import Path

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from typer.testing import CliRunner

from tests.builders import Pair
from tests.cli.served import Served, free_port, run, served
from turnscope.cli.doctor import ask
from turnscope.cli.errors import Sorry
from turnscope.cli.main import build
from turnscope.cli.options import load
from turnscope.cli.sidecar import Sidecar
from turnscope.config import Settings
from turnscope.decode import codec, jsonlines
from turnscope.journal.journal import Journal
from turnscope.measures.findings import findings
from turnscope.store import StoreReader


def stored_turns(sidecar: Served) -> int:
    reader = StoreReader(str(sidecar.data / "store"))
    try:
        return reader.totals().turns
    finally:
        reader.close()


def test_told_to_stop_it_has_everything_acknowledged_in_its_store(tmp_path: Path) -> None:
    pair = Pair()
    recording = tmp_path / "run.jsonl"
    with served(tmp_path, "--grace-seconds", "0", "--record", str(recording)) as sidecar:
        batches = [pair.start(), *(pair.turn(str(n), at_ms=1000 * n) for n in range(5))]
        for events in batches:
            sidecar.send(events)
        assert sidecar.end(signal.SIGTERM) == 0
        assert "Traceback" not in sidecar.log.read_text()
        recorded = [
            e for line in recording.read_bytes().splitlines() for e in codec.decode(jsonlines.read(line)).events
        ]
        assert recorded == [e for events in batches for e in events]
    assert stored_turns(sidecar) == 5


def test_killed_it_goes_on_where_it_was(tmp_path: Path) -> None:
    pair = Pair()
    with served(tmp_path, "--grace-seconds", "0.2") as sidecar:
        sidecar.send(pair.start())
        first, second = pair.turn("1", at_ms=1000), pair.turn("2", at_ms=2000)
        sidecar.send(first)
        sidecar.settled(1)
        sidecar.send(second[:4])
        assert sidecar.end(signal.SIGKILL) == -signal.SIGKILL
        sidecar.start()
        assert sidecar.counts()["turnscope_turns"] == 0
        sidecar.send(first)
        sidecar.send(second)
        sidecar.settled(1)
        assert sidecar.counts()["turnscope_prompt_tokens"] == 1000
        assert sidecar.end(signal.SIGTERM) == 0
    assert stored_turns(sidecar) == 2


def test_a_port_in_use_is_one_sentence_and_code_2(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(
            "serve",
            "--http",
            address,
            "--otlp-grpc",
            "127.0.0.1:0",
            "--otlp-http",
            "127.0.0.1:0",
            "--data-dir",
            str(tmp_path / "data"),
        )
    assert done.returncode == 2
    assert done.stderr == (
        f"turnscope: cannot listen on {address} (Address already in use): "
        "stop what uses it or choose another address with --http\n"
    )
    assert not (tmp_path / "data").exists()


def sorry(tmp_path: Path, **given: object) -> str:
    """What a person is told when the sidecar cannot be made with these settings."""
    settings = {
        "http": "127.0.0.1:0",
        "otlp_grpc": "127.0.0.1:0",
        "otlp_http": "127.0.0.1:0",
        "data_dir": tmp_path / "data",
        **given,
    }
    with pytest.raises(Sorry) as caught:
        Sidecar(load(settings))
    return str(caught.value)


def test_a_taken_otlp_port_is_named_with_its_option(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = sorry(tmp_path, otlp_grpc=address)
    assert told == (
        f"cannot listen on {address} (Address already in use): stop what uses it or choose another address with "
        "--otlp-grpc"
    )
    assert capfd.readouterr().err == "", "the sentence is all: gRPC would add lines of its own"


@pytest.mark.parametrize("option", ["http", "otlp_grpc", "otlp_http"])
@pytest.mark.parametrize(
    ("address", "why"),
    [("999.1.1.1:9464", "there is no host 999.1.1.1"), ("192.0.2.1:9464", "Cannot assign requested address")],
)
def test_an_address_of_another_machine_is_no_place_to_listen(
    tmp_path: Path, option: str, address: str, why: str
) -> None:
    told = sorry(tmp_path, **{option: address})
    assert told.startswith(f"cannot listen on {address} ({why}): use 127.0.0.1, 0.0.0.0 or another")
    assert told.endswith(f"with --{option.replace('_', '-')}")
    assert not (tmp_path / "data").exists()


def test_what_cannot_be_had_is_named_and_nothing_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    http = f"127.0.0.1:{free_port()}"
    cases: list[tuple[dict[str, object], str]] = [
        ({"data_dir": tmp_path / "file" / "x"}, "cannot be written (Not a directory): check that path or choose"),
        ({"store": str(tmp_path / "file" / "x")}, "(--store)"),
        ({"record": tmp_path / "gone" / "r.jsonl"}, "choose another file with --record"),
        ({"data_dir": tmp_path / ("x" * 300)}, "cannot be written (File name too long): check that path or choose"),
        ({"export_otlp": "ftp://h"}, "--export-otlp: 'ftp://h' is not an OTLP endpoint"),
        ({"store_writer": "a/b"}, "--store-writer: 'a/b' is no name"),
    ]
    for given, part in cases:
        assert part in sorry(tmp_path, http=http, **given)
    free_again = Sidecar(
        load({"http": http, "otlp_grpc": "127.0.0.1:0", "otlp_http": "127.0.0.1:0", "data_dir": tmp_path / "data"})
    )
    free_again.start()
    free_again.close()


def test_a_journal_that_can_take_no_more_is_told_to_senders_and_to_whoever_asks(tmp_path: Path) -> None:
    settings = {
        "http": "127.0.0.1:0",
        "otlp_grpc": "127.0.0.1:0",
        "otlp_http": "127.0.0.1:0",
        "data_dir": tmp_path / "data",
    }
    sidecar = Sidecar(load({**settings, "journal_max_bytes": 2**20}))
    sidecar.start()
    url = f"http://127.0.0.1:{sidecar.http_port}"
    pair = Pair()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{sidecar.otlp_port}") as channel:
            stub = LogsServiceStub(channel)

            def fill() -> None:
                for n in range(10_000):
                    stub.Export(codec.encode(pair.turn(str(n), at_ms=n), observed_ns=1), timeout=30)

            with pytest.raises(grpc.RpcError, match="reached its limit of 1048576 bytes") as caught:
                fill()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        health = httpx.get(f"{url}/healthz", trust_env=False)
        assert health.status_code == 503
        assert "has reached its limit of 1048576 bytes" in health.text
        assert sidecar.status().exporter.journal_error == health.text.strip()
        page = httpx.get(f"{url}/metrics", trust_env=False).text
        assert "turnscope_exporter_journal_failed 1.0" in page
        assert 'turnscope_exporter_requests_refused_total{reason="unavailable",signal="logs"} 1.0' in page
    finally:
        sidecar.close()


def test_damage_in_the_journal_is_told_to_whoever_asks(tmp_path: Path) -> None:
    settings = {
        "http": "127.0.0.1:0",
        "otlp_grpc": "127.0.0.1:0",
        "otlp_http": "127.0.0.1:0",
        "data_dir": tmp_path / "data",
    }
    folder, pair = tmp_path / "data" / "journal", Pair()
    before = Journal(folder, count=lambda *_: None)
    for n in range(2):
        before.append_events(pair.turn(str(n), at_ms=n))
    before.close()
    (segment,) = folder.glob("*.journal")
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    sidecar = Sidecar(load(settings))
    sidecar.start()
    url = f"http://127.0.0.1:{sidecar.http_port}"
    try:
        with httpx.Client(trust_env=False, timeout=30) as client:
            while client.get(f"{url}/readyz").status_code != 200:
                pass
            (kept,) = folder.glob("*.unreadable")
            size = kept.stat().st_size
            told = (
                f"{size:,} bytes of the journal in {folder} could not be read and are kept there (*.unreadable, 1 file)"
            )
            health = client.get(f"{url}/healthz")
            assert (health.status_code, health.text) == (200, told + "\n")
            assert f"turnscope_exporter_journal_unreadable_bytes {float(size)}" in client.get(f"{url}/metrics").text
            assert ask(url).exporter.journal_damage == told
            assert "journal_damaged" in {finding.check for finding in findings(ask(url))}
            kept.rename(tmp_path / "kept")
            assert client.get(f"{url}/healthz").text == "ok\n"
            assert "turnscope_exporter_journal_unreadable_bytes 0.0" in client.get(f"{url}/metrics").text
    finally:
        sidecar.close()


def test_a_journal_that_somebody_removes_is_told_until_its_folder_is_back(tmp_path: Path) -> None:
    pair, folder = Pair(), tmp_path / "data" / "journal"
    with served(tmp_path, "--grace-seconds", "0.1") as sidecar:
        sidecar.send([*pair.start(), *pair.turn("1")])
        sidecar.settled(1)
        shutil.rmtree(folder)
        for _ in range(2):
            with pytest.raises(grpc.RpcError) as caught:
                sidecar.send(pair.turn("2", at_ms=2000))
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        health = httpx.get(f"{sidecar.url}/healthz", trust_env=False)
        assert (health.status_code, health.text) == (
            503,
            f"the journal in {folder} cannot be written (No such file or directory): check that path or choose another "
            "--data-dir\n",
        )
        page = httpx.get(f"{sidecar.url}/metrics", trust_env=False).text
        assert "turnscope_exporter_journal_failed 1.0" in page
        folder.mkdir()
        deadline = time.monotonic() + 60
        while not sidecar.ready():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        sidecar.send(pair.turn("3", at_ms=4000))
        sidecar.settled(2)
        assert sidecar.end(signal.SIGTERM) == 0
        assert "Traceback" not in sidecar.log.read_text()


def test_two_sidecars_do_not_share_a_journal(tmp_path: Path) -> None:
    first = Sidecar(
        load(
            {
                "http": "127.0.0.1:0",
                "otlp_grpc": "127.0.0.1:0",
                "otlp_http": "127.0.0.1:0",
                "data_dir": tmp_path / "data",
            }
        )
    )
    first.start()
    assert "in use by another sidecar" in sorry(tmp_path)
    first.close()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("http", "9464", "--http: '9464' is not an address"),
        ("otlp_grpc", "localhost:port", "--otlp-grpc: 'localhost:port' is not an address"),
        ("engine_names", "p", "--engine-names: 'p' is not of the form ENGINE_ID=NAME"),
        ("export_otlp_headers", "key", "--export-otlp-headers: 'key' is not of the form NAME=VALUE"),
        ("trace_queue", "many", "--trace-queue: 'many' is not a whole number; see 'turnscope serve --help'"),
        ("trace_queue", "1.5", "--trace-queue: '1.5' is not a whole number"),
        ("trace_queue", "0", "--trace-queue: '0' is not possible, it must be at least 1"),
        ("grace_seconds", "soon", "--grace-seconds: 'soon' is not a number"),
        ("grace_seconds", "nan", "--grace-seconds: 'nan' is not possible, it must be at most 3600"),
        ("stuck_seconds", "0", "--stuck-seconds: '0' is not possible, it must be more than 0"),
        ("max_message_bytes", str(2**30), "--max-message-bytes: '1073741824' is not possible, it must be at most"),
        ("http", "127.0.0.1:70000", "--http: '127.0.0.1:70000' is not an address"),
        ("http", "::1:9464", "--http: '::1:9464' is not an address"),
        ("otlp_grpc", "unix:/tmp/x:1", "--otlp-grpc: 'unix:/tmp/x:1' is not an address"),
        ("otlp_grpc", "127.0.0.1:²", "--otlp-grpc: '127.0.0.1:²' is not an address"),
        ("export_otlp_headers", "a b=c", "--export-otlp-headers: 'a b' is no header"),
        ("export_otlp_headers", "a=\nb\nc", "--export-otlp-headers: 'a' is no header"),
        ("log_level", "loud", "--log-level: 'loud' is not one of debug, info, warning, error"),
    ],
)
def test_a_setting_that_cannot_be_is_named(name: str, value: str, told: str) -> None:
    with pytest.raises(Sorry) as caught:
        load({name: value})
    assert str(caught.value).startswith(told)


def test_settings_come_from_the_environment_and_options_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNSCOPE_HTTP", "127.0.0.1:1")
    monkeypatch.setenv("TURNSCOPE_ENGINE_NAMES", "p=east, d=west")
    assert load({}).http == "127.0.0.1:1"
    assert load({"http": "127.0.0.1:2"}).http == "127.0.0.1:2"
    assert load({}).engine_names == {"p": "east", "d": "west"}
    monkeypatch.setenv("TURNSCOPE_STORE", "")
    monkeypatch.setenv("TURNSCOPE_HTTP", "")
    assert (load({}).store, load({}).http) == (None, "127.0.0.1:9464")
    monkeypatch.setenv("TURNSCOPE_TRACE_QUEUE", "many")
    with pytest.raises(Sorry, match="TURNSCOPE_TRACE_QUEUE: "):
        load({})


@pytest.mark.parametrize(
    "endpoint",
    ["nonsense", "nonsense/path", "http://", "://", "http://h:0", "http://h h", "grpc://h:4317/x", "http://h:4318?q=1"],
)
def test_what_is_no_trace_backends_address_is_refused_before_anything_is_written(tmp_path: Path, endpoint: str) -> None:
    told = sorry(tmp_path, export_otlp=endpoint)
    assert told.startswith(f"--export-otlp: '{endpoint}' ")
    assert told.endswith("write it like http://127.0.0.1:4317")
    assert not (tmp_path / "data").exists()


def test_a_password_in_the_trace_backends_address_is_not_told_and_not_dropped(tmp_path: Path) -> None:
    told = sorry(tmp_path, export_otlp="http://me:secret@h:4318")
    assert "send that as a header, with --export-otlp-headers" in told
    assert "secret" not in told


def test_help_says_what_kind_of_value_each_option_takes() -> None:
    text = CliRunner().invoke(build("serve"), ["serve", "--help"]).stdout
    assert "TEXT" not in text
    for shown in ("--http HOST:PORT", "--data-dir FOLDER", "--grace-seconds SECONDS", "--record FILE"):
        assert shown in text


def test_help_names_every_setting_with_its_variable() -> None:
    flat = "".join(CliRunner().invoke(build("serve"), ["serve", "--help"]).stdout.split())
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in flat
        assert f"(env:TURNSCOPE_{name.upper()})" in flat
