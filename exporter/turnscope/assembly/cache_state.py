"""What assembly remembers of engines' prefix caches: plain structs, part of the checkpoint."""

from __future__ import annotations

import msgspec


class Spoiled(msgspec.Struct, array_like=True):
    """A prompt's beginning under which an engine's prefix cache holds wrong KV."""

    position: int
    since_ns: int
    """By the engine's monotonic clock."""
    turn_id: str
    """The turn that filed it."""
    low: int
    """Wrong from here, at the earliest."""


class Cache(msgspec.Struct, kw_only=True):
    """What is known to be wrong in the prefix cache of one start of an engine."""

    spoiled: dict[bytes, list[Spoiled]] = {}
    """By mark, oldest first; of those who filed it the first one's is what the cache has."""
    hits: dict[str, tuple[int, int]] = {}
    """Turns that had local hits there, oldest first: most tokens, and when last, by the engine's monotonic clock."""
    emptied: list[int] = []
    """When it was emptied, by the same clock, in order: what was filed before is not found after."""
