"""Events to OTLP log records and back, by the one mapping (``table``): used by the hooks and by the receivers. ``None``
and defaults are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from turnscope import semconv
from turnscope.decode.table import (
    BODY_BY_EVENT,
    BODY_FIELDS,
    BODY_INDEX,
    EMITTER_FIELDS,
    EMITTER_INDEX,
    ENGINE_FIELDS,
    ENGINE_INDEX,
    HANDLE_FIELDS,
    HANDLE_KINDS,
    MONO,
    SEQ,
    Field,
)
from turnscope.model import (
    BODIES,
    Attempt,
    Body,
    Digest,
    Emitter,
    Engine,
    Event,
    Handle,
    Hold,
    HoldUse,
    Request,
    Stuck,
    Transfer,
)
from turnscope.semconv import bounded

MAX_LIST: Final = 4096
MAX_BLOB: Final = 2**20
"""Bytes of a ``bytes`` field: digests of a million tokens stay below it."""
MAX_INT: Final = 2**60
"""Of counts, tokens and bytes: sums of several stay far from what a store's 64 bits hold."""
MAX_NS: Final = 2**62
"""Of times and durations: the year 2116. Anything beyond is damage, and would end in an overflow later."""
_SCOPE: Final = InstrumentationScope(name=semconv.SCOPE)
_SLICE: Final = 32
"""Entries of a list that are encoded without a pause."""
_FIELDS: Final = 8
"""Fields of a body that are looked at without one."""


class BadEvent(ValueError):
    """A record that claims to be turnscope's and cannot be read: what and why."""


# --- encode -----------------------------------------------------------------------------------------
_NAMES: Final = {body: str(body.EVENT) for body in BODIES}


def _no_pause() -> None:
    return None


def _put(out: Any, key: str, value: Any, kind: str, pause: Callable[[], None] = _no_pause) -> None:
    item = out.add()
    item.key = key
    if kind == "int":
        item.value.int_value = value
    elif kind == "str":
        item.value.string_value = bounded(value)
    elif kind == "bool":
        item.value.bool_value = value
    elif kind == "float":
        item.value.double_value = value
    elif kind == "bytes":
        item.value.bytes_value = value
    elif kind == "ints":
        values = item.value.array_value.values
        for number, entry in enumerate(value[:MAX_LIST], 1):
            values.add().int_value = entry
            if number % _SLICE == 0:
                pause()
    else:
        values = item.value.array_value.values
        for number, entry in enumerate(value[:MAX_LIST], 1):
            values.add().string_value = bounded(entry)
            if number % _SLICE == 0:
                pause()


def _put_struct(out: Any, struct: msgspec.Struct, fields: list[Field], pause: Callable[[], None] = _no_pause) -> None:
    for number, field in enumerate(fields, 1):
        if number % _FIELDS == 0:
            pause()
        value = getattr(struct, field.name)
        if value is None or value == field.default:
            continue
        if field.kind == "handle":
            for part in HANDLE_FIELDS:
                inner = getattr(value, part)
                if inner is not None:
                    _put(out, f"{field.key}.{part}", inner, HANDLE_KINDS[part])
        else:
            _put(out, field.key, value, field.kind, pause)


def record_key(engine: Engine | None, body: Body) -> bytes:
    """The record's ``trace_id``: the turn's or the hold's, so that ordinary collectors can shard by it; else empty.

    A transfer belongs to the turn it serves: on D, that is named by the remote (P) request.
    """
    engine_id = engine.id if engine else ""
    match body:
        case Request(leg=semconv.Leg.DECODE, handle_in=Handle() as handle):
            return semconv.turn_key(handle.engine_id, handle.request_id)
        case Digest(leg=semconv.Leg.DECODE):
            return semconv.hold_key(engine_id, body.request_id)
        case Request() | Digest() | Stuck():
            return semconv.turn_key(engine_id, body.request_id)
        case Transfer(direction=semconv.Direction.HANDOFF) if body.remote_engine_id and body.remote_request_id:
            return semconv.turn_key(body.remote_engine_id, body.remote_request_id)
        case Transfer():
            return semconv.turn_key(engine_id, body.request_id) if body.request_id else b""
        case HoldUse():
            return semconv.hold_key(body.handle.engine_id, body.handle.request_id)
        case Hold():
            return semconv.hold_key(engine_id, body.request_id)
        case Attempt(prefill=Handle() as handle):
            return semconv.turn_key(handle.engine_id, handle.request_id)
        case Attempt():
            return semconv.turn_key("", body.proxy_turn_id)
    return b""


def encode_resource(emitter: Emitter, engine: Engine | None) -> Resource:
    """Where events are from."""
    resource = Resource()
    _put(resource.attributes, "service.name", "turnscope-hook", "str")
    _put_struct(resource.attributes, emitter, EMITTER_FIELDS)
    if engine is not None:
        _put_struct(resource.attributes, engine, ENGINE_FIELDS)
    return resource


def encode_event(event: Event, *, observed_ns: int, pause: Callable[[], None] = _no_pause) -> LogRecord:
    """One log record. ``pause()`` is called now and then."""
    body = event.body
    name = _NAMES[type(body)]
    record = LogRecord(
        event_name=name,
        time_unix_nano=event.wall_ns,
        observed_time_unix_nano=observed_ns,
        trace_id=record_key(event.engine, body),
    )
    pause()
    _put(record.attributes, semconv.EVENT_NAME, name, "str")
    _put(record.attributes, SEQ, event.seq, "int")
    _put(record.attributes, MONO, event.mono_ns, "int")
    _put_struct(record.attributes, body, BODY_FIELDS[type(body)], pause)
    return record


