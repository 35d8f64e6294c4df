"""What a collector does between hooks and sidecars: every batch goes to the sidecar, and a copy to others."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from turnscope.decode import codec
from turnscope.model import Event
from turnscope.semconv import Role

SEND_SECONDS = 10
Change = Callable[[bytes], bytes]
_Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True)
class Copy:
    """Another sidecar that hears the same, with ``change`` made to each batch."""

    endpoint: str
    change: Change = lambda body: body


def prefill_elsewhere(host: str) -> Change:
    """The same events, had P's processes been on ``host``."""

    def moved(event: Event) -> Event:
        if event.engine is None or event.engine.role != Role.PREFILL:
            return event
        return msgspec.structs.replace(event, emitter=msgspec.structs.replace(event.emitter, host=host))

    def change(body: bytes) -> bytes:
        events = codec.decode(ExportLogsServiceRequest.FromString(body)).events
        return codec.encode(map(moved, events), observed_ns=time.time_ns()).SerializeToString()

    return change


class _Tee(grpc.GenericRpcHandler):
    def __init__(self, main: grpc.Channel, copies: Sequence[tuple[grpc.Channel, Change]]) -> None:
        self._main = main
        self._copies = copies

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        method = details.method

        def answer(body: bytes, context: grpc.ServicerContext) -> bytes:
            # The copies first: what one of them does not take is sent once more to all, and they know it again.
            try:
                for channel, change in self._copies:
                    _send(channel, method, change(body))
                asked = [(name, value) for name, value in context.invocation_metadata() if name.startswith("turnscope")]
                response, trailing = _send(self._main, method, body, tuple(asked))
            except grpc.RpcError as error:
                call: Any = error
                context.abort(call.code(), call.details())
            context.set_trailing_metadata(trailing)
            return response

        return grpc.unary_unary_rpc_method_handler(answer)


@contextlib.contextmanager
def running_tee(main: str, copies: Sequence[Copy]) -> Iterator[str]:
    """Its address, for ``TURNSCOPE_ENDPOINT``; ``main`` alone answers the hooks."""
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(_channel(endpoint)) for endpoint in (main, *(c.endpoint for c in copies))]
        changes = [copy.change for copy in copies]
        handler = _Tee(channels[0], list(zip(channels[1:], changes, strict=True)))
        server = grpc.server(ThreadPoolExecutor(8), handlers=[handler])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        stack.callback(lambda: server.stop(1).wait())
        yield f"http://127.0.0.1:{port}"


def _send(channel: grpc.Channel, method: str, body: bytes, metadata: _Metadata = ()) -> tuple[bytes, _Metadata]:
    send: Any = channel.unary_unary(method)
    response, call = send.with_call(body, timeout=SEND_SECONDS, metadata=metadata)
    return response, tuple(call.trailing_metadata())


def _channel(endpoint: str) -> grpc.Channel:
    return grpc.insecure_channel(endpoint.removeprefix("http://"))
