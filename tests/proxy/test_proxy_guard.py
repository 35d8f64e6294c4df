"""Whatever goes wrong in the hook, the application and its client notice nothing."""

# The signatures are ASGI's.
# ruff: noqa: ARG001

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from turnscope.emit.guard import ERROR_LIMIT
from turnscope.emit.ring import Rings
from turnscope.emit.secret import Secret
from turnscope.model import Attempt, Emitter
from turnscope.proxy.answer import PLAIN_LIMIT, AnswerReader
from turnscope.proxy.httpx_client import patch
from turnscope.proxy.process import ProxyHook
from turnscope.proxy.record import TurnRecord
from turnscope.proxy.server import serve

ANSWER = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "a"}}]}


class Process:
    """A hook whose events stay here."""

    def __init__(self, environment: dict[str, str] | None = None, secret: str | None = None) -> None:
        self.sent: list[Attempt] = []
        self.hook = ProxyHook(
            rings=Rings(),
            emitter=Emitter(id="e", kind="proxy"),
            wrapped=[],
            environment=environment or {},
            log=logging.getLogger("test.turnscope"),
            secret=Secret(secret),
        )
        self.hook.emit = lambda untold: self.sent.append(self.hook.attempt(untold))

    def stop(self) -> None:
        """Nothing runs in the background."""


@pytest.fixture(autouse=True)
def patched() -> None:
    patch(httpx)


def engine(request: httpx.Request) -> httpx.Response:
    del request
    return httpx.Response(200, json=ANSWER)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Asks an engine and answers with its content."""
    await receive()
    async with httpx.AsyncClient(transport=httpx.MockTransport(engine)) as client:
        answer = await client.post("http://engine/v1/chat/completions", json={"messages": []})
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": answer.content})


def request(process: Process, app: Any = application, body: bytes = b'{"messages": []}', **scope: Any) -> list[Any]:
    """One request; what reached the client."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    whole = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": [], **scope}
    asyncio.run(serve(app, app, whole, receive, send, process))  # type: ignore[arg-type]
    return sent


def test_the_hook_watches_when_all_is_well() -> None:
    process = Process()
    assert request(process)[1]["body"] == httpx.Response(200, json=ANSWER).content
    (attempt,) = process.sent
    assert (attempt.finish_reason, attempt.outcome) == ("stop", "ok")
    assert process.hook.open_requests() == []


@pytest.mark.parametrize("broken", ["chain", "emit", "tracing", "clock", "new_id", "open"])
def test_a_broken_hook_changes_nothing_and_switches_itself_off(broken: str) -> None:
    process = Process()
    well = request(Process())
    setattr(process.hook, broken, None)
    for _ in range(2 * ERROR_LIMIT):
        assert request(process, body=b'{"previous_response_id": "r"}') == well
    assert process.hook.guard.broken
    assert process.hook.guard.errors == ERROR_LIMIT


def test_a_hook_that_is_off_does_nothing() -> None:
    process = Process()
    process.hook.guard.allow(False)
    assert len(request(process)) == 2
    assert process.sent == []


def test_a_hook_switched_off_in_mid_request_lets_it_go_on() -> None:
    process = Process()

    async def switching(scope: Any, receive: Any, send: Any) -> None:
        process.hook.guard.allow(False)
        process.hook.forget()
        await application(scope, receive, send)

    assert len(request(process, switching)) == 2
    assert process.sent == []


def test_an_applications_own_exception_passes_through_unchanged() -> None:
    process = Process()
    error = ValueError("mine")

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        request(process, failing)
    assert caught.value is error
    assert [a.outcome for a in process.sent] == ["error"]


def test_a_connection_that_refuses_bytes_is_a_client_that_left() -> None:
    process = Process()

    async def refused(message: Any) -> None:
        raise OSError("gone")

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    with pytest.raises(OSError, match="gone"):
        asyncio.run(serve(application, application, scope, receive, refused, process))  # type: ignore[arg-type]
    assert [(a.outcome, a.error_stage) for a in process.sent] == [("cancelled", "proxy")]


@pytest.mark.parametrize(
    "scope",
    [
        {"method": "GET"},
        {"type": "websocket"},
        {"path": "/upload", "headers": [(b"content-type", b"image/png")]},
    ],
)
def test_what_is_no_request_to_a_model_is_handed_through(scope: dict[str, Any]) -> None:
    process = Process()
    seen: list[Any] = []

    async def plain(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, receive, send))

    request(process, plain, **scope)
    assert "turnscope.turn" not in seen[0][0]
    assert process.sent == []


def test_shutdown_sends_what_is_left_before_it_is_confirmed() -> None:
    process = Process()
    order: list[str] = []
    process.stop = lambda: order.append("stopped")  # type: ignore[method-assign]

    async def send(message: Any) -> None:
        order.append(message["type"])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    async def receive() -> Any:
        return {}

    asyncio.run(serve(app, app, {"type": "lifespan"}, receive, send, process))  # type: ignore[arg-type]
    assert order == ["lifespan.startup.complete", "stopped", "lifespan.shutdown.complete"]


def test_an_answer_too_long_to_read_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    process = Process()

    async def long(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        body = json.dumps({"choices": [], "padding": "x" * PLAIN_LIMIT}).encode()
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
        async with httpx.AsyncClient(transport=transport) as client:
            for _ in range(2):
                await client.post("http://engine/v1/chat/completions", json={"messages": []})
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    request(process, long)
    assert [r.message for r in caplog.records if "was not read" in r.message] == [caplog.records[0].message]
    assert process.hook.guard.errors == 0


def test_an_exporter_that_is_not_installed_costs_the_spans_only(caplog: pytest.LogCaptureFixture) -> None:
    process = Process({"OTEL_TRACES_EXPORTER": "no_such_exporter"})
    for _ in range(3):
        request(process)
    assert [a.outcome for a in process.sent] == ["ok"] * 3
    assert len([r for r in caplog.records if "no_such_exporter" in r.message]) == 1


def test_a_hook_that_fails_at_every_piece_of_an_answer_passes_each_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object, __: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(AnswerReader, "feed", fails)
    monkeypatch.setattr(TurnRecord, "response_chunk", fails)
    pieces = [b"data: {}\n\n"] * ERROR_LIMIT

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Stream(pieces)))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async with (
            httpx.AsyncClient(transport=transport) as client,
            client.stream("POST", "http://engine/v1/chat/completions", json={}) as answer,
        ):
            async for piece in answer.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    process = Process()
    assert [message["body"] for message in request(process, streaming)[1:]] == [*pieces, b""]
    assert process.hook.guard.errors == ERROR_LIMIT
    assert process.hook.guard.broken


class Stream(httpx.AsyncByteStream):
    """An answer in pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
