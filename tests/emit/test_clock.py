"""Which processes share a monotonic clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnscope.emit.clock import BOOT_ID, OFFSETS, clock_id


def proc(path: Path, boot: str | None, offsets: str | None = None) -> Path:
    """A ``/proc`` with these files."""
    for name, content in ((BOOT_ID, boot), (OFFSETS, offsets)):
        if content is not None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(content)
    return path


def test_one_boot_is_one_clock_and_another_boot_or_time_namespace_is_another(tmp_path: Path) -> None:
    def clock(name: str, boot: str, offsets: str | None) -> str:
        return clock_id(proc(tmp_path / name, boot, offsets))

    here = clock("a", "f00\n", "monotonic           0         0\nboottime            0         0\n")
    assert here == clock("b", "f00\n", "monotonic 0 0\nboottime 0 0\n")
    assert len({here, clock("c", "ba5\n", "monotonic 0 0\nboottime 0 0\n"), clock("d", "f00\n", "monotonic 9 0")}) == 3
    assert len(here) == 16
    assert "f00" not in here


@pytest.mark.parametrize("boot", [None, "", "\n"])
def test_a_system_that_does_not_tell_gives_no_name(tmp_path: Path, boot: str | None) -> None:
    assert clock_id(proc(tmp_path, boot)) == ""


def test_the_clock_of_this_process_is_the_same_every_time() -> None:
    assert clock_id() == clock_id()
