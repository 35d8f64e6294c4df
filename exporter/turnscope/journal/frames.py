"""Frames: (length, crc32, payload) one after the other. One that is damaged costs itself, not what follows it."""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

_FRAME: Final = struct.Struct("<II")
MAX_PAYLOAD: Final = 256 * 2**20
"""A length beyond this is damage, not a record."""
_CHUNK: Final = 2**20
_SEARCH: Final = 2**16

R = TypeVar("R")
Decode = Callable[[bytes], R]
"""The record in a payload; None for what cannot be read."""


def head(payload: bytes) -> bytes:
    """What is written before ``payload``."""
    return _FRAME.pack(len(payload), zlib.crc32(payload))


def frame(payload: bytes) -> bytes:
    """``payload`` as it is written."""
    return head(payload) + payload


def payloads(data: bytes, at: int) -> list[bytes] | None:
    """Those of the frames that fill ``data`` from ``at``; None when one is cut off or damaged."""
    found = []
    while at < len(data):
        if len(data) < at + _FRAME.size:
            return None
        length, crc = _FRAME.unpack_from(data, at)
        at += _FRAME.size
        payload = data[at : at + length]
        if len(payload) != length or zlib.crc32(payload) != crc:
            return None
        found.append(payload)
        at += length
    return found


def read(
    fd: int, offset: int, end: int, decode: Decode[R], begins: re.Pattern[bytes]
) -> Iterator[tuple[R | None, int]]:
    """Each record from ``offset`` up to ``end``, with the offset after it; None for a stretch that cannot be read.

    ``begins`` matches at the begin of a payload: it finds the frame with which reading goes on after such a stretch.
    """
    while offset < end:
        for record, offset in _sound(fd, offset, end, decode):  # noqa: B020 - goes on where the last one ended
            yield record, offset
        if offset < end:
            offset = _resume(fd, offset + 1, end, decode, begins)
            yield None, offset


def unfinished(fd: int, offset: int, end: int) -> bool:
    """Whether what is from ``offset`` to ``end``, the end of the file, is a frame that a crash cut off.

    Such a frame runs past the end, or is the zeros of a file that grew before its content came. One whose checksum fits
    what is there has a damaged length instead.
    """
    head, rest = os.pread(fd, _FRAME.size, offset), os.pread(fd, end - offset, offset + _FRAME.size)
    if len(head) < _FRAME.size or not any(head + rest):
        return True
    length, crc = _FRAME.unpack(head)
    return bool(len(rest) < length <= MAX_PAYLOAD and zlib.crc32(rest) != crc)


def _sound(fd: int, offset: int, end: int, decode: Decode[R]) -> Iterator[tuple[R, int]]:
    """The records up to the first one that cannot be read."""
    chunk = _CHUNK
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
            record = decode(payload) if zlib.crc32(payload) == crc else None
            if record is None:
                return
            at = stop
            yield record, offset + at
        if at == 0:
            if len(data) < want:
                return
            chunk = _FRAME.size + length
        offset += at


def _resume(fd: int, start: int, end: int, decode: Decode[R], begins: re.Pattern[bytes]) -> int:
    """Where the next frame that can be read begins; ``end`` when there is none."""
    at = start
    while at < end:
        data = os.pread(fd, min(_SEARCH, end - at), at)
        for match in begins.finditer(data):
            found = at + match.start() - _FRAME.size
            if found >= start and next(_sound(fd, found, end, decode), None) is not None:
                return found
        # A match may lie across two pieces.
        if len(data) <= _FRAME.size:
            return end
        at += len(data) - _FRAME.size
    return end
