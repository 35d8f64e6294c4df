"""What the writer promises: rows are readable once flushed, once each, and nothing is half-visible."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import IO

import msgspec
import pytest

from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, hold, parquet_files, read_turns, turn, writer
from turnscope.model import Turn, TurnAttempt
from turnscope.store import StoreBroken, StorePermanentError, StoreReader, StoreTransientError, StoreWriter
from turnscope.store import writer as writer_module
from turnscope.store.errors import StoreGone
from turnscope.store.files import LocalFiles


def test_every_field_of_a_turn_comes_back_as_it_went_in(tmp_path: Path) -> None:
    first = TurnAttempt(number=1, final=False, turn_id="ab" * 16, path="unknown", status="error", moved_bytes=7)
    attempts = [first, msgspec.structs.replace(first, number=2, final=True, stage="decode", moved_bytes=None)]
    row = turn(
        1,
        suspicions=["kv_mismatch", "stale_handle"],
        prompt_tokens=1250,
        ttft_ns=2**62,
        late=True,
        attempts_made=attempts,
    )
    fill(tmp_path, row, turn(2))
    two, one = read_turns(tmp_path)
    assert msgspec.convert({k: v for k, v in one.items() if not k.startswith("hold_")}, Turn) == row
    assert two["attempts_made"] == []


def test_not_measured_stays_absent_and_zero_stays_zero(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, fetched_tokens=0, prompt_tokens=None))
    (got,) = read_turns(tmp_path)
    assert (got["fetched_tokens"], got["prompt_tokens"]) == (0, None)


def test_rows_are_readable_after_flush_and_not_before(tmp_path: Path) -> None:
    out = writer(tmp_path)
    out.add_turn(turn(1))
    assert (out.pending, read_turns(tmp_path)) == (1, [])
    out.flush()
    assert (out.pending, len(read_turns(tmp_path))) == (0, 1)
    out.close()


def test_rows_are_flushed_when_the_oldest_has_waited_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    out.add_turn(turn(1))
    clock.forward(60 * SECOND - 1)
    out.maintain()
    assert out.flushes == 0
    clock.forward(1)
    out.maintain()
    assert (out.flushes, out.rows_written, out.last_flush_ns) == (1, 1, clock.ns)
    out.close()


def test_rows_are_flushed_at_once_when_there_are_five_thousand(tmp_path: Path) -> None:
    out = writer(tmp_path)
    for n in range(4_999):
        out.add_turn(turn(n))
    out.maintain()
    assert out.flushes == 0
    out.add_hold(hold(1))
    out.maintain()
    assert (out.flushes, out.pending, out.rows_written) == (1, 0, 5_000)
    out.close()


def test_the_newest_revision_wins_whatever_the_order_of_arrival(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, revision=2, path="mixed"))
    fill(tmp_path, turn(1, revision=1, path="recompute"), turn(2, revision=3, path="mixed"), turn(2, revision=2))
    assert {r["turn_id"][-1]: r["path"] for r in read_turns(tmp_path)} == {"1": "mixed", "2": "mixed"}


def test_a_replayed_journal_changes_nothing_for_readers(tmp_path: Path) -> None:
    rows = [turn(n) for n in range(5)]
    fill(tmp_path, *rows, hold(1))
    before = read_turns(tmp_path)
    fill(tmp_path, *rows, hold(1))
    assert read_turns(tmp_path) == before
    assert len(parquet_files(tmp_path)) == 4


def test_of_equal_revisions_the_one_written_last_is_read(tmp_path: Path) -> None:
    clock = Clock()
    fill(tmp_path, turn(1, status="ok"), clock=clock)
    clock.forward(1)
    fill(tmp_path, turn(1, status="error"), clock=clock)
    assert [r["status"] for r in read_turns(tmp_path)] == ["error"]


def test_a_revision_goes_to_the_partition_where_its_turn_was_first_seen(tmp_path: Path) -> None:
    out = writer(tmp_path)
    out.add_turn(turn(1, started_ns=NOON + 12 * HOUR))
    out.flush()
    out.add_turn(turn(1, started_ns=NOON + 12 * HOUR - 1, revision=2))
    out.close()
    assert [p.split("/")[1] for p in parquet_files(tmp_path)] == ["date=2026-12-01"] * 2


def test_a_row_added_while_a_flush_runs_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = writer(tmp_path)
    out.add_turn(turn(1))
    write = LocalFiles.write

    def busy(self: LocalFiles, path: str, fill: object) -> int:
        out.add_turn(turn(1, revision=2, path="mixed"))
        out.add_turn(turn(2))
        return write(self, path, fill)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalFiles, "write", busy)
    out.flush()
    assert out.pending == 2
    monkeypatch.undo()
    out.close()
    assert {r["turn_id"][-1]: r["path"] for r in read_turns(tmp_path)} == {"1": "mixed", "2": "unknown"}


def test_a_crash_between_file_and_manifest_shows_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = writer(tmp_path)
    out.add_turn(turn(1))
    out.flush()
    out.add_turn(turn(2))

    def crash(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalFiles, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        out.flush()
    monkeypatch.undo()
    out._files.close()  # what the end of a process does
    assert len(parquet_files(tmp_path)) == 2
    assert [r["turn_id"][-1] for r in read_turns(tmp_path)] == ["1"]
    writer(tmp_path).close()
    assert len(parquet_files(tmp_path)) == 1
    assert [r["turn_id"][-1] for r in read_turns(tmp_path)] == ["1"]


def test_cleaning_leaves_the_files_of_other_writers_alone(tmp_path: Path) -> None:
    other = writer(tmp_path, writer_id="a-w1")
    other.add_turn(turn(1))
    other.flush()
    (tmp_path / "manifests/a-w1.json").unlink()
    writer(tmp_path, writer_id="w1").close()
    assert len(parquet_files(tmp_path)) == 1
    other._files.close()


def test_a_full_disk_keeps_the_rows_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    out.add_turn(turn(1))

    def full(_table: object, _data: object, sink: IO[bytes]) -> None:
        sink.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer_module, "write_table", full)
        with pytest.raises(StoreTransientError, match="disk is full; free some space"):
            out.flush()
        clock.forward(60 * SECOND)
        with pytest.raises(StoreTransientError):
            out.maintain()
        out.maintain()  # waits before it tries again
    assert (out.pending, out.failures, parquet_files(tmp_path)) == (1, 2, [])
    assert "disk is full" in str(out.last_error)
    clock.forward(5 * SECOND)
    out.maintain()
    assert (out.pending, out.last_error, len(read_turns(tmp_path))) == (0, None, 1)
    out.close()


def test_an_answer_lost_on_the_way_back_is_not_taken_for_another_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = writer(tmp_path)
    out.add_turn(turn(1))
    replace = LocalFiles.replace

    def lost(self: LocalFiles, path: str, data: bytes, version: str) -> str:
        replace(self, path, data, version)
        raise StoreTransientError("Cannot write x just now (timeout): it will be tried again.")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "replace", lost)
        with pytest.raises(StoreTransientError):
            out.flush()
    out.add_turn(turn(2))
    out.close()
    assert sorted(r["turn_id"][-1] for r in read_turns(tmp_path)) == ["1", "2"]


def test_what_cannot_be_kept_for_ever_is_dropped_oldest_first_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MAX_PENDING", 3)
    out = writer(tmp_path)
    for n in range(5):
        out.add_turn(turn(n))
    assert (out.rows_dropped, out.pending) == (2, 3)
    out.close()
    assert [r["turn_id"][-1] for r in read_turns(tmp_path)] == ["4", "3", "2"]


def test_one_impossible_value_does_not_hold_up_the_other_rows(tmp_path: Path) -> None:
    out = writer(tmp_path)
    out.add_turn(turn(1, prompt_tokens=2**70))
    out.add_turn(turn(2, session_id="lone \ud800 surrogate"))
    out.add_turn(turn(3))
    out.close()
    assert (out.rows_rejected, out.rows_written) == (1, 2)
    assert [r["session_id"] for r in read_turns(tmp_path)] == ["s1", "lone ? surrogate"]


@pytest.mark.parametrize("started_ns", [-1, 0, 2**63 - 1, -(2**63)])
def test_absurd_times_are_stored_all_the_same(tmp_path: Path, started_ns: int) -> None:
    fill(tmp_path, turn(1, started_ns=started_ns))
    assert [r["started_ns"] for r in read_turns(tmp_path)] == [started_ns]


def test_two_writers_share_a_store(tmp_path: Path) -> None:
    first, second = writer(tmp_path, writer_id="a"), writer(tmp_path, writer_id="b")
    first.add_turn(turn(1))
    second.add_turn(turn(2))
    first.close()
    second.close()
    assert [r["turn_id"][-1] for r in read_turns(tmp_path)] == ["2", "1"]


def test_a_second_writer_of_the_same_name_is_refused(tmp_path: Path) -> None:
    first = writer(tmp_path)
    with pytest.raises(StorePermanentError, match=r"another process is writing manifests/w1\.json in the store"):
        writer(tmp_path)
    first.add_turn(turn(1))
    first.close()
    writer(tmp_path).close()
    assert len(read_turns(tmp_path)) == 1


def test_a_manifest_changed_behind_the_writer_is_not_overwritten(tmp_path: Path) -> None:
    out = writer(tmp_path)
    path = tmp_path / "manifests/w1.json"
    path.write_text(json.dumps({"writer": "w1", "generation": 9}))
    out.add_turn(turn(1))
    with pytest.raises(StorePermanentError, match="another process is writing"):
        out.flush()
    out._files.close()
    assert json.loads(path.read_text())["generation"] == 9


def test_a_store_removed_under_its_writer_is_said_to_be_gone_and_begins_anew_with_the_next_writer(
    tmp_path: Path,
) -> None:
    out = writer(tmp_path / "store")
    out.add_turn(turn(1))
    out.flush()
    shutil.rmtree(tmp_path / "store")
    out.add_turn(turn(2))
    for _ in range(3):
        with pytest.raises(StoreGone, match="was removed while it was written: start the writer anew"):
            out.flush()
    assert (parquet_files(tmp_path), out.pending) == ([], 1), "tries leave nothing behind"
    with pytest.raises(StoreGone):
        out.close()
    fill(tmp_path / "store", turn(2))
    assert [row["turn_id"][-1] for row in read_turns(tmp_path / "store")] == ["2"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "address is empty"),
        ("gopher://x/y", "use a local folder or s3://"),
        ("s3://", "names no bucket"),
        ("/dev/null/store", "check the path, or choose another store"),
        ("/proc/store", "cannot write to the store /proc/store"),
    ],
)
def test_a_place_that_cannot_be_a_store_is_one_clear_sentence(url: str, words: str) -> None:
    with pytest.raises(StorePermanentError, match=words):
        StoreWriter(url, writer_id="w", now=Clock())


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 65])
def test_a_writer_name_that_cannot_be_a_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorePermanentError, match="cannot be named"):
        StoreWriter(str(tmp_path), writer_id=name, now=Clock())


def test_a_broken_manifest_stops_the_writer_before_it_writes(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    (tmp_path / "manifests/w1.json").write_text("{")
    with pytest.raises(StoreBroken, match=r"w1\.json cannot be read"):
        writer(tmp_path)
    assert len(parquet_files(tmp_path)) == 1


def test_an_opened_store_is_empty_not_missing(tmp_path: Path) -> None:
    out = writer(tmp_path / "new" / "deep")
    reader = StoreReader(str(tmp_path / "new" / "deep"))
    assert (reader.recent_turns().total, reader.totals().turns) == (0, 0)
    reader.close()
    out.close()
    out.close()
