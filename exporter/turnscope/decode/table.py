"""Which attribute carries which field: the one mapping, for both ways.

A field ``f`` of a body of kind ``k`` is the attribute ``turnscope.<k>.<f>``; a handle's field is
``turnscope.<k>.<f>.<handle field>``; where OpenTelemetry has a name, that name is used. What is not in this table is
never decoded, so it can never be stored: the table is the allowlist.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from turnscope import semconv
from turnscope.model import BODIES, Body, Emitter, Engine, Handle, HoldUse, Request

_RENAMED: Final = {
    "session_id": semconv.CONVERSATION_ID,
    "agent_id": semconv.AGENT_ID,
    "input_tokens": semconv.INPUT_TOKENS,
    "output_tokens": semconv.OUTPUT_TOKENS,
    "model": semconv.REQUEST_MODEL,
}
_SPLIT: Final = ("input_tokens", "local_hit_tokens", "external_tokens")
_AS_REPORTED: Final[dict[type[Any], tuple[str, ...]]] = {
    Request: (*_SPLIT, "computed_tokens", "output_tokens"),
    HoldUse: _SPLIT,
}
"""What engines say of a prompt, word for word: where it cannot be, that is a fact of its own."""
SEQ: Final = "turnscope.seq"
MONO: Final = "turnscope.mono_ns"


class Field(msgspec.Struct):
    """One field of a body, an emitter or an engine."""

    name: str
    key: str
    kind: str
    """``str, int, float, bool, bytes, strs, ints`` or ``handle``."""
    default: Any
    convert: Callable[[Any], Any] | None = None
    signed: bool = False
    """It may be below zero. Of anything else, what is counts as not measured."""


def _plain(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (a for a in get_args(hint) if a is not type(None))
    return hint


def _fields(struct: type[msgspec.Struct], prefix: str, *, rename: bool = True) -> list[Field]:
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
        signed = info.name in _AS_REPORTED.get(struct, ()) or info.name.endswith("_mono_ns")
        found.append(Field(info.name, key, kind, default, convert, signed))
    return found


HANDLE_FIELDS: Final = [f.name for f in msgspec.structs.fields(Handle)]
HANDLE_KINDS: Final = {"engine_id": "str", "request_id": "str", "tokens": "int", "blocks": "int", "expiry_s": "float"}
BODY_FIELDS: Final = {body: _fields(body, str(body.EVENT)) for body in BODIES}
BODY_BY_EVENT: Final = {str(body.EVENT): body for body in BODIES}
EMITTER_FIELDS: Final = _fields(Emitter, "turnscope.emitter", rename=False)
ENGINE_FIELDS: Final = _fields(Engine, "turnscope.engine", rename=False)
_TABLES: Final[dict[type[Any], list[Field]]] = {Emitter: EMITTER_FIELDS, Engine: ENGINE_FIELDS, **BODY_FIELDS}


def _index(fields: list[Field]) -> dict[str, tuple[Field, str | None]]:
    index: dict[str, tuple[Field, str | None]] = {}
    for field in fields:
        if field.kind == "handle":
            for part in HANDLE_FIELDS:
                index[f"{field.key}.{part}"] = (field, part)
        else:
            index[field.key] = (field, None)
    return index


BODY_INDEX: Final = {body: _index(fields) for body, fields in BODY_FIELDS.items()}
EMITTER_INDEX: Final = _index(EMITTER_FIELDS)
ENGINE_INDEX: Final = _index(ENGINE_FIELDS)

ALLOWED_KEYS: Final[frozenset[str]] = frozenset(
    {semconv.EVENT_NAME, SEQ, MONO, *EMITTER_INDEX, *ENGINE_INDEX}.union(*BODY_INDEX.values())
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
            found += [Attribute(f"{field.key}.{p}", HANDLE_KINDS[p], f"{field.name}.{p}") for p in HANDLE_FIELDS]
        else:
            found.append(Attribute(field.key, field.kind, field.name))
    return found
