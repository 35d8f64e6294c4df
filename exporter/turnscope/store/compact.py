"""Compaction: many small files of one partition become few large sorted ones with the newest revisions only.

A row that is withdrawn hides older revisions of its key, so it stays as long as another file may have one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, Final

import duckdb
import msgspec
import pyarrow as pa

from turnscope.store import sql
from turnscope.store.errors import StoreError, StoreTransientError
from turnscope.store.files import Files
from turnscope.store.manifest import File, Manifest
from turnscope.store.parts import ROW_GROUP, write_until
from turnscope.store.schema import TABLES, Table, partition

HOUR_NS: Final = 3_600_000_000_000
DAY_NS: Final = 24 * HOUR_NS
TARGET_BYTES: Final = 128 * 1024 * 1024
"""A file is closed once it is this large: with the row groups in flight, files end between 64 and 256 MB."""
WHOLE: Final = 2
"""Level of the files that a whole date becomes."""
MEMORY: Final = "1GB"


class Job(msgspec.Struct, frozen=True):
    """Merge ``inputs``, files of one table and date, into files of ``level``."""

    table: str
    date: str
    level: int
    inputs: tuple[File, ...]


def due(manifest: Manifest, now_ns: int) -> list[Job]:
    """What to compact at ``now_ns``: each hour the flushed files of a date, each day whole dates that are over."""
    hour, day = now_ns // HOUR_NS, now_ns // DAY_NS
    if hour <= manifest.compacted_hour:
        return []
    by_date: defaultdict[tuple[str, str], list[File]] = defaultdict(list)
    for file in manifest.files:
        by_date[file.table, file.date].append(file)
    today = partition(now_ns)
    jobs = []
    for (table, date), files in sorted(by_date.items()):
        flushed = [f for f in files if f.level == 0]
        if date < today and day > manifest.compacted_day and any(f.level < WHOLE for f in files):
            jobs.append(Job(table, date, WHOLE, tuple(files)))
        elif len(flushed) > 1:
            jobs.append(Job(table, date, 1, tuple(flushed)))
    return jobs


def run(
    job: Job,
    files: Files,
    new_path: Callable[[], str],
    now_ns: int,
    *,
    others: Sequence[File] = (),
    target: int = TARGET_BYTES,
    group_rows: int = ROW_GROUP,
) -> list[File]:
    """Write the merged files and return them; nothing is visible until the manifest lists them. Raises StoreError.

    ``others``: the table's files that stay beside them.
    """
    table = TABLES[job.table]
    made: list[File] = []
    connection = sql.connect(memory=MEMORY, threads=1)
    try:
        files.register(connection)
        inputs, stay = ([files.address(f.path) for f in some] for some in (job.inputs, others))
        batches = _Ahead(_merged(connection, table, inputs, stay if job.level == WHOLE else None, group_rows))
        while batches.more():
            path, rows = new_path(), 0

            def fill(sink: IO[bytes]) -> None:
                nonlocal rows
                rows = write_until(table, batches, sink, target)

            size = files.write(path, fill)
            made.append(
                File(
                    path=path, table=job.table, date=job.date, rows=rows, bytes=size, level=job.level, created_ns=now_ns
                )
            )
    except (duckdb.Error, pa.ArrowException) as error:
        _discard(made, files)
        what = f"{job.table} of {job.date} in {files.url}"
        raise StoreTransientError(
            f"cannot compact {what} ({str(error).splitlines()[0]}): its small files stay, next try in an hour"
        ) from error
    except StoreError:
        _discard(made, files)
        raise
    finally:
        connection.close()
    return made


def _discard(made: list[File], files: Files) -> None:
    for file in made:
        with suppress(StoreError):
            files.delete(file.path)


def _merged(
    connection: Any, table: Table, addresses: list[str], others: list[str] | None, group_rows: int
) -> Iterator[pa.RecordBatch]:
    """Withdrawn rows go whose keys ``others`` have no row of; None: it is not asked, and they stay."""
    sql.create_empty(connection, table)
    merged = sql.Stored([], addresses)
    source, params = sql.rows(table, "merged", merged), merged.params("merged")
    connection.execute(f"CREATE TABLE again_{table.name} AS {sql.again(table, source)}", params)
    stays = ""
    if others is not None and table.withdrawn:
        apart = sql.Stored([], others)
        elsewhere = sql.rows(table, "apart", apart)
        hidden = f"SELECT {table.key} FROM {source} WHERE {table.withdrawn}"
        needed = f"CREATE TABLE hiding AS SELECT {table.key} FROM {elsewhere} WHERE {table.key} IN ({hidden})"
        connection.execute(needed, params | apart.params("apart"))
        stays = f"WHERE NOT {table.withdrawn} OR {table.key} IN (FROM hiding) "
    query = (
        f"SELECT {table.columns()} FROM {sql.newest(table, source, withdrawn=True)} {stays}"
        f"ORDER BY {', '.join(f'{c} NULLS LAST' for c in table.sort)}, {table.key}"
    )
    reader = connection.sql(query, params=params).to_arrow_reader(group_rows)
    for batch in reader:
        yield batch.cast(table.schema)


class _Ahead:
    """An iterator that can say whether there is more."""

    def __init__(self, source: Iterator[pa.RecordBatch]) -> None:
        self._source = source
        self._next = next(source, None)

    def more(self) -> bool:
        return self._next is not None

    def __iter__(self) -> _Ahead:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._next is None:
            raise StopIteration
        batch, self._next = self._next, next(self._source, None)
        return batch
