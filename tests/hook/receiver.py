"""A real OTLP/gRPC logs receiver on a free loopback port."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)

from turnscope import semconv
from turnscope.decode import codec
from turnscope.model import Event


def come_back(seconds: int = 1) -> tuple[str, bytes]:
    """The trailing metadata of a refusal that says when to try again."""
    status = Status(code=8)
    status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=seconds)))
    return "grpc-status-details-bin", status.SerializeToString()


class Receiver(LogsServiceServicer):  # type: ignore[misc]
    """Keeps the events it got, once each; ``refuse`` is the status it answers with instead.

    Hooks that ask, saying what is in ``asked``, are given ``digest_key``.
    """

    def __init__(self) -> None:
        self.port = 0
        self.events: list[Event] = []
        self.rejected: list[str] = []
        self.batches: list[int] = []
        self.raw: list[bytes] = []
        """Every batch as it came."""
        self.refuse: grpc.StatusCode | None = None
        self.come_back = False
        """It says with a refusal when it is to be tried again."""
        self.digest_key: str | None = None
        self.asked: set[str] = set()
        self._lock = threading.Lock()
        self._seen: set[tuple[str, int]] = set()

    def Export(self, request: ExportLogsServiceRequest, context: Any) -> ExportLogsServiceResponse:
        if self.refuse is not None:
            if self.come_back:
                context.set_trailing_metadata((come_back(),))
            context.abort(self.refuse, "not now")
        decoded = codec.decode(request)
        with self._lock:
            for event in decoded.events:
                if (event.emitter.id, event.seq) not in self._seen:
                    self._seen.add((event.emitter.id, event.seq))
                    self.events.append(event)
            self.rejected += decoded.rejected
            self.batches.append(len(decoded.events))
            self.raw.append(request.SerializeToString())
        asked = dict(context.invocation_metadata()).get(semconv.DIGEST_KEY)
        if asked is not None:
            self.asked.add(asked)
            if self.digest_key is not None:
                context.set_trailing_metadata(((semconv.DIGEST_KEY, self.digest_key),))
        return ExportLogsServiceResponse()

    def bodies(self, kind: type[Any]) -> list[Any]:
        """The bodies of one kind, in the order they came."""
        return [event.body for event in self.events if type(event.body) is kind]

    def wait_for(self, condition: Callable[[], bool], seconds: float = 40) -> None:
        """Return when ``condition()`` holds; AssertionError when it never does."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"never came; got {[type(e.body).__name__ for e in self.events]}"
            time.sleep(0.02)


@contextlib.contextmanager
def receiving(receiver: Receiver | None = None, port: int = 0) -> Iterator[Receiver]:
    """A running receiver; ``port`` 0 is any free one."""
    receiver = receiver or Receiver()
    server = grpc.server(ThreadPoolExecutor(2))
    add_LogsServiceServicer_to_server(receiver, server)
    receiver.port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield receiver
    finally:
        server.stop(0).wait()
