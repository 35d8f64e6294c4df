"""Clients and engines that keep to no protocol: on the wire nothing differs from the bare proxy."""

from __future__ import annotations

import contextlib
import re
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.hook.receiver import Receiver
from tests.proxy import stubs
from tests.proxy.conftest import SCRIPT, TURNSCOPE, process, traceparent
from turnscope.model import Attempt, Heartbeat

pytestmark = pytest.mark.timeout(300)  # starts processes

HEAD: Final = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: proxy\r\nconnection: close\r\ncontent-type: application/json\r\n"
)
BODY: Final = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "' + b"x" * 500 + b'"}]}'


def posted(body: bytes = BODY, headers: bytes = b"") -> bytes:
    return HEAD + headers + b"content-length: %d\r\n\r\n%b" % (len(body), body)


def chunked(body: bytes) -> bytes:
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(body[i : i + 100]), body[i : i + 100]) for i in range(0, len(body), 100))
    return HEAD + b"transfer-encoding: chunked\r\n\r\n" + pieces + b"0\r\nx-trailer: t\r\n\r\n"


OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
EVENT: Final = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
REQUESTS: Final = {
    "in chunks, with a trailer": chunked(BODY),
    "headers of odd bytes": posted(
        BODY, b"x-session-id: \xff\xfe\xe9\r\nX-Request-Id:  a b\t\r\ntraceparent: junk\r\n"
    ),
    "a header given twice": posted(headers=b"x-session-id: a\r\nX-SESSION-ID: b\r\n"),
    "asking before it sends": posted(headers=b"expect: 100-continue\r\n"),
    "broken JSON": posted(b'{"model":'),
    "JSON of another shape": posted(b"[1, null]"),
    "bytes that are no text": posted(b"\xff\x00\xfe"),
    "no body": posted(b""),
    "HEAD": HEAD.replace(b"POST", b"HEAD") + b"\r\n",
    "OPTIONS": HEAD.replace(b"POST", b"OPTIONS") + b"\r\n",
    "HTTP/1.0": posted().replace(b"HTTP/1.1", b"HTTP/1.0"),
    "no HTTP": b"\x16\x03\x01\x02\x00\r\n\r\n",
}


def answer_to(url: str, sent: bytes, *, leave: bool = False) -> bytes:
    """All that comes back, but for what names the moment; nothing where the client leaves at once, by a reset."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(sent)
        if leave:
            time.sleep(0.1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return b""
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    return re.sub(rb"date: [^\r]*|chatcmpl-[\w-]+", b"", b"".join(parts))


class Breaking:
    """An engine that sends ``begin`` of its answer when it has a request, and closes the connection."""

    def __init__(self) -> None:
        self.begin = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    while (part := connection.recv(65_536)) and not part.endswith(b"}"):
                        pass
                    connection.sendall(self.begin)


@pytest.fixture(scope="module")
def breaking() -> Iterator[Breaking]:
    engine = Breaking()
    threading.Thread(target=engine.run, daemon=True).start()
    yield engine
    engine.listener.shutdown(socket.SHUT_RDWR)
    engine.listener.close()


@pytest.fixture(scope="module")
def pair(
    engines: tuple[stubs.Engine, stubs.Engine], breaking: Breaking, sidecar: Receiver
) -> Iterator[dict[tuple[str, bool], str]]:
    """Addresses of four proxies: to well-behaved engines and to a broken D, watched and not."""
    with contextlib.ExitStack() as running:
        urls = {}
        for decode, watched in (("good", False), ("good", True), ("broken", False), ("broken", True)):
            port = stubs.free_port()
            urls[decode, watched] = f"http://127.0.0.1:{port}"
            to = engines[1].url if decode == "good" else breaking.url
            line = [str(SCRIPT), "--port", str(port), "--prefill", engines[0].url, "--decode", to]
            begin = [*TURNSCOPE, "run"] if watched else [sys.executable]
            hook = {"TURNSCOPE_ENDPOINT": f"grpc://127.0.0.1:{sidecar.port}", "TURNSCOPE_HEARTBEAT_SECONDS": "0.2"}
            running.enter_context(process([*begin, *line], hook, urls[decode, watched]))
        for engine in engines:
            engine.reset()
        engines[1].parts = [EVENT, b"data: [DONE]\n\n"]  # its ids would hold what the hook adds to the request
        yield urls
        engines[1].reset()


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_of_any_form_is_answered_byte_for_byte_as_without_the_hook(
    pair: dict[tuple[str, bool], str], name: str
) -> None:
    bare = answer_to(pair["good", False], REQUESTS[name])
    assert bare
    assert answer_to(pair["good", True], REQUESTS[name]) == bare


BEGINS: Final = {
    "nothing": b"",
    "half a head": OK[:20],
    "no HTTP": b"junk\r\n\r\n",
    "a head alone": OK + b"content-length: 100\r\n\r\n",
    "half a body": OK + b"content-length: 1000\r\n\r\n" + EVENT,
    "half a chunk": OK + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(EVENT) + EVENT[:30],
    "no last chunk": OK + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(EVENT), EVENT),
    "what is not the gzip that it is said to be": OK + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\njunk",
}


@pytest.mark.parametrize("name", BEGINS)
def test_an_engine_that_breaks_off_anywhere_gives_the_client_the_same_and_is_an_error_of_that_leg(
    pair: dict[tuple[str, bool], str], breaking: Breaking, sidecar: Receiver, name: str
) -> None:
    breaking.begin = BEGINS[name]
    trace_id = secrets.token_hex(16)
    asked = posted(headers=f"traceparent: {traceparent(trace_id)['traceparent']}\r\n".encode())
    bare = answer_to(pair["broken", False], asked)
    assert answer_to(pair["broken", True], asked) == bare

    def told() -> list[Attempt]:
        return [attempt for attempt in sidecar.bodies(Attempt) if attempt.caller_trace_id == trace_id]

    sidecar.wait_for(lambda: bool(told()))
    (attempt,) = told()
    assert (attempt.outcome, attempt.error_stage) == ("error", "decode")
    assert (attempt.finish_reason, attempt.handle_out, attempt.output_tokens) == (None, None, None)


def test_clients_that_leave_at_any_byte_leave_nothing_open_and_no_error(
    pair: dict[tuple[str, bool], str], sidecar: Receiver
) -> None:
    whole = posted()
    for sent in (4, 40, len(HEAD), len(HEAD) + 25, len(whole) - 1, len(whole)):
        answer_to(pair["good", True], whole[:sent], leave=True)
    began = len(sidecar.events)

    def beats() -> list[Heartbeat]:
        return [event.body for event in sidecar.events[began:] if isinstance(event.body, Heartbeat)]

    sidecar.wait_for(lambda: len(beats()) > 30)
    assert [beat for beat in beats()[-10:] if beat.open_requests or beat.errors] == []
