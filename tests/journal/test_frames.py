"""Frames: what is damaged costs itself, and reading goes on behind it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import Pair
from turnscope.journal import frames, records

PAYLOADS = [records.encode(records.batch(Pair().turn(str(n))[:2], arrival_ns=n, wall_ns=n)) for n in range(3)]
SPLIT = [len(frames.frame(payload)) for payload in PAYLOADS]


def read_back(path: Path) -> list[int | None]:
    """Arrival times of what can be read; None for a stretch that cannot."""
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        found = list(records.read(fd, 0, size))
    finally:
        os.close(fd)
    assert not found or found[-1][1] == size
    return [record.arrival_ns if isinstance(record, records.Batch) else None for record, _ in found]


def written(path: Path, change: Callable[[bytearray], object]) -> Path:
    data = bytearray(b"".join(map(frames.frame, PAYLOADS)))
    change(data)
    path.write_bytes(data)
    return path


def test_whole_frames_are_read_in_order(tmp_path: Path) -> None:
    assert read_back(written(tmp_path / "f", lambda _: None)) == [0, 1, 2]


@pytest.mark.parametrize("bit", [0, 7])
def test_one_flipped_bit_anywhere_costs_one_record(tmp_path: Path, bit: int) -> None:
    for at in range(sum(SPLIT)):
        hit = 0 if at < SPLIT[0] else 1 if at < SPLIT[0] + SPLIT[1] else 2
        found = read_back(written(tmp_path / "f", lambda data, at=at: data.__setitem__(at, data[at] ^ (1 << bit))))  # type: ignore[misc]
        assert found == [None if n == hit else n for n in range(3)], at


def test_bytes_that_vanished_or_came_in_between_cost_the_record_they_are_in(tmp_path: Path) -> None:
    def lose(data: bytearray) -> None:
        del data[SPLIT[0] + 20 : SPLIT[0] + 31]

    def insert(data: bytearray) -> None:
        data[SPLIT[0] + 20 : SPLIT[0] + 20] = b"\0" * 5000

    assert read_back(written(tmp_path / "f", lose)) == [0, None, 2]
    assert read_back(written(tmp_path / "f", insert)) == [0, None, 2]


def test_neighbouring_damage_is_one_stretch(tmp_path: Path) -> None:
    def overwrite(data: bytearray) -> None:
        data[10 : SPLIT[0] + 50] = os.urandom(SPLIT[0] + 40)

    assert read_back(written(tmp_path / "f", overwrite)) == [None, 2]


def test_the_next_frame_is_found_however_far_away_it_is(tmp_path: Path) -> None:
    for gap in (65_525, 65_530, 65_536, 3 * 65_536 + 1):
        assert read_back(written(tmp_path / "f", lambda data, gap=gap: data.__setitem__(slice(0, 0), b"x" * gap))) == [  # type: ignore[misc]
            None,
            0,
            1,
            2,
        ]


def test_a_record_of_another_version_is_stepped_over(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"".join(map(frames.frame, [PAYLOADS[0], b"\x92\xa1z\x01", PAYLOADS[1]])))
    assert read_back(path) == [0, None, 1]


def test_zeros_are_no_record(tmp_path: Path) -> None:
    assert read_back(written(tmp_path / "f", lambda data: data.extend(bytes(64)))) == [0, 1, 2, None]


def test_a_frame_larger_than_what_is_read_at_once_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "f"
    large = b"\x91\xa1b" + b"x" * 3_000_000
    path.write_bytes(frames.frame(large) + frames.frame(large))
    fd = os.open(path, os.O_RDONLY)
    found = list(frames.read(fd, 0, path.stat().st_size, lambda payload: payload, re.compile(b"never")))
    os.close(fd)
    assert [record for record, _ in found] == [large, large]
