"""Which files of a table have the same columns. To open files that may have others, DuckDB looks into all of them each
time that a question names the table, which takes longer than most answers; of files that are alike it looks into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from turnscope.store.sql import Stored

_SHAPES: Final = """
    SELECT file_name, md5(string_agg(told, ',' ORDER BY told)) AS shape
    FROM (SELECT file_name, concat_ws(' ', name, type, converted_type, logical_type, repetition_type, num_children)
        AS told FROM parquet_schema($files)) GROUP BY file_name"""


class Shapes:
    """Remembers of each file, which never changes, what columns it has."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def stored(self, connection: Any, files: list[str]) -> Stored:
        """The files of a table, told apart. Raises ``duckdb.Error`` where one cannot be read."""
        new = [file for file in files if file not in self._known]
        if new:
            self._known |= dict(connection.execute(_SHAPES, {"files": new}).fetchall())
        shapes = [self._known.get(file) for file in files]
        most = next((shape for shape, _ in Counter(shapes).most_common() if shape is not None), None)
        alike = [file for file, shape in zip(files, shapes, strict=True) if shape is not None and shape == most]
        return Stored(alike, [file for file in files if file not in {*alike}])

    def forget(self, listed: Iterable[str]) -> None:
        """Remember no more than the files that are ``listed``."""
        stay = {*listed}
        self._known = {file: shape for file, shape in self._known.items() if file in stay}
