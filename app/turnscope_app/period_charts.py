"""Charts of a period's course, over small long frames that the pages' own modules make."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import pandas as pd

from turnscope_app import plot
from turnscope_app.text import when

HEIGHT: Final = 250
_END_NS: Final = 253_000_000_000_000_000_000
"""The year 9987: later ones no calendar shows."""


def moment(ns: int) -> dt.datetime:
    """Unix nanoseconds as a time that a chart can show."""
    return dt.datetime.fromtimestamp(min(max(ns, 0), _END_NS) / 1e9, tz=dt.UTC)


def steps(rows: Sequence[tuple[int, str, float]], step_ns: int) -> pd.DataFrame:
    """``at, to, when, what, value, low, high, share``: rows of (begin, what, value), stacked in their order."""
    totals: dict[int, float] = {}
    for at_ns, _, value in rows:
        totals[at_ns] = totals.get(at_ns, 0.0) + value
    levels: dict[int, float] = {}
    found = []
    for at_ns, what, value in rows:
        low = levels.get(at_ns, 0.0)
        levels[at_ns] = low + value
        share = value / totals[at_ns] if totals[at_ns] else 0.0
        found.append((moment(at_ns), moment(at_ns + step_ns), when(at_ns), what, value, low, low + value, share))
    return pd.DataFrame(found, columns=["at", "to", "when", "what", "value", "low", "high", "share"])


def stacked(frame: pd.DataFrame, shades: Mapping[str, str], *, title: str, unit: str, share: bool = True) -> alt.Chart:
    """What was in each step, a bar a step; ``title`` of the axis, ``unit`` of a value where the pointer rests."""
    present = [name for name in shades if name in set(frame["what"])]
    tooltip = [
        alt.Tooltip("when:N", title="From"),
        alt.Tooltip("what:N", title="What"),
        alt.Tooltip("value:Q", title=unit, format=",.4~r" if not share else ",d"),
    ]
    if share:
        tooltip.append(alt.Tooltip("share:Q", title="Share", format=".1%"))
    made = (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=plot.TIME,
            x2="to:T",
            y=alt.Y("low:Q", title=title, axis=alt.Axis(format="~s")),
            y2="high:Q",
            color=plot.colour(shades, present),
            tooltip=tooltip,
        )
    )
    return plot.sized(made, HEIGHT)
