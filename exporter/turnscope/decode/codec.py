"""Events to OTLP log records and back: the one mapping, used by the hooks and by the receivers.

A field ``f`` of a body of kind ``k`` is the attribute ``turnscope.<k>.<f>``; a handle's field is
``turnscope.<k>.<f>.<handle field>``; where OpenTelemetry has a name, that name is used. ``None`` and defaults
are left out. What is not in this table is never decoded, so it can never be stored: the table is the
allowlist.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from turnscope import semconv
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
_SLICE: Final = 32
"""Entries of a list that are encoded without a pause."""
_FIELDS: Final = 8
"""Fields of a body that are looked at without one."""

_RENAMED: Final = {
    "session_id": semconv.CONVERSATION_ID,
    "agent_id": semconv.AGENT_ID,
    "input_tokens": semconv.INPUT_TOKENS,
    "output_tokens": semconv.OUTPUT_TOKENS,
    "model": semconv.REQUEST_MODEL,
}
_SEQ: Final = "turnscope.seq"
_MONO: Final = "turnscope.mono_ns"


class BadEvent(ValueError):
    """A record that claims to be turnscope's and cannot be read: what and why."""


class _Field(msgspec.Struct):
    name: str
    key: str
    kind: str
    """``str, int, float, bool, bytes, strs, ints`` or ``handle``."""
    default: Any
    convert: Callable[[Any], Any] | None = None


