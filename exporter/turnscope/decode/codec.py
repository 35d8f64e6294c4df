"""Events to OTLP log records and back, by the one mapping (``table``): used by the hooks and by the receivers. ``None``
and defaults are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from turnscope import semconv
from turnscope.decode import wire
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
from turnscope.decode.wire import Attribute, fixed64, sized, tag
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
_FIELDS: Final = 4
"""Fields of a body that are written without a pause."""


class BadEvent(ValueError):
    """A record that claims to be turnscope's and cannot be read: what and why."""


# --- encode -----------------------------------------------------------------------------------------
_ATTRIBUTES: Final = tag(LogRecord, "attributes")
_RECORD: Final = tag(ScopeLogs, "log_records")
_EVENT, _TRACE_ID = tag(LogRecord, "event_name"), tag(LogRecord, "trace_id")
_TIME, _OBSERVED = tag(LogRecord, "time_unix_nano"), tag(LogRecord, "observed_time_unix_nano")
_BLOCK: Final = tag(ExportLogsServiceRequest, "resource_logs")
_RESOURCE, _SCOPES = tag(ResourceLogs, "resource"), tag(ResourceLogs, "scope_logs")
_SCOPE: Final = sized(tag(ScopeLogs, "scope"), sized(tag(InstrumentationScope, "name"), semconv.SCOPE.encode()))
_PUT: Final[dict[str, wire.Put]] = {
    "int": wire.put_int,
    "str": lambda value: wire.put_str(bounded(value)),
    "bool": wire.put_bool,
    "float": wire.put_float,
    "bytes": wire.put_bytes,
}


def _no_pause() -> None:
    return None


class _Writer(NamedTuple):
    """Of one field."""

    name: str
    default: Any
    put: wire.Put | None
    """None of a list and of a handle."""
    attributes: list[tuple[str, wire.Put, Attribute]]
    """A handle's, by its parts; of any other field one, and of a list what puts an entry."""


def _writer(field: Field, before: bytes) -> _Writer:
    if field.kind == "handle":
        parts = [(part, _PUT[HANDLE_KINDS[part]], Attribute(before, f"{field.key}.{part}")) for part in HANDLE_FIELDS]
        return _Writer(field.name, field.default, None, parts)
    one = _PUT.get(field.kind)
    # A list's kind is the plural of its entries'.
    attribute = Attribute(before, field.key)
    return _Writer(field.name, field.default, one, [("", one or _PUT[field.kind.removesuffix("s")], attribute)])


_BODY_WRITERS: Final = {body: [_writer(f, _ATTRIBUTES) for f in fields] for body, fields in BODY_FIELDS.items()}
_RESOURCE_ATTRIBUTES: Final = tag(Resource, "attributes")
_EMITTER_WRITERS: Final = [_writer(field, _RESOURCE_ATTRIBUTES) for field in EMITTER_FIELDS]
_ENGINE_WRITERS: Final = [_writer(field, _RESOURCE_ATTRIBUTES) for field in ENGINE_FIELDS]
_SERVICE: Final = Attribute(_RESOURCE_ATTRIBUTES, "service.name").of(wire.put_str("turnscope-hook"))
_NAMES: Final = {body: str(body.EVENT) for body in BODIES}
_BEGINNINGS: Final = {
    body: sized(_EVENT, name.encode()) + Attribute(_ATTRIBUTES, semconv.EVENT_NAME).of(wire.put_str(name))
    for body, name in _NAMES.items()
}
"""What all records of a kind have."""
_SEQ_OF, _MONO_OF = Attribute(_ATTRIBUTES, SEQ), Attribute(_ATTRIBUTES, MONO)


def _put_struct(
    struct: msgspec.Struct, writers: list[_Writer], pause: Callable[[], None] = _no_pause
) -> Iterator[bytes]:
    for number, (name, default, put, attributes) in enumerate(writers, 1):
        if number % _FIELDS == 0:
            pause()
        value = getattr(struct, name)
        if value is None or value == default:
            continue
        if put is not None:
            yield attributes[0][2].of(put(value))
        elif isinstance(value, Handle):
            for part, put_part, attribute in attributes:
                inner = getattr(value, part)
                if inner is not None:
                    yield attribute.of(put_part(inner))
        else:
            ((_, put_entry, attribute),) = attributes
            yield attribute.of(wire.put_list(value[:MAX_LIST], put_entry, pause))


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


def encode_resource(emitter: Emitter, engine: Engine | None) -> bytes:
    """The head of a ``ResourceLogs``: where events are from."""
    of_engine = _put_struct(engine, _ENGINE_WRITERS) if engine is not None else ()
    return sized(_RESOURCE, _SERVICE, *_put_struct(emitter, _EMITTER_WRITERS), *of_engine)


def encode_event(event: Event, *, observed_ns: int, pause: Callable[[], None] = _no_pause) -> bytes:
    """One log record, as an entry of its scope. ``pause()`` is called now and then."""
    body = event.body
    key = record_key(event.engine, body)
    pause()
    return sized(
        _RECORD,
        _TIME,
        fixed64(event.wall_ns),
        _OBSERVED,
        fixed64(observed_ns),
        sized(_TRACE_ID, key) if key else b"",
        _BEGINNINGS[type(body)],
        _SEQ_OF.of(wire.put_int(event.seq)),
        _MONO_OF.of(wire.put_int(event.mono_ns)),
        *_put_struct(body, _BODY_WRITERS[type(body)], pause),
    )


def encode_request(resource: bytes, records: Iterable[bytes]) -> bytes:
    """One export request of records from one source. Several laid end to end are one with all their resources."""
    return sized(_BLOCK, resource, sized(_SCOPES, _SCOPE, *records))


def encode(events: Iterable[Event], *, observed_ns: int) -> ExportLogsServiceRequest:
    """One export request; consecutive events of one emitter and engine share a resource."""
    return ExportLogsServiceRequest.FromString(
        b"".join(
            encode_request(encode_resource(*source), [encode_event(event, observed_ns=observed_ns) for event in group])
            for source, group in groupby(events, key=lambda event: (event.emitter, event.engine))
        )
    )


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
        if part is not None:
            values.setdefault(field.name, {})[part] = _read(item.value, HANDLE_KINDS[part], item.key)
        else:
            got = _read(item.value, field.kind, item.key)
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
