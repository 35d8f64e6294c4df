"""Bars and ticks of a report's drawings, in percent of their width."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from turnscope.model import SessionSummary
from turnscope.semconv import Evidence
from turnscope.store.fates import Fate
from turnscope_app import session_answer, text, words
from turnscope_app.axis import Axis
from turnscope_app.lanes import Bar
from turnscope_app.timeline import Timeline

_TICKS: Final = 8
_APART: Final = 9.0
"""Percent that two labels need between their begins."""
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)


class Rect(NamedTuple):
    """A bar. ``kind``: the class that colours it; ``title``: what is said where the pointer rests."""

    x: float
    width: float
    kind: str
    pale: bool
    title: str
    deadline: float | None = None


class Lane(NamedTuple):
    """Bars in one line."""

    name: str
    rects: list[Rect]


class Tick(NamedTuple):
    """A label under the axis."""

    x: float
    label: str


def parts(summary: SessionSummary) -> list[Rect]:
    """The whole session in one line; of each part, what is inferred behind what is measured."""
    out, at = [], 0.0
    for part, ns in session_answer.parts(summary).items():
        told = session_answer.inferred(summary, part)
        for some, pale in ((ns - told, False), (told, True)):
            if some:
                width = 100 * some / summary.wall_ns
                known = ", inferred" if pale else ""
                said = f"{words.PARTS[part].plain}: {text.duration(some)}{known}"
                out.append(Rect(_rounded(at), _rounded(width), f"part-{part}", pale, said))
                at += width
    return out


def lanes(timeline: Timeline) -> list[Lane]:
    """The timeline, a lane at a time."""
    held: dict[str, list[Rect]] = {lane: [] for lane in timeline.lanes}
    for bar in timeline.bars:
        held[bar.lane].append(_rect(bar, timeline.axis, f"part-{bar.kind}"))
    for bar in timeline.holds:
        known = bar.kind if bar.kind in words.FATES else Fate.UNKNOWN
        held[bar.lane].append(_rect(bar, timeline.axis, f"fate-{known}"))
    return [Lane(name, rects) for name, rects in held.items()]


def _rect(bar: Bar, axis: Axis, kind: str) -> Rect:
    start, end = _percent(bar.start_ns, axis), _percent(bar.end_ns, axis)
    known = ", inferred" if bar.evidence == Evidence.INFERRED else ""
    said = f"{bar.what}, {text.duration(bar.end_ns - bar.start_ns)}{known}"
    deadline = None if bar.deadline_ns is None else _percent(bar.deadline_ns, axis)
    return Rect(
        start,
        _rounded(end - start),
        kind,
        bar.evidence != Evidence.MEASURED,
        said,
        deadline if deadline is not None and deadline <= 100 else None,
    )


def ticks(axis: Axis) -> list[Tick]:
    """Labels that are far enough apart: round times, or where waits are drawn shorter, the ends of those."""
    if axis.breaks:
        moments = [axis.start_ns, *(ns for gap in axis.breaks for ns in (gap.start_ns, gap.end_ns)), axis.end_ns]
    else:
        moments = list(_round(axis))
    out: list[Tick] = []
    for ns in moments:
        x = _percent(ns, axis)
        if x <= 100 - _APART / 2 and (not out or x - out[-1].x >= _APART):
            out.append(Tick(x, text.duration(ns - axis.zero_ns) if ns > axis.zero_ns else "0"))
    return out


def _round(axis: Axis) -> Iterable[int]:
    length = (axis.end_ns - axis.start_ns) / 1e9
    step = next((s for s in _steps() if length / s <= _TICKS), length) if length > 0 else 1.0
    ns = max(1, round(step * 1e9))
    first = -(-(axis.start_ns - axis.zero_ns) // ns)
    last = (axis.end_ns - axis.zero_ns) // ns
    return (axis.zero_ns + n * ns for n in range(first, last + 1))


def _steps() -> Iterable[float]:
    for power in (-6, -5, -4, -3, -2, -1):
        for digit in (1, 2, 5):
            yield digit * 10.0**power
    yield from _STEPS
    for days in range(2, 10_000):
        yield 86_400.0 * days


def gaps(axis: Axis) -> list[Tick]:
    """Where waits are drawn shorter, and how long they were."""
    return [Tick(_rounded((_percent(g.start_ns, axis) + _percent(g.end_ns, axis)) / 2), g.label) for g in axis.breaks]


def _percent(ns: int, axis: Axis) -> float:
    return _rounded(100 * axis.place(ns) / axis.length) if axis.length else 0.0


def _rounded(value: float) -> float:
    return round(value, 3)
