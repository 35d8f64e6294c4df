"""Numbers with their units, and foreign text made harmless, as strings."""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from turnscope.model import plural
from turnscope.shipped import EXPLORER, ITS_ADDRESS
from turnscope_app.words import NOT_MEASURED, UNATTRIBUTED, Word, shown

_LONGEST: Final = 80
_Key = TypeVar("_Key")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def count(value: int | None, unit: str = "") -> str:
    """``1,250 tokens``."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,} {unit}".rstrip()


def turns(value: int) -> str:
    """``1 turn``, ``3 turns``."""
    return plural(value, "turn")


def sessions(value: int) -> str:
    """``1 session``, ``3 sessions``."""
    return plural(value, "session")


def shown_of(rows: int, total: int, noun: str) -> str:
    """``8 sessions.``, or how many of how many are shown."""
    if rows < total:
        return f"{rows:,} of {total:,} {noun}s are shown."
    return f"{plural(total, noun)}."


def sentence(error: Exception) -> str:
    """What went wrong, as a sentence of its own: errors are worded to stand after a colon."""
    words = str(error)
    return f"{words[:1].upper()}{words[1:]}."


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
    hours = minutes // 60
    return f"{hours} h {minutes % 60:02d} min" if hours < 100 else f"{hours:,} h"


def about(ns: int | None) -> str:
    """An estimated duration, with two digits that say something: ``860 ms``, ``1.1 s``; from a minute on as any."""
    if ns is None or abs(ns) >= 60_000_000_000 or not ns:
        return duration(ns)
    digits = 1 - math.floor(math.log10(abs(ns)))
    rounded = round(ns, digits)
    for unit, per, least in (("s", 1e9, 10**9), ("ms", 1e6, 10**6), ("µs", 1e3, 0)):
        if abs(rounded) >= least:
            value = rounded / per
            return f"{value:.0f} {unit}" if abs(value) >= 10 else f"{value:.1f} {unit}"
    raise AssertionError("unreachable")


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
    """``62 %``; not measured when either is, or when there is nothing to share. Only none is 0 and only all is 100."""
    if part is None or not whole:
        return NOT_MEASURED
    return _percent(round(100 * part / whole), part, whole)


def _percent(percent: int, part: int, whole: int) -> str:
    if percent == 0 and part:
        return "under 1 %"
    return "over 99 %" if percent == 100 and part != whole else f"{percent} %"


def shares(parts: Mapping[_Key, int]) -> dict[_Key, str]:
    """Of each part in the whole that all of them make: as ``share``, but so rounded that they sum to 100 % (by the
    largest remainders). Not measured where there is nothing to share."""
    whole = sum(parts.values())
    if whole <= 0:
        return dict.fromkeys(parts, NOT_MEASURED)
    percents = {key: 100 * part // whole for key, part in parts.items()}
    largest = sorted(parts, key=lambda key: -(100 * parts[key] % whole))
    for key in largest[: 100 - sum(percents.values())]:
        percents[key] += 1
    return {key: _percent(percent, parts[key], whole) for key, percent in percents.items()}


def part(some: int, whole: int) -> str:
    """``37 (62 %)``, which stays on one line; the number alone when there is nothing to share."""
    return f"{some:,} ({share(some, whole)})".replace(" ", "\N{NO-BREAK SPACE}") if whole else f"{some:,}"


def when(ns: int | None) -> str:
    """Unix nanoseconds as UTC, to the second."""
    if ns is None:
        return NOT_MEASURED
    try:
        return dt.datetime.fromtimestamp(ns // 1_000_000_000, tz=dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "a time outside the calendar"


def session(session_id: str | None) -> str:
    """A session id that is safe to show anywhere. None is the bucket of turns without an id."""
    return harmless(session_id) if session_id else UNATTRIBUTED


def named(applications: Sequence[str], agents: Sequence[str], session_id: str | None) -> str:
    """A session by what people call it: application and agent first, its id last."""
    names = [harmless(name, 40) for name in (*applications[:1], *agents[:1])]
    return " · ".join([*names, session(session_id)])


def listed(names: Sequence[str], most: int) -> str:
    """``a, b and c``, at most so many of them, made harmless; of more, how many there are beside."""
    shown = [harmless(name, 40) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def worded(vocabulary: Mapping[str, Word], value: str | None) -> str | None:
    """The words for a value of a closed vocabulary; one that is not in it, of a newer turnscope, is made harmless."""
    said = shown(vocabulary, value)
    return said if said is None or value in vocabulary else harmless(said)


def harmless(foreign: str, longest: int = _LONGEST) -> str:
    """Foreign text that is safe to show anywhere: hidden and direction-changing characters are spelled out, long text
    is cut and says how long it is."""
    visible = foreign[:longest]
    if not visible.isprintable():
        visible = "".join(_spelled(c) for c in visible)[:longest]
    return visible if len(foreign) <= longest else f"{visible}… ({len(foreign):,} characters)"


def _spelled(char: str) -> str:
    if unicodedata.category(char) in _HIDDEN:
        return f"\\u{ord(char):04x}"
    return char


def capitalised(text: str) -> str:
    """For use at a sentence's begin."""
    return f"{text[:1].upper()}{text[1:]}"


def uncapitalised(text: str) -> str:
    """For use within a sentence."""
    return f"{text[:1].lower()}{text[1:]}"


def escaped(text: str) -> str:
    """``text`` for a place that renders Markdown: every character that could mean something is escaped."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|$~:&@" else c for c in text)


_TO_EXPLORER: Final = re.compile(rf"<{re.escape(EXPLORER)}(/[^>]*)>")


def runbook_list(books: Mapping[str, str]) -> str:
    """A line an alert, linked to its runbook: what it says first."""
    lines = []
    for name, book in books.items():
        first = next(part for part in book.split("\n\n")[1:] if not part.startswith("#"))
        lines.append(f"- [{name}](/runbooks?runbooks_file={name}.md): {' '.join(first.split())}")
    return "\n".join(lines)


def runbook(markdown: str) -> str:
    """A shipped runbook with its links to the explorer as links within this one. Its commands are not
    coloured: some words would be too faint to be read by everybody."""
    return (
        _TO_EXPLORER.sub(r"[the sessions list, filtered](\1)", markdown)
        .replace(ITS_ADDRESS, "")
        .replace("```sh\n", "```text\n")
    )
