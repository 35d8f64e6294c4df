"""Rows on their way to the store, and checkpoints behind them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from turnscope.model import HoldRecord, ProcessRecord, Turn
from turnscope.outputs.rows import StoreRows


class Trouble(Exception):
    """The fake store's own kind of error."""


class FakeStore:
    """Keeps rows in memory; ``broken`` makes every write fail."""

    def __init__(self) -> None:
        self.rows_written = self.rows_dropped = self.rows_rejected = 0
        self.buffer: list[Turn | HoldRecord | ProcessRecord] = []
        self.stored: list[Turn | HoldRecord | ProcessRecord] = []
        self.broken = False
        self.maintained = 0
        self.closed = False

    def add_turn(self, turn: Turn) -> None:
        self.buffer.append(turn)

    def add_hold(self, hold: HoldRecord) -> None:
        self.buffer.append(hold)

    def add_process(self, process: ProcessRecord) -> None:
        self.buffer.append(process)

    @property
    def pending(self) -> int:
        return len(self.buffer)

    def flush(self) -> None:
        if self.broken:
            raise Trouble("cannot write s3://b just now: it will be tried again")
        self.rows_written += len(self.buffer)
        self.stored += self.buffer
        self.buffer = []

    def maintain(self) -> None:
        self.maintained += 1
        if self.broken:
            raise Trouble("cannot write s3://b just now: it will be tried again")

    def close(self) -> None:
        self.closed = True
        self.flush()


TURN = Turn(turn_id="1", started_ns=1)
HOLD = HoldRecord(hold_id="1", kind="hold", engine="d", engine_id="d", generation="g", request_id="r", started_ns=1)


@pytest.fixture
def store() -> FakeStore:
    """An empty store that works."""
    return FakeStore()


@pytest.fixture
def numbers() -> Counter[str]:
    """Counters and gauges by their last part."""
    return Counter()


@pytest.fixture
def rows(store: FakeStore, numbers: Counter[str]) -> StoreRows:
    """Closed by the test or left to end with the process."""

    def count(metric: str, _labels: tuple[str, ...], value: float) -> None:
        numbers[metric.removeprefix("turnscope_exporter_store_")] += int(value)

    def gauge(metric: str, _labels: tuple[str, ...], value: float) -> None:
        numbers[metric.removeprefix("turnscope_exporter_store_")] = int(value)

    return StoreRows(store, errors=Trouble, count=count, gauge=gauge, interval_s=0.01)


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_closing_stores_everything_and_saves_the_checkpoint(
    store: FakeStore, rows: StoreRows, numbers: Counter[str]
) -> None:
    saved: list[int] = []
    rows.add(TURN, HOLD)
    rows.close(lambda: saved.append(len(store.stored)))
    assert store.stored == [TURN, HOLD]
    assert saved == [2]
    assert store.closed
    assert numbers["rows_total"] == 2
    assert numbers["pending_rows"] == 0


def test_a_checkpoint_is_saved_once_and_only_after_its_rows_are_stored(store: FakeStore, rows: StoreRows) -> None:
    store.broken = True
    saved: list[int] = []
    rows.add(TURN, None)
    assert rows.request_checkpoint(lambda: saved.append(len(store.stored)))
    assert not rows.request_checkpoint(lambda: saved.append(-1))
    eventually(lambda: store.maintained > 0 or rows.trouble)
    assert saved == []
    store.broken = False
    eventually(lambda: saved)
    assert saved == [1]
    assert rows.request_checkpoint(lambda: None)
    rows.close(None)


def test_a_store_that_fails_is_told_once_counted_and_tried_again(
    store: FakeStore, rows: StoreRows, numbers: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    store.broken = True
    rows.add(TURN, None)
    eventually(lambda: numbers["failures_total"] >= 3)
    assert rows.trouble == "cannot write s3://b just now: it will be tried again"
    assert caplog.text.count("cannot write") == 1
    store.broken = False
    eventually(lambda: rows.trouble is None)
    rows.close(None)
    assert store.stored == [TURN]


def test_a_store_that_fails_at_the_end_leaves_no_checkpoint(
    store: FakeStore, rows: StoreRows, caplog: pytest.LogCaptureFixture
) -> None:
    store.broken = True
    saved: list[int] = []
    rows.add(TURN, None)
    rows.close(lambda: saved.append(1))
    assert saved == []
    assert "the journal keeps the rows for the next start" in caplog.text


def test_adding_never_waits_for_the_store(store: FakeStore, rows: StoreRows) -> None:
    go = threading.Event()
    store.maintain = lambda: go.wait(10) and None  # type: ignore[method-assign]
    time.sleep(0.05)
    started = time.monotonic()
    rows.add(TURN, HOLD)
    assert time.monotonic() - started < 1
    go.set()
    rows.close(None)


def test_lost_rows_are_counted(store: FakeStore, rows: StoreRows, numbers: Counter[str]) -> None:
    store.rows_dropped, store.rows_rejected = 3, 1
    eventually(lambda: numbers["rows_lost_total"] == 4)
    rows.close(None)
    assert numbers["rows_lost_total"] == 4
