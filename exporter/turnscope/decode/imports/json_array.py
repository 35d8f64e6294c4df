"""One JSON array of flat objects, streamed: its elements one by one, however long it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from turnscope.decode.imports.report import Line, Report

MAX_ELEMENT: Final = 1_048_576
"""Bytes of one element. A longer one is no flat object of a benchmark's."""
_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}]', re.DOTALL)
"""A string, whole or to the end of what is there, or a brace outside of strings."""


def elements(chunks: Iterable[bytes], report: Report) -> Iterator[Line]:
    """The text of each object in the array that ``chunks`` make up, numbered from 1.

    An array that ends within an element is cut off: that element is counted in ``report`` as broken, like one that is
    longer than ``MAX_ELEMENT``, with which reading stops. What stands between elements is not checked.
    """
    rest = b""
    number = 0
    for chunk in chunks:
        rest += chunk
        done = 0
        for start, end in _objects(rest):
            number += 1
            yield Line(number, rest[start:end])
            done = end
        rest = rest[done:]
        if len(rest) > MAX_ELEMENT:
            report.records += 1
            report.refuse(number + 1, "longer than an element can be")
            return
    if b"{" in rest or not rest.rstrip().endswith(b"]"):
        report.records += 1
        report.refuse(number + 1, "cut off")


def _objects(text: bytes) -> Iterator[tuple[int, int]]:
    """Where each whole object begins and ends."""
    depth = start = 0
    for found in _STRUCTURE.finditer(text):
        mark = found[0]
        if mark == b"{":
            start = found.start() if depth == 0 else start
            depth += 1
        elif mark == b"}" and depth:
            depth -= 1
            if depth == 0:
                yield start, found.end()
