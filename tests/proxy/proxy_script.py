"""A stateful prefill/decode proxy as people write them, knowing nothing of turnscope.

Handles are kept by ``conversation_id`` and removed when read; a prefill that answers 502 or 503 is tried once more
without the handle. ``--decorate`` names a module whose ``decorate(app)`` is called first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

FIRST_TURN = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None}


def make_app(prefill_url: str, decode_url: str) -> FastAPI:
    handles: dict[str, dict[str, Any]] = {}
    client = httpx.AsyncClient(timeout=20, trust_env=False)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await client.aclose()

    app = FastAPI(lifespan=lifespan)

    async def prefill(body: dict[str, Any], handle: dict[str, Any] | None, headers: dict[str, str]) -> httpx.Response:
        params = {**handle, "do_remote_decode": True} if handle else FIRST_TURN
        one = {**body, "max_tokens": 1, "stream": False, "kv_transfer_params": params}
        one.pop("stream_options", None)
        return await client.post(f"{prefill_url}/v1/chat/completions", json=one, headers=headers)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/no/engine")
    async def no_engine() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await request.json()
        if body.get("proxy_fails"):
            raise RuntimeError("the proxy is broken")
        passed_on = {k: v for k, v in request.headers.items() if k.startswith("x-keep-")}
        headers = {k.removeprefix("x-keep-"): v for k, v in passed_on.items()}
        conversation = body.get("conversation_id")
        first = await prefill(body, handles.pop(conversation, None), headers)
        if first.status_code in (502, 503):
            first = await prefill(body, None, headers)
        if first.status_code != 200:
            return JSONResponse(first.json(), first.status_code)
        body["kv_transfer_params"] = first.json().get("kv_transfer_params")
        if not body.get("stream"):
            answer = await client.post(f"{decode_url}/v1/chat/completions", json=body, headers=headers)
            if conversation and answer.status_code == 200:
                handles[conversation] = answer.json().get("kv_transfer_params")
            return Response(answer.content, answer.status_code, media_type=answer.headers["content-type"])
        return StreamingResponse(relay(conversation, body, headers), media_type="text/event-stream")

    async def relay(conversation: str | None, body: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[bytes]:
        seen = b""
        url = f"{decode_url}/v1/chat/completions"
        async with client.stream("POST", url, json=body, headers=headers) as answer:
            answer.raise_for_status()
            async for part in answer.aiter_bytes():
                seen = (seen + part)[-4096:]
                yield part
        last = seen.rpartition(b'"kv_transfer_params": ')[2]
        if conversation and last.startswith(b"{"):
            handles[conversation] = json.JSONDecoder().raw_decode(last.decode())[0]

    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--prefill", required=True)
    parser.add_argument("--decode", required=True)
    parser.add_argument("--decorate")
    options = parser.parse_args()
    app = make_app(options.prefill, options.decode)
    if options.decorate:
        importlib.import_module(options.decorate).decorate(app)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
