"""``turnscope serve`` with its data on a real disk, which fills up and is made room on again."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import httpx
import pyarrow.parquet as pq
import pytest

from tests.builders import Pair
from tests.cli.served import Served, served
from turnscope.cli.doctor import ask
from turnscope.model import Event
from turnscope.store import StoreReader

SIZE = 8 * 2**20
ROOM_S = 60
"""The journal looks again every 5 s, the store as well."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of a sidecar's data, a file system of its own with ``SIZE`` bytes."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"a small disk is missing, it needs root and the capability to mount: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """A file that takes all the room there is."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(disk).free))
    return ballast


def send_often(sidecar: Served, events: list[Event]) -> None:
    for _ in range(100):
        sidecar.send(events)


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + ROOM_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def page(sidecar: Served, path: str) -> tuple[int, str]:
    answer = httpx.get(f"{sidecar.url}{path}", trust_env=False, timeout=30)
    return answer.status_code, answer.text


def half_written(sidecar: Served) -> list[str]:
    """Files of journal and store that are empty, begun, or no whole Parquet."""
    found = []
    for path in sorted(p for p in sidecar.data.rglob("*") if p.is_file() and p.suffix != ".lock" and p.name != "lock"):
        if not path.stat().st_size or path.suffix in (".part", ".unreadable", ".tmp"):
            found.append(path.name)
        if path.suffix == ".parquet":
            pq.read_table(path)
    return found


def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(disk: Path) -> None:
    pair = Pair()
    with served(disk.parent, "--grace-seconds", "0", "--checkpoint-seconds", "1") as sidecar:
        sidecar.send(pair.start())
        sidecar.send(pair.turn("1", at_ms=1000))
        sidecar.settled(1)
        ballast = fill(disk)
        # What the journal's last page still takes is taken.
        with pytest.raises(grpc.RpcError, match="No space left on device") as caught:
            send_often(sidecar, pair.turn("2", at_ms=2000))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

        journal = f"the journal in {sidecar.data}/journal cannot be written (No space left on device): make room there"
        until(lambda: ask(sidecar.url).exporter.store_error is not None, "the store has not noticed")
        store = "the disk is full; free some space, rows wait meanwhile"
        code, text = page(sidecar, "/healthz")
        assert code == 503
        assert journal in text
        assert store in text
        code, text = page(sidecar, "/readyz")
        assert (code, text.partition(" or choose")[0]) == (503, journal)
        exporter = ask(sidecar.url).exporter
        assert journal in str(exporter.journal_error)
        assert store in str(exporter.store_error)
        assert half_written(sidecar) == []

        ballast.unlink()
        until(sidecar.ready, "it is not ready, and there is room")
        sidecar.send(pair.turn("2", at_ms=2000))
        sidecar.settled(2)
        until(lambda: page(sidecar, "/healthz") == (200, "ok\n"), "the store cannot be written, and there is room")
    assert half_written(sidecar) == []
    with contextlib.closing(StoreReader(str(sidecar.data / "store"))) as reader:
        assert reader.totals().turns == 2
    log = sidecar.log.read_text()
    assert "can be written again" in log
    assert "Traceback" not in log
