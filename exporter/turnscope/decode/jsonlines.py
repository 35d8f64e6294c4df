"""OTLP JSON lines: one ``ExportLogsServiceRequest`` a line, as collectors' file exporters write them.

JSON as OTLP says: 64-bit integers as strings, ids in hex, unknown fields ignored.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from turnscope.decode import codec
from turnscope.model import Event

_IDS: Final = {"traceId": 16, "spanId": 8}
_ON_THE_WAY: Final = re.compile(r"Failed to parse (\S+) field: ")
_OTHER_SIGNALS: Final = frozenset({"resourceSpans", "resourceMetrics", "resourceProfiles"})


class NotOtlp(ValueError):
    """A line that is not OTLP JSON: what is wrong with it."""


def write(events: Iterable[Event], observed_ns: int) -> bytes:
    """``events`` as one line; ``observed_ns`` is when they arrived."""
    message = codec.encode(events, observed_ns=observed_ns)
    line = json_format.MessageToDict(message, use_integers_for_enums=True)
    for record in _records(line):
        for key in _IDS.keys() & record.keys():
            record[key] = base64.b64decode(record[key]).hex()
    return msgspec.json.encode(line) + b"\n"


def read(line: bytes) -> ExportLogsServiceRequest:
    """The request in ``line``; empty for another signal's. Raises ``NotOtlp``.

    A record whose ids are not hex of the right length keeps everything but that id: no event needs it.
    """
    try:
        content = msgspec.json.decode(line)
    except RecursionError:
        raise NotOtlp("values in it lie too deep in each other") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotOtlp(f"not JSON: {error}") from None
    if not isinstance(content, dict) or not (content.keys() & {"resourceLogs", *_OTHER_SIGNALS}):
        raise NotOtlp("JSON, but not OTLP: there is no resourceLogs in it")
    if "resourceLogs" not in content:
        return ExportLogsServiceRequest()
    try:
        for record in _records(content):
            for key in _IDS.keys() & record.keys():
                record[key] = _base64_of(record[key], _IDS[key])
        return json_format.ParseDict(content, ExportLogsServiceRequest(), ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise NotOtlp(f"JSON, but not OTLP logs: {_short(error)}") from None
    except (AttributeError, TypeError):
        raise NotOtlp("JSON, but not OTLP logs: a list or an object is where OTLP has something else") from None
    except RecursionError:
        raise NotOtlp("JSON, but not OTLP logs: values in it lie too deep in each other") from None


def _short(error: Exception) -> str:
    """What is wrong, and in which field: the parser names every field on the way to it, level by level."""
    *_, field, what = ["", *_ON_THE_WAY.split(str(error))]
    return f"{field}: {what[:200].rstrip('.')}".removeprefix(": ")


def observed_ns(request: ExportLogsServiceRequest) -> int | None:
    """When the request's records were observed (else: happened), the latest; None when nothing says."""
    times = [
        record.observed_time_unix_nano or record.time_unix_nano
        for block in request.resource_logs
        for scope in block.scope_logs
        for record in scope.log_records
    ]
    return max(times, default=0) or None


def _records(content: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for block in content.get("resourceLogs") or ():
        for scope in block.get("scopeLogs") or ():
            yield from scope.get("logRecords") or ()


def _base64_of(text: Any, length: int) -> str:
    try:
        raw = binascii.unhexlify(text)
    except (binascii.Error, TypeError, ValueError):
        raw = b""
    return base64.b64encode(raw if len(raw) == length else b"").decode()
