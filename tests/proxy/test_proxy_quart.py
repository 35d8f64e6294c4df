"""A proxy on Quart and aiohttp, as vLLM's own examples are, under ``turnscope run``: watched, and not changed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hook.receiver import Receiver
from tests.proxy.conftest import TURNSCOPE, Proxy, Start, traceparent
from tests.proxy.test_proxy_bytes import STREAMS
from turnscope.model import EngineState

pytestmark = pytest.mark.timeout(300)  # starts processes

SCRIPT = str(Path(__file__).with_name("aiohttp_script.py"))


@pytest.fixture(scope="module")
def watched(start: Start) -> Iterator[Proxy]:
    with start({}, command=[*TURNSCOPE, "run", SCRIPT]) as running:
        yield running


@pytest.fixture(scope="module")
def bare(start: Start) -> Iterator[Proxy]:
    """The same script without the hook."""
    with start({}, command=[sys.executable, SCRIPT]) as running:
        yield running


@pytest.fixture
def proxy(watched: Proxy) -> Proxy:
    watched.prefill.reset()
    watched.decode.reset()
    return watched


@pytest.mark.parametrize("stream", STREAMS)
def test_every_form_of_stream_passes_unchanged_and_shows_its_handle(proxy: Proxy, bare: Proxy, stream: str) -> None:
    proxy.decode.parts = STREAMS[stream]
    plain, _ = bare.send({"stream": True})
    seen, trace_id = proxy.send({"stream": True})
    assert seen.content == plain.content == b"".join(STREAMS[stream])
    assert {k: v for k, v in seen.headers.items() if k != "date"} == {
        k: v for k, v in plain.headers.items() if k != "date"
    }
    (attempt,) = proxy.attempts(trace_id)
    assert attempt.handle_out is not None
    assert attempt.handle_out.request_id == "réq"
    assert attempt.outcome == "ok"


@pytest.mark.parametrize("stream", [False, True])
def test_two_turns_show_the_handle_going_out_and_in(proxy: Proxy, stream: bool) -> None:
    body = {"conversation_id": f"quart-{stream}", "stream": stream}
    (before,), (after,) = (proxy.attempts(proxy.send(body)[1]) for _ in range(2))
    assert (before.outcome, before.prefill_status, before.decode_status, before.streamed) == ("ok", 200, 200, stream)
    assert before.prefill is not None
    assert before.handle_out is not None
    assert after.handle_given == before.handle_out
    assert before.first_byte_ns is not None
    sent = proxy.prefill.requests[0]
    assert sent.headers["x-session-id"] == f"quart-{stream}"
    assert sent.headers["x-request-id"] == before.x_request_id


def test_engines_get_the_same_bodies(proxy: Proxy, bare: Proxy) -> None:
    bodies = []
    for one in (bare, proxy):
        one.prefill.reset()
        one.send({"conversation_id": "same", "unknown": [1, {"a": None}], "user": "u"})
        bodies.append(one.prefill.requests[0].body)
    assert bodies[0] == bodies[1]


def test_a_refused_prefill_passes_unchanged_and_is_told(proxy: Proxy, bare: Proxy) -> None:
    answers = []
    for one in (bare, proxy):
        one.prefill.reset()
        one.prefill.statuses.append(503)
        answers.append(one.send({}))
    assert answers[0][0].content == answers[1][0].content
    assert answers[1][0].status_code == 503
    (attempt,) = proxy.attempts(answers[1][1])
    assert (attempt.outcome, attempt.error_stage, attempt.prefill_status) == ("error", "prefill", 503)


def test_the_first_event_passes_while_the_engine_still_waits(proxy: Proxy) -> None:
    delays = []
    for _ in range(5):
        proxy.decode.pause = threading.Event()
        with proxy.client.stream(
            "POST", "/v1/chat/completions", json={"stream": True, "messages": []}, headers=traceparent("e" * 32)
        ) as response:
            pieces = response.iter_raw()
            first = next(pieces)
            delays.append(time.monotonic() - proxy.decode.first_piece_at)
            assert first.startswith(b'data: {"id"')
            assert not proxy.decode.pause.is_set()
            proxy.decode.pause.set()
            assert b"[DONE]" in b"".join(pieces)
    assert min(delays) < 0.05


def test_a_client_that_leaves_is_a_cancelled_turn(proxy: Proxy) -> None:
    proxy.decode.pause = threading.Event()
    trace_id = "f" * 32
    with proxy.client.stream(
        "POST", "/v1/chat/completions", json={"stream": True, "messages": []}, headers=traceparent(trace_id)
    ) as response:
        next(response.iter_raw())
    (attempt,) = proxy.attempts(trace_id)
    proxy.decode.pause.set()
    assert attempt.outcome == "cancelled"


def test_the_process_says_what_it_watches(proxy: Proxy, sidecar: Receiver) -> None:
    _, trace_id = proxy.send()
    proxy.attempts(trace_id)
    emitter = next(e.emitter for e in sidecar.events if getattr(e.body, "caller_trace_id", "") == trace_id)
    wrapped = next(e.body.wrapped for e in sidecar.events if e.emitter == emitter and isinstance(e.body, EngineState))
    assert sorted(wrapped) == ["aiohttp", "quart"]
