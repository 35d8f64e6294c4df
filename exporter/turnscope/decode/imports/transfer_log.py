"""P's own log: what vLLM says every ten seconds of the reads that its NIXL connector finished.

P reads nothing but what D kept, so on P these are reverse fetches; the same lines in D's log are handoffs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from turnscope.decode.imports.report import Line, Report

MARK: Final = b"KV Transfer metrics: "
DECODE: Final = b"kv_role='kv_consumer'"
"""What D's log has where it begins, and P's has not."""
_TRANSFERS: Final = re.compile(r"Num successful transfers=(\d{1,9})\b")
_TIME: Final = re.compile(r"Avg xfer time \(ms\)=(\d{1,9}(?:\.\d{1,9})?)")
_SIZE: Final = re.compile(r"Avg MB per transfer=(\d{1,9}(?:\.\d{1,9})?)")
_MB: Final = 2**20
"""vLLM's megabyte."""


class Interval(NamedTuple):
    """Some seconds in which reads ended; each rank's read counts as one."""

    transfers: int
    average_ns: int
    average_bytes: int


def read(lines: Iterable[Line], report: Report) -> Iterator[Interval]:
    """The intervals with reads, in the log's order."""
    for line in lines:
        report.records += 1
        if MARK not in line.text:
            report.other += 1
            continue
        text = line.text.decode("utf-8", "replace")
        found = _TRANSFERS.search(text), _TIME.search(text), _SIZE.search(text)
        if found[0] is None or found[1] is None or found[2] is None:
            report.refuse(line.number, "a line of transfers without their number, time or size")
        elif int(found[0][1]):
            yield Interval(int(found[0][1]), round(float(found[1][1]) * 1e6), round(float(found[2][1]) * _MB))
