"""Files are read as they stand, and what is wrong with them is counted."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from turnscope.cli import reading
from turnscope.cli.errors import Sorry
from turnscope.decode.imports.report import Report


def read(path: Path) -> tuple[list[tuple[int, bytes]], Report, int]:
    """The lines, the report, and how much of the file the progress bar was told of at last."""
    report, told = Report(), [0]
    return [tuple(line) for line in reading.lines(path, report, told.append)], report, told[-1]


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "f"
    text = b"one\n\n  \nfour\r\nfive"
    path.write_bytes(gzip.compress(text) if packed else text)
    found, report, told = read(path)
    assert found == [(1, b"one\n"), (4, b"four\r\n"), (5, b"five")]
    assert (report.broken, told) == (0, path.stat().st_size)


def test_a_byte_order_mark_is_no_part_of_the_first_line_or_piece(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")
    assert read(path)[0] == [(1, b"one\n"), (2, b"\xef\xbb\xbftwo\n")]
    assert b"".join(reading.pieces(path, Report(), lambda _: None)) == b"one\n\xef\xbb\xbftwo\n"
    path.write_bytes(b"\xef\xbb\xbf\none")
    assert read(path)[0] == [(2, b"one")]
    path.write_bytes(b"\xef\xbb\xbf")
    assert read(path)[0] == []


def test_a_gzip_that_is_cut_off_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    whole = gzip.compress(b"".join(b"line %d %s\n" % (n, bytes(str(hash(n * 7919)), "ascii")) for n in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])
    found, report, _ = read(path)
    assert 1000 < len(found) < 20_000
    assert [(one.number, one.why) for one in report.named] == [(len(found) + 1, "the file is cut off here")]


@pytest.mark.parametrize(
    "damage", [b"\x1f\x8b", b"\x1f\x8bnothing that gzip wrote", gzip.compress(b"a\n") + b"\x1f\x8bx"]
)
def test_a_damaged_gzip_is_counted_and_not_raised(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(damage)
    assert read(path)[1].broken == 1


def test_a_line_beyond_the_limit_is_counted_and_reading_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LINE", 1000)
    monkeypatch.setattr(reading, "PIECE", 100)
    path = tmp_path / "f"
    path.write_bytes(b"a\n" + b"x" * 999 + b"\n" + b"y" * 1_050 + b"\nb\n")
    found, report, _ = read(path)
    assert [number for number, _ in found] == [1, 2, 4]
    assert [one.number for one in report.named] == [3]


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Sorry, match=r"cannot be read \(Is a directory\)"):
        read(tmp_path)
