"""What charts share: their size, their legend and their axis of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

_FORMATS: Final[Any] = {
    "year": "%Y",
    "quarter": "%-d %b",
    "month": "%-d %b",
    "week": "%-d %b",
    "date": "%-d %b",
    "day": "%-d %b",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
}
"""Of a time on an axis, by what it is a whole number of: as times stand everywhere else, with 24 hours."""
TIME: Final = alt.X(
    "at:T",
    title="UTC",
    scale=alt.Scale(type="utc"),
    axis=alt.Axis(labelOverlap=True, grid=False, tickCount=6, format=_FORMATS),
)


def sized(chart: Any, height: int) -> Any:
    """``chart`` as wide as there is room for, its marks ``height`` pixels high: on a phone a legend has many lines, and
    must not leave nothing for what it explains."""
    return chart.properties(height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))


def legend(names: Sequence[str], *, orient: str = "top", **more: Any) -> alt.Legend:
    """In as many columns as there is room for."""
    widest = 30 + 7 * max(map(len, names), default=0)
    columns = alt.ExprRef(f"max(1, floor(width / {widest}))")
    return alt.Legend(orient=orient, direction="horizontal", labelLimit=widest, symbolSize=80, columns=columns, **more)


def colour(shades: Mapping[str, str], present: Sequence[str], field: str = "what") -> alt.Color:
    """A colour for each of ``present``, named above the chart."""
    scale = alt.Scale(domain=list(present), range=[shades[name] for name in present])
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=legend(present))
