"""The server side: an ASGI application watched from outside, byte for byte as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from turnscope.proxy.context import CURRENT
from turnscope.proxy.live import LiveTurn, Message
from turnscope.proxy.process import Process, ProxyHook
from turnscope.proxy.requests import generates

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_KEY: Final = "turnscope.turn"


async def serve(app: Any, call: App, scope: Scope, receive: Receive, send: Send, process: Process) -> None:
    """Run ``call``, which runs ``app``, and tell of each request it serves."""
    if scope["type"] == "lifespan":
        await call(scope, receive, _before_shutdown(send, process.stop))
        return
    turn = _open(app, scope, send, process.hook)
    if turn is None:
        await call(scope, receive, send)
        return
    current = CURRENT.set(turn)
    turn.entered()
    error: BaseException | None = None
    try:
        await call(scope, _watch_receive(turn, receive), _watch_send(turn, send))
    except BaseException as caught:
        error = caught
        raise
    finally:
        turn.left()
        CURRENT.reset(current)
        turn.finish(error)


def _open(app: Any, scope: Scope, send: Send, hook: ProxyHook) -> LiveTurn | None:
    """None for what is no request to a model, and inside an application that is watched already."""
    if not hook.guard.on or scope["type"] != "http" or scope["method"] != "POST" or _KEY in scope:
        return None
    try:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not generates(scope["path"]) and "json" not in headers.get("content-type", ""):
            return None
        turn = LiveTurn(
            hook,
            path=scope["path"],
            headers=headers,
            foreign_spans=_makes_spans(app),
            gone=lambda: getattr(getattr(send, "__self__", None), "disconnected", False) is True,
        )
        scope[_KEY] = turn.record.turn_id
    except Exception as error:
        hook.guard.failed(error)
        return None
    return turn


def _makes_spans(app: Any) -> bool:
    """Whether OpenTelemetry's own instrumentation sits inside ``app``."""
    if getattr(app, "_is_instrumented_by_opentelemetry", False):
        return True
    return any(m.cls.__name__ == "OpenTelemetryMiddleware" for m in getattr(app, "user_middleware", ()))


def _watch_receive(turn: LiveTurn, receive: Receive) -> Receive:
    async def watched() -> Message:
        message = await receive()
        turn.received(message)
        return message

    return watched


def _watch_send(turn: LiveTurn, send: Send) -> Send:
    async def watched(message: Message) -> None:
        turn.sending(message)
        try:
            await send(message)
        except OSError:
            turn.client_left()
            raise
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            turn.finish()

    return watched


def _before_shutdown(send: Send, stop: Callable[[], None]) -> Send:
    async def watched(message: Message) -> None:
        if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
            stop()
        await send(message)

    return watched
