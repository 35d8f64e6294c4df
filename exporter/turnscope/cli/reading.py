"""Files of others, read as they stand: lines of bounded length or pieces, gzipped or not, however damaged."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from turnscope.cli.errors import Sorry
from turnscope.decode.imports.report import Line, Report

MAX_LINE: Final = 64 * 2**20
"""Bytes; a longer line is counted as broken and never held as a whole."""
PIECE: Final = 2**18
_MARK: Final = codecs.BOM_UTF8
"""Some editors and shells begin a file with it."""
_EVERY: Final = 64
"""Lines between two words to the progress bar."""
Told = Callable[[int], None]
"""Is told how many bytes of the file have been read."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file itself, and what is in it: the same, unless it is gzipped. Raises ``Sorry`` if it cannot be read."""
    try:
        with path.open("rb") as raw:
            if raw.peek(2)[:2] != b"\x1f\x8b":
                yield raw, raw
            else:
                with gzip.open(raw, "rb") as unpacked:
                    yield raw, unpacked  # type: ignore[misc]
    except OSError as error:
        raise Sorry(f"{path} cannot be read ({error.strerror or error}): check the path") from None


def lines(path: Path, report: Report, told: Told) -> Iterator[Line]:
    """Every line that is not blank. What is too long, cut off or damaged is counted in ``report``."""
    number = 0
    with opened(path) as (raw, file):
        try:
            while text := file.readline(MAX_LINE):
                number += 1
                if number == 1:
                    text = text.removeprefix(_MARK)
                if len(text) == MAX_LINE and not text.endswith(b"\n"):
                    while text and not text.endswith(b"\n"):
                        text = file.readline(PIECE)
                    report.records += 1
                    report.refuse(number, f"longer than {MAX_LINE // 2**20} MB")
                elif text.strip():
                    yield Line(number, text)
                if number % _EVERY == 0:
                    told(raw.tell())
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            _cut(report, number, error)
        told(raw.tell())


def pieces(path: Path, report: Report, told: Told) -> Iterator[bytes]:
    """The file in pieces, for what does not come in lines."""
    with opened(path) as (raw, file):
        try:
            begun = False
            while piece := file.read(PIECE):
                yield piece if begun else piece.removeprefix(_MARK)
                begun = True
                told(raw.tell())
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            _cut(report, report.records, error)


def _cut(report: Report, number: int, error: Exception) -> None:
    report.records += 1
    report.refuse(number + 1, "the file is cut off here" if isinstance(error, EOFError) else "the file is damaged here")
