"""SERVER and CLIENT spans through the ordinary OpenTelemetry SDK, to the user's own backend.

Only when that backend is configured: the application has set a global tracer provider, or ``OTEL_*`` variables name
an exporter. Where another instrumentation makes the spans already, its span gets our attributes and no second one is
made.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from importlib.metadata import entry_points
from typing import Any, Final

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanContext, SpanKind, StatusCode, TraceFlags, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from turnscope import semconv
from turnscope.model import Attempt
from turnscope.proxy.outgoing import Outgoing
from turnscope.proxy.record import TraceIds
from turnscope.proxy.requests import LegRequest, generates
from turnscope.proxy.sessions import Session

_W3C: Final = TraceContextTextMapPropagator()


def exporter_name(environment: Mapping[str, str]) -> str | None:
    """The entry point name of the span exporter that ``OTEL_*`` variables ask for; None when they ask for none."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    names = [n.strip() for n in environment.get("OTEL_TRACES_EXPORTER", "").split(",") if n.strip()]
    named_endpoint = any(environment.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT", "").strip() for kind in ("", "TRACES_"))
    name = names[0] if names else "otlp" if named_endpoint else "none"
    if name != "otlp":
        return None if name == "none" else name
    protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return "otlp_proto_http" if (protocol or "grpc").startswith("http") else "otlp_proto_grpc"


class Tracing:
    """Where spans go. The application's own provider wins, whenever it is set."""

    def __init__(self, environment: Mapping[str, str], version: str, log: logging.Logger) -> None:
        self._environment = environment
        self._log = log
        self._version = version
        self._tracer: Tracer | None = None
        self._global = False
        self._own: Any = None
        self._looked = False

    def tracer(self) -> Tracer | None:
        """The tracer to use now; None when nobody wants spans."""
        if self._global:
            return self._tracer
        provider = trace.get_tracer_provider()
        if not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
            self._global = True
            self._tracer = provider.get_tracer(semconv.SCOPE, self._version)
        elif not self._looked:
            self._looked = True
            name = exporter_name(self._environment)
            if name is not None:
                try:
                    self._own = _provider(name)
                    self._tracer = self._own.get_tracer(semconv.SCOPE, self._version)
                except Exception as error:
                    self._log.warning("turnscope: no spans, because the exporter %s does not load: %r", name, error)
        return self._tracer

    def flush(self, timeout_ms: int) -> None:
        """Send what our own provider holds; the application's is its own business."""
        if self._own is not None:
            self._own.force_flush(timeout_ms)


def _provider(exporter: str) -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    found = next(iter(entry_points(group="opentelemetry_traces_exporter", name=exporter)), None)
    if found is None:
        raise ValueError("it is not installed")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(found.load()()))
    return provider


def caller_of(headers: Mapping[str, str]) -> context.Context:
    """The caller's context, by whatever propagators are configured."""
    return propagate.extract(dict(headers))


def ids_of(span_context: SpanContext) -> TraceIds | None:
    """Hex ids; None for "no span"."""
    if not span_context.is_valid:
        return None
    return TraceIds(format(span_context.trace_id, "032x"), format(span_context.span_id, "016x"))


