"""Engines that answer as a prefill/decode pair does, over real sockets, and do what a test tells them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


class Seen:
    """A request that reached an engine."""

    def __init__(self, headers: Headers, body: dict[str, Any]) -> None:
        self.headers = dict(headers)
        self.every = headers.getlist
        self.body = body


class Engine:
    """One stub engine; ``role`` is ``p0`` or ``d0``."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.url = ""
        self._numbers = itertools.count(1)
        self.reset()

    def reset(self) -> None:
        """Answer well and at once."""
        self.requests: list[Seen] = []
        self.statuses: deque[int] = deque()
        """Of the next answers; 200 when used up."""
        self.handles = True
        """Answers carry ``kv_transfer_params``."""
        self.strict = False
        """Refuse fields that are not in the chat schema."""
        self.parts: list[bytes] | None = None
        """The exact pieces of a streamed answer; else ``words``."""
        self.words = ["Hello", " wörld", "!"]
        self.tool_calls = 0
        self.delay_s = 0.0
        self.pause: threading.Event | None = None
        """Waited for after the first piece of a stream."""
        self.break_after: int | None = None
        """Pieces after which the connection breaks."""
        self.first_piece_at = 0.0

    def params(self, request_id: str) -> dict[str, Any]:
        """The handle this engine gives."""
        prefill = self.role.startswith("p")
        return {
            "do_remote_prefill": prefill,
            "do_remote_decode": not prefill,
            "remote_block_ids": [[1, 2, 3]],
            "remote_engine_id": self.role,
            "remote_request_id": request_id,
            "remote_host": "127.0.0.1",
            "remote_port": 5600,
            "tp_size": 1,
            "remote_num_tokens": 40,
            "remote_blocks_expiry_time": None if prefill else 1234.5,
        }

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(Seen(request.headers, body))
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        status = self.statuses.popleft() if self.statuses else 200
        if self.strict and "conversation_id" in body:
            status = 400
        if status != 200:
            return JSONResponse({"error": {"message": "no", "code": status}}, status)
        request_id = f"chatcmpl-{request.headers.get('x-request-id', 'none')}-{next(self._numbers):08x}"
        if body.get("stream"):
            return StreamingResponse(self._pieces(request_id), media_type="text/event-stream; charset=utf-8")
        return JSONResponse(self._plain(request_id))

    def _plain(self, request_id: str) -> dict[str, Any]:
        calls = [{"id": f"call_{i}", "type": "function"} for i in range(self.tool_calls)]
        message = {"role": "assistant", "content": "".join(self.words), "tool_calls": calls}
        reason = "tool_calls" if calls else "stop"
        answer: dict[str, Any] = {
            "id": request_id,
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 37, "completion_tokens": 3},
        }
        if self.handles:
            answer["kv_transfer_params"] = self.params(request_id)
        return answer

    async def _pieces(self, request_id: str) -> AsyncIterator[bytes]:
        pieces = self.parts if self.parts is not None else stream_of(self, request_id)
        for number, piece in enumerate(pieces):
            if number == self.break_after:
                raise ConnectionResetError("the engine died")
            if number == 0:
                self.first_piece_at = time.monotonic()
            yield piece
            if number == 0 and self.pause is not None:
                while not self.pause.is_set():
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0)


def stream_of(engine: Engine, request_id: str) -> list[bytes]:
    """The events of a streamed answer, the handle in the last one."""

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        return {"id": request_id, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

    events = [event({"role": "assistant", "content": ""}), *(event({"content": word}) for word in engine.words)]
    events += [
        event({"tool_calls": [{"index": i, "id": f"call_{i}", "function": {"name": "f", "arguments": "{}"}}]})
        for i in range(engine.tool_calls)
    ]
    events.append(event({"content": None}, "tool_calls" if engine.tool_calls else "stop"))
    events.append({"id": request_id, "choices": [], "usage": {"prompt_tokens": 37, "completion_tokens": 3}})
    if engine.handles:
        events.append({"id": request_id, "choices": [], "kv_transfer_params": engine.params(request_id)})
    return [f"data: {json.dumps(e, ensure_ascii=False)}\n\n".encode() for e in events] + [b"data: [DONE]\n\n"]


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(app: Any, *, lifespan: str = "auto") -> Iterator[str]:
    """Serve an ASGI application in a thread; yields its URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan=lifespan)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline, "the server never started"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


@contextlib.contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    """Serve a stub engine."""
    with serving(Starlette(routes=[Route("/v1/chat/completions", engine.chat, methods=["POST"])])) as url:
        engine.url = url
        yield engine
