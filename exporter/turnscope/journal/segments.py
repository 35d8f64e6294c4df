"""Segment files: an eight-byte header, then frames of (length, crc32, payload)."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

HEADER: Final = b"TSJRNL1\n"
_FRAME: Final = struct.Struct("<II")
MAX_PAYLOAD: Final = 256 * 2**20
"""A length beyond this is damage, not a record."""


class Position(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A place in the journal: the frame that begins at ``offset`` of segment ``segment``."""

    segment: int
    offset: int


def frame(payload: bytes) -> bytes:
    """``payload`` as it is written."""
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def single(data: bytes, at: int) -> bytes | None:
    """The payload of the one frame that fills ``data`` from ``at``; None when it is cut off or damaged."""
    if len(data) < at + _FRAME.size:
        return None
    length, crc = _FRAME.unpack_from(data, at)
    payload = data[at + _FRAME.size :]
    return payload if len(payload) == length and zlib.crc32(payload) == crc else None


def path_of(folder: Path, segment: int) -> Path:
    """Where segment number ``segment`` is kept; names sort like numbers."""
    return folder / f"{segment:012d}.journal"


def list_segments(folder: Path) -> list[int]:
    """The numbers of the segments in ``folder``, ascending."""
    return sorted(int(p.stem) for p in folder.glob("*.journal") if p.stem.isdigit())


def read_frames(fd: int, offset: int, end: int, *, chunk: int = 2**20) -> Iterator[tuple[bytes, int]]:
    """Each whole, undamaged payload from ``offset`` up to ``end``, with the offset after it.

    Stops at the first frame that is cut off or damaged, so the last offset given is where the sound part ends.
    """
    while offset + _FRAME.size <= end:
        want = min(chunk, end - offset)
        data = os.pread(fd, want, offset)
        at = length = 0
        while at + _FRAME.size <= len(data):
            length, crc = _FRAME.unpack_from(data, at)
            stop = at + _FRAME.size + length
            if length > MAX_PAYLOAD or offset + stop > end:
                return
            if stop > len(data):
                break
            payload = data[at + _FRAME.size : stop]
            if zlib.crc32(payload) != crc:
                return
            at = stop
            yield payload, offset + at
        if at == 0:
            if len(data) < want:
                return
            chunk = _FRAME.size + length
        offset += at


def sound_part(path: Path) -> tuple[int, bytes | None]:
    """How many bytes of the file are a header and whole, undamaged frames (0: no header), and the last payload."""
    fd = os.open(path, os.O_RDONLY)
    try:
        if os.pread(fd, len(HEADER), 0) != HEADER:
            return 0, None
        sound, last = len(HEADER), None
        for payload, end in read_frames(fd, sound, os.fstat(fd).st_size):
            sound, last = end, payload
        return sound, last
    finally:
        os.close(fd)


class SegmentFile:
    """A new segment, open for writing. Every method may raise ``OSError``."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        try:
            self.write(HEADER)
            self.sync()
            sync_folder(path.parent)
        except OSError:
            os.close(self._fd)
            path.unlink()
            raise

    def write(self, data: bytes) -> None:
        """Append all of ``data``."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def sync(self) -> None:
        """Return once everything written is on disk."""
        os.fdatasync(self._fd)

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
