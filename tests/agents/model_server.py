"""A small model server: answers chat completions in OpenAI's form, streamed or not, by a script.

A conversation's first question is answered by a call of each tool that is offered; once results of tools stand in the
messages, by a sentence. Where the questions, arguments and answers carry canaries, tests look for them everywhere.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

CANARIES = {
    "prompt": "canary-prompt-5d1c",
    "arguments": "canary-arguments-77ab",
    "result": "canary-result-c0de",
    "answer": "canary-answer-91fe",
}
USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 12,
    "total_tokens": 132,
    "prompt_tokens_details": {"cached_tokens": 100},
}
MODEL = "stub-model"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The assistant's message to ``request``."""
    asked = any(message.get("role") == "tool" for message in request["messages"])
    tools = [] if asked else request.get("tools") or []
    if not tools:
        return {"role": "assistant", "content": f"It is {CANARIES['answer']}."}
    calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": tool["function"]["name"],
                "arguments": json.dumps({_first_argument(tool): CANARIES["arguments"]}),
            },
        }
        for number, tool in enumerate(tools)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _first_argument(tool: dict[str, Any]) -> str:
    return next(iter(tool["function"]["parameters"].get("properties") or {"place": {}}))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = answer(request)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        base = {"id": "chatcmpl-1", "created": int(time.time()), "model": MODEL}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._send(
                "application/json",
                json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": USAGE}),
            )
            return
        calls = [{"index": n, **call} for n, call in enumerate(message.get("tool_calls") or [])]
        delta = {key: value for key, value in message.items() if key != "tool_calls"} | (
            {"tool_calls": calls} if calls else {}
        )
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {"choices": [], "usage": USAGE},
        ]
        lines = [json.dumps({**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        self._send("text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]))

    def _send(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
