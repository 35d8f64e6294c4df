"""OTLP over gRPC, logs and traces: the services that hooks, agents and collectors send to."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc

from turnscope import semconv
from turnscope.marks import fingerprint
from turnscope.receivers.errors import Refused, grpc_status
from turnscope.receivers.intake import Intake

_LOG: Final = logging.getLogger(__name__)
LOGS: Final = "opentelemetry.proto.collector.logs.v1.LogsService"
TRACES: Final = "opentelemetry.proto.collector.trace.v1.TraceService"
WORKERS: Final = 16
"""Each waits for the disk most of the time; the group of waiting requests shares one sync."""
_HARD_FACTOR: Final = 4
"""Beyond this multiple of the limit gRPC refuses by itself, before the message is in memory and uncounted."""


class OtlpGrpc:
    """A gRPC server on ``address`` (``host:port``; port 0 takes a free one). Raises ``OSError`` if it is taken.

    A hook that asks, and has another, is given the key of ``give_out`` with the answer to its batch.
    """

    def __init__(
        self,
        logs: Intake,
        traces: Intake,
        address: str,
        *,
        max_bytes: int,
        workers: int = WORKERS,
    ) -> None:
        self._digest_key: str | None = None
        self._key_name: str | None = None
        self._server = grpc.server(
            ThreadPoolExecutor(workers, thread_name_prefix="turnscope-otlp"),
            options=[
                ("grpc.max_receive_message_length", _HARD_FACTOR * max_bytes),
                # Without this a second process can take the same port, and each gets a part of the traffic.
                ("grpc.so_reuseport", 0),
            ],
        )
        self._server.add_generic_rpc_handlers((self._handler(LOGS, logs), self._handler(TRACES, traces)))
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(str(error)) from None

    def give_out(self, digest_key: str) -> None:
        """From now on hooks that ask are given this key."""
        self._digest_key, self._key_name = digest_key, fingerprint(digest_key.encode())

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """Take no new request, give those in progress ``grace_s``."""
        self._server.stop(grace_s).wait()

    def _handler(self, service: str, intake: Intake) -> Any:
        def export(body: bytes, context: grpc.ServicerContext) -> Any:
            try:
                answer = intake.export(body)
            except Refused as error:
                context.abort(grpc_status(error), str(error))
            except Exception:
                _LOG.exception("a request could not be answered")
                context.abort(grpc.StatusCode.INTERNAL, "internal error: see the sidecar's log")
            self._give_key(context)
            return answer

        # Raw bytes in: a message that cannot be parsed is ours to count and to explain.
        handler: Any = grpc.unary_unary_rpc_method_handler(
            export, response_serializer=intake.response.SerializeToString
        )
        return grpc.method_handlers_generic_handler(service, {"Export": handler})

    def _give_key(self, context: grpc.ServicerContext) -> None:
        asked = next((value for name, value in context.invocation_metadata() if name == semconv.DIGEST_KEY), None)
        if self._digest_key is not None and asked is not None and asked != self._key_name:
            context.set_trailing_metadata(((semconv.DIGEST_KEY, self._digest_key),))
