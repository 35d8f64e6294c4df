"""An OTLP/gRPC receiver that takes everything, whatever the service, and hands the bodies on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class _Sink(grpc.GenericRpcHandler):
    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        def answer(body: bytes, _context: grpc.ServicerContext) -> bytes:
            self._take(body)
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@contextlib.contextmanager
def sink(take: Callable[[bytes], None] = lambda _: None) -> Iterator[str]:
    """Its address. ``take`` gets each request's body, before it is acknowledged with an empty message."""
    server = grpc.server(ThreadPoolExecutor(2), handlers=[_Sink(take)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(1).wait()


@contextlib.contextmanager
def trace_file(path: Path) -> Iterator[str]:
    """A trace backend that keeps what it gets in a file, a request a line, as OTLP JSON (ids in base64)."""
    with path.open("a") as out, sink(lambda body: _write(out.write, body)) as endpoint:
        yield endpoint


def _write(write: Callable[[str], object], body: bytes) -> None:
    write(MessageToJson(ExportTraceServiceRequest.FromString(body), indent=None) + "\n")
