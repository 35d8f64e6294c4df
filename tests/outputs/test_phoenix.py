"""Turn traces and the proxy's spans, as a real trace backend shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.builders import MS, Pair
from tests.outputs import phoenix as backend
from turnscope import semconv
from turnscope.cli.options import load
from turnscope.cli.sidecar import Sidecar
from turnscope.model import Event, Transfer


def timed(events: list[Event]) -> list[Event]:
    """With the start of every transfer measured."""
    return [
        msgspec.structs.replace(e, body=msgspec.structs.replace(e.body, started_mono_ns=e.mono_ns - 50 * MS))
        if isinstance(e.body, Transfer)
        else e
        for e in events
    ]


def proxy_spans(endpoint: str, turns: list[bytes]) -> list[dict[str, str]]:
    """Send a proxy's SERVER span for each turn, child of the caller's span; what its ``attempt`` says of it."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint, insecure=True)))
    tracer = provider.get_tracer("proxy")
    ids = []
    with tracer.start_as_current_span("caller") as caller:
        for turn in turns:
            with tracer.start_as_current_span("POST /v1/chat/completions") as span:
                span.set_attribute(semconv.TURN_ID, turn.hex())
                context = span.get_span_context()
            ids.append(
                {
                    "server_trace_id": format(context.trace_id, "032x"),
                    "server_span_id": format(context.span_id, "016x"),
                    "caller_trace_id": format(context.trace_id, "032x"),
                    "caller_span_id": format(caller.get_span_context().span_id, "016x"),
                }
            )
    provider.shutdown()
    return ids


@pytest.mark.timeout(900)
def test_each_turn_is_one_trace_with_its_legs_as_siblings_linked_with_the_proxys_span(tmp_path: Path) -> None:
    pair = Pair()
    keys = [semconv.turn_key("p", f"p{n}") for n in (1, 2)]
    with backend.running(tmp_path) as phoenix:
        first, second = proxy_spans(phoenix.endpoint, keys)
        sidecar = Sidecar(
            load(
                {
                    "http": "127.0.0.1:0",
                    "otlp_grpc": "127.0.0.1:0",
                    "otlp_http": "127.0.0.1:0",
                    "data_dir": tmp_path / "data",
                    "grace_seconds": 0,
                    "export_otlp": phoenix.endpoint,
                }
            )
        )
        sidecar.start()
        pipeline = sidecar._pipeline
        pipeline.accept(pair.start())
        pipeline.accept(timed(pair.turn("1", attempt=first)))
        given = pair.handle("1", 1199)
        pipeline.accept(timed(pair.turn("2", at_ms=2000, prompt=1300, fetched=1199, given=given, attempt=second)))
        sidecar.close()
        found = phoenix.spans(4 + 5 + 3)

    assert len(found) == 12
    proxy_trace = [s for s in found if s["context"]["trace_id"] == first["server_trace_id"]]
    turns: dict[str, dict[str, dict[str, Any]]] = {}
    for span in found:
        if span not in proxy_trace:
            turns.setdefault(span["context"]["trace_id"], {})[span["name"]] = span
    assert set(turns) == {key.hex() for key in keys}

    legs = {"prefill", "handoff", "decode"}
    for key, ids, parts in ((keys[0], first, legs), (keys[1], second, legs | {"reverse_fetch"})):
        trace = turns[key.hex()]
        root = trace.pop("turn")
        assert root["parent_id"] is None
        assert set(trace) == parts
        assert {span["parent_id"] for span in trace.values()} == {root["context"]["span_id"]}
        assert root["attributes"]["gen_ai.conversation.id"] == "s"
        # To the proxy's span. Phoenix keeps no links, so what they say is in attributes as well.
        for name, value in ids.items():
            assert root["attributes"][f"turnscope.turn.{name}"] == value
    assert turns[keys[1].hex()]["reverse_fetch"]["attributes"]["turnscope.turn.fetched_tokens"] == 1199

    # And back: the proxy's spans, in the caller's trace, name the turns' traces.
    (caller,) = (s for s in proxy_trace if s["name"] == "caller")
    servers = [s for s in proxy_trace if s is not caller]
    assert {s["parent_id"] for s in servers} == {caller["context"]["span_id"]}
    assert {s["attributes"][semconv.TURN_ID] for s in servers} == set(turns)
