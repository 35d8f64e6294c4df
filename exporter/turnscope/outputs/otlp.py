"""Sending export requests to an OTLP endpoint, over gRPC or HTTP, and what its answer means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import grpc
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from turnscope.decode.refusals import asks_again
from turnscope.model import shown

TIMEOUT_S: Final = 10.0
_SCHEMES: Final = ("", "grpc", "grpcs", "http", "https")
_GRPC_SCHEMES: Final = ("grpc", "grpcs")
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]+")
"""A name, or an IP address; as ``urlsplit`` gives it."""
_GRPC_PORT: Final = 4317
_HTTP_PORT: Final = 4318
_RETRY_HTTP: Final = frozenset({429, 502, 503, 504})


class BadEndpoint(ValueError):
    """An endpoint that cannot be understood: one sentence."""


class SendFailed(Exception):
    """The endpoint did not take the request. One sentence."""


class SendLater(SendFailed):
    """... and may take it later."""


class TraceSender(Protocol):
    """Sends one request, also one that is encoded already; returns how many spans were rejected and why. Raises
    ``SendFailed``."""

    def send(self, request: ExportTraceServiceRequest) -> tuple[int, str]: ...

    def send_bytes(self, body: bytes) -> tuple[int, str]: ...

    def close(self) -> None: ...


def _shown(endpoint: str) -> str:
    """Without what stands before the @: it may be a password."""
    return shown(endpoint.rpartition("@")[2])


def trace_sender(endpoint: str, headers: Mapping[str, str]) -> TraceSender:
    """The sender for ``endpoint``: by scheme (``grpc, grpcs, http, https``), else by port and path.

    ``http://host:4317`` without a path is gRPC, as most of OpenTelemetry's documentation writes it; port 4318
    or a path means HTTP. Raises ``BadEndpoint``.
    """
    wrong = BadEndpoint(f"{_shown(endpoint)} is not an OTLP endpoint: write it like http://127.0.0.1:{_GRPC_PORT}")
    try:
        url = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
        host, port = url.hostname or "", url.port
    except ValueError:
        raise wrong from None
    # A bare word is more likely a slip than a host: without a scheme the port says that an address is meant.
    if url.scheme not in _SCHEMES or not _HOST.fullmatch(host) or port == 0 or (not url.scheme and port is None):
        raise wrong
    if "@" in url.netloc:
        raise BadEndpoint(
            f"{_shown(endpoint)} has a user or a password before its host: send that as a header, with "
            "--export-otlp-headers"
        )
    if (url.scheme in _GRPC_SCHEMES and url.path.strip("/")) or url.query or url.fragment:
        raise BadEndpoint(
            f"{_shown(endpoint)} says more than an address and a path: write it like http://127.0.0.1:4317"
        )
    secure = url.scheme in ("grpcs", "https")
    path = url.path.rstrip("/")
    if url.scheme in _GRPC_SCHEMES or (not path and port != _HTTP_PORT):
        return _Grpc(f"{host if ':' not in host else f'[{host}]'}:{port or _GRPC_PORT}", secure, headers)
    return _Http(f"{'https' if secure else 'http'}://{url.netloc}{path or '/v1/traces'}", headers)


class _Grpc:
    def __init__(self, target: str, secure: bool, headers: Mapping[str, str]) -> None:
        self._target = target
        self._channel = (
            grpc.secure_channel(target, grpc.ssl_channel_credentials()) if secure else grpc.insecure_channel(target)
        )
        self._export: Any = self._channel.unary_unary(
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            response_deserializer=ExportTraceServiceResponse.FromString,
        )
        self._metadata = tuple((k.lower(), v) for k, v in headers.items())

    def send(self, request: ExportTraceServiceRequest) -> tuple[int, str]:
        return self.send_bytes(request.SerializeToString())

    def send_bytes(self, body: bytes) -> tuple[int, str]:
        try:
            answer = self._export(body, timeout=TIMEOUT_S, metadata=self._metadata, compression=grpc.Compression.Gzip)
        except grpc.RpcError as error:
            text = f"{self._target} answered {error.code().name} over gRPC: {error.details()}"
            raise (SendLater if asks_again(error) else SendFailed)(text) from None
        return answer.partial_success.rejected_spans, answer.partial_success.error_message

    def close(self) -> None:
        self._channel.close()


class _Http:
    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._client = httpx.Client(
            timeout=TIMEOUT_S, headers={**headers, "Content-Type": "application/x-protobuf"}, trust_env=False
        )

    def send(self, request: ExportTraceServiceRequest) -> tuple[int, str]:
        return self.send_bytes(request.SerializeToString())

    def send_bytes(self, body: bytes) -> tuple[int, str]:
        try:
            answer = self._client.post(self._url, content=body)
        except httpx.TransportError as error:
            raise SendLater(f"{self._url} cannot be reached over HTTP: {error}") from None
        if answer.status_code != 200:
            text = f"{self._url} answered {answer.status_code} over HTTP: {answer.text[:200]}"
            raise (SendLater if answer.status_code in _RETRY_HTTP else SendFailed)(text)
        if "protobuf" not in answer.headers.get("content-type", ""):
            return 0, ""
        partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
        return partial.rejected_spans, partial.error_message

    def close(self) -> None:
        self._client.close()
