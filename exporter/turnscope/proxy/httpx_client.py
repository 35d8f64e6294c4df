"""The client side for httpx and libraries with its interface."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

from turnscope.proxy.context import CURRENT
from turnscope.proxy.live import LiveLeg
from turnscope.proxy.outgoing import Incoming, Outgoing


def patch(httpx: Any) -> bool:
    """Watch what ``httpx.AsyncClient`` and ``httpx.Client`` send while a client's request is served. False when that
    has been done before."""
    if hasattr(httpx.AsyncClient.send, "turnscope"):
        return False
    httpx.AsyncClient.send = _wrap_async(httpx.AsyncClient.send, httpx)
    httpx.Client.send = _wrap_sync(httpx.Client.send, httpx)
    httpx.AsyncClient.send.turnscope = True
    return True


def _wrap_async(original: Any, httpx: Any) -> Any:
    class Tapped(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, leg: LiveLeg) -> None:
            self._inner = inner
            self._leg = leg

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._inner:
                    self._leg.chunk(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except BaseException as error:
                self._leg.ended(error)
                raise
            self._leg.ended()

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._leg.ended(complete=False)

    @functools.wraps(original)
    async def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        leg = _begin(self, request)
        if leg is None:
            return await original(self, request, *args, **kwargs)
        try:
            response = await original(self, request, *args, **kwargs)
        except BaseException as error:
            leg.ended(error)
            raise
        if leg.took(functools.partial(_incoming, response, httpx.ResponseNotRead)) is False:
            response.stream = Tapped(response.stream, leg)
        return response

    return send


def _wrap_sync(original: Any, httpx: Any) -> Any:
    class Tapped(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, leg: LiveLeg) -> None:
            self._inner = inner
            self._leg = leg

        def __iter__(self) -> Iterator[bytes]:
            try:
                for chunk in self._inner:
                    self._leg.chunk(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except BaseException as error:
                self._leg.ended(error)
                raise
            self._leg.ended()

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._leg.ended(complete=False)

    @functools.wraps(original)
    def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        leg = _begin(self, request)
        if leg is None:
            return original(self, request, *args, **kwargs)
        try:
            response = original(self, request, *args, **kwargs)
        except BaseException as error:
            leg.ended(error)
            raise
        if leg.took(functools.partial(_incoming, response, httpx.ResponseNotRead)) is False:
            response.stream = Tapped(response.stream, leg)
        return response

    return send


def _begin(client: Any, request: Any) -> LiveLeg | None:
    turn = CURRENT.get()
    if turn is None or request.method != "POST":
        return None
    return turn.open_leg(functools.partial(_outgoing, client, request))


def _outgoing(client: Any, request: Any) -> Outgoing:
    try:
        body = request.content
    except Exception:  # a body that is itself a stream is not ours to read
        body = b""
    url = request.url
    return Outgoing(
        host=url.host,
        port=url.port,
        path=url.path,
        body=body,
        headers=request.headers,
        makes_spans=_makes_spans(client),
    )


def _incoming(response: Any, not_read: type[Exception]) -> Incoming:
    try:
        content: bytes | None = response.content
    except not_read:
        content = None
    return Incoming(
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding=response.headers.get("content-encoding", "") if content is None else "",
        content=content,
    )


def _makes_spans(client: Any) -> bool:
    """Whether OpenTelemetry's own instrumentation sits on the client, or on the transport of every client."""
    transport = getattr(client, "_transport", None)
    sends = [getattr(transport, name, None) for name in ("handle_async_request", "handle_request")]
    return getattr(client, "_is_instrumented_by_opentelemetry", False) or any(
        hasattr(send, "__wrapped__") and hasattr(send, "_self_wrapper") for send in sends
    )
