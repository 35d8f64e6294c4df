"""What the live pair's client sends and what it writes down, against an answer as vLLM gives it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from live.conversations import FIRST, NONE, Conversation, Tells
from live.driver import TurnTruth, drive
from live.engines import PairConfig
from live.fronts import Front
from tests.live.test_proxy import served

USAGE = {"prompt_tokens": 700, "completion_tokens": 2}
STREAM = [
    {"id": "chatcmpl-7", "choices": [{"delta": {"content": " order"}}]},
    {"id": "chatcmpl-7", "choices": [], "kv_transfer_params": {}},
    {"id": "chatcmpl-7", "choices": [], "usage": USAGE},
]


class Proxy:
    """Answers every request in one way, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.app = FastAPI()
        self.app.post("/v1/chat/completions")(self._chat)

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append((body, dict(request.headers)))
        if body["stream"]:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in STREAM]
            return StreamingResponse(iter([*lines, "data: [DONE]\n\n"]), media_type="text/event-stream")
        answer = {"id": "chatcmpl-8", "choices": [{"message": {"content": " order"}}], "usage": USAGE}
        return Response(json.dumps(answer), media_type="application/json")


def held(proxy: Proxy, conversation: Conversation) -> list[TurnTruth]:
    with served(proxy.app) as url:
        config = PairConfig("uncached", 0, prefix_caching=False)
        return asyncio.run(drive(((conversation,),), config, Front.ROUTER, url, patience_s=20, say=lambda _: None))


@pytest.mark.parametrize(("streamed", "answer_id"), [(True, "chatcmpl-7"), (False, "chatcmpl-8")])
def test_an_answer_is_written_down_with_its_id_and_usage(streamed: bool, answer_id: str) -> None:
    (turn,) = held(Proxy(), Conversation("c", (FIRST,), streamed=streamed))
    assert (turn.answer_id, turn.outcome, turn.status, turn.front) == (answer_id, "ok", 200, Front.ROUTER)
    assert (turn.prompt_tokens, turn.output_tokens) == (700, 2)
    assert turn.ttft_ns is not None
    assert 0 < turn.ttft_ns <= turn.total_ns


@pytest.mark.parametrize("tells", Tells)
def test_engines_are_told_of_the_conversation_where_the_client_does_so(tells: Tells) -> None:
    proxy = Proxy()
    first, second = held(proxy, Conversation("c", (FIRST, NONE), tells=tells))
    assert first.session_id == second.session_id is not None
    for body, headers in proxy.asked:
        assert body["conversation_id"] == first.session_id
        assert body.get("session_id") == (first.session_id if tells is Tells.BODY else None)
        assert headers.get("x-session-id") == (first.session_id if tells is Tells.HEADER else None)
    assert [message["role"] for message in proxy.asked[1][0]["messages"]] == ["system", "user", "assistant", "user"]
