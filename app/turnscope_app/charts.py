"""Charts of one session, as Altair builders over small long frames. Each frame is testable by itself.

``numbers`` are the numbers of the turns that are looked at, those without a measurement included: they leave a gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final, cast

import altair as alt
import pandas as pd
import pyarrow as pa

from turnscope.model import TTFT_FIELDS
from turnscope.semconv import Detail, Evidence, Part, TokenSource
from turnscope.store.whole import Whole
from turnscope_app import colours, plot, words

HEIGHT: Final = 230
COLOURS: Final = {words.SOURCES[source].plain: colour for source, colour in colours.SOURCES.items()}
TIMES: Final = {"prefill_ns": "Prefill", "fetch_ns": "Fetch"}
TRANSFERS: Final = {"fetched_bytes": "Fetched back", "handoff_bytes": "Handed over"}
_OPACITY: Final = {Evidence.MEASURED: 1.0, Evidence.INFERRED: 0.5, Evidence.NONE: 0.6}


def tokens_frame(table: pa.Table, numbers: Sequence[int]) -> pd.DataFrame:
    """``turn, source, tokens, order``: one row for each source of each turn that was measured and is not 0."""
    order = {word.plain: i for i, word in enumerate(words.SOURCES.values())}
    found = []
    for number, row in zip(numbers, table.to_pylist(), strict=True):
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
            color=plot.colour(COLOURS, present, "source"),
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
        return plot.sized(bars, HEIGHT)
    signs = (
        alt.Chart(suspicious.assign(sign="⚠", why="The answer may be wrong"))
        .mark_text(dy=-9, fontSize=16, color=colours.TROUBLE)
        .encode(x=_turns(numbers), y="tokens:Q", text="sign:N", tooltip=[alt.Tooltip("why:N", title="Check")])
    )
    return plot.sized(bars + signs, HEIGHT)


def times_frame(table: pa.Table, numbers: Sequence[int]) -> pd.DataFrame:
    """``turn, what, ms``: one row for each time that was measured."""
    return _long(table, numbers, TIMES, "ms", 1e6)


def times(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart:
    """Prefill and fetch of each turn, in milliseconds; lines stop where a turn was not measured."""
    shades = {"Prefill": colours.READING, "Fetch": colours.FETCHED}
    present = [name for name in TIMES.values() if name in set(frame["what"])]
    every = pd.MultiIndex.from_product([numbers, present], names=["turn", "what"]).to_frame(index=False)
    made = (
        alt.Chart(every.merge(frame, how="left", on=["turn", "what"]))
        .mark_line(point=alt.OverlayMarkDef(size=60, filled=True))
        .encode(
            x=_turns(numbers),
            y=alt.Y("ms:Q", title="Milliseconds", axis=alt.Axis(format=",~r")),
            color=plot.colour(shades, present),
            tooltip=[
                alt.Tooltip("turn:O", title="Turn"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("ms:Q", title="Milliseconds", format=",.1f"),
            ],
        )
    )
    return plot.sized(made, HEIGHT)


def bytes_frame(table: pa.Table, numbers: Sequence[int]) -> pd.DataFrame:
    """``turn, what, mb``: megabytes (10^6 bytes) fetched back and handed over, where measured."""
    return _long(table, numbers, TRANSFERS, "mb", 1e6)


def transferred(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart:
    """Megabytes of each turn, the two directions side by side."""
    shades = {"Fetched back": colours.FETCHED, "Handed over": colours.HANDED_OVER}
    present = [name for name in TRANSFERS.values() if name in set(frame["what"])]
    made = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=_turns(numbers),
            xOffset=alt.XOffset("what:N", sort=present),
            y=alt.Y("mb:Q", title="Megabytes"),
            color=plot.colour(shades, present),
            tooltip=[
                alt.Tooltip("turn:O", title="Turn"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("mb:Q", title="Megabytes", format=",.3f"),
            ],
        )
    )
    return plot.sized(made, HEIGHT)


def ttft_frame(table: pa.Table, numbers: Sequence[int]) -> pd.DataFrame:
    """``turn, what, meaning, ms, order``: one row for each part of each turn's time to its first word that took any.
    A time of which no part was measured is not explained."""
    found = []
    for number, row in zip(numbers, table.to_pylist(), strict=True):
        parts = {detail: row[TTFT_FIELDS[detail]] for detail in TTFT_FIELDS}
        if row["ttft_ns"] is not None and not any(parts.values()):
            parts[Detail.UNATTRIBUTED] = row["ttft_ns"]
        for order, (detail, ns) in enumerate(parts.items()):
            if ns:
                word = words.INPUT[detail]
                found.append((number, word.plain, f"{word.story} ({word.term})", ns / 1e6, order))
    return pd.DataFrame(found, columns=["turn", "what", "meaning", "ms", "order"])


def ttft(frame: pd.DataFrame, numbers: list[int]) -> alt.Chart:
    """What each turn's time to its first word was made of, stacked, in milliseconds."""
    shades = {words.INPUT[detail].plain: colours.INPUT[detail] for detail in TTFT_FIELDS}
    present = [name for name in shades if name in set(frame["what"])]
    made = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=_turns(numbers),
            y=alt.Y("ms:Q", title="Milliseconds", axis=alt.Axis(format=",~r")),
            color=plot.colour(shades, present),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("turn:O", title="Turn"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("ms:Q", title="Milliseconds", format=",.1f"),
                alt.Tooltip("meaning:N", title="That is"),
            ],
        )
    )
    return plot.sized(made, HEIGHT)


