"""Segment files: an eight-byte header, then frames."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

import msgspec

HEADER: Final = b"TSJRNL1\n"


class Position(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A place in the journal: the frame that begins at ``offset`` of segment ``segment``."""

    segment: int
    offset: int


def path_of(folder: Path, segment: int) -> Path:
    """Where segment number ``segment`` is kept; names sort like numbers."""
    return folder / f"{segment:012d}.journal"


def list_segments(folder: Path) -> list[int]:
    """The numbers of the segments in ``folder``, ascending."""
    return sorted(int(p.stem) for p in folder.glob("*.journal") if p.stem.isdigit())


def next_number(folder: Path) -> int:
    """A number that no segment, checkpoint or kept piece of a segment in ``folder`` has: none is ever used again."""
    numbers = (path.name.partition(".")[0].partition("-")[0] for path in folder.iterdir())
    return max((int(n) for n in numbers if n.isdecimal()), default=0) + 1


class SegmentFile:
    """A new segment, open for writing. Every method may raise ``OSError``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        try:
            self.write(HEADER)
            self.sync()
            sync_folder(path.parent)
        except OSError:
            os.close(self._fd)
            path.unlink(missing_ok=True)
            raise

    def write(self, data: bytes) -> None:
        """Append all of ``data``."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def sync(self) -> None:
        """Return once everything written is on disk, where a next start will find it: a file that somebody removed, or
        moved away with its folder, can still be written to."""
        os.fdatasync(self._fd)
        if not os.path.samestat(self._path.stat(), os.fstat(self._fd)):
            raise FileNotFoundError(errno.ENOENT, "another file is in its place")

    def truncate(self, length: int) -> None:
        """Cut the file off."""
        os.ftruncate(self._fd, length)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def sync_folder(folder: Path) -> None:
    """Make created, renamed and removed names in ``folder`` last."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
