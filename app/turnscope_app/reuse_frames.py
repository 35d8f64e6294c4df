"""The page about reuse, without Streamlit: its cards, frames, columns and sentences."""

from __future__ import annotations

from collections import Counter
from typing import Final

import altair as alt
import pandas as pd
import pyarrow as pa

from turnscope.model import plural
from turnscope.semconv import NO_OBSTACLE, Path
from turnscope_app import colours, period_charts, plot, text, words
from turnscope_app.cards import Card
from turnscope_app.columns import TURN, Column, Kind, Row, percent

PATH_SHADES: Final = {words.PATHS[path].plain: shade for path, shade in colours.PATHS.items()}
_MOST_REASONS: Final = 6
OTHERS: Final = "Other reasons"
_LANE: Final = 42
_STRIP: Final = 14
_LONGEST: Final = 400
"""Pixels: of an obstacle with its name, and of its strip; and how long a name may be."""


def paths(course: pa.Table, step_ns: int) -> pd.DataFrame:
    """Turns of each step by path, as ``period_charts.steps``."""
    counts: dict[tuple[int, str], int] = {}
    for row in course.to_pylist():
        at = row["at_ns"], row["path"] if row["path"] in words.PATHS else str(Path.UNKNOWN)
        counts[at] = counts.get(at, 0) + row["turns"]
    order = {str(path): place for place, path in enumerate(colours.PATHS)}
    ranked = sorted(counts.items(), key=lambda item: (item[0][0], order[item[0][1]]))
    return period_charts.steps([(at, words.PATHS[path].plain, n) for (at, path), n in ranked], step_ns)


def obstacles(course: pa.Table, step_ns: int) -> pd.DataFrame:
    """``at, to, when, what, turns, most``: a row for each step and each thing that was in the way of fetching
    back, the most frequent by name and first; ``most``: the most turns of any of them. Turns
    that nothing was in the way of are left out: the chart of paths draws them."""
    rows = [row for row in course.to_pylist() if row["reason"] not in NO_OBSTACLE]
    totals = Counter[str]()
    for row in rows:
        totals[row["reason"]] += row["turns"]
    named = sorted(totals, key=lambda reason: (-totals[reason], reason))[:_MOST_REASONS]
    names = {reason: _reason(reason) for reason in named}
    counts: dict[str, Counter[int]] = {name: Counter() for name in (*names.values(), OTHERS)}
    for row in rows:
        counts[names.get(row["reason"], OTHERS)][row["at_ns"]] += row["turns"]
    most = max((max(steps.values()) for steps in counts.values() if steps), default=0)
    return pd.DataFrame(
        [
            (
                period_charts.moment(at),
                period_charts.moment(at + step_ns),
                text.when(at),
                f"{name}: {text.turns(steps.total())}",
                turns,
                most,
            )
            for name, steps in counts.items()
            for at, turns in sorted(steps.items())
        ],
        columns=["at", "to", "when", "what", "turns", "most"],
    )


