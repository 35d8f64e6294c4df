"""Every way to use aiohttp in a proxy is seen, and sees what it would without the hook. Over real sockets."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict

from tests.proxy import stubs
from tests.proxy.test_proxy_guard import Process, request
from turnscope.emit.guard import ERROR_LIMIT
from turnscope.model import Attempt
from turnscope.proxy import aiohttp_client
from turnscope.proxy.aiohttp_client import patch

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module", autouse=True)
def patched() -> None:
    patch(aiohttp)


@pytest.fixture(scope="module")
def running() -> Iterator[stubs.Engine]:
    with stubs.running(stubs.Engine("d0")) as found:
        yield found


@pytest.fixture
def engine(running: stubs.Engine) -> stubs.Engine:
    running.reset()
    return running


def served(use: Callable[[], Awaitable[Any]], process: Process | None = None, **scope: Any) -> tuple[Any, Attempt]:
    """What ``use`` returns, which talks to an engine while a client's request is served, and what is told of it."""
    process = process or Process()
    got = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        got.append(await use())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    request(process, app, **scope)
    assert process.hook.guard.errors == 0
    assert aiohttp_client._LEGS == {}
    (attempt,) = process.sent
    return got[0], attempt


def post(engine: stubs.Engine, read: Callable[[aiohttp.ClientResponse], Awaitable[Any]], **how: Any) -> Any:
    """A use: one POST whose response is given to ``read``."""

    async def use() -> Any:
        given = {"json": {"messages": [], "stream": True}, **how}
        async with (
            aiohttp.ClientSession(**given.pop("session", {})) as session,
            session.post(engine.url + CHAT, **given) as response,
        ):
            return await read(response)

    return use


