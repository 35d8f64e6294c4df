"""``turnscope replay``: recordings go to a sidecar whole, or not at all."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from tests.builders import Pair
from tests.cli.served import free_port
from tests.decode.spans import otlp_span, request
from turnscope.cli import replay
from turnscope.cli.errors import Sorry
from turnscope.cli.main import build, main
from turnscope.cli.options import load
from turnscope.cli.sidecar import Sidecar
from turnscope.decode import jsonlines, spans
from turnscope.model import AgentSpan, Event
from turnscope.receivers.errors import Invalid, Unavailable
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.otlp_grpc import OtlpGrpc

SECOND = 10**9


class Listener:
    """An OTLP receiver that keeps events; ``refusals`` are raised first."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.refusals: list[Exception] = []
        self.spans: list[AgentSpan] = []
        logs = LogsIntake(self.accept, lambda *_: None, max_bytes=2**22)
        traces = SpansIntake(self.spans.extend, lambda *_: None, max_bytes=2**22)
        self.server = OtlpGrpc(logs, traces, "127.0.0.1:0", max_bytes=2**22)
        self.address = f"127.0.0.1:{self.server.port}"

    def accept(self, events: list[Event]) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.events += events


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Running."""
    running = Listener()
    running.server.start()
    yield running
    running.server.stop(0)


def recorded() -> tuple[list[Event], bytes]:
    """Three turns recorded a second apart, and the lines."""
    pair = Pair()
    batches = [pair.start(), *(pair.turn(str(n), at_ms=1000 * n) for n in range(1, 4))]
    lines = b"".join(jsonlines.write(events, (100 + n) * SECOND) for n, events in enumerate(batches))
    return [e for events in batches for e in events], lines


def replayed(events: list[Event]) -> list[Event]:
    """As they arrive: marked as a recording's."""
    for event in events:
        event.emitter = msgspec.structs.replace(event.emitter, replayed=True)
    return events


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Those three turns in a file."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(recorded()[1])
    return path


@pytest.mark.parametrize("zipped", [False, True])
def test_every_event_arrives_as_it_was_recorded(listener: Listener, tmp_path: Path, zipped: bool) -> None:
    events, lines = recorded()
    path = tmp_path / "named.anyhow"
    path.write_bytes(gzip.compress(lines) if zipped else lines)
    assert replay.check(path).events == len(events)
    sent = replay.send(path, listener.address, speed=0)
    assert listener.events == replayed(events)
    assert (sent.lines, sent.events, sent.rejected) == (4, len(events), 0)


def test_at_a_given_speed_batches_keep_their_distances(listener: Listener, recording: Path) -> None:
    started = time.monotonic()
    replay.send(recording, listener.address, speed=10)
    assert time.monotonic() - started >= 0.3
    assert listener.events == replayed(recorded()[0])


def test_a_sidecar_that_is_busy_gets_it_when_it_can(listener: Listener, recording: Path) -> None:
    listener.refusals = [Unavailable("disk full")]
    replay.send(recording, listener.address, speed=0)
    assert listener.events == replayed(recorded()[0])


