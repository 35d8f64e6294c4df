"""Attributes and messages in protobuf's wire format, written directly.

A hook writes some twenty attributes an event in a process that serves: an object for each, serialised afterwards, takes
longer, and the serialising is one call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

_FIXED: Final = (FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_DOUBLE)
_SIZED: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)
_LIMIT: Final = 1 << 63
_SMALL: Final = [bytes((n,)) for n in range(128)]
_SHORT: Final = 128
"""Bytes of a value whose head is remembered."""
_SLICE: Final = 16
"""Entries of a list that are written without a pause."""

Put = Callable[[Any], bytes]
"""A value to its ``AnyValue``. Raises for what that cannot hold, each kind its own error."""
Pause = Callable[[], None]


def _no_pause() -> None:
    return None


def varint(number: int) -> bytes:
    """Seven bits a byte; a negative number as 64 bits. Raises ``OverflowError`` beyond those."""
    if 0 <= number < 128:
        return _SMALL[number]
    if 0 < number < 16_384:
        return bytes((number & 127 | 128, number >> 7))
    if not -_LIMIT <= number < _LIMIT:
        raise OverflowError("an integer of more than 64 bits")
    number &= 2 * _LIMIT - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def tag(message: type[Message], field: str) -> bytes:
    """What stands before the field's value."""
    found = message.DESCRIPTOR.fields_by_name[field]
    kind = 1 if found.type in _FIXED else 2 if found.type in _SIZED else 0
    return varint(found.number << 3 | kind)


def sized(before: bytes, *parts: bytes) -> bytes:
    """A field of text, bytes or a message, made of ``parts``."""
    return b"".join((before, varint(sum(map(len, parts))), *parts))


fixed64: Final = struct.Struct("<Q").pack

_KEY, _VALUE = tag(KeyValue, "key"), tag(KeyValue, "value")
_STRING, _BYTES, _ARRAY = tag(AnyValue, "string_value"), tag(AnyValue, "bytes_value"), tag(AnyValue, "array_value")
_INT, _DOUBLE = tag(AnyValue, "int_value"), tag(AnyValue, "double_value")
_TRUE, _FALSE = (tag(AnyValue, "bool_value") + varint(value) for value in (1, 0))
_ENTRY: Final = tag(ArrayValue, "values")
_double: Final = struct.Struct("<d").pack


def put_str(value: str) -> bytes:
    encoded = value.encode()
    return _STRING + varint(len(encoded)) + encoded


def put_bytes(value: bytes) -> bytes:
    return sized(_BYTES, value)


def put_int(value: int) -> bytes:
    return _INT + varint(value)


def put_float(value: float) -> bytes:
    return _DOUBLE + _double(value)


def put_bool(value: bool) -> bytes:
    return _TRUE if value else _FALSE


def put_list(values: Iterable[Any], put: Put, pause: Pause = _no_pause) -> bytes:
    """``pause()`` is called now and then."""
    slices: list[bytes] = []
    entries: list[bytes] = []
    for number, value in enumerate(values, 1):
        entries.append(sized(_ENTRY, put(value)))
        if number % _SLICE == 0:
            slices.append(b"".join(entries))
            entries.clear()
            pause()
    return sized(_ARRAY, *slices, *entries)


class Attribute:
    """One key's attributes, as entries of the field that ``tag`` stands before."""

    __slots__ = ("_heads", "_key", "_tag")

    def __init__(self, tag: bytes, key: str) -> None:
        self._tag = tag
        self._key = sized(_KEY, key.encode()) + _VALUE
        self._heads: dict[int, bytes] = {}
        """What stands before a short value, by its length."""

    def of(self, value: bytes) -> bytes:
        """With what a ``Put`` made."""
        size = len(value)
        head = self._heads.get(size)
        if head is None:
            length = varint(size)
            head = b"".join((self._tag, varint(len(self._key) + len(length) + size), self._key, length))
            if size < _SHORT:
                self._heads[size] = head
        return head + value
