"""A small stateful proxy for a prefill/decode pair with bidirectional KV transfer, as people deploy it.

Each chat request goes to P first (one token, not streamed), then to D with P's ``kv_transfer_params``. D's own
handle, found in its answer, is kept by ``conversation_id`` and given to P with the conversation's next turn, once.
It knows nothing of turnscope: ``turnscope run live/proxy.py ...`` observes it from outside.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

log = logging.getLogger("live.proxy")

HANDLE_TTL_S = 450.0
"""Below D's own 480 s, so that a handle is dropped here before D drops the blocks."""
NO_HANDLE: dict[str, Any] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


class Handles:
    """The last handle of each conversation; taking it removes it. With faults that proxies have been seen to have."""

    def __init__(self, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._kept: dict[str, tuple[float, dict[str, Any]]] = {}
        self._again: dict[str, tuple[int, dict[str, Any]]] = {}

    def put(self, conversation: str | None, handle: dict[str, Any] | None) -> None:
        """Keep ``handle`` if there is one and a conversation to keep it for."""
        if conversation and handle:
            self._kept[conversation] = (self._clock(), handle)

    def take(self, conversation: str | None) -> dict[str, Any] | None:
        """The handle, unless there is none or it is too old."""
        at, handle = self._kept.pop(conversation or "", (0.0, None))
        left, again = self._again.pop(conversation or "", (0, None))
        if conversation and again is not None:
            if left > 1:
                self._again[conversation] = left - 1, again
            return again
        return handle if handle is not None and self._clock() - at < self._ttl_s else None

    def give_again(self, conversation: str, times: int) -> bool:
        """The next ``times`` turns all get the present handle, whatever comes in between; False when there is none."""
        _, handle = self._kept.get(conversation, (0.0, None))
        if handle is not None:
            self._again[conversation] = times, handle
        return handle is not None

    def drop_expiry(self, conversation: str) -> bool:
        """Forget the present handle's expiry, as routers do that pass on only the fields they know."""
        _, handle = self._kept.get(conversation, (0.0, None))
        return handle is not None and handle.pop("remote_blocks_expiry_time", None) is not None


def make_app(
    prefill_url: str,
    decode_urls: Sequence[str],
    handle_ttl_s: float = HANDLE_TTL_S,
    forward: tuple[str, ...] = (),
    prefill_timeout_s: float | None = None,
) -> FastAPI:
    """The proxy between its clients and the engines, to which it passes the headers named in ``forward`` on; of several
    decode engines each gets the next request. A prefill that brought a handle and does not answer in
    ``prefill_timeout_s`` is given up and asked again without it.
    """
    handles = Handles(handle_ttl_s)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            prefill, *decodes = [
                await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=None, limits=limits))
                for url in (prefill_url, *decode_urls)
            ]
            app.state.prefill, app.state.decodes = prefill, itertools.cycle(decodes)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.delete("/conversations/{conversation}")
    async def forget(conversation: str) -> dict[str, bool]:
        """Lose a conversation's handle, as a restart or another replica would."""
        return {"done": handles.take(conversation) is not None}

    @app.post("/conversations/{conversation}/again")
    async def again(conversation: str, times: int) -> dict[str, bool]:
        """Give a conversation's handle to several turns."""
        return {"done": handles.give_again(conversation, times)}

    @app.delete("/conversations/{conversation}/expiry")
    async def no_expiry(conversation: str) -> dict[str, bool]:
        """Give a conversation's handle without its expiry."""
        return {"done": handles.drop_expiry(conversation)}

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await request.json()
        # Strict front ends refuse a field that is not in the chat schema.
        conversation = body.pop("conversation_id", None)
        passed = {name: request.headers[name] for name in forward if name in request.headers}
        headers = {"X-Request-Id": str(uuid.uuid4()), **passed}
        handle = handles.take(conversation)
        decode = next(app.state.decodes)
        started = time.perf_counter()
        first = await _prefill(app.state.prefill, body, handle, headers, prefill_timeout_s)
        log.info(
            "[%s] Prefill done in %.1fms conv=%s: cache %s",
            headers["X-Request-Id"],
            (time.perf_counter() - started) * 1e3,
            conversation,
            "HIT" if handle else "MISS",
        )
        if first.status_code != 200:
            return Response(first.content, first.status_code, media_type=first.headers.get("content-type"))
        body["kv_transfer_params"] = first.json().get("kv_transfer_params")
        if body.get("stream"):
            stream = _stream(decode, body, headers, lambda found: handles.put(conversation, found))
            return StreamingResponse(stream, media_type="text/event-stream")
        answer = await decode.post("/v1/chat/completions", json=body, headers=headers)
        if answer.status_code != 200:
            return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))
        content = answer.json()
        handles.put(conversation, content.pop("kv_transfer_params", None))
        return JSONResponse(content)

    return app


async def _prefill(
    engine: httpx.AsyncClient,
    body: dict[str, Any],
    handle: dict[str, Any] | None,
    headers: dict[str, str],
    timeout_s: float | None,
) -> httpx.Response:
    patience = timeout_s if handle else None
    try:
        return await engine.post(
            "/v1/chat/completions", json=_prefill_body(body, handle), headers=headers, timeout=patience
        )
    except httpx.ReadTimeout:
        # Under an id of its own: the engine may still have the other one.
        headers["X-Request-Id"] = str(uuid.uuid4())
        return await engine.post("/v1/chat/completions", json=_prefill_body(body, None), headers=headers)


def _prefill_body(body: dict[str, Any], handle: dict[str, Any] | None) -> dict[str, Any]:
    prefill = {**body, "stream": False, "max_tokens": 1, "kv_transfer_params": handle or NO_HANDLE}
    if "max_completion_tokens" in prefill:
        prefill["max_completion_tokens"] = 1
    prefill.pop("stream_options", None)
    return prefill


async def _stream(
    decode: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], found: Callable[[dict[str, Any]], None]
) -> AsyncIterator[bytes]:
    """D's events as they come, except the one that only carries the handle."""
    async with decode.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
        if answer.status_code != 200:
            error = {
                "error": {"message": (await answer.aread()).decode("utf-8", "replace"), "code": answer.status_code}
            }
            yield f"data: {json.dumps(error)}\n\ndata: [DONE]\n\n".encode()
            return
        waiting = b""
        async for part in answer.aiter_bytes():
            *events, waiting = (waiting + part).split(b"\n\n")
            for event in events:
                handle = _handle_in(event)
                if handle:
                    found(handle)
                else:
                    yield event + b"\n\n"
        if waiting:
            yield waiting


def _handle_in(event: bytes) -> dict[str, Any] | None:
    if b'"kv_transfer_params"' not in event:
        return None
    chunk = json.loads(event.removeprefix(b"data:"))
    return chunk.get("kv_transfer_params") if not chunk.get("choices") else None


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--prefill", required=True, help="URL of the prefill engine")
    parser.add_argument("--decode", required=True, action="append", help="URL of a decode engine")
    parser.add_argument("--forward", action="append", default=[], metavar="HEADER", help="passed on to the engines")
    parser.add_argument("--handle-ttl", type=float, default=HANDLE_TTL_S, help="seconds a handle is kept")
    parser.add_argument("--prefill-timeout", type=float, help="seconds after which one with a handle is given up")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    forward = tuple(options.forward)
    app = make_app(options.prefill, options.decode, options.handle_ttl, forward, options.prefill_timeout)
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
