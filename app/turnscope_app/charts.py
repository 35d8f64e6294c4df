"""Charts of one session, as Altair builders over small long frames. Each frame is testable by itself.

``numbers`` are the numbers of all turns that are looked at, so that one without a measurement leaves a gap.
"""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd
import pyarrow as pa

from turnscope.semconv import TokenSource
from turnscope_app import colours, frames, words

HEIGHT: Final = 320
COLOURS: Final = {words.SOURCES[source].plain: colour for source, colour in colours.SOURCES.items()}
TIMES: Final = {"ttft_ns": "First token", "prefill_ns": "Prefill", "fetch_ns": "Fetch"}
TRANSFERS: Final = {"fetched_bytes": "Fetched back", "handoff_bytes": "Handed over"}
_FATES: Final = {words.FATES[fate].plain: colour for fate, colour in colours.FATES.items()}
_OTHER: Final = "Other"


def tokens_frame(table: pa.Table, offset: int = 0) -> pd.DataFrame:
    """``turn, source, tokens, order``: one row for each source of each turn that was measured and is not 0."""
    rows = table.to_pylist()
    order = {word.plain: i for i, word in enumerate(words.SOURCES.values())}
    found = []
    for number, row in zip(frames.numbers(rows, offset), rows, strict=True):
        split = row["recomputed_tokens"] is not None and row["new_tokens"] is not None
        sources = {
            TokenSource.LOCAL_HIT: row["local_hit_tokens"],
            TokenSource.FETCHED: row["fetched_tokens"],
            TokenSource.EXTERNAL: row["external_tokens"],
            TokenSource.RECOMPUTED: row["recomputed_tokens"] if split else None,
            TokenSource.NEW: row["new_tokens"] if split else None,
            TokenSource.COMPUTED: None if split else row["computed_tokens"],
        }
        for source, tokens in sources.items():
            if tokens:
                plain = words.SOURCES[source].plain
                found.append((number, plain, tokens, order[plain], bool(row["suspicions"])))
    return pd.DataFrame(found, columns=["turn", "source", "tokens", "order", "suspicious"])


def tokens(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart | alt.LayerChart:
    """Stacked prompt tokens by source, a bar a turn; a sign above the bars of suspicious turns."""
    present = [name for name in (w.plain for w in words.SOURCES.values()) if name in set(frame["source"])]
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=_turns(numbers),
            y=alt.Y("tokens:Q", title="Prompt tokens", axis=alt.Axis(format=",d")),
            color=alt.Color("source:N", title=None, scale=_scale(COLOURS, present), legend=_legend(present)),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("turn:O", title="Turn"),
                alt.Tooltip("source:N", title="Where from"),
                alt.Tooltip("tokens:Q", title="Tokens", format=","),
            ],
        )
    )
    suspicious = frame[frame["suspicious"].astype(bool)].groupby("turn", as_index=False)["tokens"].sum()
    if suspicious.empty:
        return bars.properties(height=HEIGHT)
    signs = (
        alt.Chart(suspicious.assign(sign="⚠", why="The answer may be wrong"))
        .mark_text(dy=-9, fontSize=16, color=colours.RED)
        .encode(x=_turns(numbers), y="tokens:Q", text="sign:N", tooltip=[alt.Tooltip("why:N", title="Check")])
    )
    return (bars + signs).properties(height=HEIGHT)


def times_frame(table: pa.Table, offset: int = 0) -> pd.DataFrame:
    """``turn, what, ms``: one row for each time that was measured."""
    return _long(table, offset, TIMES, "ms", 1e6)


