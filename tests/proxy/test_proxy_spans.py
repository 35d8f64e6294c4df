"""Spans to the user's own backend, received by a real OTLP receiver."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator

import pytest

from tests.proxy.conftest import Proxy, Start, traceparent
from tests.proxy.span_receiver import CLIENT, SERVER, SpanReceiver, attributes
from turnscope import semconv
from turnscope.proxy.spans import exporter_name

pytestmark = pytest.mark.timeout(300)  # starts processes


def spans_of(proxy: Proxy, trace_id: str, count: int) -> list[object]:
    proxy.spans.wait_for(lambda: len(proxy.spans.of(trace_id)) >= count)
    found = proxy.spans.of(trace_id)
    assert len(found) == count, [s.name for s in found]
    return found


def test_the_proxys_spans_join_the_callers_trace(proxy: Proxy) -> None:
    _, trace_id = proxy.send({"conversation_id": "spans", "stream": True})
    (attempt,) = proxy.attempts(trace_id)
    spans_of(proxy, trace_id, 3)
    (server,) = proxy.spans.of(trace_id, SERVER)
    prefill, decode = proxy.spans.of(trace_id, CLIENT)

    assert server.parent_span_id.hex() == "c" * 16
    assert server.name == "POST /v1/chat/completions"
    assert prefill.parent_span_id == decode.parent_span_id == server.span_id
    assert [attributes(s)["turnscope.leg"] for s in (prefill, decode)] == ["prefill", "decode"]
    for span, engine in ((prefill, proxy.prefill), (decode, proxy.decode)):
        assert engine.requests[0].headers["traceparent"] == f"00-{trace_id}-{span.span_id.hex()}-01"
        found = attributes(span)
        assert (found["gen_ai.operation.name"], found["gen_ai.request.model"]) == ("chat", "m")
        assert (found["gen_ai.conversation.id"], found["http.response.status_code"]) == ("spans", 200)
        assert engine.url == f"http://{found['server.address']}:{found['server.port']}"
    found = attributes(server)
    assert (found["gen_ai.operation.name"], found["gen_ai.request.model"]) == ("chat", "m")
    assert found["gen_ai.conversation.id"] == "spans"
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (37, 3)
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["gen_ai.response.time_to_first_chunk"] > 0
    assert (attempt.caller_trace_id, attempt.caller_span_id) == (trace_id, "c" * 16)
    assert (attempt.server_trace_id, attempt.server_span_id) == (trace_id, server.span_id.hex())


def test_the_server_span_names_the_turn_and_links_to_its_trace(proxy: Proxy) -> None:
    _, trace_id = proxy.send()
    (attempt,) = proxy.attempts(trace_id)
    assert attempt.prefill is not None
    turn = semconv.turn_key(attempt.prefill.engine_id, attempt.prefill.request_id)
    spans_of(proxy, trace_id, 3)
    (server,) = proxy.spans.of(trace_id, SERVER)
    assert attributes(server)["turnscope.turn_id"] == turn.hex()
    (link,) = server.links
    assert (link.trace_id, link.span_id) == (turn, semconv.span_key(turn))


def test_a_failed_leg_and_its_turn_are_errors(proxy: Proxy) -> None:
    proxy.prefill.statuses.append(500)
    _, trace_id = proxy.send()
    spans_of(proxy, trace_id, 2)
    (server,), (prefill,) = proxy.spans.of(trace_id, SERVER), proxy.spans.of(trace_id, CLIENT)
    assert (server.status.code, prefill.status.code) == (2, 2)
    assert attributes(server)["http.response.status_code"] == 500
    assert attributes(prefill)["error.type"] == "500"
    turn = semconv.turn_key("", proxy.attempts(trace_id)[0].proxy_turn_id)
    assert attributes(server)["turnscope.turn_id"] == turn.hex()


def test_the_spans_of_an_aborted_answer_end(proxy: Proxy) -> None:
    proxy.decode.pause = threading.Event()
    trace_id = secrets.token_hex(16)
    with proxy.client.stream(
        "POST", "/v1/chat/completions", json={"stream": True, "messages": []}, headers=traceparent(trace_id)
    ) as response:
        next(response.iter_raw())
    spans_of(proxy, trace_id, 3)
    proxy.decode.pause.set()
    decode = proxy.spans.of(trace_id, CLIENT)[1]
    assert decode.status.code == 2
    assert attributes(proxy.spans.of(trace_id, SERVER)[0])["turnscope.outcome"] == "cancelled"


def test_a_retried_turn_has_a_client_span_for_each_leg(proxy: Proxy) -> None:
    proxy.prefill.statuses.append(502)
    _, trace_id = proxy.send()
    spans_of(proxy, trace_id, 4)
    (server,) = proxy.spans.of(trace_id, SERVER)
    assert attributes(server)["turnscope.attempts"] == 2
    assert [attributes(s)["http.response.status_code"] for s in proxy.spans.of(trace_id, CLIENT)] == [502, 200, 200]


@pytest.fixture(scope="module")
def quiet(start: Start) -> Iterator[Proxy]:
    with start({}) as running:
        yield running


def test_without_a_configured_backend_no_span_is_made_and_the_callers_context_goes_on(
    quiet: Proxy, backend: SpanReceiver
) -> None:
    quiet.prefill.reset()
    quiet.decode.reset()
    _, trace_id = quiet.send()
    (attempt,) = quiet.attempts(trace_id)
    assert (attempt.caller_trace_id, attempt.server_trace_id) == (trace_id, None)
    for engine in (quiet.prefill, quiet.decode):
        assert engine.requests[0].headers["traceparent"] == f"00-{trace_id}-{'c' * 16}-01"
    assert backend.of(trace_id) == []


def decorated(start: Start, backend: SpanReceiver, how: str) -> object:
    environment = {"TEST_BACKEND": f"http://127.0.0.1:{backend.port}", "TEST_DECORATE": how}
    return start(environment, "--decorate", "decorations")


def test_the_applications_own_provider_gets_the_spans(start: Start, backend: SpanReceiver) -> None:
    with decorated(start, backend, "provider") as proxy:
        proxy.prefill.reset()
        proxy.decode.reset()
        _, trace_id = proxy.send()
        (attempt,) = proxy.attempts(trace_id)
        backend.wait_for(lambda: len(backend.of(trace_id, SERVER)) >= 1)
        (server,) = backend.of(trace_id, SERVER)
        assert (attempt.server_trace_id, attempt.server_span_id) == (trace_id, server.span_id.hex())
        assert "turnscope.turn_id" in attributes(server)
        assert [s.parent_span_id for s in backend.of(trace_id, CLIENT)] == [server.span_id] * 2


def test_an_instrumented_proxy_gets_attributes_and_no_second_spans(start: Start, backend: SpanReceiver) -> None:
    with decorated(start, backend, "instrumented") as proxy:
        proxy.prefill.reset()
        proxy.decode.reset()
        _, trace_id = proxy.send({"conversation_id": "theirs"})
        (attempt,) = proxy.attempts(trace_id)
        backend.wait_for(lambda: len(backend.of(trace_id, SERVER)) == 1)
        (server,) = backend.of(trace_id, SERVER)
        clients = backend.of(trace_id, CLIENT)
        assert len(clients) == 2
        assert (attempt.server_trace_id, attempt.server_span_id) == (trace_id, server.span_id.hex())
        assert attempt.prefill is not None
        turn = semconv.turn_key(attempt.prefill.engine_id, attempt.prefill.request_id)
        found = attributes(server)
        assert found["turnscope.turn_id"] == turn.hex()
        assert (found["gen_ai.conversation.id"], found["gen_ai.usage.input_tokens"]) == ("theirs", 37)
        assert [link.trace_id for link in server.links] == [turn]
        for engine, span in zip((proxy.prefill, proxy.decode), clients, strict=True):
            assert engine.requests[0].headers["traceparent"] == f"00-{trace_id}-{span.span_id.hex()}-01"


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_RESOURCE_ATTRIBUTES": "a=b"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4317"}, "otlp_proto_grpc"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4317"}, "otlp_proto_grpc"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://h:4317"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp_proto_grpc"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "otlp_proto_http"),
        (
            {
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            },
            "otlp_proto_grpc",
        ),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4317"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4317", "OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_the_exporter_is_the_one_the_environment_names(environment: dict[str, str], name: str | None) -> None:
    assert exporter_name(environment) == name


def test_an_unsampled_caller_stays_unsampled(proxy: Proxy) -> None:
    trace_id = secrets.token_hex(16)
    headers = {"traceparent": f"00-{trace_id}-{'c' * 16}-00"}
    assert proxy.client.post("/v1/chat/completions", json={"messages": []}, headers=headers).status_code == 200
    assert proxy.attempts(trace_id)[0].caller_trace_id == trace_id
    for engine in (proxy.prefill, proxy.decode):
        assert engine.requests[0].headers["traceparent"].startswith(f"00-{trace_id}-")
        assert engine.requests[0].headers["traceparent"].endswith("-00")
    _, other = proxy.send()
    spans_of(proxy, other, 3)
    assert proxy.spans.of(trace_id) == []
