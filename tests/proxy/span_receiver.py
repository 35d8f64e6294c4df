"""A real OTLP/gRPC trace receiver on a free loopback port."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

SERVER, CLIENT = 2, 3


class SpanReceiver(TraceServiceServicer):  # type: ignore[misc]
    """Keeps the spans it got."""

    def __init__(self) -> None:
        self.port = 0
        self.spans: list[Any] = []

    def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:
        del context
        self.spans += [s for block in request.resource_spans for scope in block.scope_spans for s in scope.spans]
        return ExportTraceServiceResponse()

    def of(self, trace_id: str, kind: int | None = None) -> list[Any]:
        """The spans of one trace, by their start."""
        found = [s for s in self.spans if s.trace_id.hex() == trace_id and kind in (None, s.kind)]
        return sorted(found, key=lambda s: s.start_time_unix_nano)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 20) -> None:
        """Return when ``condition()`` holds; AssertionError when it never does."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"never came; got {[s.name for s in self.spans]}"
            time.sleep(0.02)


def attributes(span: Any) -> dict[str, Any]:
    """A span's attributes as plain values."""
    found: dict[str, Any] = {}
    for item in span.attributes:
        which = item.value.WhichOneof("value")
        value = getattr(item.value, which)
        found[item.key] = [v.string_value for v in value.values] if which == "array_value" else value
    return found


@contextlib.contextmanager
def receiving_spans() -> Iterator[SpanReceiver]:
    """A running receiver."""
    receiver = SpanReceiver()
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(receiver, server)
    receiver.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield receiver
    finally:
        server.stop(0).wait()
