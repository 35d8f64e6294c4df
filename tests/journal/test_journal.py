"""The journal: nothing acknowledged is lost, nothing half-written is read."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import Pair
from turnscope.journal import segments
from turnscope.journal.folder import JournalUnavailable
from turnscope.journal.journal import Journal
from turnscope.journal.records import Batch, Counted
from turnscope.journal.segments import Position, SegmentFile
from turnscope.model import Contribution, Event

NO_NAMES: dict[str, str] = {}


def ignore(_metric: str, _labels: tuple[str, ...], _value: float) -> None:
    """Metrics are not what these tests look at."""


def events(n: int = 1) -> list[Event]:
    return Pair().turn(str(n))


@pytest.fixture
def opened() -> Iterator[Callable[..., Journal]]:
    """Opens journals and closes them after the test."""
    journals: list[Journal] = []

    def open_journal(folder: Path, **options: object) -> Journal:
        journals.append(Journal(folder, count=ignore, **options))  # type: ignore[arg-type]
        return journals[-1]

    yield open_journal
    for journal in journals:
        journal.close()


def contents(journal: Journal) -> list[list[Event] | Counted]:
    found: list[list[Event] | Counted] = []
    for record, _ in journal.read(journal.start()):
        if isinstance(record, Batch):
            found.append(list(record.events(NO_NAMES)))
        elif record is not None:
            found.append(record)
    return found


def segment_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.journal"))


def test_what_is_appended_is_read_back_in_order(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path)
    counted = [("turn:1", [Contribution("turnscope_turns_total", ("p", "recompute", "first_turn"), 1.0)])]
    journal.append_events(events(1))
    journal.append_counted(7, counted)
    journal.append_events(events(2))
    assert contents(journal) == [events(1), Counted(7, counted), events(2)]


def test_arrival_times_ascend_in_the_file(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path)
    threads = [threading.Thread(target=lambda: [journal.append_events(events()) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = [r.arrival_ns for r, _ in journal.read(journal.start()) if isinstance(r, Batch)]
    assert len(times) == 80
    assert times == sorted(times)


def test_waiting_appends_share_one_sync(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    syncs = []

    class Slow(SegmentFile):
        def sync(self) -> None:
            time.sleep(0.05)
            syncs.append(1)
            super().sync()

    journal = opened(tmp_path, create=Slow)
    threads = [threading.Thread(target=journal.append_events, args=(events(),)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(contents(journal)) == 20
    assert len(syncs) < 10


def test_an_append_returns_only_after_the_sync(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    may_sync = threading.Event()

    class Held(SegmentFile):
        def sync(self) -> None:
            may_sync.wait(10)
            super().sync()

    journal = opened(tmp_path, create=Held)
    thread = threading.Thread(target=journal.append_events, args=(events(),))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    assert contents(journal) == []
    assert journal.quiet_now(journal.end()) is None
    may_sync.set()
    thread.join(10)
    assert contents(journal) == [events()]


@pytest.mark.parametrize("kept", [1, 7, 8, 9, 200, -1])
def test_a_torn_last_record_is_moved_aside_and_nothing_else_is_lost(
    tmp_path: Path, opened: Callable[..., Journal], caplog: pytest.LogCaptureFixture, kept: int
) -> None:
    journal = opened(tmp_path)
    journal.append_events(events(1))
    whole = journal.end().offset
    journal.append_events(events(2))
    journal.close()
    (path,) = segment_files(tmp_path)
    end = path.stat().st_size
    os.truncate(path, whole + kept if kept > 0 else end + kept)
    torn = path.read_bytes()[whole:]
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path)
    assert contents(again) == [events(1)]
    again.append_events(events(3))
    assert contents(again) == [events(1), events(3)]
    assert "of an unfinished record, as a crash leaves it: moved to" in caplog.text
    assert str(path) in caplog.text
    assert again.damage is None
    (aside,) = tmp_path.glob("*.unfinished")
    assert aside.read_bytes() == torn


def damage(path: Path, at: int) -> None:
    """Flip one bit."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("runs", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("byte", [0, 4, 8, 60])
def test_one_flipped_byte_costs_one_record_and_its_bytes_are_kept(
    tmp_path: Path, opened: Callable[..., Journal], caplog: pytest.LogCaptureFixture, runs: int, n: int, byte: int
) -> None:
    journal = opened(tmp_path)
    begins = []
    for number in (1, 2, 3):
        begins.append(journal.end().offset)
        journal.append_events(events(number))
    end = journal.end().offset
    journal.close()
    for _ in range(runs):  # the newest segment or an old one
        later = opened(tmp_path)
        later.append_events(events(9))
        later.close()
    path = segment_files(tmp_path)[0]
    damage(path, begins[n - 1] + byte)
    bad = path.read_bytes()[begins[n - 1] : [*begins, end][n]]
    again = opened(tmp_path)
    assert contents(again) == [events(i) for i in (1, 2, 3) if i != n] + [events(9)] * runs
    found = again.damage
    assert found is not None
    assert (found.files, found.bytes) == (1, len(bad))
    (kept,) = tmp_path.glob("*.unreadable")
    assert kept.read_bytes() == bad
    assert f"cannot be read from byte {begins[n - 1]} to {begins[n - 1] + len(bad)}" in caplog.text
    assert kept.name in caplog.text


