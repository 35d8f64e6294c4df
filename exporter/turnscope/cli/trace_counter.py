"""A small trace backend for ``turnscope demo --check``: it counts the traces it is sent and forgets them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

_SERVICE: Final = "opentelemetry.proto.collector.trace.v1.TraceService"


class TraceCounter:
    """OTLP over gRPC on a free port of this machine; ``with`` starts and stops it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: dict[bytes, int] = {}
        self._server = grpc.server(ThreadPoolExecutor(2, thread_name_prefix="turnscope-count"))
        handler: Any = grpc.unary_unary_rpc_method_handler(
            self._export,
            request_deserializer=ExportTraceServiceRequest.FromString,
            response_serializer=ExportTraceServiceResponse.SerializeToString,
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {"Export": handler}),))
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> TraceCounter:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(1).wait()

    @property
    def traces(self) -> int:
        """How many different traces have come."""
        with self._lock:
            return len(self._spans)

    @property
    def spans(self) -> int:
        """How many spans have come in them."""
        with self._lock:
            return sum(self._spans.values())

    def _export(self, request: ExportTraceServiceRequest, _: grpc.ServicerContext) -> ExportTraceServiceResponse:
        with self._lock:
            for block in request.resource_spans:
                for scope in block.scope_spans:
                    for span in scope.spans:
                        self._spans[span.trace_id] = self._spans.get(span.trace_id, 0) + 1
        return ExportTraceServiceResponse()
