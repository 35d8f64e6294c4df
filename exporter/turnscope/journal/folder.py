"""The journal's folder: taken by one process at a time, its last segment repaired after a crash."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from pathlib import Path
from typing import Final

from turnscope.journal import frames, records, segments, unreadable
from turnscope.journal.segments import Position

_LOG: Final = logging.getLogger(__name__)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class JournalUnavailable(Exception):
    """The journal cannot be opened or written: one sentence for a person. Senders should try again later."""


def cannot_write(folder: Path, error: OSError) -> JournalUnavailable:
    """The sentence for ``error``."""
    return JournalUnavailable(
        f"the journal in {folder} cannot be written ({error.strerror or error}): "
        f"{'make room there' if error.errno in _NO_ROOM else 'check that path'} or choose another --data-dir"
    )


def lock(folder: Path) -> int:
    """Create ``folder`` where needed and take it for this process; the lock lives as long as the descriptor.

    Raises ``JournalUnavailable`` when it cannot be written or another process has it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
    except BlockingIOError:
        owner = os.pread(fd, 20, 0).decode(errors="replace") or "unknown"
        os.close(fd)
        raise JournalUnavailable(
            f"the journal in {folder} is in use by another sidecar (process {owner}): "
            f"stop that one or choose another --data-dir"
        ) from None
    except OSError as error:
        os.close(fd)
        raise cannot_write(folder, error) from None
    return fd


def repair(folder: Path) -> int:
    """Move aside what a crash left half-written; return the journal time of the last record, 0 when there is none.

    Only the newest segment can end in an unfinished record: each run writes new ones.
    """
    for number in reversed(segments.list_segments(folder)):
        path = segments.path_of(folder, number)
        last_ns = _repair_one(folder, number, path)
        if last_ns is not None:
            return last_ns
    return 0


def _repair_one(folder: Path, number: int, path: Path) -> int | None:
    """Journal time of the segment's last record; None when no record of it can be read."""
    begin = len(segments.HEADER)
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        head = os.pread(fd, begin, 0)
        sound, last = begin, None
        for record, end in records.read(fd, begin, size):
            if record is not None:
                sound, last = end, record
        torn = sound < size and frames.unfinished(fd, sound, size)
    finally:
        os.close(fd)
    if head != segments.HEADER and last is None and not segments.HEADER.startswith(head):
        aside = unreadable.set_aside(path)
        _LOG.error("%s is not a journal segment of this version: set aside as %s", path, aside.name)
        return None
    if torn:
        kept = unreadable.keep(folder, Position(number, sound), size, unreadable.UNFINISHED)
        os.truncate(path, sound)
        _LOG.warning(
            "%s ended in %d bytes of an unfinished record, as a crash leaves it: moved to %s",
            path,
            size - sound,
            kept.name if kept is not None else "the file that has them already",
        )
        size = sound
    if size <= begin:
        path.unlink()
    if last is None:
        return None
    return last.now_ns if isinstance(last, records.Counted) else last.arrival_ns