_MOST_POINTS: Final = 250
_LENGTHS: Final = {"prompt_tokens": "Prompt (context)", "output_tokens": "Answer"}


def context_frame(table: pa.Table, numbers: Sequence[int]) -> pd.DataFrame:
    """``turn, until, what, tokens``: how long each turn's prompt and answer were; of a long session the longest of so
    many turns, ``turn`` to ``until``, in a row."""
    rows = table.select([*_LENGTHS]).to_pylist()
    step = max(1, -(-len(rows) // _MOST_POINTS))
    found = []
    for at in range(0, len(rows), step):
        some = rows[at : at + step]
        for name, shown in _LENGTHS.items():
            known = [row[name] for row in some if row[name] is not None]
            if known:
                found.append((numbers[at], numbers[at + len(some) - 1], shown, max(known)))
    return pd.DataFrame(found, columns=["turn", "until", "what", "tokens"])


def context(frame: pd.DataFrame) -> alt.Chart:
    """How the context grew from turn to turn, and where it was cut."""
    shades = dict(zip(_LENGTHS.values(), (colours.READING, colours.WRITING), strict=True))
    present = [name for name in shades if name in set(frame["what"])]
    made = (
        alt.Chart(frame)
        .mark_line(interpolate="step-after", point=alt.OverlayMarkDef(size=25, filled=True))
        .encode(
            x=alt.X("turn:Q", title="Turn", axis=alt.Axis(format=",d", tickMinStep=1), scale=alt.Scale(zero=False)),
            y=alt.Y("tokens:Q", title="Tokens", axis=alt.Axis(format=",d")),
            color=plot.colour(shades, present),
            tooltip=[
                alt.Tooltip("turn:Q", title="Turn", format=",d"),
                alt.Tooltip("until:Q", title="to turn", format=",d"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("tokens:Q", title="Tokens", format=",d"),
            ],
        )
    )
    return plot.sized(made, HEIGHT)


def opacity() -> alt.Opacity:
    """What is inferred is paler; the row's ``known`` says so."""
    return alt.Opacity("known:N", scale=alt.Scale(domain=[*_OPACITY], range=[*_OPACITY.values()]), legend=None)


_MOST_BARS: Final = 160


def overview_frame(whole: Whole, numbers: Sequence[int], page: int) -> pd.DataFrame:
    """``place, turns, part, seconds, order``: what the time of so many turns in a row was spent on, a bar each, until
    the next ones begin. ``page``: turns that are shown at once."""
    starts = cast(list[int], whole.turns["started_ns"].to_pylist())
    step = page * max(1, -(-len(starts) // (page * _MOST_BARS)))
    edges = [starts[at] for at in range(step, len(starts), step)]
    spent: list[Counter[Part]] = [Counter() for _ in range(len(edges) + 1)]
    for at in whole.segments:
        spent[bisect_right(edges, at.start_ns)][at.part] += at.end_ns - at.start_ns
    order = {part: place for place, part in enumerate(words.PARTS)}
    return pd.DataFrame(
        [
            (place, f"{numbers[place * step]:,} to {numbers[min(len(numbers), (place + 1) * step) - 1]:,}", *of)
            for place, parts in enumerate(spent)
            for of in ((words.PARTS[part].shown, ns / 1e9, order[part]) for part, ns in parts.items())
        ],
        columns=["place", "turns", "part", "seconds", "order"],
    )


def overview(frame: pd.DataFrame) -> alt.Chart:
    """The whole of a long session, a bar for each page of turns."""
    shades = {words.PARTS[part].shown: colour for part, colour in colours.PARTS.items()}
    present = [name for name in shades if name in set(frame["part"])]
    labels = list(dict.fromkeys(frame.sort_values("place")["turns"]))
    made = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("turns:O", title="Turns", sort=labels, axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("seconds:Q", title="Seconds", axis=alt.Axis(format=",~r")),
            color=plot.colour(shades, present, "part"),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("turns:N", title="Turns"),
                alt.Tooltip("part:N", title="What"),
                alt.Tooltip("seconds:Q", title="Seconds", format=",.1f"),
            ],
        )
    )
    return plot.sized(made, 110)


def _long(table: pa.Table, numbers: Sequence[int], names: dict[str, str], value: str, divisor: float) -> pd.DataFrame:
    found = [
        (number, shown, row[name] / divisor)
        for number, row in zip(numbers, table.to_pylist(), strict=True)
        for name, shown in names.items()
        if row[name] is not None
    ]
    return pd.DataFrame(found, columns=["turn", "what", value])


def _turns(numbers: list[int]) -> alt.X:
    """The axis of turns: every turn has its place, measured or not."""
    axis = alt.Axis(labelAngle=0, labelOverlap=True)
    return alt.X("turn:O", title="Turn", scale=alt.Scale(domain=numbers), axis=axis)
