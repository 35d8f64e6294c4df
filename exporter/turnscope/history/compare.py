"""Where a later list of messages stops continuing an earlier one, and what was done to it there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from turnscope.semconv import Divergence


class Change(NamedTuple):
    """The first place at which two lists differ."""

    at: int
    """Entries before it are equal."""
    kind: Divergence
    removed: int
    """Entries of the earlier list that are gone before the lists agree again; all the rest where they never do."""
    added: int
    """Entries of the later list that stand there instead."""


def first_change(before: Sequence[Hashable], now: Sequence[Hashable]) -> Change | None:
    """None when ``now`` begins with all of ``before``. Entries are whatever is equal for equal messages."""
    at = next((n for n, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), None)
    if at is None:
        if len(now) >= len(before):
            return None
        return Change(len(now), Divergence.TRUNCATED, len(before) - len(now), 0)
    gone, new = _until_they_agree(before[at:], now[at:])
    return Change(at, _kind(gone, new), gone, new)


def _until_they_agree(before: Sequence[Hashable], now: Sequence[Hashable]) -> tuple[int, int]:
    """How many to leave out of each so that the next are equal, as few as possible; all of both when none are."""
    places: dict[Hashable, int] = {}
    for place, entry in enumerate(before):
        places.setdefault(entry, place)
    found = [(places[entry], place) for place, entry in enumerate(now) if entry in places]
    return min(found, key=lambda pair: (sum(pair), abs(pair[0] - pair[1])), default=(len(before), len(now)))


def _kind(removed: int, added: int) -> Divergence:
    if not added:
        return Divergence.REMOVED
    if not removed:
        return Divergence.INSERTED
    return Divergence.COMPACTED if added < removed else Divergence.EDITED
