"""Files are opened as one where they have the same columns; of others none is lost."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnscope.store.shapes import Shapes


def _file(folder: Path, name: str, **columns: list[object]) -> str:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(columns), path)  # type: ignore[no-untyped-call]
    return str(path)


def test_the_most_frequent_columns_make_the_files_that_are_alike(tmp_path: Path) -> None:
    files = [
        _file(tmp_path, "a", turn=[1]),
        _file(tmp_path, "b", turn=[1], more=["x"]),
        _file(tmp_path, "c", turn=[2], more=["y"]),
        _file(tmp_path, "d", turn=[2], more=[3]),
    ]
    stored = Shapes().stored(duckdb.connect(), files)
    assert (stored.alike, stored.others) == ([files[1], files[2]], [files[0], files[3]])


def test_the_columns_of_a_file_are_looked_at_once_and_forgotten_with_it(tmp_path: Path) -> None:
    shapes, connection = Shapes(), duckdb.connect()
    file = _file(tmp_path, "a", turn=[1])
    first = shapes.stored(connection, [file])
    Path(file).unlink()
    assert shapes.stored(connection, [file]) == first
    shapes.forget([])
    with pytest.raises(duckdb.Error):
        shapes.stored(connection, [file])
