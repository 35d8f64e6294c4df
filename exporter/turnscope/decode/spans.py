"""OTLP spans to ``AgentSpan``: only what ``span_table`` names is ever read of one.

Never raises for a bad span: keeps the good ones and says what was wrong with the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from turnscope.decode import span_record
from turnscope.decode import span_table as table
from turnscope.decode.codec import MAX_INT, MAX_NS
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind, bounded

Values = dict[str, Any]
"""Attribute to its value: text, number or bool, or of a list the first."""

_WORD: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,64}")
EARLIEST_NS: Final = 946_684_800 * 1_000_000_000
"""The year 2000: a begin before it is that of a clock that was never set."""
LONGEST_SPAN_NS: Final = 31 * 86_400 * 1_000_000_000
"""An end later than this after the begin is a broken clock's: one such span would be all of a period's time."""
_LONGEST: Final = 200
"""Characters of a name of a service, an agent, a tool or a model."""
_STATUS: Final = {1: "ok", 2: "error"}


class BadSpan(ValueError):
    """A span that cannot be taken in: one sentence, without anything of its content."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        """``bad_id, bad_time, unreadable``."""


class DecodedSpans(msgspec.Struct):
    """What one export request held."""

    spans: list[AgentSpan]
    rejected: list[tuple[str, str]]
    """Reason and sentence of each span that was not taken in."""
    without_end: int = 0
    """Spans taken in whose end was missing, before their begin or a month after it: they are kept without one."""

    def take(self, span: Span, resource: Values) -> None:
        """Read one span."""
        try:
            found = read(span, resource)
        except BadSpan as error:
            self.rejected.append((error.reason, str(error)))
            return
        self.without_end += found.ended_ns is None
        self.spans.append(found)


def decode(request: ExportTraceServiceRequest) -> DecodedSpans:
    """Every span in ``request``."""
    out = DecodedSpans([], [])
    for block in request.resource_spans:
        resource = values(block.resource.attributes)
        for scope in block.scope_spans:
            for span in scope.spans:
                out.take(span, resource)
    return out


def values(attributes: Iterable[KeyValue]) -> Values:
    """Those that may be read. Of the keys that count tools asked for, the key alone."""
    found: Values = {}
    for item in attributes:
        if table.allowed(item.key):
            value = _value(item.value)
            if value is not None:
                found[item.key] = value
    return found


def _value(value: AnyValue) -> Any:
    which = value.WhichOneof("value")
    if which in ("string_value", "int_value", "double_value", "bool_value"):
        return getattr(value, which)
    if which == "array_value" and value.array_value.values:
        first = value.array_value.values[0]
        return first.string_value if first.WhichOneof("value") == "string_value" else None
    return None


def read(span: Span, resource: Values) -> AgentSpan:
    """One span. Raises ``BadSpan``."""
    trace_id, span_id = _id(span.trace_id, 16, "trace id"), _id(span.span_id, 8, "span id")
    started_ns, ended_ns = span.start_time_unix_nano, span.end_time_unix_nano
    if not EARLIEST_NS <= started_ns < MAX_NS or ended_ns >= MAX_NS:
        raise BadSpan("bad_time", "its start is missing or before the year 2000, or its end is later than 2116")
    identity: dict[str, Any] = {
        "span_key": f"{trace_id}-{span_id}",
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_span_id": _parent(span.parent_span_id),
        "started_ns": started_ns,
        "ended_ns": ended_ns if started_ns <= ended_ns <= started_ns + LONGEST_SPAN_NS else None,
        "status": _STATUS.get(span.status.code, "unset"),
    }
    own = values(span.attributes)
    recorded = span_record.fields(own)
    if recorded is not None:
        return AgentSpan(**identity, **recorded)
    kind, classified_by = classify(span.name, own)
    session = _session(own) or _session(resource)
    fields: dict[str, Any] = {name: _text(resource, keys) for name, keys in table.RESOURCE_TEXTS.items()}
    fields |= {name: _text(own, keys) for name, keys in table.TEXTS.items()}
    fields |= {name: _word(own, keys) for name, keys in table.WORDS.items()}
    counts: dict[str, Any] = {name: _count(own, keys) for name, keys in table.COUNTS.items()}
    if counts["cached_tokens"] is not None and counts["cached_tokens"] > (counts["input_tokens"] or 0):
        counts["cached_tokens"] = None  # no part of the prompt, whatever else it is
    found = AgentSpan(
        **identity,
        **fields,
        **counts,
        kind=str(kind),
        classified_by=classified_by,
        session_id=session[0] if session else None,
        session_source=session[1] if session else None,
        tool_name=_text(own, table.TOOL_NAMES) if kind is SpanKind.TOOL else None,
        time_to_first_token_ns=_first_token(own),
        tool_calls=_tool_calls(span) if kind is SpanKind.MODEL_CALL else None,
        evaluation_score=_number(own.get(table.SCORE)),
    )
    if kind is SpanKind.AGENT and found.agent_name is None:
        found.agent_name = _text(own, table.AGENT_NAMES)
    _read_events(span, found)
    kept = (found.tool_name, found.agent_name, found.model, found.tool_call_id)
    found.name = table.safe_name(span.name, [text for text in kept if text])
    return found


def _id(raw: bytes, length: int, what: str) -> str:
    if len(raw) != length or not any(raw):
        raise BadSpan("bad_id", f"its {what} is not {2 * length} hex digits, or all of them are 0")
    return raw.hex()


def _parent(raw: bytes) -> str | None:
    return raw.hex() if len(raw) == 8 and any(raw) else None


def classify(name: str, own: Values) -> tuple[SpanKind, str | None]:
    """What the span stands for, and what said so: the first rule that knows."""
    for rule in table.RULES:
        value = name if rule.key == table.NAME else own.get(rule.key)
        kind = rule.kinds.get(value.lower()) if isinstance(value, str) else None
        if kind is not None:
            return kind, None if kind is SpanKind.OTHER else rule.key
    for keys, kind in ((table.TOOL_KEYS, SpanKind.TOOL), (table.MODEL_KEYS, SpanKind.MODEL_CALL)):
        for key in keys:
            if key in own:
                return kind, key
    return SpanKind.OTHER, None


def _session(found: Values) -> tuple[str, str] | None:
    for key in table.SESSION_KEYS:
        value = found.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            return bounded(str(value)), key
    return None


def _text(found: Values, keys: Iterable[str]) -> str | None:
    for key in keys:
        value = found.get(key)
        if isinstance(value, str) and value:
            return value[:_LONGEST]
    return None


def _word(found: Values, keys: Iterable[str]) -> str | None:
    text = _text(found, keys)
    return text if text is not None and _WORD.fullmatch(text) else None


def _count(found: Values, keys: Iterable[str]) -> int | None:
    for key in keys:
        value = _number(found.get(key))
        if value is not None and value == int(value) and 0 <= value < MAX_INT:
            return int(value)
    return None


def _number(value: Any) -> int | float | None:
    """A number, also one that was sent as text."""
    if isinstance(value, str):
        try:
            value = int(value) if value.strip().isdecimal() and len(value) < 20 else float(value[:40])
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _first_token(found: Values) -> int | None:
    for key, unit_ns in table.FIRST_TOKEN.items():
        value = _number(found.get(key))
        if value is not None and 0 <= value * unit_ns < MAX_NS:
            return round(value * unit_ns)
    return None


def _tool_calls(span: Span) -> int | None:
    asked = {found[1] for item in span.attributes if (found := table.TOOL_CALL_KEY.match(item.key))}
    return len(asked) or None


def evaluation(told: Values) -> dict[str, Any]:
    """The fields that an evaluation's result fills."""
    words = {name: _word(told, table.WORDS[name]) for name in ("evaluation_name", "evaluation_label")}
    return {**words, "evaluation_score": _number(told.get(table.SCORE))}


def _read_events(span: Span, found: AgentSpan) -> None:
    """The last evaluation, the type of an exception, and when the first token came."""
    for event in span.events:
        if event.name == table.EVALUATION_EVENT:
            for name, value in evaluation(values(event.attributes)).items():
                setattr(found, name, value)
        elif event.name == table.EXCEPTION_EVENT:
            found.error_type = found.error_type or _word(values(event.attributes), (table.EXCEPTION_TYPE,))
        elif event.name in table.FIRST_TOKEN_EVENTS and found.time_to_first_token_ns is None:
            waited_ns = event.time_unix_nano - span.start_time_unix_nano
            if 0 <= waited_ns < MAX_NS:
                found.time_to_first_token_ns = waited_ns
