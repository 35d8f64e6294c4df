"""Rows of the store as DataFrames in the units that screens show. Missing stays missing: never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import pandas as pd
import pyarrow as pa

from turnscope.model import Figures
from turnscope_app import columns, fields, text, words
from turnscope_app.columns import Column, Kind, Row

_PER_UNIT: Final = {Kind.MS: 1e6, Kind.SECONDS: 1e9}
_WHOLE: Final = frozenset({Kind.COUNT, Kind.TOKENS, Kind.BYTES})
_CALENDAR_MS: Final = (-62_000_000_000_000, 253_000_000_000_000)


def of(rows: list[Row], shown: Iterable[Column]) -> pd.DataFrame:
    """One row a row, one column a column."""
    return pd.DataFrame({column.key: _series([column.of(row) for row in rows], column) for column in shown})


def _series(values: list[Any], column: Column) -> pd.Series[Any] | list[Any]:
    kind = column.kind
    if kind in _WHOLE:
        return pd.Series(values, dtype="Int64")
    if kind in _PER_UNIT:
        return pd.Series([None if v is None else _rounded(v / _PER_UNIT[kind]) for v in values], dtype="Float64")
    if kind in (Kind.SHARE, Kind.NUMBER):
        return pd.Series(values, dtype="Float64")
    if kind is Kind.TIME:
        # To the millisecond; times that a calendar cannot show are missing.
        ms = pd.Series([None if v is None else v // 1_000_000 for v in values], dtype="Int64")
        return pd.to_datetime(ms.where(ms.between(*_CALENDAR_MS)), unit="ms", utc=True)
    if kind is Kind.LIST:
        return [v or [] for v in values]
    if kind is Kind.WORD:
        values = [words.shown(column.vocabulary, v) for v in values]
    return pd.Series(values, dtype="str")


def _rounded(number: float) -> float:
    """With one decimal where it says something: 0.4, 12.5, 1720."""
    return round(number) if abs(number) >= 100 else round(number, 1)


def sessions(table: pa.Table) -> pd.DataFrame:
    """One row a session."""
    return of(table.to_pylist(), columns.SESSIONS)


def turns(table: pa.Table, offset: int = 0) -> pd.DataFrame:
    """One row a turn; ``offset`` turns come before the first row."""
    rows = table.to_pylist()
    return of([{**row, "number": n} for n, row in zip(numbers(rows, offset), rows, strict=True)], fields.TURNS)


def numbers(rows: list[Row], offset: int = 0) -> list[int]:
    """Each turn's number: its index in the session, or its place in the list where indexes are missing or repeat."""
    indexes = [r["turn_index"] for r in rows]
    if None in indexes or len(set(indexes)) < len(indexes):
        return list(range(offset + 1, offset + 1 + len(rows)))
    return indexes


def applications(found: list[Figures]) -> pd.DataFrame:
    """One row an application."""
    return of([msgspec.structs.asdict(figures) for figures in found], columns.APPLICATIONS)


def exported(found: list[Figures]) -> pa.Table:
    """The same to take away, with every figure."""
    return pa.Table.from_pylist([msgspec.structs.asdict(figures) for figures in found])


def details(turn: Row, group: fields.Group) -> pd.DataFrame:
    """One row a figure of the group: what it is, its value with its unit as Markdown, and what it means."""
    shown = [*group.listed, *group.more]
    return pd.DataFrame(
        {
            "what": pd.Series([column.label for column in shown], dtype="str"),
            "value": pd.Series([text.escaped(value(turn, column)) for column in shown], dtype="str"),
            "help": pd.Series([text.escaped(column.help) for column in shown], dtype="str"),
        }
    )


def value(row: Row, column: Column) -> str:
    """A figure of a row in words, with its unit."""
    found = column.of(row)
    if found is None or found == []:
        return column.absent
    match column.kind:
        case Kind.TOKENS:
            return text.count(found, "tokens")
        case Kind.COUNT:
            return text.count(found)
        case Kind.BYTES:
            return text.size(found)
        case Kind.MS | Kind.SECONDS:
            return text.duration(found)
        case Kind.TIME:
            return text.when(found)
        case Kind.YES_NO:
            return "yes" if found else "no"
        case Kind.WORD:
            return words.shown(column.vocabulary, found) or column.absent
        case Kind.WORDS:
            return ", ".join(words.shown(column.vocabulary, one) or one for one in found)
        case _:
            return text.harmless(str(found))


def vocabulary(table: Mapping[str, words.Word], counts: dict[str, int], total: int, what: str) -> pd.DataFrame:
    """Words of a closed vocabulary as Markdown, the frequent first, with how many of ``total`` ``what`` have each."""
    return pd.DataFrame(
        [
            (f"**{word.plain}**  \n`{word.value}`", text.part(counts.get(value, 0), total), text.escaped(word.story))
            for value, word in sorted(table.items(), key=lambda item: -counts.get(item[0], 0))
        ],
        columns=["In plain words, and in metrics", what, "What it means"],
        dtype="str",
    )