async def _any(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([part async for part in response.content.iter_any()])


async def _chunked(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([part async for part in response.content.iter_chunked(7)])


async def _chunks(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([part async for part, _ in response.content.iter_chunks()])


async def _lines(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([line async for line in response.content])


async def _until(response: aiohttp.ClientResponse) -> bytes:
    parts = []
    while part := await response.content.readuntil(b"\n\n"):
        parts.append(part)
    return b"".join(parts)


async def _sized(response: aiohttp.ClientResponse) -> bytes:
    parts = []
    while part := await response.content.read(11):
        parts.append(part)
    return b"".join(parts)


async def _exactly(response: aiohttp.ClientResponse) -> bytes:
    first = await response.content.readexactly(5)
    return first + await response.content.read()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    return await response.read()


async def _late(response: aiohttp.ClientResponse) -> bytes:
    await asyncio.sleep(0.1)
    return await response.read()


async def _text(response: aiohttp.ClientResponse) -> bytes:
    return (await response.text()).encode()


@pytest.mark.parametrize(
    "read", [_any, _chunked, _chunks, _lines, _until, _sized, _exactly, _whole, _late, _text], ids=lambda f: f.__name__
)
def test_whichever_way_a_stream_is_read_its_bytes_are_the_same_and_the_handle_is_seen(
    engine: stubs.Engine, read: Any
) -> None:
    engine.parts = stubs.stream_of(engine, "réq")
    got, attempt = served(post(engine, read))
    assert got == b"".join(engine.parts)
    assert (attempt.finish_reason, attempt.decode_status, attempt.outcome) == ("stop", 200, "ok")
    assert attempt.handle_out is not None
    assert attempt.handle_out.request_id == "réq"
    assert (attempt.output_tokens, attempt.answer_chars) == (3, len("Hello wörld!"))


def test_a_plain_answer_is_seen(engine: stubs.Engine) -> None:
    async def read(response: aiohttp.ClientResponse) -> Any:
        return await response.json()

    got, attempt = served(post(engine, read, json={"messages": []}))
    assert got["usage"]["completion_tokens"] == 3
    assert attempt.handle_out is not None
    assert attempt.finish_reason == "stop"


def test_the_first_event_is_there_while_the_engine_still_waits(engine: stubs.Engine) -> None:
    engine.pause = threading.Event()

    async def read(response: aiohttp.ClientResponse) -> bytes:
        first = await response.content.readuntil(b"\n\n")
        assert engine.pause is not None
        assert not engine.pause.is_set()
        engine.pause.set()
        return first + await response.read()

    got, attempt = served(post(engine, read))
    assert got.startswith(b'data: {"id"')
    assert got.endswith(b"data: [DONE]\n\n")
    assert attempt.handle_out is not None


def test_a_stream_the_proxy_leaves_before_its_end_is_a_cancelled_decode(engine: stubs.Engine) -> None:
    engine.pause = threading.Event()

    async def read(response: aiohttp.ClientResponse) -> None:
        await response.content.readuntil(b"\n\n")

    _, attempt = served(post(engine, read))
    engine.pause.set()
    assert (attempt.outcome, attempt.error_stage, attempt.finish_reason) == ("cancelled", "decode", None)


def test_a_stream_left_after_its_end_mark_is_no_failure(engine: stubs.Engine) -> None:
    engine.parts = [b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n', b": still open\n\n"]
    engine.pause = threading.Event()

    async def read(response: aiohttp.ClientResponse) -> None:
        await response.content.readuntil(b"\n\n")

    _, attempt = served(post(engine, read))
    engine.pause.set()
    assert (attempt.outcome, attempt.finish_reason) == ("ok", "stop")


def test_a_response_that_is_closed_by_hand_is_a_cancelled_decode(engine: stubs.Engine) -> None:
    engine.pause = threading.Event()

    async def use() -> None:
        async with aiohttp.ClientSession() as session:
            response = await session.post(engine.url + CHAT, json={"stream": True})
            response.close()

    _, attempt = served(use)
    engine.pause.set()
    assert (attempt.outcome, attempt.error_stage) == ("cancelled", "decode")


def test_a_response_that_is_forgotten_is_a_cancelled_decode(engine: stubs.Engine) -> None:
    engine.pause = threading.Event()

    async def use() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            async with aiohttp.ClientSession() as session:
                await session.post(engine.url + CHAT, json={"stream": True})
            gc.collect()

    _, attempt = served(use)
    engine.pause.set()
    assert (attempt.outcome, attempt.error_stage) == ("cancelled", "decode")


def test_a_stream_that_breaks_raises_the_same_error(engine: stubs.Engine) -> None:
    engine.break_after = 2

    async def read(response: aiohttp.ClientResponse) -> None:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

    _, attempt = served(post(engine, read))
    assert (attempt.outcome, attempt.error_stage, attempt.decode_status) == ("error", "decode", 200)


def test_an_engine_that_cannot_be_reached_raises_the_same_error() -> None:
    async def use() -> None:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.post(f"http://127.0.0.1:{stubs.free_port()}{CHAT}", json={})

    _, attempt = served(use)
    assert (attempt.outcome, attempt.error_stage, attempt.decode_status) == ("error", "decode", None)


def test_a_proxys_own_time_limits_end_the_leg(engine: stubs.Engine) -> None:
    async def limited() -> None:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(0.1):
                    await session.post(engine.url + CHAT, json={})

    async def read(response: aiohttp.ClientResponse) -> None:
        with pytest.raises(aiohttp.ServerTimeoutError):
            await response.read()

    engine.delay_s = 2.0
    _, attempt = served(limited)
    assert (attempt.outcome, attempt.error_stage) == ("cancelled", "decode")
    engine.reset()
    engine.pause = threading.Event()
    _, attempt = served(post(engine, read, timeout=aiohttp.ClientTimeout(sock_read=0.2)))
    engine.pause.set()
    assert (attempt.outcome, attempt.error_stage) == ("error", "decode")


@pytest.mark.parametrize("session", [{}, {"raise_for_status": True}])
def test_an_engines_refusal_keeps_its_status(engine: stubs.Engine, session: dict[str, Any]) -> None:
    engine.statuses.append(503)

    async def use() -> Any:
        try:
            return await post(engine, _whole, session=session)()
        except aiohttp.ClientResponseError as error:
            return error.status

    got, attempt = served(use)
    assert got == (503 if session else b'{"error":{"message":"no","code":503}}')
    assert (attempt.outcome, attempt.decode_status) == ("error", 503)


@pytest.mark.parametrize("decompress", [True, False])
def test_compressed_answers_are_read(decompress: bool) -> None:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    body = json.dumps({"choices": [{"index": 0, "finish_reason": "length"}]}).encode()
    packed = gzip.compress(body)

    async def answer(_: Any) -> Response:
        return Response(packed, headers={"content-encoding": "gzip"}, media_type="application/json")

    with stubs.serving(Starlette(routes=[Route(CHAT, answer, methods=["POST"])])) as url:
        there = stubs.Engine("d0")
        there.url = url
        got, attempt = served(post(there, _whole, session={"auto_decompress": decompress}))
    assert got == (body if decompress else packed)
    assert attempt.finish_reason == "length"


def pairs() -> Iterator[tuple[str, str]]:
    yield "X-Own", "1"
    yield "X-Own", "2"


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        (None, ["default"]),
        ({"X-Own": "1"}, ["1"]),
        ([("X-Own", "1")], ["1"]),
        (CIMultiDict([("X-Own", "1"), ("x-own", "2")]), ["2"]),
        (pairs(), ["1", "2"]),
    ],
)
def test_headers_of_every_form_are_kept_and_what_was_left_out_is_added(
    engine: stubs.Engine, headers: Any, own: list[str]
) -> None:
    scope = {"headers": [(b"x-session-id", b"s"), (b"x-request-id", b"r")]}
    session = {"headers": {"Authorization": "Bearer t", "X-Own": "default"}}
    _, attempt = served(post(engine, _whole, headers=headers, session=session), **scope)
    sent = engine.requests[0].headers
    assert sent["authorization"] == "Bearer t"
    assert engine.requests[0].every("x-own") == own
    assert (sent["x-session-id"], sent["x-request-id"]) == ("s", "r")
    assert attempt.x_request_id == "r"


def test_headers_that_the_proxy_sends_itself_win(engine: stubs.Engine) -> None:
    own = {"X-Session-ID": "own", "x-request-id": "mine", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    for how in ({"headers": own}, {"session": {"headers": own}}):
        engine.reset()
        _, attempt = served(post(engine, _whole, **how), headers=[(b"x-session-id", b"s")])
        sent = engine.requests[0].headers
        assert {name: sent[name.lower()] for name in own} == own
        assert attempt.x_request_id == "mine"


BODY = {"messages": [{"role": "user", "content": "hi ö"}], "kv_transfer_params": {"do_remote_decode": True}}


async def streamed() -> AsyncIterator[bytes]:
    yield json.dumps(BODY).encode()


@pytest.mark.parametrize(
    "how",
    [
        {"json": BODY},
        {"data": json.dumps(BODY)},
        {"data": json.dumps(BODY).encode()},
        {"data": bytearray(json.dumps(BODY).encode())},
        {"data": aiohttp.JsonPayload(BODY)},
    ],
    ids=["json", "text", "bytes", "bytearray", "payload"],
)
def test_bodies_of_every_form_are_read_and_sent_as_they_are(engine: stubs.Engine, how: dict[str, Any]) -> None:
    _, attempt = served(post(engine, _whole, **{"json": None, **how}))
    assert engine.requests[0].body == BODY
    assert (attempt.prefill_status, attempt.decode_status) == (200, None)


def test_a_body_that_is_a_stream_is_left_to_the_client(engine: stubs.Engine) -> None:
    _, attempt = served(post(engine, _whole, json=None, data=streamed()))
    assert engine.requests[0].body == BODY
    assert (attempt.prefill_status, attempt.decode_status) == (None, 200)


def test_paths_below_a_base_url_and_calls_by_name_are_seen(engine: stubs.Engine) -> None:
    async def once() -> None:
        async with aiohttp.ClientSession(base_url=engine.url) as session:
            async with session.request("post", CHAT, json={}) as response:
                await response.read()
            response = await session._request(method="POST", str_or_url=CHAT, json={})
            await response.read()

    process = Process()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await once()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    request(process, app)
    assert [attempt.decode_status for attempt in process.sent] == [200, 200]


def test_other_requests_are_left_alone(engine: stubs.Engine) -> None:
    async def use() -> Any:
        async with aiohttp.ClientSession() as session:
            async with session.get(engine.url + CHAT) as response:
                assert response.status == 405
            async with session.post(engine.url + "/tokenize", json={"prompt": "x"}) as response:
                assert type(response.content) is aiohttp.StreamReader
                assert response.status == 404

    _, attempt = served(use)
    assert attempt.decode_status is None

    async def outside() -> None:
        await post(engine, _whole)()

    asyncio.run(outside())
    assert "x-request-id" not in engine.requests[-1].headers


def test_a_session_that_makes_spans_itself_keeps_its_own_traceparent(engine: stubs.Engine) -> None:
    async def on_start(_: Any, __: Any, params: aiohttp.TraceRequestStartParams) -> None:
        params.headers["traceparent"] = f"00-{'1' * 32}-{'2' * 16}-01"

    config = aiohttp.TraceConfig()
    config.on_request_start.append(on_start)
    config._is_instrumented_by_opentelemetry = True  # type: ignore[attr-defined]
    served(post(engine, _whole, session={"trace_configs": [config]}), headers=[(b"traceparent", b"00-x-y-01")])
    assert engine.requests[0].headers["traceparent"].startswith("00-1111")


@pytest.mark.parametrize("broken", ["chain", "tracing", "clock", "prompts"])
def test_a_broken_hook_changes_nothing_and_switches_itself_off(engine: stubs.Engine, broken: str) -> None:
    process = Process()
    setattr(process.hook, broken, None)
    engine.parts = stubs.stream_of(engine, "r")
    got = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        got.append(await post(engine, _whole)())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    for _ in range(ERROR_LIMIT):
        request(process, app, body=b'{"previous_response_id": "r"}')
    assert process.hook.guard.broken
    assert got == [b"".join(engine.parts)] * ERROR_LIMIT
    assert aiohttp_client._LEGS == {}


def test_patching_twice_changes_nothing() -> None:
    before = aiohttp.ClientSession._request
    assert patch(aiohttp) is False
    assert aiohttp.ClientSession._request is before
