"""The client side for httpx and libraries with its interface."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

from turnscope.proxy.context import CURRENT
from turnscope.proxy.live import LiveLeg


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
        if leg.took(response, httpx.ResponseNotRead) is False:
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
        if leg.took(response, httpx.ResponseNotRead) is False:
            response.stream = Tapped(response.stream, leg)
        return response

    return send


def _begin(client: Any, request: Any) -> LiveLeg | None:
    turn = CURRENT.get()
    if turn is None or request.method != "POST":
        return None
    return turn.open_leg(client, request)
