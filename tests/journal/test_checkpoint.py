"""Checkpoints: whole or not there, and a second chance behind the newest."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnscope.journal import checkpoint as checkpoints
from turnscope.journal.checkpoint import Checkpoint
from turnscope.journal.segments import Position


def at(segment: int, offset: int = 8) -> Checkpoint:
    return Checkpoint(position=Position(segment, offset), now_ns=segment * 10, state=b"state %d" % segment)


def test_the_newest_two_are_kept_newest_first(tmp_path: Path) -> None:
    assert checkpoints.save(tmp_path, at(1)) == Position(1, 8)
    assert checkpoints.save(tmp_path, at(2)) == Position(1, 8)
    assert checkpoints.save(tmp_path, at(2, 99)) == Position(2, 8)
    assert list(checkpoints.load(tmp_path)) == [at(2, 99), at(2)]


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: b"X" + d[1:], lambda d: d[:-1] + b"~", lambda _: b""])
def test_a_damaged_one_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object) -> None:
    checkpoints.save(tmp_path, at(1))
    checkpoints.save(tmp_path, at(2))
    newest = max(tmp_path.glob("*.checkpoint"))
    newest.write_bytes(damage(newest.read_bytes()))  # type: ignore[operator]
    assert list(checkpoints.load(tmp_path)) == [at(1)]
    assert "cannot be used" in caplog.text


def test_one_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with pytest.raises(OSError, match="No such file"):
        checkpoints.save(folder, at(1))
    assert not folder.exists()
