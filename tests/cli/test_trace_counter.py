"""The check's trace backend counts what a real exporter sends."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from turnscope.cli.trace_counter import TraceCounter


def test_spans_of_one_trace_are_one_trace() -> None:
    with TraceCounter() as counter:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=counter.endpoint, insecure=True)))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("turn"), tracer.start_as_current_span("prefill"):
            pass
        with tracer.start_as_current_span("turn"):
            pass
        provider.shutdown()
        assert (counter.traces, counter.spans) == (2, 3)
