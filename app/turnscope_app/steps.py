"""The steps that a period's course is drawn in: lengths that people count in."""

from __future__ import annotations

from typing import Final

from turnscope.model import SECOND_NS, plural

_LENGTHS: Final = tuple(
    SECOND_NS * seconds
    for seconds in (1, 5, 15, 60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, 86_400, 7 * 86_400, 28 * 86_400)
)
MOST: Final = 60


def length(since_ns: int, until_ns: int) -> int:
    """The shortest of these lengths of which at most ``MOST`` make up the period; the longest where none does."""
    return next((ns for ns in _LENGTHS if until_ns - since_ns <= MOST * ns), _LENGTHS[-1])


def named(step_ns: int) -> str:
    """``15 minutes``, ``1 hour``."""
    seconds = step_ns // SECOND_NS
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        if seconds >= size:
            return plural(seconds // size, unit)
    return "moment"
