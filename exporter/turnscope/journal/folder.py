"""The journal's folder: taken by one process at a time, its last segment repaired after a crash."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path
from typing import Final

import msgspec

from turnscope.journal import records, segments

_LOG: Final = logging.getLogger(__name__)


class JournalUnavailable(Exception):
    """The journal cannot be opened or written: one sentence for a person. Senders should try again later."""


def cannot_write(folder: Path, error: OSError) -> JournalUnavailable:
    """The sentence for ``error``."""
    return JournalUnavailable(
        f"the journal in {folder} cannot be written ({error.strerror or error}): "
        f"make room there or choose another --data-dir"
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
    """Cut off what a crash left half-written; return the journal time of the last record, 0 when there is none.

    Only the newest segment can be torn: each run writes new ones.
    """
    for number in reversed(segments.list_segments(folder)):
        path = segments.path_of(folder, number)
        size = path.stat().st_size
        sound, last = segments.sound_part(path)
        if sound == 0 and size > len(segments.HEADER):
            aside = path.with_suffix(".unreadable")
            path.rename(aside)
            _LOG.warning("%s is not a journal segment of this version: set aside as %s", path, aside.name)
            continue
        if sound < size:
            os.truncate(path, sound)
            _LOG.warning("%s ended in %d bytes of an unfinished record: cut off", path, size - sound)
        if last is None:
            path.unlink()
            continue
        return _time_of(last)
    return 0


def _time_of(payload: bytes) -> int:
    try:
        record = records.decode(payload)
    except msgspec.MsgspecError:
        return 0
    return record.arrival_ns if isinstance(record, records.Batch) else record.now_ns
