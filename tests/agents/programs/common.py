"""What every agent program of these tests starts with: an ordinary tracer provider that sends to the sidecar."""

from __future__ import annotations

import os

PROMPT, RESULT = os.environ["CANARY_PROMPT"], os.environ["CANARY_RESULT"]
SESSION = os.environ["SESSION"]
QUESTION = f"How is the weather in {PROMPT}?"


def provider():
    """Its exporter is set by OpenTelemetry's own variables."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(made)
    return made


def weather(place: str) -> str:
    """Tells the weather of a place."""
    assert place
    return f"sunny, {RESULT}"