def test_records_that_the_sidecar_rejects_are_told(listener: Listener, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(recorded()[1] + recorded()[1].splitlines(keepends=True)[0].replace(b'"turnscope.mono_ns"', b'"x"'))
    result = CliRunner().invoke(build("replay"), ["replay", str(path), "--to", listener.address])
    assert result.exit_code == 0
    assert (
        "5 records were rejected: turnscope.engine: turnscope.seq and turnscope.mono_ns are required" in result.stderr
    )


def sorry(path: Path) -> str:
    with pytest.raises(Sorry) as caught:
        replay.check(path)
    return str(caught.value)


def test_a_truncated_recording_is_refused_before_anything_is_sent(
    listener: Listener, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording.write_bytes(recording.read_bytes()[:-20])
    assert main(["replay", str(recording), "--to", listener.address]) == 2
    assert capsys.readouterr().err == (
        f"turnscope: {recording} is cut off in line 4: record it again, or delete that line to send the rest\n"
    )
    assert listener.events == []


def test_a_truncated_zipped_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(gzip.compress(recorded()[1])[:-30])
    assert "is cut off" in sorry(path)
    path.write_bytes(gzip.compress(recorded()[1])[:-4] + b"abcd")
    assert "is damaged" in sorry(path)


def test_a_recording_without_a_last_newline_is_whole(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes().rstrip())
    assert replay.check(recording).lines == 4


def test_what_is_no_recording_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, told in (
        (b"", "holds no event of turnscope's hooks"),
        (b'{"resourceSpans": []}\n', "holds no event of turnscope's hooks"),
        (b"hello\n", "is not a recording, see line 1 (not JSON"),
        (b"\x00\x01\xff", "is not a recording, see line 1 (not JSON"),
        (recorded()[1] + b"[]\n", "is not a recording, see line 5 (JSON, but not OTLP"),
    ):
        path.write_bytes(content)
        assert told in sorry(path)
    assert "cannot be read (No such file or directory)" in sorry(tmp_path / "gone")
    assert "cannot be read (Is a directory)" in sorry(tmp_path)


def test_an_endpoint_where_nothing_listens_is_named(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    assert main(["replay", str(recording), "--to", address]) == 2
    assert capsys.readouterr().err == (
        f"turnscope: nothing listens at {address}: start 'turnscope serve' there, or name its address with --to\n"
    )


def test_a_port_of_another_protocol_is_named_at_once(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as metrics:
        threading.Thread(target=metrics.serve_forever, daemon=True).start()
        address, began = f"127.0.0.1:{metrics.server_port}", time.monotonic()
        assert main(["replay", str(recording), "--to", address]) == 2
        metrics.shutdown()
    assert time.monotonic() - began < replay._PATIENCE_S / 2
    assert (
        f"turnscope: what listens at {address} speaks no gRPC: name the sidecar's --otlp-grpc with --to\n"
        in capsys.readouterr().err
    )


def test_a_sidecar_that_refuses_for_good_is_named(listener: Listener, recording: Path) -> None:
    listener.refusals = [Invalid("too strange")]
    with pytest.raises(Sorry, match=r"does not take the recording \(INVALID_ARGUMENT: too strange\)"):
        replay.send(recording, listener.address, speed=0)


def test_with_wait_everything_is_counted_when_it_returns_and_again_changes_nothing(
    tmp_path: Path, recording: Path
) -> None:
    sidecar = Sidecar(
        load(
            {
                "http": "127.0.0.1:0",
                "otlp_grpc": "127.0.0.1:0",
                "otlp_http": "127.0.0.1:0",
                "data_dir": tmp_path / "data",
                "grace_seconds": "0.2",
            }
        )
    )
    sidecar.start()
    where = ["--to", f"127.0.0.1:{sidecar.otlp_port}", "--address", f"http://127.0.0.1:{sidecar.http_port}"]
    try:
        for _ in range(2):
            result = CliRunner().invoke(build("replay"), ["replay", str(recording), *where, "--wait", "60"])
            assert (result.exit_code, result.stderr) == (0, "")
            assert sidecar.metrics.total("turnscope_turns_total") == 3
    finally:
        sidecar.close()


@pytest.mark.parametrize("scheme", ["grpc://", "http://", ""])
def test_the_target_may_be_written_with_a_scheme(
    listener: Listener, recording: Path, scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(recording), "--to", f"{scheme}{listener.address}"]) == 0
    assert capsys.readouterr().out == f"sent {len(listener.events)} events in 4 batches to {listener.address}\n"


def test_a_host_that_does_not_exist_is_named_at_once(recording: Path) -> None:
    with pytest.raises(Sorry, match=r"there is no host no\.such\.host\.invalid: name the sidecar's address with --to"):
        replay.send(recording, "no.such.host.invalid:4317", speed=0)


@pytest.mark.parametrize("depth", [150, 100_000])
def test_values_that_lie_too_deep_in_each_other_are_one_short_sentence(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "x"
    deep = '{"arrayValue":{"values":[' * depth + "]}}" * depth
    path.write_text('{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":' + deep + "}]}]}]}\n")
    assert len(sorry(path).removeprefix(str(path))) < 200
    assert "too deep" in sorry(path)


def test_recorded_spans_are_sent_again_as_they_were_read(listener: Listener, tmp_path: Path) -> None:
    told = spans.decode(request(otlp_span(1, {"gen_ai.operation.name": "chat"}), otlp_span(2, parent=1))).spans
    path = tmp_path / "spans.jsonl"
    path.write_bytes(jsonlines.write_spans(told))
    assert replay.check(path) == replay.Summary(lines=1, spans=2)
    sent = replay.send(path, listener.address, speed=0)
    assert (sent.spans, sent.rejected) == (2, 0)
    assert listener.spans == told
