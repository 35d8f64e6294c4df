"""The log of vLLM's multi-turn proxy: each request's conversation, whether it had a handle, and how long P took."""

from __future__ import annotations

import datetime as dt
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from turnscope.decode.imports.report import Line, Report
from turnscope.decode.imports.values import moment_ns

MARK: Final = b"Prefill done in "
MAX_OPEN: Final = 10_000
"""Requests whose prefill is under way; one that failed never tells its end."""
_REQUEST: Final = re.compile(r"\[([^\]\s]+)\] conv=(.*): (cache MISS|cache HIT|sending D's cached blocks)")
_DONE: Final = re.compile(r"\[([^\]\s]+)\] Prefill done in (\d{1,9}(?:\.\d{1,9})?) ?ms")
_TIME: Final = re.compile(r"\s*(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")


class Prefill(NamedTuple):
    """One request to P that was answered."""

    conversation: str
    handle: bool
    """It was given what D had kept."""
    took_ns: int
    """By the proxy's clock, the way to P and back included."""
    logged_ns: int | None
    """When the line was written, its zone taken for UTC; the clock of the log counts in whole seconds."""


def read(lines: Iterable[Line], report: Report) -> Iterator[Prefill]:
    """The prefills in a proxy's log, in its order."""
    opened: OrderedDict[str, tuple[str, bool]] = OrderedDict()
    for line in lines:
        report.records += 1
        text = line.text.decode("utf-8", "replace")
        if found := _REQUEST.search(text):
            opened[found[1]] = (found[2], found[3] != "cache MISS")
            if len(opened) > MAX_OPEN:
                opened.popitem(last=False)
        elif found := _DONE.search(text):
            known = opened.pop(found[1], None)
            if known is None:
                report.refuse(line.number, "a prefill of a request that the log does not begin")
            else:
                yield Prefill(*known, round(float(found[2]) * 1e6), _logged_ns(text))
        else:
            report.other += 1


def _logged_ns(text: str) -> int | None:
    found = _TIME.match(text)
    if found is None:
        return None
    *whole, part = found.groups(default="0")
    try:
        time = dt.datetime(*map(int, whole), tzinfo=dt.UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    return moment_ns(time) + int(part.ljust(6, "0")) * 1000
