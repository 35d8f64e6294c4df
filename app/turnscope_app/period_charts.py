"""Charts of a period's course, over small long frames that the pages' own modules make."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import pandas as pd

from turnscope_app.text import when

HEIGHT: Final = 360
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
    return (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=TIME,
            x2="to:T",
            y=alt.Y("low:Q", title=title, axis=alt.Axis(format="~s")),
            y2="high:Q",
            color=colour(shades, present),
            tooltip=tooltip,
        )
        .properties(height=HEIGHT)
    )


def colour(shades: Mapping[str, str], present: Sequence[str], field: str = "what") -> alt.Color:
    """A colour for each of ``present``, named above the chart in as many columns as there is room for."""
    widest = 30 + 7 * max(map(len, present), default=0)
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(present), range=[shades[name] for name in present]),
        legend=alt.Legend(
            orient="top",
            direction="horizontal",
            labelLimit=widest,
            symbolSize=80,
            columns=alt.ExprRef(f"max(1, floor(width / {widest}))"),
        ),
    )


TIME: Final = alt.X(
    "at:T", title="UTC", scale=alt.Scale(type="utc"), axis=alt.Axis(labelOverlap=True, grid=False, tickCount=6)
)
