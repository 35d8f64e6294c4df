"""Trace backends to send to: over gRPC, and over HTTP."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Backend:
    """What arrived, and what to answer next: ``refusals`` are used up first."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[int | grpc.StatusCode] = []
        self.answer = ExportTraceServiceResponse()
        self.arrived = threading.Condition()
        self.endpoint = ""

    def take(self, body: ExportTraceServiceRequest, headers: dict[str, str]) -> int | grpc.StatusCode | None:
        """Note a request; how to refuse it, or None."""
        with self.arrived:
            self.headers.append(headers)
            if self.refusals:
                return self.refusals.pop(0)
            self.requests.append(body)
            self.arrived.notify_all()
            return None

    def wait(self, traces: int) -> list[str]:
        """The ids of the traces that arrived, once there are that many."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.traces()) >= traces, 10), self.traces()
            return self.traces()

    def traces(self) -> list[str]:
        return [
            span.trace_id.hex()
            for request in self.requests
            for block in request.resource_spans
            for scope in block.scope_spans
            for span in scope.spans
            if not span.parent_span_id
        ]


@contextmanager
def grpc_backend(port: int = 0) -> Iterator[Backend]:
    """On a free port unless one is given."""
    backend = Backend()

    class Service(TraceServiceServicer):
        def Export(
            self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
        ) -> ExportTraceServiceResponse:
            code = backend.take(request, {str(k): str(v) for k, v in context.invocation_metadata()})
            if isinstance(code, grpc.StatusCode):
                context.abort(code, "says the backend")
            return backend.answer

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Service(), server)
    backend.endpoint = f"http://127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    yield backend
    server.stop(0).wait()


@contextmanager
def http_backend(port: int = 0) -> Iterator[Backend]:
    """On a free port unless one is given, at the usual path."""
    backend = Backend()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            code = backend.take(ExportTraceServiceRequest.FromString(body), dict(self.headers.items()))
            answer = backend.answer.SerializeToString() if code is None else b"says the backend"
            self.send_response(code if isinstance(code, int) else 200)
            self.send_header("Content-Type", "application/x-protobuf" if code is None else "text/plain")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Tests' output stays clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    backend.endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
    yield backend
    server.shutdown()
    server.server_close()
    thread.join()
