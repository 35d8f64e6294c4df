"""Digests leave the proxy under a key; prompts, answers, tools, results of tools and headers never do."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hook.receiver import Receiver
from tests.proxy.conftest import Proxy, Start
from tests.proxy.span_receiver import SpanReceiver
from turnscope.history.digests import DIGEST_BYTES, Key, unpacked
from turnscope.model import Attempt

pytestmark = pytest.mark.timeout(300)  # starts processes

SECRET = "a secret of sixteen"


@pytest.fixture(scope="module")
def keyed(start: Start, backend: SpanReceiver) -> Iterator[Proxy]:
    """The script under ``turnscope run``, with a key of its user's and a backend for its spans."""
    address = f"http://127.0.0.1:{backend.port}"
    with start({"TURNSCOPE_DIGEST_KEY": SECRET, "OTEL_EXPORTER_OTLP_ENDPOINT": address}) as running:
        yield running


@pytest.fixture
def proxy(keyed: Proxy) -> Proxy:
    keyed.prefill.reset()
    keyed.decode.reset()
    return keyed


_NUMBERS = itertools.count()


def canary(what: str) -> str:
    return f"canary-{what}-{next(_NUMBERS):04d}-kq7"


def canaries_in(batches: list[bytes]) -> set[str]:
    whole = b"".join(batches)
    found = set()
    at = whole.find(b"canary-")
    while at >= 0:
        found.add(whole[at : at + 40].decode("utf-8", "replace"))
        at = whole.find(b"canary-", at + 1)
    return found


def request_with_canaries(**more: Any) -> dict[str, Any]:
    """A canary in every place of a request in which a client may write what it likes."""
    call = {"id": canary("id"), "type": "function", "function": {"name": "f", "arguments": canary("arguments")}}
    image = {"type": "image_url", "image_url": {"url": canary("image")}}
    return {
        "messages": [
            {"role": "system", "content": canary("system")},
            {"role": "user", "content": [{"type": "text", "text": canary("part")}, image], "name": canary("name")},
            {"role": "assistant", "content": canary("answer"), "reasoning": canary("thought"), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": canary("id"), "content": canary("result")},
            {"role": "user", "content": canary("user")},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": canary("description")}}],
        "documents": [{"text": canary("document")}],
        "chat_template_kwargs": {"x": canary("template")},
        "response_format": {"type": "json_schema", "json_schema": {"name": canary("schema")}},
        "stop": [canary("stop")],
        "user": canary("person"),
        "metadata": {"x": canary("metadata")},
        canary("field"): canary("value"),
        **more,
    }


HEADERS = ("authorization", "cookie", "x-api-key", "x-forwarded-for", "user-agent", "x-user-id", "x-keep-authorization")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fails", [None, "prefill", "decode"])
def test_nothing_that_was_written_leaves_the_proxy_but_to_its_engines_and_its_client(
    proxy: Proxy, sidecar: Receiver, backend: SpanReceiver, stream: bool, fails: str | None
) -> None:
    proxy.decode.words = [canary("word"), canary("word")]
    if fails == "prefill":
        proxy.prefill.statuses.append(500)
    elif fails == "decode" and stream:
        proxy.decode.parts = [f'data: {{"error": {{"message": "{canary("error")}"}}}}\n\n'.encode()]
    elif fails == "decode":
        proxy.decode.statuses.append(500)
    body = request_with_canaries(stream=stream, conversation_id=f"private-{next(_NUMBERS)}")
    response, trace_id = proxy.send(body, **{name.replace("-", "_"): canary(name) for name in HEADERS})
    (attempt,) = proxy.attempts(trace_id)
    backend.wait_for(lambda: any(span.kind == 2 for span in backend.of(trace_id)))
    assert attempt.outcome == ("error" if fails else "ok")
    assert attempt.message_roles == ["system", "user", "assistant", "tool", "user"]
    assert len(attempt.message_digests) == 5 * DIGEST_BYTES
    assert attempt.part_names == ["tools", "parameters"]
    if not fails:
        assert b"canary-word" in response.content
        assert attempt.answer_chars == sum(map(len, proxy.decode.words))
    spans = [span.SerializeToString() for span in backend.spans]
    assert (canaries_in(sidecar.raw), canaries_in(spans)) == (set(), set())
    whole = b"".join([*sidecar.raw, *spans])
    assert SECRET.encode() not in whole


def test_a_canary_would_be_found() -> None:
    event = Attempt(proxy_turn_id=canary("planted"))
    assert canaries_in([json.dumps(event.proxy_turn_id).encode()]) != set()


def test_messages_of_two_turns_are_recognised_and_without_the_key_are_not(proxy: Proxy) -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    answer = {"role": "assistant", "content": "".join(proxy.decode.words)}
    more = [*messages, answer, {"role": "user", "content": "and?"}]
    (one,), (two,) = (proxy.attempts(proxy.send({"messages": m, "stream": True})[1]) for m in (messages, more))
    assert one.digest_key_id == two.digest_key_id == Key(SECRET.encode()).id
    assert unpacked(two.message_digests)[:2] == unpacked(one.message_digests)
    assert unpacked(two.message_digests)[2] == unpacked(one.answer_digests)[0]


def test_the_key_is_asked_of_the_sidecar(start: Start, sidecar: Receiver) -> None:
    sidecar.digest_key = "ab" * 32
    try:
        with start({}) as proxy:
            proxy.prefill.reset()
            proxy.decode.reset()
            keys = set()
            for _ in range(50):
                (attempt,) = proxy.attempts(proxy.send()[1])
                keys.add(attempt.digest_key_id)
                if attempt.message_digests:
                    break
    finally:
        sidecar.digest_key = None
    assert keys - {""} == {Key(b"ab" * 32).id}


def test_without_a_key_lengths_are_told_and_no_digest(start: Start) -> None:
    with start({"TURNSCOPE_DIGESTS": "off", "TURNSCOPE_DIGEST_KEY": SECRET}) as proxy:
        proxy.prefill.reset()
        proxy.decode.reset()
        (attempt,) = proxy.attempts(proxy.send()[1])
    assert (attempt.message_roles, attempt.message_chars) == (["user"], [2])
    assert (attempt.message_digests, attempt.answer_digests, attempt.digest_key_id) == (b"", b"", "")
