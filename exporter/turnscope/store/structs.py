"""Rows of an answer as the Structs that they were written from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa

from turnscope.model import AgentSpan, Turn
from turnscope.store.schema import Table

AT_ONCE: Final = 1000
"""Rows: dictionaries are large."""
_Row = TypeVar("_Row", bound=msgspec.Struct)
Revised = TypeVar("Revised", Turn, AgentSpan)


def structs(table: pa.Table, type_: type[_Row]) -> Iterator[_Row]:
    """The rows as Structs, other columns left out. Of ``AT_ONCE`` rows, texts that are equal are one object."""
    for batch in table.to_batches(max_chunksize=AT_ONCE):
        yield from _of_batch(batch, type_)


def newest(batches: pa.RecordBatchReader, table: Table, type_: type[Revised]) -> list[Revised]:
    """The newest revision of each key, as ``sql.newest`` has it, of rows with their ``filename``: one batch of them and
    what is kept is in memory."""
    found: dict[str, tuple[Revised, str]] = {}
    for batch in batches:
        names = [PurePosixPath(name).name for name in _values(batch.column("filename"))]
        for row, name in zip(_of_batch(batch, type_), names, strict=True):
            key = getattr(row, table.key)
            known = found.get(key)
            if known is None or (known[0].revision, known[1]) < (row.revision, name):
                found[key] = row, name
    return [row for row, _ in found.values()]


def struct(row: dict[str, Any], type_: type[_Row]) -> _Row:
    """Columns that a file of an older turnscope lacks have their defaults."""
    return msgspec.convert({name: value for name, value in row.items() if value is not None}, type_)


def _of_batch(batch: pa.RecordBatch, type_: type[_Row]) -> Iterator[_Row]:
    names = batch.schema.names
    for row in zip(*map(_values, batch.columns), strict=True):
        yield struct(dict(zip(names, row, strict=True)), type_)


def _values(column: Any) -> list[Any]:
    if not pa.types.is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    found = column.dictionary_encode()
    texts = found.dictionary.to_pylist()
    return [None if at is None else texts[at] for at in found.indices.to_pylist()]