def _plain(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (a for a in get_args(hint) if a is not type(None))
    return hint


def _fields(struct: type[msgspec.Struct], prefix: str, *, rename: bool = True) -> list[_Field]:
    hints = get_type_hints(struct)
    found = []
    for info in msgspec.structs.fields(struct):
        hint = _plain(hints[info.name])
        key = _RENAMED.get(info.name) if rename else None
        key = key or f"{prefix}.{info.name}"
        convert: Callable[[Any], Any] | None = None
        if hint is Handle:
            kind = "handle"
        elif get_origin(hint) in (list, tuple):
            kind = "ints" if get_args(hint)[0] is int else "strs"
            convert = tuple if get_origin(hint) is tuple else None
        elif isinstance(hint, type) and issubclass(hint, StrEnum):
            kind, convert = "str", hint
        else:
            kind = hint.__name__
        default = info.default if info.default is not msgspec.NODEFAULT else None
        if info.default_factory is not msgspec.NODEFAULT:
            default = info.default_factory()
        found.append(_Field(info.name, key, kind, default, convert))
    return found


_HANDLE_FIELDS: Final = [f.name for f in msgspec.structs.fields(Handle)]
_HANDLE_KINDS: Final = {"engine_id": "str", "request_id": "str", "tokens": "int", "blocks": "int", "expiry_s": "float"}
_BODY_FIELDS: Final = {body: _fields(body, str(body.EVENT)) for body in BODIES}
_BODY_BY_EVENT: Final = {str(body.EVENT): body for body in BODIES}
_EMITTER_FIELDS: Final = _fields(Emitter, "turnscope.emitter", rename=False)
_ENGINE_FIELDS: Final = _fields(Engine, "turnscope.engine", rename=False)
_TABLES: Final[dict[type[Any], list[_Field]]] = {Emitter: _EMITTER_FIELDS, Engine: _ENGINE_FIELDS, **_BODY_FIELDS}


def _index(fields: list[_Field]) -> dict[str, tuple[_Field, str | None]]:
    index: dict[str, tuple[_Field, str | None]] = {}
    for field in fields:
        if field.kind == "handle":
            for part in _HANDLE_FIELDS:
                index[f"{field.key}.{part}"] = (field, part)
        else:
            index[field.key] = (field, None)
    return index


_BODY_INDEX: Final = {body: _index(fields) for body, fields in _BODY_FIELDS.items()}
_EMITTER_INDEX: Final = _index(_EMITTER_FIELDS)
_ENGINE_INDEX: Final = _index(_ENGINE_FIELDS)

ALLOWED_KEYS: Final[frozenset[str]] = frozenset(
    {semconv.EVENT_NAME, _SEQ, _MONO, *_EMITTER_INDEX, *_ENGINE_INDEX}.union(*_BODY_INDEX.values())
)
"""Every attribute key that can enter the sidecar."""


class Attribute(msgspec.Struct, frozen=True):
    """One line of the table, for documentation."""

    key: str
    kind: str
    """``str, int, float, bool, bytes, strs`` or ``ints``."""
    field: str
    """The struct's field; a handle's is ``<field>.<part>``."""


def attributes(struct: type[Body] | type[Emitter] | type[Engine]) -> list[Attribute]:
    """The attributes that carry ``struct``, in its own order."""
    found = []
    for field in _TABLES[struct]:
        if field.kind == "handle":
            found += [Attribute(f"{field.key}.{p}", _HANDLE_KINDS[p], f"{field.name}.{p}") for p in _HANDLE_FIELDS]
        else:
            found.append(Attribute(field.key, field.kind, field.name))
    return found


# --- encode -----------------------------------------------------------------------------------------
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
        for position, v in enumerate(value[:MAX_LIST]):
            values.add().int_value = v
            if position % _SLICE == _SLICE - 1:
                pause()
    else:
        values = item.value.array_value.values
        for position, v in enumerate(value[:MAX_LIST]):
            values.add().string_value = bounded(v)
            if position % _SLICE == _SLICE - 1:
                pause()


def _put_struct(out: Any, struct: msgspec.Struct, fields: list[_Field], pause: Callable[[], None] = _no_pause) -> None:
    for position, field in enumerate(fields):
        if position % _FIELDS == _FIELDS - 1:
            pause()
        value = getattr(struct, field.name)
        if value is None or value == field.default:
            continue
        if field.kind == "handle":
            for part in _HANDLE_FIELDS:
                inner = getattr(value, part)
                if inner is not None:
                    _put(out, f"{field.key}.{part}", inner, _HANDLE_KINDS[part])
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


def encode_resource(request: ExportLogsServiceRequest, emitter: Emitter, engine: Engine | None) -> Any:
    """Append one resource with turnscope's scope to ``request`` and return its list of log records."""
    block = request.resource_logs.add()
    _put(block.resource.attributes, "service.name", "turnscope-hook", "str")
    _put_struct(block.resource.attributes, emitter, _EMITTER_FIELDS)
    if engine is not None:
        _put_struct(block.resource.attributes, engine, _ENGINE_FIELDS)
    scope = block.scope_logs.add()
    scope.scope.name = semconv.SCOPE
    return scope.log_records


def encode_event(
    records: Any,
    engine: Engine | None,
    event: Event,
    *,
    observed_ns: int,
    pause: Callable[[], None] = _no_pause,
) -> None:
    """Append one log record. ``pause()`` is called now and then within a long list."""
    body = event.body
    record: LogRecord = records.add()
    name = str(body.EVENT)
    record.event_name = name
    record.time_unix_nano = event.wall_ns
    record.observed_time_unix_nano = observed_ns
    key = record_key(engine, body)
    if key:
        record.trace_id = key
    _put(record.attributes, semconv.EVENT_NAME, name, "str")
    _put(record.attributes, _SEQ, event.seq, "int")
    _put(record.attributes, _MONO, event.mono_ns, "int")
    _put_struct(record.attributes, body, _BODY_FIELDS[type(body)], pause)


def encode(events: Iterable[Event], *, observed_ns: int) -> ExportLogsServiceRequest:
    """One export request; consecutive events of one emitter and engine share a resource."""
    request = ExportLogsServiceRequest()
    source: tuple[Emitter, Engine | None] | None = None
    records: Any = None
    for event in events:
        if source != (event.emitter, event.engine):
            source = (event.emitter, event.engine)
            records = encode_resource(request, event.emitter, event.engine)
        encode_event(records, event.engine, event, observed_ns=observed_ns)
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


def _read_struct(attributes: Iterable[KeyValue], index: dict[str, tuple[_Field, str | None]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in attributes:
        found = index.get(item.key)
        if found is None:
            continue
        field, part = found
        if part is not None:
            values.setdefault(field.name, {})[part] = _read(item.value, _HANDLE_KINDS[part], item.key)
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
            emitter = _build(Emitter, _read_struct(attributes, _EMITTER_INDEX))
            engine_values = _read_struct(attributes, _ENGINE_INDEX)
            source = emitter, (_build(Engine, engine_values) if engine_values else None)
        except BadEvent as error:
            trouble = f"resource: {error}"
        for scope in block.scope_logs:
            for record in scope.log_records:
                name = record.event_name
                if not name:
                    name = next((a.value.string_value for a in record.attributes if a.key == semconv.EVENT_NAME), "")
                body_type = _BODY_BY_EVENT.get(name)
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
        if item.key == _SEQ:
            seq = _read(item.value, "int", _SEQ)
        elif item.key == _MONO:
            mono = _read(item.value, "int", _MONO)
    if seq is None or mono is None:
        raise BadEvent(f"{_SEQ} and {_MONO} are required")
    body = _build(body_type, _read_struct(record.attributes, _BODY_INDEX[body_type]))
    wall_ns = _in_range(record.time_unix_nano, "time_unix_nano")
    return Event(emitter=emitter, engine=engine, seq=seq, wall_ns=wall_ns, mono_ns=mono, body=body)
