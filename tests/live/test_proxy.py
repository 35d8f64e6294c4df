"""The live pair's proxy between fake engines."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from live.proxy import Handles, make_app


@contextlib.contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """``app`` on a free port."""
    sock = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    sock.close()


class Engine:
    """Answers like vLLM, in the pieces given, and remembers what it was asked."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.pieces: list[bytes] = []
        self.status = 200
        self.app = FastAPI()
        self.app.post("/v1/chat/completions")(self._chat)

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        if self.status != 200:
            return Response('{"error": "no"}', self.status, media_type="application/json")
        if body.get("stream"):
            return StreamingResponse(iter(self.pieces), media_type="text/event-stream")
        handle = {"remote_engine_id": self.role, "remote_request_id": f"{self.role}{len(self.asked)}"}
        answer = {"choices": [{"message": {"content": "hi"}}], "kv_transfer_params": handle}
        return Response(json.dumps(answer), media_type="application/json")


class Deployment:
    """P, D, the proxy and a client."""

    def __init__(self, prefill: Engine, decode: Engine, client: httpx.Client) -> None:
        self.prefill, self.decode, self.client = prefill, decode, client

    def ask(self, **body: Any) -> httpx.Response:
        return self.client.post("/v1/chat/completions", json={"model": "m", "messages": [], **body})


@pytest.fixture
def pair() -> Iterator[Deployment]:
    prefill, decode = Engine("p"), Engine("d")
    with (
        served(prefill.app) as p,
        served(decode.app) as d,
        served(make_app(p, [d])) as url,
        httpx.Client(base_url=url, timeout=20) as client,
    ):
        yield Deployment(prefill, decode, client)


def test_a_whole_answers_handle_goes_to_the_next_turns_prefill_once(pair: Deployment) -> None:
    for _ in range(2):
        answer = pair.ask(conversation_id="c", max_tokens=9)
        assert answer.json() == {"choices": [{"message": {"content": "hi"}}]}
    pair.ask(conversation_id="other")
    first, second, other = (asked["kv_transfer_params"] for asked in pair.prefill.asked)
    assert first["remote_engine_id"] is None
    assert second == {"remote_engine_id": "d", "remote_request_id": "d1"}
    assert other == first
    assert [asked["max_tokens"] for asked in pair.prefill.asked[:2]] == [1, 1]
    assert pair.decode.asked[1]["kv_transfer_params"]["remote_request_id"] == "p2"
    assert "conversation_id" not in pair.decode.asked[0]


def test_the_handle_is_taken_out_of_the_stream_and_the_rest_passes_unchanged(pair: Deployment) -> None:
    text = b'data: {"choices":[{"delta":{"content":"\xc3\xa9"}}]}\n\n'
    handle = b'data: {"choices":[],"kv_transfer_params":{"remote_request_id":"d7"}}\n\n'
    whole = text + handle + b"data: [DONE]\n\n"
    # Cut inside the two-byte character, inside the handle's name and between the line feeds.
    cuts = [0, text.index(b"\xa9"), len(text) + 25, len(text) + len(handle) - 1, len(whole)]
    pair.decode.pieces = [whole[a:b] for a, b in itertools.pairwise(cuts)]
    assert pair.ask(conversation_id="c", stream=True).content == text + b"data: [DONE]\n\n"
    pair.ask(conversation_id="c")
    assert pair.prefill.asked[1]["kv_transfer_params"] == {"remote_request_id": "d7"}


def test_only_headers_that_are_named_are_passed_on() -> None:
    prefill, decode = Engine("p"), Engine("d")
    with (
        served(prefill.app) as p,
        served(decode.app) as d,
        served(make_app(p, [d], forward=("x-session-id",))) as url,
        httpx.Client(base_url=url, timeout=20) as client,
    ):
        client.post("/v1/chat/completions", json={"messages": []}, headers={"X-Session-ID": "s", "X-Other": "o"})
    for engine in (prefill, decode):
        assert engine.headers[0]["x-session-id"] == "s"
        assert "x-other" not in engine.headers[0]


def test_a_lost_handle_is_gone(pair: Deployment) -> None:
    pair.ask(conversation_id="c")
    assert pair.client.delete("/conversations/c").json() == {"done": True}
    assert pair.client.delete("/conversations/c").json() == {"done": False}
    pair.ask(conversation_id="c")
    assert pair.prefill.asked[1]["kv_transfer_params"]["remote_engine_id"] is None


def test_a_failed_prefill_is_the_clients_answer_and_no_decode_happens(pair: Deployment) -> None:
    pair.prefill.status = 500
    answer = pair.ask(stream=True)
    assert (answer.status_code, answer.json()) == (500, {"error": "no"})
    assert pair.decode.asked == []


def test_a_failed_decode_ends_the_stream_with_the_error(pair: Deployment) -> None:
    pair.decode.status = 503
    answer = pair.ask(stream=True)
    assert b'"code": 503' in answer.content
    assert answer.content.endswith(b"data: [DONE]\n\n")


def test_a_handle_older_than_its_time_is_not_given() -> None:
    now = 0.0
    handles = Handles(450, clock=lambda: now)
    handles.put("c", {"a": 1})
    now = 449.9
    assert handles.take("c") == {"a": 1}
    handles.put("c", {"a": 1})
    now = 900.0
    assert handles.take("c") is None


def test_a_handle_can_be_given_again_and_without_its_expiry() -> None:
    now = [0.0]
    handles = Handles(450, clock=lambda: now[0])
    assert not handles.give_again("c", 2)
    assert not handles.drop_expiry("c")
    handles.put("c", {"id": 1, "remote_blocks_expiry_time": 5.0})
    assert handles.drop_expiry("c")
    assert handles.give_again("c", 2)
    assert handles.take("c") == {"id": 1}
    handles.put("c", {"id": 2})
    assert handles.take("c") == {"id": 1}
    handles.put("c", {"id": 3})
    assert handles.take("c") == {"id": 3}


def test_a_proxy_that_keeps_handles_for_no_time_gives_none() -> None:
    handles = Handles(0.0)
    handles.put("c", {"remote_engine_id": "d"})
    assert handles.take("c") is None


def test_of_several_decode_engines_each_gets_the_next_request() -> None:
    prefill, decodes = Engine("p"), [Engine("d1"), Engine("d2")]
    with (
        served(prefill.app) as p,
        served(decodes[0].app) as d1,
        served(decodes[1].app) as d2,
        served(make_app(p, [d1, d2])) as url,
        httpx.Client(base_url=url, timeout=20) as client,
    ):
        pair = Deployment(prefill, decodes[0], client)
        assert [pair.ask(conversation_id="c").status_code for _ in range(3)] == [200] * 3
    assert [len(engine.asked) for engine in decodes] == [2, 1]
    given = [asked["kv_transfer_params"]["remote_engine_id"] for asked in prefill.asked]
    assert given == [None, "d1", "d2"]
