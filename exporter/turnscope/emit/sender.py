"""One OTLP/gRPC channel, made and used by the background thread only."""

from __future__ import annotations

import contextlib
from enum import Enum
from typing import Any, Final, Protocol

from turnscope import semconv
from turnscope.decode.refusals import asks_again
from turnscope.emit.secret import Secret
from turnscope.emit.settings import Endpoint

_METHOD: Final = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"


class Outcome(Enum):
    """What became of a batch."""

    SENT = "sent"
    LATER = "later"
    REFUSED = "refused"


class Sender(Protocol):
    """Hands a serialised ``ExportLogsServiceRequest`` over; never raises."""

    def send(self, body: bytes, timeout_s: float) -> tuple[Outcome, str]:
        """The outcome and, unless sent, why in a few words."""

    def close(self) -> None:
        """Give the connection up."""


class GrpcSender:
    """The real one. gRPC is imported at the first batch, in the thread that sends it.

    Where ``secret`` is wanted, each batch says which one is known, and the answer may bring another.
    """

    def __init__(self, endpoint: Endpoint, secret: Secret | None = None) -> None:
        self._endpoint = endpoint
        self._secret = secret or Secret()
        self._channel: Any = None
        self._call: Any = None

    def send(self, body: bytes, timeout_s: float) -> tuple[Outcome, str]:
        import grpc

        try:
            if self._call is None:
                self._connect(grpc)
            known = self._secret.known
            if known is None:
                self._call(body, timeout=timeout_s)
            else:
                _, call = self._call.with_call(body, timeout=timeout_s, metadata=((semconv.DIGEST_KEY, known),))
                self._secret.answered(dict(call.trailing_metadata() or ()).get(semconv.DIGEST_KEY))
        except grpc.RpcError as error:
            outcome = Outcome.LATER if asks_again(error) else Outcome.REFUSED
            return outcome, f"{error.code().name}: {error.details()}"
        except Exception as error:
            return Outcome.LATER, repr(error)
        return Outcome.SENT, ""

    def close(self) -> None:
        if self._channel is not None:
            with contextlib.suppress(Exception):
                self._channel.close()
            self._channel = self._call = None

    def _connect(self, grpc: Any) -> None:
        options = (
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 5_000),
            ("grpc.enable_retries", 0),
        )
        if self._endpoint.tls:
            self._channel = grpc.secure_channel(self._endpoint.target, grpc.ssl_channel_credentials(), options)
        else:
            self._channel = grpc.insecure_channel(self._endpoint.target, options)
        self._call = self._channel.unary_unary(_METHOD)
