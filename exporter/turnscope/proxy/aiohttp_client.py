"""The client side for aiohttp."""

from __future__ import annotations

import functools
from typing import Any, Final

from turnscope.proxy.context import CURRENT
from turnscope.proxy.live import LiveLeg
from turnscope.proxy.outgoing import Incoming, Outgoing

_DECODED: Final = ("gzip", "deflate", "br", "zstd")
"""Content encodings that aiohttp takes off before anybody sees the bytes, unless told otherwise."""
_LEGS: Final[dict[int, LiveLeg]] = {}
"""By the identity of the stream that an answer comes through: a stream has no room for anything of ours."""


def patch(aiohttp: Any) -> bool:
    """Watch what ``aiohttp.ClientSession`` sends while a client's request is served. False when that has been done
    before."""
    session = aiohttp.ClientSession
    if hasattr(session._request, "turnscope"):
        return False
    session._request = _wrap(session._request, _tapped(aiohttp.StreamReader, aiohttp.ClientConnectionError))
    session._request.turnscope = True
    return True


def _wrap(original: Any, tapped: type[Any]) -> Any:
    @functools.wraps(original)
    async def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        leg = _begin(self, args, kwargs)
        if leg is None:
            return await original(self, *args, **kwargs)
        try:
            response = await original(self, *args, **kwargs)
        except BaseException as error:
            leg.refused(_status_of(error))
            leg.ended(error)
            raise
        if leg.took(functools.partial(_incoming, self, response, kwargs)) is False:
            leg.follow(functools.partial(_tap, response, leg, tapped))
        return response

    return request


# --- the request --------------------------------------------------------------------------------------
def _begin(session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LiveLeg | None:
    turn = CURRENT.get()
    method = args[0] if args else kwargs.get("method")
    if turn is None or not isinstance(method, str) or method.upper() != "POST":
        return None
    url = args[1] if len(args) > 1 else kwargs.get("str_or_url")
    return turn.open_leg(functools.partial(_outgoing, session, url, kwargs))


def _outgoing(session: Any, url: Any, kwargs: dict[str, Any]) -> Outgoing:
    """Puts the request's headers, the session's own among them, into ``kwargs``, where they can be added to."""
    given: Any = kwargs.get("headers")
    if hasattr(given, "__next__"):
        given = kwargs["headers"] = list(given)  # it can be read only once
    headers = session._prepare_headers(given)
    to = session._build_url(url)
    outgoing = Outgoing(
        host=to.host or "",
        port=to.port,
        path=to.path,
        body=_body(kwargs),
        headers=headers,
        makes_spans=any(getattr(c, "_is_instrumented_by_opentelemetry", False) for c in session.trace_configs),
    )
    kwargs["headers"] = headers
    return outgoing


def _body(kwargs: dict[str, Any]) -> Any:
    if kwargs.get("json") is not None:
        return kwargs["json"]
    data = kwargs.get("data")
    data = getattr(data, "_value", data)  # what aiohttp's own payloads wrap
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    return data if isinstance(data, bytes | str) else b""


def _status_of(error: BaseException) -> int | None:
    """The response's, where ``raise_for_status`` made an error of it; where one was caused by another, the response
    could not be read, and the status is aiohttp's own."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) and error.__cause__ is None else None


# --- the response -------------------------------------------------------------------------------------
def _incoming(session: Any, response: Any, kwargs: dict[str, Any]) -> Incoming:
    decodes = kwargs.get("auto_decompress")
    decodes = session.auto_decompress if decodes is None else decodes
    encoding = response.headers.get("content-encoding", "")
    content = response._body  # read already, by a middleware
    return Incoming(
        status=response.status,
        content_type=response.headers.get("content-type", ""),
        content_encoding="" if decodes and encoding.strip().lower() in _DECODED else encoding,
        content=content,
    )


def _tap(response: Any, leg: LiveLeg, tapped: type[Any]) -> None:
    """Let ``leg`` see what has come of the answer and what will come, without standing between it and its reader."""
    stream = response.content
    for piece in list(getattr(stream, "_buffer", ())):
        leg.chunk(bytes(piece))
    if stream.exception() is not None:
        leg.ended(stream.exception())
    elif stream.is_eof() or type(stream) is not tapped.__base__:
        leg.ended()
    else:
        stream.__class__ = tapped
        _LEGS[id(stream)] = leg


def _tapped(stream: type[Any], closed: type[Exception]) -> type[Any]:
    """``stream`` with an ear. ``closed``: what a response that is closed or released tells its stream."""

    class Tapped(stream):  # type: ignore[misc]
        __slots__ = ()

        def feed_data(self, data: Any, *args: Any, **kwargs: Any) -> Any:
            fed = super().feed_data(data, *args, **kwargs)
            leg = _LEGS.get(id(self))
            if leg is not None:
                leg.chunk(data)
            return fed

        def feed_eof(self, *args: Any, **kwargs: Any) -> Any:
            leg = _LEGS.pop(id(self), None)
            if leg is not None:
                leg.ended()
            return super().feed_eof(*args, **kwargs)

        def set_exception(self, exc: BaseException, *args: Any, **kwargs: Any) -> Any:
            leg = _LEGS.pop(id(self), None)
            if leg is not None:
                own = type(exc) is closed
                leg.ended(None if own else exc, complete=not own)
            return super().set_exception(exc, *args, **kwargs)

        def __del__(self) -> None:
            leg = _LEGS.pop(id(self), None)
            if leg is not None:
                leg.ended(complete=False)

    Tapped.__name__, Tapped.__qualname__ = stream.__name__, stream.__qualname__
    return Tapped
