"""``turnscope replay FILE``: send a recording to a sidecar."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import grpc
import msgspec
import typer
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from turnscope.cli import arguments
from turnscope.cli.doctor import DEFAULT_ADDRESS, ask
from turnscope.cli.errors import Sorry
from turnscope.config import split_address
from turnscope.decode import codec, jsonlines, spans
from turnscope.decode.jsonlines import Request
from turnscope.model import plural

_TIMEOUT_S: Final = 10.0
_PATIENCE_S: Final = 30.0
"""How long an unavailable sidecar is asked again."""
_HOPELESS: Final = {
    "Connection refused": "nothing listens at {to}: start 'turnscope serve' there, or name its address with --to",
    "Failed parsing HTTP/2": "what listens at {to} speaks no gRPC: name the sidecar's --otlp-grpc with --to",
}
"""Parts of gRPC's words for what will not be another time, and ours."""
_EMITTER_ID: Final = "turnscope.emitter.id"
_REPLAYED: Final = "turnscope.emitter.replayed"


class Summary(msgspec.Struct):
    """What a recording holds, or what was sent of it."""

    lines: int = 0
    events: int = 0
    spans: int = 0
    rejected: int = 0
    message: str = ""


def requests(path: Path) -> Iterator[tuple[int, Request]]:
    """Each line's number and request, streamed. Raises ``Sorry`` for what is not a whole recording."""
    number = 0
    try:
        with path.open("rb") as raw:
            zipped = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw, "rb") if zipped else raw as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield number, _read(path, number, line)
    except EOFError:
        raise Sorry(f"{path} is cut off after line {number}: record it again, or unpack what there is") from None
    except (gzip.BadGzipFile, UnicodeError) as error:
        raise Sorry(f"{path} is damaged after line {number} ({error}): record it again") from None
    except OSError as error:
        raise Sorry(f"{path} cannot be read ({error.strerror or error}): check the path") from None


def _read(path: Path, number: int, line: bytes) -> Request:
    try:
        return jsonlines.read_any(line)
    except jsonlines.NotOtlp as error:
        if number > 1 and not line.endswith(b"\n"):
            raise Sorry(
                f"{path} is cut off in line {number}: record it again, or delete that line to send the rest"
            ) from None
        raise Sorry(f"{path} is not a recording, see line {number} ({error}): 'serve --record' writes one") from None


def check(path: Path) -> Summary:
    """Read all of it once, so that nothing is sent of a file that is not a whole recording. Raises ``Sorry``."""
    summary = Summary()
    for _, request in requests(path):
        summary.lines += 1
        if isinstance(request, ExportTraceServiceRequest):
            summary.spans += len(spans.decode(request).spans)
        else:
            summary.events += len(codec.decode(request).events)
    if not summary.events and not summary.spans:
        raise Sorry(f"{path} holds no event of turnscope's hooks and no span: 'serve --record' writes a recording")
    return summary


def send(path: Path, to: str, *, speed: float) -> Summary:
    """Send every line to the sidecar at ``to`` (``host:port``); raises ``Sorry`` when it does not take one."""
    sent = Summary()
    host = split_address(to)[0]
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        raise Sorry(f"there is no host {host}: name the sidecar's address with --to") from None
    with grpc.insecure_channel(to) as channel:
        take: dict[type[Request], Any] = {
            ExportLogsServiceRequest: LogsServiceStub(channel).Export,
            ExportTraceServiceRequest: TraceServiceStub(channel).Export,
        }
        started = time.monotonic()
        first_ns: int | None = None
        for _, request in requests(path):
            at_ns = jsonlines.observed_ns(request)
            if speed > 0 and at_ns is not None:
                first_ns = at_ns if first_ns is None else first_ns
                _sleep_until(started + (at_ns - first_ns) / 1e9 / speed)
            if isinstance(request, ExportLogsServiceRequest):
                _mark(request)
            answer = _export(take[type(request)], request, to).partial_success
            sent.lines += 1
            if isinstance(request, ExportTraceServiceRequest):
                sent.spans += sum(len(s.spans) for b in request.resource_spans for s in b.scope_spans)
                sent.rejected += answer.rejected_spans
            else:
                sent.events += sum(len(s.log_records) for b in request.resource_logs for s in b.scope_logs)
                sent.rejected += answer.rejected_log_records
            sent.message = sent.message or answer.error_message
    return sent


