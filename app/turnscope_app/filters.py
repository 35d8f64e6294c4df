"""What the sessions page can be narrowed to and ordered by: names on the screen, and what the store is asked."""

from __future__ import annotations

from typing import Any, Final

from turnscope.store.session_queries import SummarySort
from turnscope_app import words
from turnscope_app.periods import PERIODS

SORTS: Final[dict[str, tuple[SummarySort, bool]]] = {
    "Latest activity": (SummarySort.LAST, True),
    "Oldest first": (SummarySort.FIRST, False),
    "Slowest, waits for people left out": (SummarySort.WORKING, True),
    "Slowest task": (SummarySort.LATENCY, True),
    "Slowest first token": (SummarySort.TTFT, True),
    "Most possibly wrong": (SummarySort.SUSPICIOUS, True),
    "Most not answered": (SummarySort.FAILED, True),
    "Most errors": (SummarySort.ERRORS, True),
    "Most turns": (SummarySort.TURNS, True),
    "Most that reuse would save": (SummarySort.CEILING, True),
    "Most prompt tokens": (SummarySort.PROMPT, True),
    "Most tokens computed again": (SummarySort.RECOMPUTED, True),
    "Most tokens fetched back": (SummarySort.FETCHED, True),
    "Largest share of tools": (SummarySort.TOOLS_SHARE, True),
    "Largest share of reading prompts": (SummarySort.INPUT_SHARE, True),
    "Largest share of writing answers": (SummarySort.GENERATION_SHARE, True),
}
"""Heading -> (column, descending). The first is the default."""

CHECKS: Final[dict[str, dict[str, Any]]] = {
    "Possibly wrong": {"suspicious": True},
    "Not answered": {"failed": True},
    "Errors": {"errors": True},
    "Failed tasks": {"outcome": "failed"},
}
"""What sessions can be narrowed to with one touch."""

SHARES: Final[dict[str, float]] = {"any": 0.0, "10 %": 0.1, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "90 %": 0.9}
LENGTHS: Final[dict[str, int]] = {
    "1 s": 1_000_000_000,
    "10 s": 10_000_000_000,
    "1 min": 60_000_000_000,
    "10 min": 600_000_000_000,
    "1 h": 3_600_000_000_000,
}
"""Name -> nanoseconds of working time."""
MORE: Final = ("path", "reason", "suspicion", "part", "share", "longer", "models", "deployments", "engines")
"""Widgets that are folded away until one of them is used."""
PARTS: Final = {word.plain: part for part, word in words.PARTS.items()}


def where(
    *,
    check: str | None,
    period: str | None,
    part: str | None,
    share: str | None,
    longer: str | None,
    newest_ns: int,
    **fields: str | None,
) -> tuple[tuple[str, Any], ...]:
    """The conditions as pairs of ``SummaryFilter`` fields and values, only those that are set; ``fields`` are such."""
    found: dict[str, Any] = {**fields, **CHECKS.get(check or "", {})}
    if period in PERIODS:
        found["since_ns"] = newest_ns - PERIODS[period] + 1
    if part in PARTS:
        found |= {"part": PARTS[part], "share": SHARES.get(share or "", 0.0)}
    if longer in LENGTHS:
        found["longer_ns"] = LENGTHS[longer]
    return tuple(sorted((name, value) for name, value in found.items() if value))
