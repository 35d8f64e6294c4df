"""Times, counts and ids of imported records, checked and in the units of the store."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from turnscope import surrogates
from turnscope.decode.codec import MAX_INT, MAX_NS
from turnscope.decode.imports.report import BadRecord

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
T = TypeVar("T")


def is_list(raw: msgspec.Raw) -> bool:
    """Whether a value that was not decoded is a JSON array."""
    return bytes(memoryview(raw)[:1]) == b"["


def is_object(raw: msgspec.Raw) -> bool:
    """Whether a value that was not decoded is a JSON object."""
    return bytes(memoryview(raw)[:1]) == b"{"


def decoder(record: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """A function that decodes one JSON text as ``record``; it raises BadRecord and never quotes the text."""
    decode = surrogates.reading(msgspec.json.Decoder(record).decode)

    def read(text: bytes | msgspec.Raw) -> T:
        try:
            return decode(text)
        except msgspec.ValidationError:
            raise BadRecord("JSON, but not a record of this kind") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BadRecord("not JSON") from None
        except RecursionError:
            raise BadRecord("values in it lie too deep in each other") from None

    return read


def moment_ns(time: dt.datetime) -> int:
    """Unix nanoseconds; a time without a zone is UTC. Raises BadRecord before 1970 and after 2116."""
    try:
        aware = time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)
        return in_time((aware - _EPOCH) // _MICROSECOND * 1000)
    except OverflowError:
        raise BadRecord("a time out of range") from None


def in_time(ns: int) -> int:
    """``ns``, if it is a Unix time that a store can hold. Raises BadRecord."""
    if not 0 <= ns < MAX_NS:
        raise BadRecord("a time out of range")
    return ns


def ms_to_ns(ms: int | float | None) -> int | None:
    """A duration in nanoseconds; None for one below zero or beyond a century, which no clock has measured."""
    if ms is None or not 0 <= ms < MAX_NS / 1e6:  # NaN is neither
        return None
    return round(ms * 1_000_000)  # exact of a whole number


def count(value: int | None) -> int | None:
    """A number of tokens; None for one that cannot be."""
    return value if value is not None and 0 <= value < MAX_INT else None


@lru_cache(maxsize=4096)
def trace_id(*parts: Any) -> str:
    """32 hex digits that the same parts always give."""
    return _digest("turnscope/import/trace", *parts)[:32]


def span_id(*parts: Any) -> str:
    """16 hex digits that the same parts always give."""
    return _digest("turnscope/import/span", *parts)[:16]


def _digest(*parts: Any) -> str:
    text = "\0".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