def encode(events: Iterable[Event], *, observed_ns: int) -> ExportLogsServiceRequest:
    """One export request; consecutive events of one emitter and engine share a resource."""
    request = ExportLogsServiceRequest()
    for source, group in groupby(events, key=lambda event: (event.emitter, event.engine)):
        scope = request.resource_logs.add(resource=encode_resource(*source)).scope_logs.add(scope=_SCOPE)
        scope.log_records.extend(encode_event(event, observed_ns=observed_ns) for event in group)
    return request


# --- decode -----------------------------------------------------------------------------------------
_WIRE: Final = {
    "string_value": "str",
    "int_value": "int",
    "double_value": "float",
    "bool_value": "bool",
    "bytes_value": "bytes",
}


def _in_range(number: int, key: str) -> int:
    limit = MAX_NS if key.endswith(("_ns", "_nano")) else MAX_INT
    if not -limit < number < limit:
        raise BadEvent(f"{key}: out of range")
    return number


def _read(value: AnyValue, kind: str, key: str) -> Any:
    which = value.WhichOneof("value")
    wire = _WIRE.get(which or "")
    if which is not None and kind == wire:
        got = getattr(value, which)
        if kind == "bytes" and len(got) > MAX_BLOB:
            raise BadEvent(f"{key}: more than {MAX_BLOB} bytes")
        return _in_range(got, key) if kind == "int" else bounded(got) if kind == "str" else got
    if kind == "float" and wire == "int":
        return float(value.int_value)
    if kind in ("strs", "ints") and which == "array_value":
        if len(value.array_value.values) > MAX_LIST:
            raise BadEvent(f"{key}: more than {MAX_LIST} entries")
        return [_read(v, kind[:-1], key) for v in value.array_value.values]
    raise BadEvent(f"{key}: expected {kind}, got {which or 'nothing'}")


def _read_struct(attributes: Iterable[KeyValue], index: dict[str, tuple[Field, str | None]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in attributes:
        found = index.get(item.key)
        if found is None:
            continue
        field, part = found
        kind = field.kind if part is None else HANDLE_KINDS[part]
        got = _read(item.value, kind, item.key)
        if kind == "int" and got < 0 and not field.signed:
            continue
        if part is not None:
            values.setdefault(field.name, {})[part] = got
        else:
            if field.convert is not None:
                try:
                    got = field.convert(got)
                except ValueError:
                    raise BadEvent(f"{item.key}: not one of its known values") from None
            values[field.name] = got
    for name, value in values.items():
        if isinstance(value, dict):
            values[name] = _build(Handle, value)
    return values


def _build(struct: type[Any], values: dict[str, Any]) -> Any:
    try:
        return struct(**values)
    except TypeError as error:
        raise BadEvent(f"{struct.__name__}: {error}") from None


class Decoded(msgspec.Struct):
    """What one export request held."""

    events: list[Event]
    rejected: list[str]
    """One sentence per record that claimed to be turnscope's and could not be read."""
    foreign: int
    """Log records of somebody else's: counted, otherwise ignored."""


def decode(request: ExportLogsServiceRequest) -> Decoded:
    """Read every turnscope record in ``request``; never raises for a bad record, keeps the good ones."""
    out = Decoded([], [], 0)
    for block in request.resource_logs:
        attributes = block.resource.attributes
        source: tuple[Emitter, Engine | None] | None = None
        trouble = ""
        try:
            emitter = _build(Emitter, _read_struct(attributes, EMITTER_INDEX))
            engine_values = _read_struct(attributes, ENGINE_INDEX)
            source = emitter, (_build(Engine, engine_values) if engine_values else None)
        except BadEvent as error:
            trouble = f"resource: {error}"
        for scope in block.scope_logs:
            for record in scope.log_records:
                name = record.event_name
                if not name:
                    name = next((a.value.string_value for a in record.attributes if a.key == semconv.EVENT_NAME), "")
                body_type = BODY_BY_EVENT.get(name)
                if body_type is None:
                    out.foreign += 1
                elif source is None:
                    out.rejected.append(f"{name}: {trouble}")
                else:
                    try:
                        out.events.append(_decode_record(record, body_type, *source))
                    except BadEvent as error:
                        out.rejected.append(f"{name}: {error}")
    return out


def _decode_record(record: LogRecord, body_type: type[Body], emitter: Emitter, engine: Engine | None) -> Event:
    seq = mono = None
    for item in record.attributes:
        if item.key == SEQ:
            seq = _read(item.value, "int", SEQ)
        elif item.key == MONO:
            mono = _read(item.value, "int", MONO)
    if seq is None or mono is None:
        raise BadEvent(f"{SEQ} and {MONO} are required")
    body = _build(body_type, _read_struct(record.attributes, BODY_INDEX[body_type]))
    wall_ns = _in_range(record.time_unix_nano, "time_unix_nano")
    return Event(emitter=emitter, engine=engine, seq=seq, wall_ns=wall_ns, mono_ns=mono, body=body)
