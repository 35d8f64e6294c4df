"""OTLP over HTTP: ``/v1/traces`` and ``/v1/logs``, protobuf or JSON, plain or gzipped, answered in kind.

The application only; whoever wires it gives it a server.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from typing import Any, Final

from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from turnscope.catalog.exporter import PATH
from turnscope.receivers.errors import Invalid, Refused, TooLarge, Unavailable, Unsupported, http_status
from turnscope.receivers.intake import Intake
from turnscope.receivers.misdirected import Misdirected

_LOG: Final = logging.getLogger(__name__)
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
AT_ONCE: Final = 32
"""Requests whose bodies are in memory; further ones wait for their turn with theirs unread."""
PATIENCE_S: Final = 30.0
"""For a body to come."""
RETRY_AFTER_S: Final = 5


_METRICS: Final = "/v1/metrics"
"""SDKs post them beside spans, often unasked."""
_ELSEWHERE: Final = (
    "OTLP is taken by POST to /v1/traces and /v1/logs: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used as it is written and "
    "has to end with the path, to OTEL_EXPORTER_OTLP_ENDPOINT SDKs add it"
)
"""Senders log the answer's text."""


def app(logs: Intake, traces: Intake, *, max_bytes: int, misdirected: Misdirected) -> Starlette:
    """The routes. ``max_bytes`` is the largest body, as sent and unpacked."""
    turns = asyncio.Semaphore(AT_ONCE)

    def endpoint(intake: Intake) -> Any:
        async def post(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            as_json = kind == JSON
            try:
                async with turns:
                    body = await _checked_body(request, kind, max_bytes)
                    answer = await run_in_threadpool(intake.export, body, as_json=as_json)
            except ClientDisconnect:
                return Response(status_code=400)
            except _NotTaken as error:
                return _refusal(intake.refuse(error.why), as_json)
            except Refused as error:
                return _refusal(error, as_json)
            except Exception:
                _LOG.exception("a request could not be answered")
                return _written(Status(code=13, message="internal error: see the sidecar's log"), as_json, 500)
            return _written(answer, as_json, 200)

        return post

    def elsewhere(request: Request, _: Exception) -> Response:
        path = request.url.path
        if request.method == "POST" and path != _METRICS:
            misdirected.tell(PATH, request.client)
        what = "metrics are not taken in, set OTEL_METRICS_EXPORTER=none" if path == _METRICS else _ELSEWHERE
        return PlainTextResponse(f"{what}\n", 404)

    return Starlette(
        exception_handlers={404: elsewhere},
        routes=[
            Route("/v1/logs", endpoint(logs), methods=["POST"]),
            Route("/v1/traces", endpoint(traces), methods=["POST"]),
        ],
    )


class _NotTaken(Exception):
    """Refused before the intake saw it: it is still to be counted."""

    def __init__(self, why: Refused) -> None:
        super().__init__(str(why))
        self.why = why


async def _checked_body(request: Request, kind: str, max_bytes: int) -> bytes:
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in (PROTOBUF, JSON):
        raise _NotTaken(Unsupported(f"Content-Type must be {PROTOBUF} or {JSON}"))
    if coding not in ("identity", "gzip", ""):
        raise _NotTaken(Unsupported("Content-Encoding must be gzip, or none"))
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _body(request, max_bytes, _Gzip() if coding == "gzip" else None)
    except TimeoutError:
        raise _NotTaken(Unavailable(f"the body did not come within {PATIENCE_S:.0f} s")) from None


class _Gzip:
    """Unpacks gzip piece by piece: one member, or several in a row."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.ended = False
        """What came so far is whole members."""

    def unpack(self, piece: bytes, at_most: int) -> bytes:
        """What ``piece`` adds, of which more than ``at_most`` bytes are not needed. Raises ``_NotTaken``."""
        out = b""
        try:
            while piece and len(out) < at_most:
                if self._member.eof:
                    self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
                out += self._member.decompress(piece, at_most - len(out))
                piece = self._member.unused_data
        except zlib.error as error:
            raise _NotTaken(Invalid(f"not gzip: {error}")) from None
        self.ended = self._member.eof
        return out


async def _body(request: Request, max_bytes: int, gzip: _Gzip | None) -> bytes:
    """The body, unpacked piece by piece, so that little that grows into much is stopped on its way."""
    too_large = _NotTaken(TooLarge(f"the message has more than {max_bytes} bytes: send smaller batches"))
    parts: list[bytes] = []
    size = sent = 0
    async for piece in request.stream():
        sent += len(piece)
        if sent > max_bytes:
            raise too_large
        if gzip is not None:
            piece = gzip.unpack(piece, max_bytes - size + 1)
        size += len(piece)
        if size > max_bytes:
            raise too_large
        parts.append(piece)
    if gzip is not None and sent and not gzip.ended:
        raise _NotTaken(Invalid("not gzip: it is cut off"))
    return b"".join(parts)


def _refusal(error: Refused, as_json: bool) -> Response:
    code, status = http_status(error)
    response = _written(Status(code=code, message=str(error)), as_json, status)
    if isinstance(error, Unavailable):
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _written(message: Any, as_json: bool, status: int) -> Response:
    if as_json:
        return Response(json_format.MessageToJson(message, indent=None), status, media_type=JSON)
    return Response(message.SerializeToString(), status, media_type=PROTOBUF)
