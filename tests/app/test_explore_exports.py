"""A table taken away: nothing in it runs, and nothing of it is lost."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope_app import exports


def _read(table: pa.Table) -> list[list[str]]:
    return list(csv.reader(io.StringIO(exports.to_csv(table).decode(), newline="")))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "=cmd|' /C calc'!A0"])
def test_text_that_a_spreadsheet_would_run_is_marked_as_text(text: str) -> None:
    assert _read(pa.table({text: [text]})) == [[f"'{text}"], [f"'{text}"]]


def test_numbers_stay_numbers_and_the_missing_stays_missing() -> None:
    table = pa.table({"n": [-5, None], "f": [-0.5, None], "text": ["plain", None]})
    assert _read(table) == [["n", "f", "text"], ["-5", "-0.5", "plain"], ["", "", ""]]


def test_lists_and_structures_are_json() -> None:
    table = pa.table({"models": [["a", "b"]], "ceiling": [{"free_ns": 7}]})
    assert _read(table)[1] == ['["a", "b"]', '{"free_ns": 7}']


_ANYTHING = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(_ANYTHING, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_a_file_of_any_text_is_read_back_whole(rows: list[tuple[str, Any]]) -> None:
    table = pa.table(
        {"text": pa.array([t for t, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.int64())}
    )
    for (text, n), (read, number) in zip(rows, _read(table)[1:], strict=True):
        assert read.removeprefix("'") == text.removeprefix("'")
        assert number == ("" if n is None else str(n))
    assert pq.read_table(io.BytesIO(exports.to_parquet(table))).equals(table)