def times(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart:
    """First token, prefill and fetch of each turn, in milliseconds; lines stop where a turn was not measured."""
    shades = {"First token": colours.BLUE, "Prefill": colours.AMBER, "Fetch": colours.TEAL}
    present = [name for name in TIMES.values() if name in set(frame["what"])]
    every = pd.MultiIndex.from_product([numbers, present], names=["turn", "what"]).to_frame(index=False)
    return (
        alt.Chart(every.merge(frame, how="left", on=["turn", "what"]))
        .mark_line(point=alt.OverlayMarkDef(size=60, filled=True))
        .encode(
            x=_turns(numbers),
            y=alt.Y("ms:Q", title="Milliseconds", axis=alt.Axis(format=",~r")),
            color=alt.Color("what:N", title=None, scale=_scale(shades, present), legend=_legend(present)),
            tooltip=[
                alt.Tooltip("turn:O", title="Turn"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("ms:Q", title="Milliseconds", format=",.1f"),
            ],
        )
        .properties(height=HEIGHT)
    )


def bytes_frame(table: pa.Table, offset: int = 0) -> pd.DataFrame:
    """``turn, what, mb``: megabytes (10^6 bytes) fetched back and handed over, where measured."""
    return _long(table, offset, TRANSFERS, "mb", 1e6)


def transferred(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart:
    """Megabytes of each turn, the two directions side by side."""
    shades = {"Fetched back": colours.TEAL, "Handed over": colours.VIOLET}
    present = [name for name in TRANSFERS.values() if name in set(frame["what"])]
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=_turns(numbers),
            xOffset=alt.XOffset("what:N", sort=present),
            y=alt.Y("mb:Q", title="Megabytes"),
            color=alt.Color("what:N", title=None, scale=_scale(shades, present), legend=_legend(present)),
            tooltip=[
                alt.Tooltip("turn:O", title="Turn"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("mb:Q", title="Megabytes", format=",.3f"),
            ],
        )
        .properties(height=HEIGHT)
    )


def holds_frame(table: pa.Table, holds: pa.Table, offset: int = 0) -> pd.DataFrame:
    """``turn, fate, start_s, end_s, kept_s``: when the blocks each turn left were kept, from the first turn's start.

    The length is the holder's own measurement. What is still held, or was never measured, reaches to the end of
    what was seen and has no ``kept_s``.
    """
    rows = table.to_pylist()
    if not rows:
        return pd.DataFrame(columns=["turn", "fate", "start_s", "end_s", "kept_s"])
    by_id = {hold["hold_id"]: hold for hold in holds.to_pylist()}
    zero = min(row["started_ns"] for row in rows)
    seen = [t for r in [*rows, *by_id.values()] for t in (r["started_ns"], r["ended_ns"]) if t is not None]
    found = []
    for number, row in zip(frames.numbers(rows, offset), rows, strict=True):
        hold = by_id.get(row["left_hold_id"])
        if hold is None:
            continue
        start, held = hold["started_ns"], hold["held_ns"]
        if held is None and hold["ended_ns"] is not None:
            held = hold["ended_ns"] - start
        end = max(seen) if held is None else start + held
        found.append((number, _fate(row["hold_fate"]), (start - zero) / 1e9, (end - zero) / 1e9, held and held / 1e9))
    return pd.DataFrame(found, columns=["turn", "fate", "start_s", "end_s", "kept_s"])


def holds(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart:
    """A bar a turn from when its blocks were kept until they were let go, coloured by what became of them."""
    present = [name for name in (*_FATES, _OTHER) if name in set(frame["fate"])]
    return (
        alt.Chart(frame)
        .mark_bar(height={"band": 0.6}, cornerRadius=2)
        .encode(
            y=alt.Y("turn:O", title="Turn", scale=alt.Scale(domain=numbers), axis=alt.Axis(labelOverlap=True)),
            x=alt.X("start_s:Q", title="Seconds since the first turn began", axis=alt.Axis(format=",~r")),
            x2="end_s:Q",
            color=alt.Color(
                "fate:N",
                title=None,
                scale=_scale({**_FATES, _OTHER: colours.SLATE}, present),
                legend=_legend(present),
            ),
            tooltip=[
                alt.Tooltip("turn:O", title="Left by turn"),
                alt.Tooltip("fate:N", title="What became of it"),
                alt.Tooltip("kept_s:Q", title="Kept for (s)", format=",.2f"),
            ],
        )
        .properties(height=HEIGHT)
    )


def _fate(fate: str | None) -> str:
    plain = words.FATES[fate].plain if fate in words.FATES else _OTHER
    return plain if plain in _FATES else _OTHER


def _long(table: pa.Table, offset: int, names: dict[str, str], value: str, divisor: float) -> pd.DataFrame:
    rows = table.to_pylist()
    found = [
        (number, shown, row[name] / divisor)
        for number, row in zip(frames.numbers(rows, offset), rows, strict=True)
        for name, shown in names.items()
        if row[name] is not None
    ]
    return pd.DataFrame(found, columns=["turn", "what", value])


def _scale(shades: dict[str, str], present: list[str]) -> alt.Scale:
    return alt.Scale(domain=present, range=[shades[name] for name in present])


def _turns(numbers: list[int]) -> alt.X:
    """The axis of turns: every turn has its place, measured or not."""
    axis = alt.Axis(labelAngle=0, labelOverlap=True)
    return alt.X("turn:O", title="Turn", scale=alt.Scale(domain=numbers), axis=axis)


def _legend(names: list[str]) -> alt.Legend:
    """Above the chart, in as many columns as its width has room for."""
    widest = 30 + 7 * max(map(len, names), default=0)
    columns = alt.ExprRef(f"max(1, floor(width / {widest}))")
    return alt.Legend(orient="top", direction="horizontal", labelLimit=widest, symbolSize=80, columns=columns)
