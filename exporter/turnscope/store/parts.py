"""Writing Parquet files: the one place that says how they are encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from turnscope.store.schema import Table

ROW_GROUP: Final = 50_000


def write_table(table: Table, data: pa.Table, sink: IO[bytes]) -> None:
    """One Parquet file with all of ``data``."""
    with _writer(table, sink) as out:
        out.write_table(data, row_group_size=ROW_GROUP)


def write_until(table: Table, batches: Iterator[pa.RecordBatch], sink: IO[bytes], limit: int) -> int:
    """One Parquet file from ``batches`` until about ``limit`` bytes are written; returns its rows, 0 at the end."""
    rows = 0
    with _writer(table, sink) as out:
        for group in _groups(batches):
            out.write_batch(group, row_group_size=ROW_GROUP)
            rows += group.num_rows
            if sink.tell() >= limit:
                break
    return rows


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _writer(table: Table, sink: IO[bytes]) -> pq.ParquetWriter:
    return pq.ParquetWriter(sink, table.schema, compression="zstd", write_page_index=True)
