"""The period that a page shows: its names, and what the store is asked."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from turnscope.model import Period

_HOUR: Final = 3_600_000_000_000
ALL: Final = "All"
PERIODS: Final[dict[str, int]] = {
    "Last 7 days": 7 * 24 * _HOUR,
    "Last 24 hours": 24 * _HOUR,
    "Last hour": _HOUR,
}
"""Name -> nanoseconds. Counted back from the newest session's end, so that a recording can be narrowed too."""
NAMES: Final = (ALL, *PERIODS)


def usual(first_ns: int, last_ns: int) -> str:
    """The longest period that has one as long before it; else all."""
    return next((name for name, ns in PERIODS.items() if last_ns - first_ns >= 2 * ns), ALL)


def asked(name: str, first_ns: int, last_ns: int, application: str | None) -> tuple[tuple[str, Any], ...]:
    """The fields of a ``Period``."""
    until = min(last_ns + 1, 2**63 - 1)
    since = until - PERIODS[name] if name in PERIODS else min(first_ns, last_ns)
    return (("application", application), ("since_ns", since), ("until_ns", until))


def before(name: str, period: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...] | None:
    """The period before, as long; None before all."""
    if name not in PERIODS:
        return None
    return tuple(sorted(msgspec.structs.asdict(Period(**dict(period)).before()).items()))
