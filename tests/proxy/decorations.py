"""What a proxy's authors may already do to their application."""

from __future__ import annotations

import os
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def own_provider() -> None:
    """A tracer provider of the application's own; its backend's address comes from a variable of its own."""
    provider = TracerProvider()
    exporter = OTLPSpanExporter(endpoint=os.environ["TEST_BACKEND"], insecure=True)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def decorate(app: Any) -> None:
    """As the variable TEST_DECORATE says."""
    if os.environ["TEST_DECORATE"] == "middleware":
        from turnscope.proxy import Middleware

        app.add_middleware(Middleware)
        return
    own_provider()
    if os.environ["TEST_DECORATE"] == "instrumented":
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
        from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

        FastAPIInstrumentor.instrument_app(app)
        HTTPXClientInstrumentor().instrument()
