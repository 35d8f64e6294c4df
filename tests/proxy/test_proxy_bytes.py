"""The client gets the same bytes as without the hook, as soon as the proxy has them."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.proxy.conftest import SCRIPT, Proxy, Start, traceparent

pytestmark = pytest.mark.timeout(300)  # starts processes

HANDLE = {"remote_engine_id": "d0", "remote_request_id": "réq", "remote_num_tokens": 7, "remote_block_ids": [[1]]}


def chunk(content: Any, **more: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": content}}], **more}, ensure_ascii=False).encode()


LAST = json.dumps({"choices": [], "kv_transfer_params": HANDLE}, ensure_ascii=False).encode()


def cut_at(whole: bytes, *places: bytes, inside: int = 1) -> list[bytes]:
    edges = [0, *(whole.index(place) + inside for place in places), len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(edges)]


USUAL = b"data: " + chunk("wörd") + b"\n\ndata: " + chunk(None) + b"\n\ndata: " + LAST + b"\n\ndata: [DONE]\n\n"
STREAMS = {
    "cut inside the handle": cut_at(USUAL, b"kv_transfer_params", b"remote_num_tokens", inside=4),
    "cut inside a character": cut_at(USUAL, "ö".encode(), "é".encode()),
    "one byte at a time": [USUAL[i : i + 1] for i in range(len(USUAL))],
    "all at once": [USUAL],
    "CRLF": cut_at(USUAL.replace(b"\n", b"\r\n"), b"\r\n\r\ndata: [DONE]"),
    "no space after data": [USUAL.replace(b"data: ", b"data:")],
    "a comment and an empty event": [b": ping\n\n\n\n", USUAL],
    "no blank line at the end": [b"data: " + chunk("a") + b"\n\ndata: " + LAST],
    "57 bytes": [b"data: " + chunk("x" * (57 - 8 - len(chunk("")))) + b"\n\n", USUAL],
    "broken JSON": [b'data: {"usage": \n\n', b"data: \xff\xfe\n\n", USUAL],
    "a long event": [b"data: " + chunk("y" * 5_000_000) + b"\n\n", USUAL],
}


@pytest.fixture(scope="module")
def bare(start: Start) -> Iterator[Proxy]:
    """The same script without the hook."""
    with start({}, command=[sys.executable, str(SCRIPT)]) as running:
        yield running


@pytest.mark.parametrize("stream", STREAMS)
def test_every_form_of_stream_passes_unchanged_and_shows_its_handle(proxy: Proxy, bare: Proxy, stream: str) -> None:
    proxy.decode.parts = STREAMS[stream]
    plain, _ = bare.send({"stream": True})
    watched, trace_id = proxy.send({"stream": True})
    assert watched.content == plain.content == b"".join(STREAMS[stream])
    assert {k: v for k, v in watched.headers.items() if k != "date"} == {
        k: v for k, v in plain.headers.items() if k != "date"
    }
    (attempt,) = proxy.attempts(trace_id)
    assert attempt.handle_out is not None
    assert attempt.handle_out.request_id == "réq"
    assert attempt.outcome == "ok"


@pytest.mark.parametrize("status", [200, 400, 500, 502])
def test_plain_answers_and_errors_pass_unchanged(proxy: Proxy, bare: Proxy, status: int) -> None:
    answers = []
    for one in (bare, proxy):
        one.decode.reset()
        one.decode.statuses.append(status)
        one.decode.handles = False
        answers.append(one.send({}, x_keep_x_request_id="same")[0])
    assert answers[0].status_code == answers[1].status_code == status
    shape = [{k: v for k, v in a.json().items() if k != "id"} for a in answers]
    assert shape[0] == shape[1]


def test_engines_get_the_same_bodies(proxy: Proxy, bare: Proxy) -> None:
    bodies = []
    for one in (bare, proxy):
        one.prefill.reset()
        one.send({"conversation_id": "same", "unknown": [1, {"a": None}], "user": "u"})
        bodies.append(one.prefill.requests[0].body)
    assert bodies[0] == bodies[1]


def test_the_first_event_passes_while_the_engine_still_waits(proxy: Proxy) -> None:
    delays = []
    for _ in range(5):
        proxy.decode.pause = threading.Event()
        with proxy.client.stream(
            "POST", "/v1/chat/completions", json={"stream": True, "messages": []}, headers=traceparent("d" * 32)
        ) as response:
            pieces = response.iter_raw()
            first = next(pieces)
            delays.append(time.monotonic() - proxy.decode.first_piece_at)
            assert first == b'data: {"id"' + first[11:]
            assert not proxy.decode.pause.is_set()
            proxy.decode.pause.set()
            assert b"[DONE]" in b"".join(pieces)
    assert min(delays) < 0.05


def test_many_streams_at_once_stay_apart(proxy: Proxy) -> None:
    async def all_of_them() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=50)
        async with httpx.AsyncClient(trust_env=False, timeout=60, limits=limits) as client:
            return await asyncio.gather(
                *(
                    client.post(
                        f"{proxy.url}/v1/chat/completions",
                        json={"stream": True, "conversation_id": f"many-{i}", "messages": []},
                        headers=traceparent(f"{i:032x}"),
                    )
                    for i in range(1, 41)
                )
            )

    answers = asyncio.run(all_of_them())
    assert {a.status_code for a in answers} == {200}
    for number in range(1, 41):
        (attempt,) = proxy.attempts(f"{number:032x}")
        assert attempt.session_id == f"many-{number}"
        sent = {r.headers["x-session-id"]: r.body["kv_transfer_params"] for r in proxy.decode.requests}
        assert attempt.prefill is not None
        assert sent[f"many-{number}"]["remote_request_id"] == attempt.prefill.request_id