def test_damage_is_told_once_and_ends_when_its_file_is_moved_away(
    tmp_path: Path, opened: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(tmp_path)
    journal.append_events(events(1))
    journal.append_events(events(2))
    damage(segment_files(tmp_path)[0], 100)
    for _ in range(2):
        assert contents(journal) == [events(2)]
    journal.close()
    again = opened(tmp_path)
    assert contents(again) == [events(2)]
    assert caplog.text.count("cannot be read from byte") == 1
    assert again.damage is not None
    next(tmp_path.glob("*.unreadable")).unlink()
    assert again.damage is None


def test_what_could_not_be_read_outlives_its_segment(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path, segment_bytes=1_000)
    for n in (1, 2, 3):
        journal.append_events(events(n))
    damage(segment_files(tmp_path)[0], 100)
    bad = segment_files(tmp_path)[0].read_bytes()[8:]
    assert contents(journal) == [events(2), events(3)]
    journal.drop(Position(3, 8), unused_since_ns=2**62)
    assert [p.stem for p in segment_files(tmp_path)] == ["000000000003"]
    assert next(tmp_path.glob("*.unreadable")).read_bytes() == bad


def test_a_segment_whose_damage_cannot_be_copied_is_not_dropped(
    tmp_path: Path, opened: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(tmp_path, segment_bytes=1_000)
    for n in (1, 2, 3):
        journal.append_events(events(n))
    damage(segment_files(tmp_path)[0], 100)
    (tmp_path / "000000000001-000000000008.unreadable.part").mkdir()
    assert contents(journal) == [events(2), events(3)]
    assert "nor be copied (Is a directory): the segment is kept" in caplog.text
    journal.drop(Position(3, 8), unused_since_ns=2**62)
    assert [p.stem for p in segment_files(tmp_path)] == ["000000000001", "000000000003"]


def test_a_number_is_never_used_again(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    for name in ("000000000004-000000000008.unfinished", "000000000005.unreadable", "000000000006-0000008.checkpoint"):
        (tmp_path / name).write_bytes(b"")
    journal = opened(tmp_path)
    journal.append_events(events())
    assert [p.stem for p in segment_files(tmp_path)] == ["000000000007"]


@pytest.mark.parametrize("content", [b"", b"TSJR", segments.HEADER])
def test_a_segment_that_was_never_begun_is_removed(
    tmp_path: Path, opened: Callable[..., Journal], content: bytes
) -> None:
    segments.path_of(tmp_path, 1).write_bytes(content)
    assert contents(opened(tmp_path)) == []
    assert segment_files(tmp_path) == []


def test_a_damaged_header_costs_no_record(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path)
    journal.append_events(events(1))
    journal.close()
    damage(segment_files(tmp_path)[0], 3)
    assert contents(opened(tmp_path)) == [events(1)]


def test_a_file_that_is_no_segment_is_set_aside(
    tmp_path: Path, opened: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    segments.path_of(tmp_path, 1).write_bytes(b"something else entirely")
    assert contents(opened(tmp_path)) == []
    assert [p.name for p in tmp_path.glob("*.unreadable")] == ["000000000001.unreadable"]
    assert "is not a journal segment" in caplog.text


def test_a_full_disk_is_told_and_later_appends_succeed(
    tmp_path: Path, opened: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    full = threading.Event()

    class Disk(SegmentFile):
        def write(self, data: bytes) -> None:
            if full.is_set():
                super().write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().write(data)

    journal = opened(tmp_path, create=Disk)
    journal.append_events(events(1))
    full.set()
    for _ in range(2):
        with pytest.raises(JournalUnavailable, match=r"cannot be written \(No space left on device\): make room there"):
            journal.append_events(events(2))
    assert journal.trouble is not None
    assert "No space left" in journal.trouble
    full.clear()
    journal.append_events(events(3))
    assert journal.trouble is None
    assert contents(journal) == [events(1), events(3)]
    assert caplog.text.count("cannot be written") == 1
    journal.close()
    assert contents(opened(tmp_path)) == [events(1), events(3)]


def test_room_that_is_made_is_noticed_though_nobody_sends(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    full, tried = threading.Event(), threading.Event()

    class Disk(SegmentFile):
        def __init__(self, path: Path) -> None:
            if full.is_set():
                tried.set()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().__init__(path)

        def write(self, data: bytes) -> None:
            if full.is_set():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().write(data)

    journal = opened(tmp_path, create=Disk, try_again_s=0.01)
    journal.append_events(events(1))
    full.set()
    with pytest.raises(JournalUnavailable):
        journal.append_events(events(2))
    assert tried.wait(30)
    assert "No space left" in str(journal.trouble)
    full.clear()
    deadline = time.monotonic() + 30
    while journal.trouble is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    journal.append_events(events(3))
    assert contents(journal) == [events(1), events(3)]


@pytest.mark.parametrize("how", ["the folder is removed", "the folder is moved away", "a segment is removed"])
def test_what_is_removed_while_it_runs_is_told_and_nothing_is_acknowledged_into_it(
    how: str, tmp_path: Path, opened: Callable[..., Journal]
) -> None:
    folder = tmp_path / "journal"
    journal = opened(folder, try_again_s=0.05)
    journal.append_events(events(1))
    assert len(contents(journal)) == 1
    if how == "a segment is removed":
        (segment,) = folder.glob("*.journal")
        segment.unlink()
    elif how == "the folder is moved away":
        folder.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(folder)
    with pytest.raises(JournalUnavailable, match="cannot be written"):
        journal.append_events(events(2))
    if not folder.exists():
        with pytest.raises(JournalUnavailable, match="No such file or directory"):
            journal.append_events(events(2))
        assert journal.trouble is not None
        folder.mkdir()
    deadline = time.monotonic() + 10
    while journal.trouble is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    journal.append_events(events(3))
    assert len(contents(journal)) == 2
    journal.close()
    assert len(contents(opened(folder))) == 1


def test_beyond_its_limit_it_takes_no_events_but_still_notes_what_is_counted(
    tmp_path: Path, opened: Callable[..., Journal]
) -> None:
    journal = opened(tmp_path, max_bytes=100)
    journal.append_events(events(1))
    with pytest.raises(JournalUnavailable, match="reached its limit of 100 bytes"):
        journal.append_events(events(2))
    assert journal.trouble is not None
    journal.append_counted(1, [("turn:1", [])])
    assert contents(journal) == [events(1), Counted(1, [("turn:1", [])])]


def test_a_second_sidecar_is_told_who_has_the_journal(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    opened(tmp_path)
    with pytest.raises(JournalUnavailable, match=rf"in use by another sidecar \(process {os.getpid()}\)"):
        Journal(tmp_path, count=ignore)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalUnavailable, match=r"file/journal cannot be written \(Not a directory\)"):
        Journal(tmp_path / "file" / "journal", count=ignore)


def test_time_stands_still_while_the_sidecar_is_down(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    now = [5_000]
    journal = opened(tmp_path, monotonic_ns=lambda: now[0])
    first = journal.clock.now()
    now[0] += 100
    journal.append_events(events())
    journal.close()
    now[0] = 3  # the machine was booted anew
    again = opened(tmp_path, monotonic_ns=lambda: now[0])
    assert again.clock.now() == first + 100
    now[0] += 7
    assert again.clock.now() == first + 107


def test_quiet_is_told_only_when_everything_stamped_was_read(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path)
    position = journal.end()
    assert journal.quiet_now(position) is not None
    journal.append_events(events())
    assert journal.quiet_now(position) is None
    (*_, (_, after)) = journal.read(position)
    assert journal.quiet_now(after) is not None
    assert journal.behind(position) == after.offset - position.offset
    assert journal.behind(after) == 0


def test_segments_end_at_their_size_and_old_ones_are_dropped(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    now = [0]
    journal = opened(tmp_path, segment_bytes=1_000, monotonic_ns=lambda: now[0])
    for n in range(4):
        now[0] = 10 * n
        journal.append_events(events(n))
    assert len(segment_files(tmp_path)) == 4
    journal.drop(Position(1, 8), unused_since_ns=100)
    assert len(segment_files(tmp_path)) == 4
    journal.drop(Position(4, 8), unused_since_ns=20)
    assert [p.stem for p in segment_files(tmp_path)] == ["000000000003", "000000000004"]
    assert contents(journal) == [events(2), events(3)]
    journal.close()
    assert contents(opened(tmp_path)) == [events(2), events(3)]


_APPEND_FOR_EVER = """
import sys
from pathlib import Path
from tests.builders import Pair
from turnscope.journal.journal import Journal
journal = Journal(Path(sys.argv[1]), count=lambda *_: None)
n = 0
while True:
    n += 1
    journal.append_events(Pair().turn(str(n)))
    print(n, flush=True)
"""


def test_everything_acknowledged_survives_being_killed(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _APPEND_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged = 0
    for line in process.stdout:
        acknowledged = int(line)
        if acknowledged >= 50:
            break
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    acknowledged = int(rest[-1]) if rest else acknowledged
    found = contents(opened(tmp_path))
    assert found[:acknowledged] == [events(n) for n in range(1, acknowledged + 1)]
    assert len(found) <= acknowledged + 1