def _sleep_until(at_s: float) -> None:
    """By the monotonic clock; in pieces, since no system sleeps for centuries."""
    while (left := at_s - time.monotonic()) > 0:
        time.sleep(min(left, 3600.0))


def _mark(request: ExportLogsServiceRequest) -> None:
    """Say in every resource of a hook that its events are a recording's."""
    for block in request.resource_logs:
        keys = {attribute.key for attribute in block.resource.attributes}
        if _EMITTER_ID in keys and _REPLAYED not in keys:
            block.resource.attributes.add(key=_REPLAYED).value.bool_value = True


def _export(take: Any, request: Request, to: str) -> Any:
    deadline = time.monotonic() + _PATIENCE_S
    pause = 0.2
    while True:
        try:
            return take(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            code, why = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            for theirs, ours in _HOPELESS.items():
                if theirs in (why or ""):
                    raise Sorry(ours.format(to=to))
            if time.monotonic() < deadline:
                time.sleep(pause)
                pause = min(2 * pause, 5.0)
                continue
        raise Sorry(
            f"{to} does not take the recording ({code.name}: {why}): is that the OTLP port (gRPC) of a turnscope "
            "sidecar?"
        )


def _wait(address: str, seconds: float) -> None:
    """Until the sidecar has nothing left to count, for at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        status = ask(address)
        if status.exporter.lag_bytes == 0 and status.assembly.open_turns == 0:
            return
        if time.monotonic() >= deadline:
            waiting = plural(status.assembly.open_turns, "turn is", "turns are")
            typer.echo(f"{waiting} not counted yet after {seconds:g} s", err=True)
            return
        time.sleep(0.5)


def replay(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The recording, as 'turnscope serve --record FILE' writes one; may be gzipped."
        ),
    ],
    to: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the sidecar takes OTLP over gRPC: its --otlp-grpc.")
    ] = "127.0.0.1:4317",
    speed: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="1: as fast as it was recorded, 2: twice as fast; 0: as fast as the sidecar takes it.",
        ),
    ] = "0",
    wait: Annotated[
        str,
        typer.Option(metavar="SECONDS", help="Then wait until all of it is counted, for at most so many seconds."),
    ] = "0",
    address: Annotated[
        str, typer.Option(metavar="URL", help="Where the sidecar serves /metrics, for --wait: its --http.")
    ] = DEFAULT_ADDRESS,
) -> None:
    """Send a recording to a running sidecar, as if its engines and proxy were sending it now.

    Start one with 'turnscope serve' first; 'turnscope demo' starts one of its own. Times of events stay as recorded, so
    turns are stored where they happened; what the sidecar waits for runs from their arrival: a turn is counted 5 s
    after its last part, an incomplete one after a minute. Sending the same recording again changes nothing: its events
    are known. The file is checked first, so that all of it is sent or nothing.
    """
    recording, receiver = arguments.file("FILE", file), arguments.otlp_address("--to", to)
    factor, seconds = arguments.number("--speed", speed, 0, 1e6), arguments.number("--wait", wait, 0, 1e6)
    arguments.http_address("--address", address)
    check(recording)
    sent = send(recording, receiver, speed=factor)
    spans_too = f" and {plural(sent.spans, 'span')}" if sent.spans else ""
    typer.echo(
        f"sent {plural(sent.events, 'event')}{spans_too} in {plural(sent.lines, 'batch', 'batches')} to {receiver}"
    )
    if sent.rejected:
        typer.echo(f"{plural(sent.rejected, 'record was', 'records were')} rejected: {sent.message}", err=True)
    if seconds:
        _wait(address, seconds)
