"""Numbers with their units, and foreign text made harmless, as strings."""

from __future__ import annotations

import datetime as dt
import unicodedata
from typing import Final

from turnscope_app.words import NOT_MEASURED, UNATTRIBUTED

_LONGEST: Final = 80
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def count(value: int | None, unit: str = "") -> str:
    """``1,250 tokens``."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,} {unit}".rstrip()


def turns(value: int) -> str:
    """``1 turn``, ``3 turns``."""
    return f"{value:,} turn" if value == 1 else f"{value:,} turns"


def shown_of(rows: int, total: int, noun: str) -> str:
    """``8 sessions.``, or how many of how many are shown."""
    if rows < total:
        return f"{rows:,} of {total:,} {noun}s are shown."
    return f"{total:,} {noun}." if total == 1 else f"{total:,} {noun}s."


def sessions_shown(rows: int, total: int, *, bucket: bool) -> str:
    """``8 sessions, and the turns without a session id.``: ``bucket`` says that one row is not a session."""
    if not bucket or rows < total:
        return shown_of(rows, total, "session")
    return f"{shown_of(rows - 1, total - 1, 'session')[:-1]}, and the turns without a session id."


def duration(ns: int | None) -> str:
    """Nanoseconds in the unit that reads best, from ``850 µs`` to ``2 h 05 min``."""
    if ns is None:
        return NOT_MEASURED
    if abs(ns) < 1_000_000:
        return f"{ns / 1e3:.0f} µs"
    if abs(ns) < 1_000_000_000:
        return f"{ns / 1e6:.1f} ms"
    if abs(ns) < 60_000_000_000:
        return f"{ns / 1e9:.2f} s"
    minutes, seconds = divmod(round(ns / 1e9), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def size(value: int | None) -> str:
    """Bytes with decimal prefixes, e.g. ``786.4 kB``."""
    if value is None:
        return NOT_MEASURED
    number = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 1000:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def share(part: int | None, whole: int | None) -> str:
    """``62 %``; not measured when either is, or when there is nothing to share."""
    if part is None or not whole:
        return NOT_MEASURED
    return f"{100 * part / whole:.0f} %"


def when(ns: int | None) -> str:
    """Unix nanoseconds as UTC, to the second."""
    if ns is None:
        return NOT_MEASURED
    try:
        return dt.datetime.fromtimestamp(ns // 1_000_000_000, tz=dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "a time outside the calendar"


def session(session_id: str | None, longest: int = _LONGEST) -> str:
    """A session id that is safe to show anywhere: hidden and direction-changing characters are spelled out,
    long ids are cut and say how long they are. None is the bucket of turns without an id."""
    if not session_id:
        return UNATTRIBUTED
    visible = "".join(_spelled(c) for c in session_id[:longest])
    visible = visible[:longest]
    return visible if len(session_id) <= longest else f"{visible}… ({len(session_id):,} characters)"


def _spelled(char: str) -> str:
    if unicodedata.category(char) in _HIDDEN:
        return f"\\u{ord(char):04x}"
    return char


def escaped(text: str) -> str:
    """``text`` for a place that renders Markdown: every character that could mean something is escaped."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|$~:&@" else c for c in text)
