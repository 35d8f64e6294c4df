"""Compaction: fewer, larger, sorted files with the newest revisions, and readers never notice."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, hold, parquet_files, read_turns, turn, writer
from turnscope.store import StoreReader, StoreTransientError, compact
from turnscope.store.manifest import decode

GRACE = 600 * SECOND


def _levels(root: Path) -> list[tuple[str, int, int]]:
    files = decode((root / "manifests/w1.json").read_bytes(), "x").files
    return sorted((f.table, f.level, f.rows) for f in files)


def test_the_files_of_an_hour_become_one_with_the_newest_revisions(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for revision in (1, 2, 3):
        out.add_turn(turn(1, revision=revision, path=f"p{revision}"))
        out.add_turn(turn(1 + revision))
        out.flush()
    out.maintain()
    assert _levels(tmp_path) == [("turns", 0, 2)] * 3
    before = read_turns(tmp_path)
    clock.forward(HOUR)
    out.maintain()
    assert _levels(tmp_path) == [("turns", 1, 4)]
    assert read_turns(tmp_path) == before
    assert out.compactions == 1
    out.close()


def test_a_day_that_is_over_becomes_one_sorted_file(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for n, session in enumerate(["b", None, "a", "b", "a"]):
        out.add_turn(turn(n, session_id=session, started_ns=NOON - n * SECOND))
        out.flush()
    clock.forward(24 * HOUR)
    out.maintain()
    out.close()
    (file,) = decode((tmp_path / "manifests/w1.json").read_bytes(), "x").files
    assert file.level == 2
    got = pq.read_table(tmp_path / file.path, partitioning=None).select(["session_id", "turn_id"]).to_pylist()
    assert [(r["session_id"], int(r["turn_id"], 16)) for r in got] == [
        ("a", 4),
        ("a", 2),
        ("b", 3),
        ("b", 0),
        (None, 1),
    ]


def test_a_late_revision_reopens_its_day_once(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    out.add_turn(turn(1, path="recompute"))
    out.flush()
    clock.forward(24 * HOUR)
    out.maintain()
    assert _levels(tmp_path) == [("turns", 2, 1)]
    out.add_turn(turn(1, path="mixed", revision=2))
    out.flush()
    clock.forward(HOUR)
    out.maintain()
    assert _levels(tmp_path) == [("turns", 0, 1), ("turns", 2, 1)]
    clock.forward(24 * HOUR)
    out.maintain()
    assert _levels(tmp_path) == [("turns", 2, 1)]
    assert [r["path"] for r in read_turns(tmp_path)] == ["mixed"]
    out.close()


def test_a_restart_does_not_forget_that_an_hour_is_due(tmp_path: Path) -> None:
    clock = Clock()
    fill(tmp_path, turn(1), clock=clock)
    fill(tmp_path, turn(2), clock=clock)
    clock.forward(HOUR)
    out = writer(tmp_path, clock)
    out.maintain()
    assert _levels(tmp_path) == [("turns", 1, 2)]
    out.close()


def test_one_call_does_one_compaction(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for n in (1, 2):
        out.add_turn(turn(n))
        out.add_hold(hold(n))
        out.flush()
    clock.forward(HOUR)
    counts = []
    for _ in range(3):
        out.maintain()
        counts.append(out.compactions)
    assert counts == [1, 2, 2]
    assert _levels(tmp_path) == [("holds", 1, 2), ("turns", 1, 2)]
    out.close()


def test_replaced_files_stay_for_the_grace_and_then_go(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for n in (1, 2):
        out.add_turn(turn(n))
        out.flush()
    clock.forward(HOUR)
    out.maintain()
    assert len(parquet_files(tmp_path)) == 3
    clock.forward(GRACE - 1)
    out.maintain()
    assert len(parquet_files(tmp_path)) == 3
    clock.forward(1)
    out.maintain()
    assert len(parquet_files(tmp_path)) == out.files == 1
    out.close()


def test_large_partitions_are_split_into_files_of_about_the_target_size(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for n in range(4_000):
        out.add_turn(turn(n, prefill_request_id=f"chatcmpl-{n * 7919:x}"))
    out.flush()
    (file,) = decode((tmp_path / "manifests/w1.json").read_bytes(), "x").files
    job = compact.Job("turns", file.date, 2, (file,))
    made = compact.run(job, out._files, lambda: out._new_path("turns", file.date), 0, target=20_000, group_rows=500)
    assert len(made) > 2
    assert sum(f.rows for f in made) == 4_000
    assert all(f.bytes == (tmp_path / f.path).stat().st_size for f in made)
    assert all(f.bytes < 100_000 for f in made)
    out.close()


def test_a_file_that_cannot_be_read_stops_its_compaction_and_nothing_else(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for n in (1, 2):
        out.add_turn(turn(n))
        out.add_hold(hold(n))
        out.flush()
    broken = next(p for p in parquet_files(tmp_path) if p.startswith("holds"))
    (tmp_path / broken).write_bytes(b"PAR1 no")
    clock.forward(HOUR)
    with pytest.raises(StoreTransientError, match="cannot compact holds of 2026-11-30"):
        out.maintain()
    clock.forward(5 * SECOND)
    out.maintain()
    assert _levels(tmp_path) == [("holds", 0, 1), ("holds", 0, 1), ("turns", 1, 2)]
    out.close()


def test_readers_see_every_row_once_while_files_are_compacted_and_deleted(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    stop = threading.Event()
    written = 0
    failures: list[BaseException] = []

    def churn() -> None:
        nonlocal written
        try:
            while not stop.is_set():
                for _ in range(3):
                    out.add_turn(turn(written, session_id=f"s{written % 3}"))
                    out.flush()
                    written += 1
                clock.forward(HOUR)
                out.maintain()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    reader = StoreReader(str(tmp_path))
    try:
        for _ in range(25):
            before = written
            seen = reader.recent_turns(limit=1).total
            after = written
            assert before <= seen <= after + 1
    finally:
        stop.set()
        thread.join(timeout=30)
        reader.close()
    assert not failures
    assert out.compactions > 3
    out.close()
