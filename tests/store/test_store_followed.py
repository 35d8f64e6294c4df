"""What followed each turn, worked out at once and some sessions at a time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.rows import NOON, fill, hold, turn
from turnscope.model import HoldRecord, Turn
from turnscope.store import StoreReader, followed
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import HOLDS, TURNS, Table, to_arrow

_IDS = [f"{number:032x}" for number in range(1, 9)]


@st.composite
def _turns(draw: st.DrawFn) -> list[Turn]:
    """A few turns of some sessions, that may continue turns of others and claim holds that others claim."""
    return [
        turn(
            number,
            session_id=draw(st.sampled_from(["a", "b", "c", None])),
            # No two begin at once: of those which is first is nobody's concern.
            started_ns=(started := NOON + 100 * draw(st.integers(0, 9)) + number),
            ended_ns=draw(st.none() | st.integers(started, started + 500)),
            previous_turn_id=draw(st.none() | st.sampled_from(_IDS)),
            left_hold_id=draw(st.none() | st.sampled_from(_IDS)),
            last_role=draw(st.sampled_from(["user", "tool"])),
        )
        for number in range(1, draw(st.integers(1, 8)) + 1)
    ]


_HOLDS = st.lists(st.integers(1, 8), unique=True).map(lambda numbers: [hold(n, tokens=n) for n in numbers])


def _worked_out(turns: list[Turn], holds: list[HoldRecord], piece: int) -> list[dict[str, Any]]:
    connection = duckdb.connect()

    def ask(text: str, params: Params, given: dict[str, pa.Table]) -> pa.Table:
        for name, relation in given.items():
            connection.register(name, relation)
        return connection.sql(text, params=params).to_arrow_table()

    def stored(table: Table, rows: list[Any]) -> None:
        found, _ = to_arrow(table, rows)
        connection.register(table.name, found.append_column("filename", pa.nulls(len(found), pa.string())))
        connection.execute(f"CREATE TABLE again_{table.name} (h UBIGINT)")

    try:
        stored(TURNS, turns)
        stored(HOLDS, holds)
        src = Sources(turns=TURNS.name, holds=HOLDS.name, spans="", sessions="", processes="")
        found: pa.Table = followed.work_out(src, ask, piece)
    finally:
        connection.close()
    rows: list[dict[str, Any]] = found.select(sorted(found.column_names)).to_pylist()
    return sorted(rows, key=repr)


@settings(deadline=None, max_examples=60)
@given(_turns(), _HOLDS)
def test_sessions_taken_some_at_a_time_give_what_all_at_once_give(turns: list[Turn], holds: list[HoldRecord]) -> None:
    at_once = _worked_out(turns, holds, 100)
    assert _worked_out(turns, holds, 2) == at_once
    assert sum(row["began_ns"] is not None for row in at_once) == len(turns)
    assert sum(row["held"] is not None for row in at_once) == len(holds)


def test_two_who_ask_at_once_have_it_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, turn(1, left_hold_id=_IDS[0]), hold(1))
    times: list[float] = []
    work_out = followed.work_out

    def slowly(src: Sources, ask: followed.Ask) -> pa.Table:
        times.append(time.monotonic())
        time.sleep(0.3)
        return work_out(src, ask)

    monkeypatch.setattr(followed, "work_out", slowly)
    reader = StoreReader(str(tmp_path))
    try:
        with ThreadPoolExecutor() as pool:
            some = list(pool.map(lambda _: reader.counts().by_hold_fate, range(2)))
    finally:
        reader.close()
    assert some == [{"held": 1}, {"held": 1}]
    assert len(times) == 1
