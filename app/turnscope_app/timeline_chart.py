"""The timeline as a chart, to be zoomed into."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from turnscope.store.fates import Fate
from turnscope_app import charts, colours, plot, text, words
from turnscope_app.axis import Axis
from turnscope_app.lanes import Bar
from turnscope_app.timeline import Timeline
from turnscope_app.zoom import WHOLE, View

_LANE: Final = 30
"""Pixels."""
_FIELDS: Final = ("lane", "kind", "start", "end", "what", "lasted", "begins", "known", "turn", "deadline")
_ENDS: Final = {words.ENDS[fate]: colour for fate, colour in colours.FATES.items()}
_PARTS: Final = {words.PARTS[part].plain: colour for part, colour in colours.PARTS.items()}
_NUMBERED: Final = 60
"""Wider than one in so many, a turn's bar has its number on it."""


def frame(timeline: Timeline, bars: list[Bar]) -> pd.DataFrame:
    """``lane, kind, start, end, what, lasted, begins, known, turn, deadline``: one row a bar, places in seconds on the
    drawing."""
    axis = timeline.axis
    return pd.DataFrame(
        [
            (
                bar.lane,
                _kind(bar),
                axis.place(bar.start_ns),
                axis.place(bar.end_ns),
                bar.what,
                text.duration(bar.end_ns - bar.start_ns),
                f"after {text.duration(bar.start_ns - axis.zero_ns)}",
                str(bar.evidence),
                bar.turn,
                None if bar.deadline_ns is None else axis.place(bar.deadline_ns),
            )
            for bar in bars
        ],
        columns=list(_FIELDS),
    ).astype({"turn": "Int64", "deadline": "Float64"})


def _kind(bar: Bar) -> str:
    if bar.kind in words.PARTS:
        return words.PARTS[bar.kind].plain
    return words.ENDS[Fate(bar.kind) if bar.kind in words.FATES else Fate.UNKNOWN]


def chart(timeline: Timeline, view: View = WHOLE) -> alt.LayerChart:
    """Bars in lanes, ``view`` of them at first; with Shift, the wheel zooms. Waits that are drawn shorter say how long
    they were."""
    ran, held = frame(timeline, timeline.bars), frame(timeline, timeline.holds)
    zoom = alt.selection_interval(bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]", name="session_zoom")
    layers = [_bars(ran, timeline, view, _PARTS).add_params(zoom)]
    wide = ran[ran["turn"].notna() & ((ran["end"] - ran["start"]) * _NUMBERED > timeline.axis.length * view.share)]
    wide = wide.drop_duplicates(["lane", "turn"])
    if not wide.empty:
        layers.append(
            alt.Chart(wide)
            .mark_text(align="left", dx=4, fontSize=11, color="white", clip=True)
            .encode(x="start:Q", y=_lanes(timeline), text="turn:Q")
        )
    if not held.empty:
        layers += [
            _bars(held, timeline, view, _ENDS, legends="bottom"),
            *_deadlines(held[held["deadline"].notna()], timeline),
        ]
    if timeline.axis.breaks:
        layers += _breaks(timeline.axis)
    made = alt.layer(*layers).resolve_scale(color="independent", stroke="independent")
    return plot.sized(made, _LANE * len(timeline.lanes))


def reading(timeline: Timeline) -> str:
    """How to read the chart, in a sentence or two."""
    said = ["**Shift and the wheel zoom** too, dragging moves, a double click undoes both. Paler bars are inferred."]
    if timeline.axis.breaks:
        said.append("Long waits (⋯) are drawn shorter than they were.")
    if timeline.holds:
        said.append(
            "Under the axis of what ran: what the server that writes answers kept in memory for the next turn (hold on "
            "a decode engine), and a grey mark where its time limit was."
        )
    if timeline.merged:
        said.append("There is more than can be drawn: a bar stands for what took most of its stretch.")
    return " ".join(said)


