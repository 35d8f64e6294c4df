"""Processor time is that of a session's processes and of no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from live.engines import stop
from live.processor_time import between, taken_ns

BUSY = (
    "import subprocess, sys, time\n"
    "def spin():\n"
    "    end = time.process_time() + 0.2\n"
    "    while time.process_time() < end: pass\n"
)
CHILD = BUSY + "spin(); print(flush=True); time.sleep(60)"
PARENT = BUSY + (
    f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdout=subprocess.PIPE)\n"
    "child.stdout.readline(); spin(); print(flush=True); time.sleep(60)"
)


def test_the_time_of_a_process_and_of_what_it_started_is_told_thread_by_thread() -> None:
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        taken = taken_ns([process.pid])
    finally:
        stop(process)
        process.stdout.close()
    # 0.2 s each, and what it takes to start two interpreters.
    assert 0.2e9 <= taken[process.pid] < 1e9
    assert len(taken) == 2
    assert 0.4e9 <= sum(taken.values()) < 2e9


def test_only_the_sessions_asked_for_count_and_names_may_hold_anything(tmp_path: Path) -> None:
    def fake(pid: int, name: str, session: int, *threads_ns: int) -> None:
        for n, spent in enumerate(threads_ns):
            task = tmp_path / str(pid) / "task" / str(pid + n)
            task.mkdir(parents=True)
            (task / "schedstat").write_text(f"{spent} 5 7\n")
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) S 1 {session} {session} 0 -1\n")

    fake(10, "python", 10, 1, 20)
    fake(20, "odd) R 1 9 9 (", 10, 300)
    fake(30, "other", 30, 4_000)
    (tmp_path / "self").mkdir()
    (tmp_path / "13").mkdir()
    assert taken_ns([10], tmp_path) == {10: 1, 11: 20, 20: 300}
    assert taken_ns([10, 30, 99], tmp_path) == {10: 1, 11: 20, 20: 300, 30: 4_000}


def test_what_a_thread_took_in_between_counts_from_its_start_where_it_is_new() -> None:
    assert between({1: 100, 2: 50}, {1: 130, 3: 7}) == {1: 30, 3: 7}
