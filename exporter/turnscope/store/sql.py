"""SQL that the reader and the compaction share. Names come from the schema, never from data; data are parameters."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from turnscope.store.schema import Table

_TYPES: Final = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
}
_ALIKE: Final = "read_parquet($%s_files, filename = true, hive_partitioning = false)"
_OTHERS: Final = "read_parquet($%s_others, union_by_name = true, filename = true, hive_partitioning = false)"


class Stored(NamedTuple):
    """The files of a table: those that have the same columns, and those that may have any."""

    alike: list[str]
    others: list[str]

    def params(self, name: str) -> dict[str, list[str]]:
        """What ``rows`` of that name takes."""
        given = {f"{name}_files": self.alike, f"{name}_others": self.others}
        return {parameter: files for parameter, files in given.items() if files}


def connect(*, memory: str, threads: int) -> Any:
    """An embedded DuckDB that loads no extension and so never uses the network."""
    options: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": memory,
        "threads": threads,
    }
    return duckdb.connect(":memory:", config=options)


def create_empty(connection: Any, table: Table) -> None:
    """An empty table ``empty_<name>`` with today's columns, so that files of an older turnscope lack none."""
    columns = ", ".join(f'"{field.name}" {_type(field.type)}' for field in table.schema)
    connection.execute(f"CREATE TABLE empty_{table.name} ({columns})")


def _type(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"{_type(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        fields = [f'"{field.name}" {_type(field.type)}' for field in type_]
        return f"STRUCT({', '.join(fields)})"
    return _TYPES[type_]


def rows(table: Table, name: str, files: Stored) -> str:
    """Every stored row of every revision, in today's columns plus ``filename``; takes ``files.params(name)``."""
    parts = [f"SELECT *, NULL::VARCHAR AS filename FROM empty_{table.name}"]
    parts += [f"SELECT * FROM {_ALIKE % name}"] if files.alike else []
    parts += [f"SELECT * FROM {_OTHERS % name}"] if files.others else []
    return f"(SELECT {table.columns()}, filename FROM ({' UNION ALL BY NAME '.join(parts)}))"


def again(table: Table, source: str) -> str:
    """``h`` rows: the hash of every key that ``source`` has several rows or a withdrawn one of, and perhaps of a few
    others."""
    gone = f" OR bool_or({table.withdrawn})" if table.withdrawn else ""
    return f"SELECT hash({table.key}) AS h FROM {source} GROUP BY h HAVING count(*) > 1{gone}"


def newest(table: Table, source: str, columns: str = "*", *, withdrawn: bool = False) -> str:
    """The newest revision of each key in ``source``; of equal revisions, the one written last. None of a key whose
    newest is withdrawn, but for ``withdrawn``.

    Nearly all keys are stored once, and sorting all rows to find that out would cost ten times the rest of a query:
    only rows are looked at whose key is in the relation ``again_<name>``, which the connection has to have, filled with
    ``again``.
    """
    repeated = f"hash({table.key}) IN (SELECT h FROM again_{table.name})"
    return (
        f"(SELECT {columns} FROM {source} WHERE NOT {repeated} "
        f"UNION ALL SELECT {columns} FROM {source} WHERE {repeated} {_first(table, withdrawn=withdrawn)})"
    )


def newest_of_few(table: Table, source: str) -> str:
    """The same for a ``source`` of few rows."""
    return f"(SELECT * FROM {source} {_first(table, withdrawn=False)})"


def _first(table: Table, *, withdrawn: bool) -> str:
    order = "ORDER BY revision DESC, parse_filename(filename) DESC"
    stays = "" if withdrawn or table.withdrawn is None else f" AND NOT {table.withdrawn}"
    return f"QUALIFY row_number() OVER (PARTITION BY {table.key} {order}) = 1{stays}"
