"""Charts of what time was spent on, over small long frames. Each frame is testable by itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from turnscope.model import Figures, SessionSummary
from turnscope.semconv import Part
from turnscope.store.overview import STEPS
from turnscope_app import answers, colours, plot, text, words

BAR_HEIGHT: Final = 56
HEIGHT: Final = 150
_WIDE: Final = 0.06
"""Parts of at least so much of a bar have room for their share in it."""
_WHOLE: Final = alt.Scale(domain=[0, 1])
_SHADES: Final = {word.plain: colours.PARTS[Part(part)] for part, word in words.PARTS.items()}


def parts_frame(of: Figures | SessionSummary) -> pd.DataFrame:
    """``part, shown, ns, share, said, time``: a row for each part that took any time, in the order of ``words.PARTS``.

    ``part`` is the name that has the colour, ``shown`` what it is called here.
    """
    rows = []
    shares = answers.shares(of)
    for order, (value, word) in enumerate(words.PARTS.items()):
        ns = getattr(of, f"{value}_ns")
        if ns:
            shown = answers.part_word(Part(value), of).plain if isinstance(of, Figures) else word.plain
            share = ns / of.wall_ns
            said = shares[Part(value)] if share >= _WIDE else ""
            rows.append((word.plain, shown, ns, share, said, text.duration(ns), order))
    return pd.DataFrame(rows, columns=["part", "shown", "ns", "share", "said", "time", "order"])


def parts(frame: pd.DataFrame, *, height: int = BAR_HEIGHT) -> alt.LayerChart:
    """One bar, the parts side by side with their shares."""
    base = alt.Chart(frame).encode(
        x=alt.X("share:Q", stack="zero", axis=None, scale=_WHOLE), order=alt.Order("order:Q")
    )
    bar = base.mark_bar(height=height - 14, cornerRadius=2).encode(
        color=_colour(),
        tooltip=[
            alt.Tooltip("shown:N", title="What"),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
            alt.Tooltip("time:N", title="Time"),
        ],
    )
    ends = frame.assign(middle=frame["share"].cumsum() - frame["share"] / 2)
    labels = (
        alt.Chart(ends)
        .mark_text(color="white", fontSize=14, fontWeight="bold")
        .encode(x=alt.X("middle:Q", axis=None, scale=_WHOLE), text="said:N")
    )
    return (bar + labels).properties(height=height, padding=0)


def course_frame(course: Sequence[Figures], since_ns: int, until_ns: int) -> pd.DataFrame:
    """``at, to, when, part, low, high, share, time``: what the sessions of each step spent their time on, stacked
    from low to high; steps without a session are missing."""
    rows = []
    for figures in course:
        at, to = (_at((figures.step or 0) + more, since_ns, until_ns) for more in (0, 1))
        low = 0.0
        for value, word in words.PARTS.items():
            ns = getattr(figures, f"{value}_ns")
            if ns:
                share = ns / figures.wall_ns
                rows.append((at, to, _when(at), word.plain, low, low + share, share, text.duration(ns)))
                low += share
    return pd.DataFrame(rows, columns=["at", "to", "when", "part", "low", "high", "share", "time"])


def course(frame: pd.DataFrame) -> alt.Chart:
    """Shares of the parts over the period."""
    present = [part for part in _SHADES if part in set(frame["part"])]
    made = (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=plot.TIME,
            x2="to:T",
            y=alt.Y("low:Q", title="Share of session time", axis=alt.Axis(format=".0%"), scale=_WHOLE),
            y2="high:Q",
            color=plot.colour(_SHADES, present, "part"),
            tooltip=[
                alt.Tooltip("when:N", title="From (UTC)"),
                alt.Tooltip("part:N", title="What"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
                alt.Tooltip("time:N", title="Time"),
            ],
        )
    )
    return plot.sized(made, HEIGHT)


def latency_frame(course: Sequence[Figures], since_ns: int, until_ns: int) -> pd.DataFrame:
    """``at, when, what, seconds``: medians of whole tasks and of first tokens, where there are such."""
    rows = []
    for figures in course:
        for what, ns in (("Whole task", figures.task_latency_median_ns), ("First token", figures.ttft_median_ns)):
            if ns is not None:
                at = _at(figures.step or 0, since_ns, until_ns)
                rows.append((at, _when(at), what, ns / 1e9))
    return pd.DataFrame(rows, columns=["at", "when", "what", "seconds"])


_WAITS: Final = {"Whole task": colours.REST, "First token": colours.READING}


def latency(frame: pd.DataFrame) -> alt.Chart:
    """What users wait for, over the period."""
    made = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=plot.TIME,
            y=alt.Y("seconds:Q", title="Seconds, median", axis=alt.Axis(format=",~r")),
            color=plot.colour(_WAITS, [name for name in _WAITS if name in set(frame["what"])]),
            tooltip=[
                alt.Tooltip("when:N", title="From (UTC)"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("seconds:Q", title="Seconds", format=",.2f"),
            ],
        )
    )
    return plot.sized(made, HEIGHT)


def _at(step: int, since_ns: int, until_ns: int) -> dt.datetime:
    return dt.datetime.fromtimestamp((since_ns + step * (until_ns - since_ns) // STEPS) / 1e9, tz=dt.UTC)


def _when(at: dt.datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _colour() -> alt.Color:
    return alt.Color("part:N", title=None, scale=alt.Scale(domain=[*_SHADES], range=[*_SHADES.values()]), legend=None)
