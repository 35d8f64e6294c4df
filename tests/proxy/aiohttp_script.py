"""A prefill/decode proxy on Quart and aiohttp, as vLLM's examples are written, knowing nothing of turnscope.

Handles are kept by ``conversation_id`` and removed when read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from quart import Quart, Response, make_response, request

FIRST_TURN = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None}
TIMEOUT = aiohttp.ClientTimeout(total=60)


def make_app(prefill_url: str, decode_url: str) -> Quart:
    handles: dict[str, dict[str, Any]] = {}
    app = Quart(__name__)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/chat/completions")
    async def chat() -> Any:
        body = await request.get_json()
        conversation = body.get("conversation_id")
        headers = {k[7:]: v for k, v in request.headers.items() if k.lower().startswith("x-keep-")}
        handle = handles.pop(conversation, None)
        params = {**handle, "do_remote_decode": True} if handle else FIRST_TURN
        one = {**body, "max_tokens": 1, "stream": False, "kv_transfer_params": params}
        url = f"{prefill_url}/v1/chat/completions"
        async with (
            aiohttp.ClientSession(timeout=TIMEOUT) as session,
            session.post(url, json=one, headers=headers) as first,
        ):
            content = await first.read()
            if first.status != 200:
                return Response(content, first.status, content_type=first.headers["content-type"])
        body["kv_transfer_params"] = json.loads(content).get("kv_transfer_params")

        async def relay() -> AsyncIterator[bytes]:
            seen = b""
            async with (
                aiohttp.ClientSession(timeout=TIMEOUT) as session,
                session.post(f"{decode_url}/v1/chat/completions", json=body, headers=headers) as answer,
            ):
                async for part in answer.content.iter_any():
                    seen = (seen + part)[-4096:]
                    yield part
            last = seen.rpartition(b'"kv_transfer_params":')[2].strip()
            if conversation and last.startswith(b"{"):
                handles[conversation] = json.JSONDecoder().raw_decode(last.decode())[0]

        response = await make_response(relay())
        response.timeout = None  # type: ignore[union-attr]
        response.content_type = "text/event-stream" if body.get("stream") else "application/json"
        return response

    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--prefill", required=True)
    parser.add_argument("--decode", required=True)
    options = parser.parse_args()
    make_app(options.prefill, options.decode).run(host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
