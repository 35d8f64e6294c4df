"""Rows of the store as DataFrames in the units that screens show. Missing stays missing: never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import pandas as pd
import pyarrow as pa

from turnscope.model import Figures
from turnscope_app import columns, fields, text, words
from turnscope_app import opted as of_application
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
    if kind is Kind.AMOUNT:
        return pd.Series([None if v is None else _rounded(v) for v in values], dtype="Float64")
    if kind in (Kind.SHARE, Kind.NUMBER):
        return pd.Series(values, dtype="Float64")
    if kind is Kind.TIME:
        # To the millisecond; times that a calendar cannot show are missing.
        ms = pd.Series([None if v is None else v // 1_000_000 for v in values], dtype="Int64")
        return pd.to_datetime(ms.where(ms.between(*_CALENDAR_MS)), unit="ms", utc=True)
    if kind is Kind.LIST:
        return [v or [] for v in values]
    if kind is Kind.WORD:
        values = [text.worded(column.vocabulary, v) for v in values]
    return pd.Series(values, dtype="str")


def _rounded(number: float) -> float:
    """With three digits that say something: 0.0042, 12.5, 1720. Only nothing is 0."""
    return float(f"{number:.3g}") if abs(number) < 100 else round(number)


def sessions(table: pa.Table, shown: Iterable[Column] = columns.SESSIONS) -> pd.DataFrame:
    """One row a session."""
    return of(table.to_pylist(), shown)


def opted(table: pa.Table, labels: Mapping[str, str], links: Mapping[str, str]) -> pa.Table:
    """Sessions with the ``label`` and ``link`` that their applications have opted in to, where any has."""
    names, ids = table["applications"].to_pylist(), table["session_id"].to_pylist()
    for name, made, templates in (("label", of_application.label, labels), ("link", of_application.link, links)):
        if templates:
            values = [made(templates, one or [], session_id) for one, session_id in zip(names, ids, strict=True)]
            table = table.append_column(name, pa.array(values, pa.string()))
    return table


def turns(rows: list[Row], numbers: list[int]) -> pd.DataFrame:
    """One row a turn."""
    return of([{**row, "number": number} for number, row in zip(numbers, rows, strict=True)], fields.TURNS)


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
            "value": pd.Series([text.escaped(columns.written(turn, column)) for column in shown], dtype="str"),
            "help": pd.Series([text.escaped(column.help) for column in shown], dtype="str"),
        }
    )


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
