"""What starts and stops processes for the live pair."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from live.engines import LiveError, free_ports, start, stop, tail, wait_ready

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 20
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


def test_stopping_a_process_stops_its_children_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start([sys.executable, "-c", PARENT], log, {})
    child = int(wait_for(log))
    os.kill(child, 0)
    stop(process, seconds=5)
    assert process.poll() is not None
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and "zombie" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(8))) == 8


def test_waiting_for_what_has_died_ends_at_once_with_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start([sys.executable, "-c", "print('no such model'); raise SystemExit(3)"], log, {})
    process.wait(20)

    def alive() -> None:
        if process.poll() is not None:
            raise LiveError(tail(log))

    with pytest.raises(LiveError, match="no such model"):
        wait_ready("http://127.0.0.1:9/health", alive, seconds=60)


def test_what_never_answers_is_given_up() -> None:
    with pytest.raises(LiveError, match="did not answer within 0 s"):
        wait_ready(f"http://127.0.0.1:{free_ports(1)[0]}/health", lambda: None, seconds=0)


def test_free_ports_are_different_and_none_that_the_kernel_gives_to_outgoing_connections() -> None:
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < given
