"""What could not be read of the journal, kept beside it: turnscope deletes none of it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec

from turnscope.journal import segments
from turnscope.journal.segments import Position

DAMAGED: Final = ".unreadable"
"""Bytes that were on disk and are no record any more, or none of this version."""
UNFINISHED: Final = ".unfinished"
"""The end of a segment that a crash left half-written: it was never acknowledged."""
_CHUNK: Final = 2**20


class Damage(msgspec.Struct, frozen=True):
    """What is kept of a journal that could not be read."""

    files: int
    bytes: int


def keep(folder: Path, start: Position, end: int, suffix: str) -> Path | None:
    """Copy the bytes from ``start`` to ``end`` of its segment into a file of their own; None when they are there
    already. Raises ``OSError``."""
    path = folder / f"{start.segment:012d}-{start.offset:012d}{suffix}"
    if path.exists():
        return None
    part = path.with_name(path.name + ".part")
    with segments.path_of(folder, start.segment).open("rb") as source, part.open("wb") as target:
        source.seek(start.offset)
        left = end - start.offset
        while data := source.read(min(_CHUNK, left)):
            target.write(data)
            left -= len(data)
        target.flush()
        os.fsync(target.fileno())
    part.rename(path)
    segments.sync_folder(folder)
    return path


def set_aside(path: Path) -> Path:
    """Give a whole file that is no segment a name under which nothing looks for one. Raises ``OSError``."""
    aside = path.with_suffix(DAMAGED)
    path.rename(aside)
    segments.sync_folder(path.parent)
    return aside


def damage(folder: Path) -> Damage:
    """What is kept in ``folder`` of acknowledged records; removing the files ends it."""
    sizes = []
    for path in folder.glob(f"*{DAMAGED}"):
        with contextlib.suppress(FileNotFoundError):  # removed just now
            sizes.append(path.stat().st_size)
    return Damage(len(sizes), sum(sizes))