class TurnSpans:
    """The spans of one client request (a POST): its SERVER span, ours or another instrumentation's, and one CLIENT span
    a leg."""

    def __init__(self, tracing: Tracing, headers: Mapping[str, str], path: str, *, foreign: bool) -> None:
        """``foreign``: the application makes its own SERVER span, further in."""
        self._tracing = tracing
        self._caller = caller_of(headers)
        self._span: Span | None = None
        self._own = False
        self.look_inside()
        if self._span is None and not foreign and (tracer := tracing.tracer()) is not None:
            self._own = True
            self._span = tracer.start_span(
                f"POST {path}" if generates(path) else "POST",
                self._caller,
                SpanKind.SERVER,
                {"http.request.method": "POST", "url.path": path},
            )

    @property
    def caller(self) -> TraceIds | None:
        """The span the client sent in its headers."""
        return ids_of(trace.get_current_span(self._caller).get_span_context())

    @property
    def server(self) -> TraceIds | None:
        """The proxy's own span of this request."""
        return ids_of(self._span.get_span_context()) if self._span is not None else None

    def enter(self) -> Any:
        """Make our SERVER span the current one, for spans the application makes; give the token to ``leave``."""
        return context.attach(trace.set_span_in_context(self._span, self._caller)) if self._own and self._span else None

    def leave(self, token: Any) -> None:
        """Undo ``enter``."""
        if token is not None:
            context.detach(token)

    def look_inside(self) -> None:
        """Pick up the span that another instrumentation has made of this request, when there is one by now."""
        if self._span is None:
            around = trace.get_current_span()
            ids = around.get_span_context()
            if ids.is_valid and not ids.is_remote:
                self._span = around

    def start_leg(self, leg: str, request: LegRequest, to: Outgoing, session: Session | None) -> Span | None:
        """A CLIENT span, child of the SERVER span; None when nobody wants spans."""
        tracer = self._tracing.tracer()
        if tracer is None:
            return None
        parent = trace.set_span_in_context(self._span, self._caller) if self._span is not None else self._caller
        model = request.model if isinstance(request.model, str) else None
        attributes: dict[str, str | int] = {
            "http.request.method": "POST",
            "server.address": to.host,
            "turnscope.leg": leg,
            semconv.OPERATION_NAME: "chat",
        }
        if to.port:
            attributes["server.port"] = to.port
        if model:
            attributes[semconv.REQUEST_MODEL] = model
        if session is not None:
            attributes[semconv.CONVERSATION_ID] = session.id
        return tracer.start_span(f"chat {model}" if model else "chat", parent, SpanKind.CLIENT, attributes)

    def inject(self, headers: MutableMapping[str, str], leg: Span | None) -> None:
        """Write ``traceparent`` of the leg's span; without one, the caller's goes on."""
        _W3C.inject(headers, self._caller if leg is None else trace.set_span_in_context(leg, self._caller))

    def turn(self, turn_id: bytes) -> None:
        """Name the turn and link to its trace."""
        span = self._span
        if span is None or not span.is_recording():
            return
        span.set_attribute(semconv.TURN_ID, turn_id.hex())
        root = int.from_bytes(semconv.span_key(turn_id), "big")
        link = SpanContext(int.from_bytes(turn_id, "big"), root, True, TraceFlags(TraceFlags.SAMPLED))
        span.add_link(link, {"turnscope.link": "turn"})

    def finish(self, event: Attempt | None, status: int | None) -> None:
        """The request has ended; ``event`` is its last attempt, None when it never had to do with an engine."""
        span = self._span
        if span is None or not span.is_recording():
            return
        if event is not None:
            for key, value in _attributes(event).items():
                span.set_attribute(key, value)
        if not self._own:
            return
        if status is not None:
            span.set_attribute("http.response.status_code", status)
        if event is not None and event.outcome == "error":
            span.set_attribute("error.type", str(event.status_code) if (status or 0) >= 400 else "stream")
            span.set_status(StatusCode.ERROR, f"failed in {event.error_stage}")
        span.end()


def _attributes(event: Attempt) -> dict[str, Any]:
    values: dict[str, Any] = {
        semconv.OPERATION_NAME: "chat",
        semconv.REQUEST_MODEL: event.model,
        semconv.CONVERSATION_ID: event.session_id,
        semconv.AGENT_ID: event.agent_id,
        semconv.INPUT_TOKENS: event.input_tokens,
        semconv.OUTPUT_TOKENS: event.output_tokens,
        semconv.FINISH_REASON: [event.finish_reason] if event.finish_reason else None,
        semconv.TIME_TO_FIRST_CHUNK: event.first_byte_ns / 1e9 if event.streamed and event.first_byte_ns else None,
        "turnscope.outcome": event.outcome,
        "turnscope.attempts": event.number,
    }
    return {key: value for key, value in values.items() if value is not None}


def end_leg(span: Span | None, status: int | None, error: str | None) -> None:
    """End a CLIENT span; ``error`` is the kind of failure, None when the leg went well."""
    if span is None:
        return
    if status is not None:
        span.set_attribute("http.response.status_code", status)
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)
    span.end()