def in_the_way(frame: pd.DataFrame) -> alt.Chart:
    """A row for each obstacle under its name, the more turns in a step the stronger: it is told by its place and not
    by a colour."""
    strength = alt.Scale(domain=[0, int(frame["most"].max())], range=[0.4, 1.0])
    above = alt.Axis(
        labelAlign="left",
        labelFontSize=13,
        labelLimit=_LONGEST,
        labelOffset=-_STRIP,
        labelPadding=0,
        maxExtent=0,
        minExtent=0,
        domain=False,
        ticks=False,
    )
    lane = alt.Y("what:N", title=None, sort=None, axis=above)
    strips = (
        alt.Chart(frame)
        .mark_rect(color=colours.TROUBLE, height=_STRIP, yOffset=_STRIP / 2)
        .encode(
            x=plot.TIME,
            x2="to:T",
            y=lane,
            opacity=alt.Opacity("turns:Q", scale=strength, legend=None),
            tooltip=[
                alt.Tooltip("when:N", title="From"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("turns:Q", title="Turns", format=",d"),
            ],
        )
    )
    return plot.sized(strips, _LANE * frame["what"].nunique())


def _reason(reason: str) -> str:
    return words.REASONS[reason].plain if reason in words.REASONS else text.harmless(reason)


AXES: Final = {"Reason": "reason", "Model": "model", "Application": "application"}
"""What avoidable recomputes are ranked by: on the screen, and in the rows."""
_NAMELESS: Final = {"model": "Not named", "application": "No application named", "reason": "Unknown"}


def _name(row: Row) -> str:
    name = row["name"]
    if not name:
        return _NAMELESS[row["axis"]]
    if row["axis"] == "reason":
        return words.shown(words.REASONS, name) or name
    return text.harmless(name)


AVOIDABLE: Final = (
    Column("name", "What", "The reason why it was not fetched back, or the model or application.", value=_name),
    Column("turns", "Turns", "That computed again what their session had computed before.", Kind.COUNT),
    Column("tokens", "Computed again", "Prompt tokens (recomputed). Measured by digests of the tokens.", Kind.TOKENS),
    Column(
        "share",
        "Of all",
        "Share of all that was computed again here.",
        Kind.SHARE,
        value=lambda row: percent(row["tokens"], row["all_tokens"]),
    ),
    Column(
        "recompute_ns",
        "Time it took",
        "On the servers that read prompts (prefill engines), estimated from their own measured speed. Turns beside "
        "each other count each.",
        Kind.SECONDS,
    ),
    Column(
        "spared_ns",
        "Fetching would have saved",
        "That time, less what fetching would have taken; never below 0 (estimated).",
        Kind.SECONDS,
    ),
    Column("judged_turns", "Turns with an estimate", "The others' engine was measured too seldom.", Kind.COUNT),
)


def avoidable(table: pa.Table, axis: str) -> list[Row]:
    """Rows of one axis, each with the sum over the reasons: that is all there is."""
    rows = table.to_pylist()
    every = sum(row["tokens"] for row in rows if row["axis"] == "reason")
    return [{**row, "all_tokens": every} for row in rows if row["axis"] == axis]


def avoidable_cards(table: pa.Table, balance: Row) -> list[Card]:
    """How much was computed again, in all."""
    rows = [row for row in table.to_pylist() if row["axis"] == "reason"]
    turns = sum(row["turns"] for row in rows)
    judged = sum(row["judged_turns"] for row in rows)
    known = "" if not turns else f" Estimated for {judged:,} of {text.turns(turns)}."
    assumed = sum(row["assumed_turns"] for row in rows)
    guess = f" For {assumed:,} of them a fetch's cost is assumed, not measured." if assumed else ""
    split = balance["split_turns"]
    tokens = balance["recomputed_tokens"]
    return [
        Card(
            "Computed again",
            text.count(tokens, "tokens"),
            "Prompt tokens that their session had computed before: avoidable work (recomputed). Known for "
            f"{split:,} of {text.turns(balance['turns'])}.",
        ),
        Card(
            "Time it took",
            text.duration(_sum(rows, "recompute_ns")),
            f"Time of servers that read prompts (prefill engines): between "
            f"{text.duration(_sum(rows, 'recompute_low_ns'))} and "
            f"{text.duration(_sum(rows, 'recompute_high_ns'))}.{known}",
            words.Known.ESTIMATED,
        ),
        Card(
            "Fetching would have saved",
            text.duration(_sum(rows, "spared_ns")),
            f"Had all of it been fetched back instead.{known}{guess}",
            words.Known.ESTIMATED,
        ),
    ]


def _sum(rows: list[Row], name: str) -> int | None:
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None


def gains(balance: Row) -> list[Card]:
    """What fetching gave."""
    return [
        Card(
            "Fetched back",
            text.count(balance["fetched_tokens"], "tokens"),
            f"Read back from the servers that had kept them (reverse fetch from decode engines) by "
            f"{text.count(balance['fetches'])} turns; "
            f"{text.size(balance['fetched_bytes'])} were moved.",
        ),
        Card(
            "Fetches that saved time",
            _of(balance["gained_fetches"], balance["judged"]),
            "Computing would have taken longer. Judged by the engine's own measured speed.",
            words.Known.ESTIMATED,
        ),
        Card(
            "Time saved",
            text.duration(balance["gained_ns"]),
            "Computing that was spared, less what fetching took, of those (net gain).",
            words.Known.ESTIMATED,
        ),
    ]


def losses(balance: Row) -> list[Card]:
    """What fetching cost: as plain as what it gave."""
    surely = balance["surely_lost"]
    return [
        Card(
            "Fetches slower than computing",
            _of(balance["lost_fetches"], balance["judged"]),
            "Net gain below 0. "
            + ("" if surely is None else f"{surely:,} of them surely: even at the best end of the estimate."),
            words.Known.ESTIMATED,
        ),
        Card(
            "Time lost",
            text.duration(balance["lost_ns"] if balance["lost_fetches"] else balance["lost_fetches"]),
            "What those fetches took longer than computing would have.",
            words.Known.ESTIMATED,
        ),
        Card(
            "Reads that failed",
            text.turns(balance["failed_reads"]),
            "Turns whose fetch could not connect or broke off (handshake failed, transfer failed).",
        ),
        Card(
            "Moved for nothing",
            text.size(balance["wasted_bytes"]),
            "Read for attempts that were given up, or for an answer that never came (wasted bytes): "
            f"{text.turns(balance['wasted_turns'] or 0)}.",
        ),
        Card(
            "Reused, maybe wrong",
            text.count(balance["suspect_tokens"], "tokens"),
            "May be memory of other text: it saved nothing and is on the page Suspicions (suspect).",
        ),
    ]


def _of(some: int | None, whole: int) -> str:
    return words.NOT_MEASURED if some is None or not whole else f"{some:,} of {whole:,}"


def not_judged(balance: Row) -> str | None:
    """How many fetches are neither of those that saved time nor of those that cost some; None where there are none."""
    rest = (balance["fetches"] or 0) - balance["judged"]
    if rest <= 0:
        return None
    return (
        f"Of {plural(balance['fetches'], 'fetch', 'fetches')}, {balance['judged']:,} could be judged. For the other "
        f"{rest:,} it is not measured whether they saved time: their engine was timed too seldom."
    )


_ENGINE: Final = Column(
    "prefill_engine",
    "Prefill engine",
    "That fetched, by its bounded name.",
    value=lambda row: text.harmless(row["prefill_engine"] or "not seen"),
)
_WASTED: Final = Column("wasted_bytes", "Moved for nothing", "Wasted bytes.", Kind.BYTES)
ENGINES: Final = (
    _ENGINE,
    Column("turns", "Turns", "Whose prompt it read.", Kind.COUNT),
    Column("fetches", "Fetches", "Turns with tokens fetched back.", Kind.COUNT),
    Column("gained_ns", "Time saved", "By fetches that were quicker than computing (estimated).", Kind.SECONDS),
    Column("lost_fetches", "Slower than computing", "Fetches with a net gain below 0 (estimated).", Kind.COUNT),
    Column("lost_ns", "Time lost", "By those (estimated).", Kind.SECONDS),
    Column("failed_reads", "Failed reads", "Turns whose fetch failed.", Kind.COUNT),
    _WASTED,
)
WORST: Final = (
    *TURN,
    Column(
        "net_gain_ns",
        "Gained by fetching",
        "Below 0: so much slower than computing (net gain, estimated).",
        Kind.MS,
    ),
    Column("net_gain_low_ns", "... at least", "The lower end of that estimate.", Kind.MS),
    Column("net_gain_high_ns", "... at most", "The upper end of that estimate.", Kind.MS),
    Column("fetched_tokens", "Fetched back", "Prompt tokens.", Kind.TOKENS),
    Column("fetch_ns", "Fetch", "What it took; an upper bound, it includes up to one engine step.", Kind.MS),
    _WASTED,
    Column("reason", "Why no more was fetched back", "The one reason.", Kind.WORD, vocabulary=words.REASONS),
    _ENGINE,
)
