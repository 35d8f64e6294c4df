"""A table as a file to take away."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet takes for the begin of a formula."""


def to_csv(table: pa.Table) -> bytes:
    """UTF-8 with a heading; missing is empty, lists and structures are JSON. Text that a spreadsheet would run as a
    formula has an apostrophe before it, as spreadsheets mark text themselves."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([_text(name) for name in table.column_names])
    for row in table.to_pylist():
        writer.writerow([_cell(row[name]) for name in table.column_names])
    return out.getvalue().encode("utf-8", "replace")


def to_parquet(table: pa.Table) -> bytes:
    """As the store has it: nanoseconds, bytes, lists."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return _text(json.dumps(value, ensure_ascii=False, default=str))
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    return f"'{value}" if value.lstrip(" ").startswith(_FORMULA) or value.startswith(_FORMULA) else value