def _bars(
    found: pd.DataFrame, timeline: Timeline, view: View, shades: dict[str, str], *, legends: str = "top"
) -> alt.Chart:
    present = [name for name in shades if name in set(found["kind"])]
    scale = alt.Scale(domain=present, range=[shades[name] for name in present])
    title = f"Time since the session began{' (h:mm:ss)' if _is_long(timeline.axis) else ''}"
    legend = plot.legend(present, orient=legends, symbolOpacity=1)
    return (
        alt.Chart(found)
        # The line round a bar keeps one that is shorter than a pixel visible.
        .mark_bar(height={"band": 0.72}, strokeWidth=0.8, clip=True)
        .encode(
            x=alt.X("start:Q", title=title, axis=_ticks(timeline.axis), scale=_span(timeline, view)),
            x2="end:Q",
            y=_lanes(timeline),
            color=alt.Color("kind:N", title=None, scale=scale, legend=legend),
            stroke=alt.Stroke("kind:N", scale=scale, legend=None),
            opacity=charts.opacity(),
            tooltip=[
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("lasted:N", title="How long"),
                alt.Tooltip("begins:N", title="Began"),
                alt.Tooltip("known:N", title="How it is known"),
            ],
        )
    )


def _deadlines(found: pd.DataFrame, timeline: Timeline) -> list[alt.Chart]:
    """How long what was kept might have been kept."""
    if found.empty:
        return []
    base = alt.Chart(found.assign(what="Would have been kept until here")).encode(
        y=_lanes(timeline), tooltip=[alt.Tooltip("what:N", title="Time limit")]
    )
    unused = found["deadline"] > found["end"]
    line = (
        alt.Chart(found[unused])
        .mark_rule(strokeDash=[3, 3], color=colours.UNKNOWN, clip=True)
        .encode(x="end:Q", x2="deadline:Q", y=_lanes(timeline))
    )
    tick = base.mark_tick(thickness=2, color=colours.REST, bandSize=18, clip=True).encode(x="deadline:Q")
    return [line, tick]


def _breaks(axis: Axis) -> list[alt.Chart]:
    rows = pd.DataFrame(
        [((axis.place(gap.start_ns) + axis.place(gap.end_ns)) / 2, f"⋯ {gap.label} ⋯") for gap in axis.breaks],
        columns=["at", "said"],
    )
    made = alt.Chart(rows).encode(x="at:Q")
    return [
        made.mark_rule(strokeDash=[2, 4], color=colours.UNKNOWN, clip=True),
        made.mark_text(dy=-8, baseline="bottom", color=colours.UNKNOWN, fontSize=11, clip=False).encode(
            y=alt.value(6), text="said:N"
        ),
    ]


def _lanes(timeline: Timeline) -> alt.Y:
    axis = alt.Axis(labelLimit=150, ticks=False, domain=False, labelPadding=6)
    return alt.Y("lane:N", title=None, sort=None, scale=alt.Scale(domain=timeline.lanes), axis=axis)


def _span(timeline: Timeline, view: View) -> alt.Scale:
    length = max(timeline.axis.length, 1e-6)
    return alt.Scale(domain=[view.low * length, view.high * length], nice=False)


def _ticks(axis: Axis) -> alt.Axis:
    """Labels are the true time since the begin, also behind what is drawn shorter; none stands in it."""
    shift = (axis.start_ns - axis.zero_ns) / 1e9
    clock = _is_long(axis)

    def label() -> str:
        at = f"(datum.value + {shift})"
        if clock:
            return f"floor({at} / 3600) + ':' + utcFormat({at} * 1000, '%M:%S')"
        return f"format({at}, ',.3~f') + ' s'"

    said = label()
    for gap in axis.breaks:
        shift += (gap.end_ns - gap.start_ns - gap.drawn_ns) / 1e9
        start, end = axis.place(gap.start_ns), axis.place(gap.end_ns)
        said = f"datum.value >= {end} ? {label()} : datum.value > {start} ? '' : ({said})"
    return alt.Axis(labelExpr=said, labelOverlap=True, grid=True, tickCount=8)


def _is_long(axis: Axis) -> bool:
    """Too long for seconds alone."""
    return axis.end_ns - axis.zero_ns >= 300e9
