"""Rows of the store as DataFrames in the units that screens show. Missing stays missing: never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import pandas as pd
import pyarrow as pa

from turnscope.model import Figures
from turnscope.store.totals import Counts, Totals
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
    if kind is Kind.SHARE:
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
    """With one decimal where it says something: 0.4, 12.5, 1720."""
    return round(number) if abs(number) >= 100 else round(number, 1)


def sessions(table: pa.Table) -> pd.DataFrame:
    """One row a session."""
    return of(table.to_pylist(), columns.SESSIONS)


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


def coverage(totals: Totals, counts: Counts) -> pd.DataFrame:
    """How many turns have each kind of measurement, and why the others lack it."""
    measured = {
        "Reported by a prefill engine": (totals.prefill_turns, "The hook has to be on every prefill engine."),
        "Reported by a decode engine": (totals.decode_turns, "The hook has to be on every decode engine."),
        "Reported by the proxy": (
            totals.attempt_turns,
            "They did not pass a proxy with the hook (turnscope run, or the middleware): warm-up requests, for one.",
        ),
        "Prompt tokens told apart by source": (
            totals.source_turns,
            "It takes the prefill engine's hook, and a turn that got that far.",
        ),
        "Computed tokens split into again and new": (
            totals.split_turns,
            "No evidence what their sessions had computed before: it takes digests of this prompt and of the turn "
            "before it, from the hooks of both engines.",
        ),
        "Time to first token": (totals.ttft_turns, "It takes the proxy's hook, and an answer that began."),
        "Belongs to a session": (
            totals.turns - totals.unattributed_turns,
            "No session id came with them, and they continue no other turn.",
        ),
        "Legs joined by exact ids": (
            totals.turns - totals.inferred_turns,
            "Without a connector no id passes between the parts: joined by time (inferred).",
        ),
        "Reason known": (
            totals.turns - counts.by_reason.get("unknown", 0),
            "Not enough evidence: it takes all three hooks.",
        ),
    }
    return pd.DataFrame(
        [
            (what, text.part(turns, totals.turns), why if turns < totals.turns else "Nothing is missing.")
            for what, (turns, why) in measured.items()
        ],
        columns=["What", "Turns that have it", "Why the others lack it"],
        dtype="str",
    )
