"""Every way to use httpx in a proxy is seen, and sees what it would without the hook."""

# The signatures are ASGI's.
# ruff: noqa: ARG001

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.proxy.test_proxy_guard import Process, request
from turnscope.model import Attempt
from turnscope.proxy.httpx_client import patch

URL = "http://engine/v1/chat/completions"
HANDLE = {"remote_engine_id": "d", "remote_request_id": "r"}
EVENTS = [
    b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: " + json.dumps({"choices": [], "kv_transfer_params": HANDLE}).encode() + b"\n\n",
    b"data: [DONE]\n\n",
]


class Stream(httpx.AsyncByteStream, httpx.SyncByteStream):
    """An engine's streamed answer; knows whether it was closed."""

    def __init__(self, parts: list[bytes], error: Exception | None = None) -> None:
        self.parts = parts
        self.error = error
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        yield from self.parts
        if self.error:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
        if self.error:
            raise self.error

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def attempt_of(use: Callable[[], Awaitable[None]]) -> Attempt:
    """What is told of a request during which ``use`` talks to an engine."""
    process = Process()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await use()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    request(process, app)
    assert process.hook.guard.errors == 0
    (attempt,) = process.sent
    return attempt


@pytest.fixture(autouse=True)
def patched() -> None:
    patch(httpx)


def transport(stream: Stream, **headers: str) -> httpx.MockTransport:
    given = {"content-type": "text/event-stream", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return httpx.MockTransport(lambda _: httpx.Response(200, headers=given, stream=stream))


def test_patching_twice_changes_nothing() -> None:
    before = httpx.AsyncClient.send, httpx.Client.send
    assert patch(httpx) is False
    assert (httpx.AsyncClient.send, httpx.Client.send) == before


def test_a_sync_client_is_seen_too() -> None:
    async def use() -> None:
        with httpx.Client(transport=transport(stream)) as client, client.stream("POST", URL, json={}) as response:
            assert list(response.iter_raw()) == EVENTS

    stream = Stream(EVENTS)
    attempt = attempt_of(use)
    assert (attempt.finish_reason, attempt.decode_status, attempt.outcome) == ("stop", 200, "ok")
    assert attempt.handle_out is not None
    assert stream.closed == 1


def test_a_plain_sync_answer_is_seen_too() -> None:
    async def use() -> None:
        with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=answer))) as client:
            assert client.post(URL, json={}).json() == answer

    answer = {"choices": [{"index": 0, "finish_reason": "length"}]}
    assert attempt_of(use).finish_reason == "length"


def test_a_stream_left_after_its_end_mark_is_no_failure() -> None:
    async def use() -> None:
        async with (
            httpx.AsyncClient(transport=transport(stream)) as client,
            client.stream("POST", URL, json={}) as response,
        ):
            async for line in response.aiter_lines():
                if "stop" in line:
                    break

    stream = Stream(EVENTS)
    attempt = attempt_of(use)
    assert (attempt.finish_reason, attempt.outcome) == ("stop", "ok")
    assert stream.closed == 1


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_stream_the_proxy_leaves_before_its_end_is_a_cancelled_decode(kind: str) -> None:
    async def use() -> None:
        if kind == "sync":
            with httpx.Client(transport=transport(stream)) as client, client.stream("POST", URL, json={}) as response:
                next(response.iter_raw())
            return
        async with (
            httpx.AsyncClient(transport=transport(stream)) as client,
            client.stream("POST", URL, json={}) as response,
        ):
            await anext(response.aiter_raw())

    stream = Stream(EVENTS)
    attempt = attempt_of(use)
    assert (attempt.outcome, attempt.error_stage, attempt.finish_reason) == ("cancelled", "decode", None)
    assert stream.closed == 1


def test_a_stream_sent_and_closed_by_hand_is_seen() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=transport(stream)) as client:
            response = await client.send(client.build_request("POST", URL, json={}), stream=True)
            assert await response.aread() == b"".join(EVENTS)
            await response.aclose()

    stream = Stream(EVENTS)
    assert attempt_of(use).handle_out is not None


def test_a_stream_that_breaks_raises_the_same_error() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=transport(stream)) as client:
            with pytest.raises(httpx.ReadError) as caught:
                async with client.stream("POST", URL, json={}) as response:
                    await response.aread()
            assert caught.value is error

    error = httpx.ReadError("broken")
    stream = Stream(EVENTS[:1], error)
    attempt = attempt_of(use)
    assert (attempt.outcome, attempt.error_stage) == ("error", "decode")


def test_an_engine_that_cannot_be_reached_raises_the_same_error() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as client:
            with pytest.raises(httpx.ConnectError):
                await client.post(URL, json={})

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    attempt = attempt_of(use)
    assert (attempt.outcome, attempt.error_stage, attempt.decode_status) == ("error", "decode", None)


def test_a_proxys_own_time_limit_cancels_the_leg() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(slow)) as client:
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(0.01):
                    await client.post(URL, json={})

    async def slow(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    attempt = attempt_of(use)
    assert (attempt.outcome, attempt.error_stage) == ("cancelled", "decode")


def test_compressed_answers_are_read() -> None:
    async def use() -> None:
        async with (
            httpx.AsyncClient(transport=transport(stream, content_encoding="gzip")) as client,
            client.stream("POST", URL, json={}) as response,
        ):
            assert await response.aread() == b"".join(EVENTS)

    packed = gzip.compress(b"".join(EVENTS))
    stream = Stream([packed[:20], packed[20:]])
    assert attempt_of(use).handle_out is not None


def test_a_body_that_is_a_stream_is_left_to_the_client() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(engine)) as client:
            assert (await client.post(URL, content=body())).status_code == 200

    async def body() -> AsyncIterator[bytes]:
        yield b'{"messages"'
        yield b": []}"

    async def engine(asked: httpx.Request) -> httpx.Response:
        assert await asked.aread() == b'{"messages": []}'
        return httpx.Response(200, json={"choices": [{"index": 0, "finish_reason": "stop"}]})

    assert attempt_of(use).finish_reason == "stop"


def test_redirects_and_other_requests_are_left_alone() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(engine), follow_redirects=True) as client:
            assert (await client.post(URL, json={})).json() == {"choices": []}
            assert (await client.get("http://engine/health")).headers["seen"] == ""
            assert (await client.post("http://engine/tokenize", json={"prompt": "x"})).headers["seen"] == ""

    def engine(asked: httpx.Request) -> httpx.Response:
        if asked.url.path == "/v1/chat/completions":
            return httpx.Response(307, headers={"location": "http://engine/v2/chat/completions"})
        return httpx.Response(200, json={"choices": []}, headers={"seen": asked.headers.get("x-request-id", "")})

    assert attempt_of(use).decode_status == 200


def test_a_client_used_outside_of_any_request_is_left_alone() -> None:
    async def use() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.MockTransport(lambda r: httpx.Response(200, request=r))) as client:
            return await client.post(URL, json={})

    assert "x-request-id" not in asyncio.run(use()).request.headers
