"""What the hook asks of an HTTP client library about a request and its response, whatever the library."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import msgspec


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the proxy is about to send."""

    host: str
    port: int | None
    path: str
    body: Any
    """Its JSON, or what that will be made of; b"" where it is itself a stream, which is not ours to read."""
    headers: MutableMapping[str, str]
    """Names in any case. What is set here is sent."""
    makes_spans: bool
    """OpenTelemetry's own instrumentation sits on the client: it writes its own ``traceparent``."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """The head of its response, and the content where that has been read already."""

    status: int
    content_type: str
    content_encoding: str
    """Of the bytes that are shown to the hook; empty where the library has decoded them."""
    content: bytes | None = None
