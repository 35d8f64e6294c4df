"""What the sessions page can be narrowed to and ordered by: names on the screen, and what the store is asked."""

from __future__ import annotations

from typing import Any, Final

from turnscope.store.queries import SessionSort

SORTS: Final[dict[str, tuple[SessionSort, bool]]] = {
    "Latest activity": (SessionSort.LAST, True),
    "Oldest first": (SessionSort.FIRST, False),
    "Most possibly wrong": (SessionSort.SUSPICIOUS, True),
    "Most not answered": (SessionSort.FAILED, True),
    "Most turns": (SessionSort.TURNS, True),
    "Most prompt tokens": (SessionSort.PROMPT, True),
    "Most tokens computed": (SessionSort.COMPUTED, True),
    "Most tokens fetched back": (SessionSort.FETCHED, True),
    "Most bytes fetched back": (SessionSort.BYTES, True),
    "Slowest first token": (SessionSort.TTFT, True),
}
"""Heading -> (column, descending). The first is the default."""

CHECKS: Final[dict[str, dict[str, bool]]] = {
    "Possibly wrong": {"suspicious": True},
    "Not answered": {"failed": True},
}

PERIODS: Final[dict[str, int]] = {
    "Last hour": 3_600_000_000_000,
    "Last 24 hours": 86_400_000_000_000,
    "Last 7 days": 7 * 86_400_000_000_000,
}
"""Name -> nanoseconds. Counted back from the newest turn in the store, so that a recording can be narrowed too."""


def where(
    *,
    text: str | None,
    path: str | None,
    reason: str | None,
    engine: str | None,
    model: str | None,
    check: str | None,
    period: str | None,
    newest_ns: int | None,
) -> tuple[tuple[str, Any], ...]:
    """The conditions as pairs of ``SessionFilter`` fields and values, only those that are set."""
    found: dict[str, Any] = {"text": text, "path": path, "reason": reason, "engine": engine, "model": model}
    found.update(CHECKS.get(check or "", {}))
    if period in PERIODS and newest_ns is not None:
        found["since_ns"] = newest_ns - PERIODS[period]
    return tuple(sorted((name, value) for name, value in found.items() if value))
