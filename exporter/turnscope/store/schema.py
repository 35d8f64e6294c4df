"""The tables of the store and their Arrow schemas, derived from the model's Structs here and nowhere else."""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa

from turnscope.model import AgentSpan, HoldRecord, ProcessRecord, SessionSummary, Turn

_EPOCH: Final = dt.date(1970, 1, 1)
_ARROW: Final[dict[Any, pa.DataType]] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table: rows are a Struct, ``key`` names an entity, the highest ``revision`` of a key is the truth. Where rows
    may be ``withdrawn``, a key whose newest one is counts as not there."""

    name: str
    row: type[Turn] | type[HoldRecord] | type[AgentSpan] | type[SessionSummary] | type[ProcessRecord]
    key: str
    sort: tuple[str, ...] = ("session_id", "started_ns")
    """Order of rows in compacted files."""

    @property
    def withdrawn(self) -> str | None:
        """The test for a row that is withdrawn; None where none ever is. An older turnscope wrote no such rows."""
        return "coalesce(withdrawn, false)" if "withdrawn" in self.row.__struct_fields__ else None

    @property
    def schema(self) -> pa.Schema:
        """Column names and types, in the Struct's order."""
        return pa.schema(_fields(self.row))

    def columns(self, prefix: str = "") -> str:
        """The columns as SQL, each quoted: ``join`` is a keyword."""
        return ", ".join(f'{prefix}"{name}"' for name in self.schema.names)


TURNS: Final = Table(name="turns", row=Turn, key="turn_id")
HOLDS: Final = Table(name="holds", row=HoldRecord, key="hold_id")
SPANS: Final = Table(name="spans", row=AgentSpan, key="span_key")
SESSIONS: Final = Table(name="sessions", row=SessionSummary, key="session_id", sort=("started_ns",))
PROCESSES: Final = Table(name="processes", row=ProcessRecord, key="process_id", sort=("started_ns",))
TABLES: Final[dict[str, Table]] = {t.name: t for t in (TURNS, HOLDS, SPANS, SESSIONS, PROCESSES)}


def _arrow(hint: Any) -> pa.DataType:
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (a for a in get_args(hint) if a is not type(None))
    if hint in _ARROW:
        return _ARROW[hint]
    if get_origin(hint) is list:
        return pa.list_(_arrow(get_args(hint)[0]))
    return pa.struct(_fields(hint))


def _fields(row: type[msgspec.Struct]) -> list[Any]:
    hints = get_type_hints(row)
    return [pa.field(f.name, _arrow(hints[f.name])) for f in msgspec.structs.fields(row)]


def to_arrow(table: Table, rows: Iterable[msgspec.Struct]) -> tuple[pa.Table, int]:
    """``rows`` as an Arrow table, and how many had a value that no column can hold and were left out.

    Text that is not valid Unicode (lone surrogates) is stored with replacement characters.
    """
    rows = list(rows)
    try:
        return _columns(table, rows), 0
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError):
        good = []
        for row in rows:
            try:
                good.append(_columns(table, [_clean(row)]))
            except (pa.ArrowException, OverflowError, TypeError):
                continue
        kept = pa.concat_tables(good) if good else table.schema.empty_table()
        return kept, len(rows) - len(good)


def _columns(table: Table, rows: list[msgspec.Struct]) -> pa.Table:
    schema = table.schema
    return pa.table([pa.array(_values(rows, field), field.type) for field in schema], schema=schema)


def _values(rows: list[msgspec.Struct], field: Any) -> list[Any]:
    values = map(attrgetter(field.name), rows)
    return list(map(msgspec.to_builtins, values)) if pa.types.is_nested(field.type) else list(values)


def _clean(row: msgspec.Struct) -> msgspec.Struct:
    texts = {
        f: v.encode("utf-8", "replace").decode() for f, v in msgspec.structs.asdict(row).items() if isinstance(v, str)
    }
    return msgspec.structs.replace(row, **texts)


def partition(started_ns: int) -> str:
    """The UTC date that ``started_ns`` falls on, e.g. ``2026-11-29``; times outside the calendar go to its ends."""
    return _date(started_ns // 86_400_000_000_000)


@lru_cache(maxsize=64)
def _date(day: int) -> str:
    """Of a day since 1970: one object for each, since it is remembered of every row."""
    try:
        return (_EPOCH + dt.timedelta(days=day)).isoformat()
    except OverflowError:
        return "0001-01-01" if day < 0 else "9999-12-31"
