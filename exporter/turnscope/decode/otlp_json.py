"""OTLP as JSON: 64-bit integers as strings, ids in hex of either case, unknown fields ignored."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from turnscope import surrogates
from turnscope.decode import span_table as table
from turnscope.decode.spans import DecodedSpans, Values, values

_IDS: Final = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
_ON_THE_WAY: Final = re.compile(r"Failed to parse (\S+) field: ")
_SPAN_FIELDS: Final = ("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano")
Json = dict[str, Any]
_decode: Final = surrogates.reading(msgspec.json.decode)


class NotOtlp(ValueError):
    """What is no OTLP JSON: what is wrong with it."""


def parse(content: bytes) -> Json:
    """The object in ``content``. Raises ``NotOtlp``."""
    try:
        found = _decode(content)
    except RecursionError:
        raise NotOtlp("JSON whose values lie too deep in each other") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotOtlp(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotOtlp("JSON, but not OTLP: it is no object")
    return found


def logs(content: Json) -> ExportLogsServiceRequest:
    """Log records. Raises ``NotOtlp``. A record with ids that are none keeps everything else: no event needs them."""
    request = ExportLogsServiceRequest()
    _fill(request, content, "resourceLogs", "scopeLogs", "logRecords")
    return request


def spans(content: Json) -> DecodedSpans:
    """The spans, reduced to what may be read. Raises ``NotOtlp`` for what has not OTLP's shape.

    Each is parsed by itself, after everything that may not be read was left out: one that cannot be costs no other.
    """
    out = DecodedSpans([], [])
    try:
        for block in _items(content, "resourceSpans"):
            resource = _resource(block.get("resource") or {})
            for scope in _items(block, "scopeSpans"):
                for span in _list(scope, "spans"):
                    _take(span, resource, out)
    except (AttributeError, TypeError):
        raise _misshapen("spans") from None
    return out


def span_request(content: Json) -> ExportTraceServiceRequest:
    """All of it, whatever it holds: to send on. Raises ``NotOtlp``."""
    request = ExportTraceServiceRequest()
    _fill(request, content, "resourceSpans", "scopeSpans", "spans")
    return request


def _items(holder: Json, key: str) -> Iterator[Json]:
    for item in _list(holder, key):
        if not isinstance(item, dict):
            raise TypeError(key)
        yield item


def _list(holder: Json, key: str) -> list[Any]:
    found = holder.get(key) or []
    if not isinstance(found, list):
        raise TypeError(key)
    return found


def _misshapen(what: str) -> NotOtlp:
    return NotOtlp(f"JSON, but not OTLP {what}: a list or an object is where OTLP has something else")


def _fill(message: Any, content: Json, blocks: str, scopes: str, records: str) -> None:
    what = "logs" if records == "logRecords" else "spans"
    try:
        for block in _items(content, blocks):
            for scope in _items(block, scopes):
                for record in _items(scope, records):
                    _ids_to_base64(record)
        json_format.ParseDict({blocks: content.get(blocks) or []}, message, ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise NotOtlp(f"JSON, but not OTLP {what}: {_short(error)}") from None
    except (AttributeError, TypeError):
        raise _misshapen(what) from None
    except RecursionError:
        raise NotOtlp(f"JSON, but not OTLP {what}: values in it lie too deep in each other") from None


def _short(error: Exception) -> str:
    """What is wrong, and in which field: the parser names every field on the way to it, level by level."""
    *_, field, what = ["", *_ON_THE_WAY.split(str(error))]
    return f"{field}: {what[:200].rstrip('.')}".removeprefix(": ")


def _ids_to_base64(record: Json) -> None:
    for key in _IDS.keys() & record.keys():
        record[key] = _base64_of(record[key], _IDS[key])


def _base64_of(text: Any, length: int) -> str:
    try:
        raw = binascii.unhexlify(text)
    except (binascii.Error, TypeError, ValueError):
        raw = b""
    return base64.b64encode(raw if len(raw) == length else b"").decode()


# --- spans ---------------------------------------------------------------------------------------------
def _resource(resource: Json) -> Values:
    found = []
    for item in _readable(resource):
        try:
            found.append(json_format.ParseDict(item, KeyValue(), ignore_unknown_fields=True))
        except json_format.ParseError:
            continue
    return values(found)


def _take(span: Any, resource: Values, out: DecodedSpans) -> None:
    try:
        message = _parsed(span)
    except (AttributeError, TypeError, json_format.ParseError):
        # The parser's own words would repeat the value.
        out.rejected.append(("unreadable", "a field of it is not of the type that OTLP gives it"))
    else:
        out.take(message, resource)


def _parsed(span: Json) -> Span:
    plain: Json = {key: span[key] for key in _SPAN_FIELDS if span.get(key) is not None}
    _ids_to_base64(plain)
    plain["attributes"] = _readable(span)
    plain["status"] = {"code": (span.get("status") or {}).get("code", 0)}
    plain["events"] = [
        {"name": event["name"], "timeUnixNano": event.get("timeUnixNano", 0), "attributes": _readable(event)}
        for event in _items(span, "events")
        if event.get("name") in table.EVENTS
    ]
    message: Span = json_format.ParseDict(plain, Span(), ignore_unknown_fields=True)
    return message


def _readable(holder: Json) -> list[Json]:
    """Its attributes that may be read, and the keys alone of those that are only counted."""
    found = []
    for item in _items(holder, "attributes"):
        key = item.get("key")
        if isinstance(key, str) and table.allowed(key):
            found.append(item)
        elif isinstance(key, str) and table.TOOL_CALL_KEY.match(key):
            found.append({"key": key})
    return found
