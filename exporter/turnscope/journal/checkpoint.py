"""Checkpoints: the state of assembly at a position of the journal, so that replay begins there."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnscope.journal import frames, segments
from turnscope.journal.segments import Position

_LOG: Final = logging.getLogger(__name__)
_HEADER: Final = b"TSCKPT2\n"
KEPT: Final = 2
"""The newest may turn out unreadable (another version wrote it): the one before is the second chance."""


class Checkpoint(msgspec.Struct, frozen=True):
    """Everything before ``position`` is in ``state`` or in the store."""

    position: Position
    now_ns: int
    """Journal time when it was made."""
    state: bytes


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.checkpoint"), reverse=True)


def save(folder: Path, checkpoint: Checkpoint) -> Position:
    """Write it whole or not at all; return the position from which the journal must be kept. Raises ``OSError``."""
    at = checkpoint.position
    path = folder / f"{at.segment:012d}-{at.offset:012d}.checkpoint"
    temporary = path.with_suffix(".tmp")
    # A frame each: the state may be tens of megabytes, and one frame for both would be a copy of it.
    place = msgspec.msgpack.encode((at, checkpoint.now_ns))
    try:
        with temporary.open("wb") as file:
            file.writelines((_HEADER, frames.frame(place), frames.head(checkpoint.state), checkpoint.state))
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        segments.sync_folder(folder)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    kept = _paths(folder)[:KEPT]
    for old in _paths(folder)[KEPT:]:
        old.unlink()
    return _position(kept[-1])


def load(folder: Path) -> Iterator[Checkpoint]:
    """The sound ones, newest first, each read when it is asked for: they may be large."""
    for path in _paths(folder):
        found = _read(path)
        if found is not None:
            yield found


def _read(path: Path) -> Checkpoint | None:
    data = path.read_bytes()
    try:
        found = frames.payloads(data, len(_HEADER)) if data.startswith(_HEADER) else None
        if found is None or len(found) != 2:
            raise ValueError("cut off or damaged")
        at, now_ns = msgspec.msgpack.decode(found[0], type=tuple[Position, int])
        return Checkpoint(position=at, now_ns=now_ns, state=found[1])
    except (ValueError, msgspec.MsgspecError) as error:
        _LOG.warning("%s cannot be used (%s): replaying more of the journal instead", path, error)
        return None


def _position(path: Path) -> Position:
    segment, _, offset = path.stem.partition("-")
    return Position(int(segment), int(offset))
