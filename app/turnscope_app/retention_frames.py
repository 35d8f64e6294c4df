"""The page about retention, without Streamlit: its cards, frames, charts and columns."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd
import pyarrow as pa

from turnscope.semconv import Part
from turnscope.store.fates import Fate
from turnscope.store.retention_queries import slot_begin_s
from turnscope_app import colours, period_charts, plot, text, words
from turnscope_app.advice import Action, Owner
from turnscope_app.cards import Card
from turnscope_app.columns import Column, Kind, Row, percent

_COUNTS: Final = ("turns", "in_time", "too_late", "not_kept", "no_limit")
EVERY: Final = "All pauses"
FILLED: Final = {
    Part.TOOL_WAIT: "A tool ran",
    Part.USER_WAIT: "A person was waited for",
    Part.UNKNOWN: "Unknown",
}
"""What filled a pause, in the order in which it is shown."""
SHADES: Final = {
    EVERY: colours.REST,
    FILLED[Part.TOOL_WAIT]: colours.PARTS[Part.TOOL_WAIT],
    FILLED[Part.USER_WAIT]: colours.PARTS[Part.USER_WAIT],
    FILLED[Part.UNKNOWN]: colours.PARTS[Part.UNKNOWN],
}
END_SHADES: Final = {words.ENDS[fate]: shade for fate, shade in colours.FATES.items()}
UNITS: Final = {"Tokens": "level_tokens", "Bytes": "level_bytes"}
"""What held memory is shown in, and the field."""


def by_filling(gaps: pa.Table) -> list[Row]:
    """One row for each thing that filled pauses, and first all together."""
    rows = [row for row in gaps.to_pylist() if row["slot"] is None]
    names: dict[str | None, str] = {None: EVERY, **{str(part): name for part, name in FILLED.items()}}
    known = {row["filled"]: row for row in rows}
    return [{**known[filled], "name": name} for filled, name in names.items() if filled in known]


GAPS: Final = (
    Column(
        "name", "What filled the pause", "Told by what the turn asked for and what the next one brought (inferred)."
    ),
    Column("turns", "Turns that followed", "With a turn before them in their session.", Kind.COUNT),
    Column(
        "share",
        "Came in time",
        "Came before the time limit of what was kept for them: of those for which something was.",
        Kind.SHARE,
        value=lambda row: percent(row["in_time"], row["in_time"] + row["too_late"]),
    ),
    Column("in_time", "In time", "As a number.", Kind.COUNT),
    Column("too_late", "Too late", "Came after the time limit.", Kind.COUNT),
    Column("not_kept", "Nothing was kept", "Nothing was kept of the turn before.", Kind.COUNT),
    Column("no_limit", "Limit not known", "The record of what was kept is not in the store.", Kind.COUNT),
    Column("median_ns", "Pause, median", "Half of the pauses were no longer.", Kind.SECONDS),
    Column("p95_ns", "Pause, 95 of 100", "95 of 100 pauses were no longer.", Kind.SECONDS),
)


def limits(gaps: pa.Table) -> list[float]:
    """The time limits of kept blocks, in seconds: none, one, or the least and the greatest."""
    rows = [row for row in gaps.to_pylist() if row["slot"] is None]
    low = min((row["ttl_low_ns"] for row in rows if row["ttl_low_ns"] is not None), default=None)
    high = max((row["ttl_high_ns"] for row in rows if row["ttl_high_ns"] is not None), default=None)
    return sorted({ns / 1e9 for ns in (low, high) if ns is not None})


def arrived(gaps: pa.Table) -> pd.DataFrame:
    """``what, seconds, share, turns``: which share of the next turns had come after so many seconds."""
    rows = [row for row in gaps.to_pylist() if row["slot"] is not None]
    found = []
    for name, wanted in ((EVERY, None), *((name, str(part)) for part, name in FILLED.items())):
        slots: dict[int, int] = {}
        for row in rows:
            if wanted is None or row["filled"] == wanted:
                slots[row["slot"]] = slots.get(row["slot"], 0) + row["turns"]
        every, come = sum(slots.values()), 0
        if every:
            found.append((name, slot_begin_s(min(slots)), 0.0, 0))
        for slot in sorted(slots):
            come += slots[slot]
            found.append((name, slot_begin_s(slot + 1), come / every, come))
    return pd.DataFrame(found, columns=["what", "seconds", "share", "turns"])


_CLOCK: Final = (
    "datum.value < 60 ? format(datum.value, '~r') + ' s' : datum.value < 3600 ? format(datum.value / 60, '~r') + ' min'"
    " : datum.value < 86400 ? format(datum.value / 3600, '~r') + ' h' : format(datum.value / 86400, '~r') + ' d'"
)
_TICKS: Final = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400)


def arrival(frame: pd.DataFrame, limits: list[float]) -> alt.LayerChart:
    """The shares over the pause, with the time limits as lines."""
    present = [name for name in SHADES if name in set(frame["what"])]
    lines = (
        alt.Chart(frame)
        .mark_line(interpolate="monotone")
        .encode(
            # Of all together, thicker: its colour is near that of what is not known.
            strokeWidth=alt.condition(alt.datum.what == EVERY, alt.value(4), alt.value(2)),
            x=alt.X(
                "seconds:Q",
                title="Pause until the next turn",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(labelExpr=_CLOCK, values=list(_TICKS), grid=False),
            ),
            y=alt.Y(
                "share:Q", title="Next turns that had come", axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])
            ),
            color=plot.colour(SHADES, present),
            tooltip=[
                alt.Tooltip("what:N", title="What filled the pause"),
                alt.Tooltip("seconds:Q", title="Seconds", format=",.3~r"),
                alt.Tooltip("share:Q", title="Had come", format=".1%"),
                alt.Tooltip("turns:Q", title="Turns", format=","),
            ],
        )
    )
    marks = pd.DataFrame({"seconds": limits, "said": [f"time limit {text.duration(round(s * 1e9))}" for s in limits]})
    rules = (
        alt.Chart(marks)
        .mark_rule(color=colours.REST, strokeDash=[5, 4], strokeWidth=2)
        .encode(x="seconds:Q", tooltip=["said:N"])
    )
    names = [_name(marks, number, frame["seconds"].max()) for number in range(len(limits))]
    return plot.sized(alt.layer(lines, rules, *names), period_charts.HEIGHT)


def _name(marks: pd.DataFrame, number: int, longest_s: float) -> alt.Chart:
    """The words of a time limit at the foot of its line, where curves have long risen: each has a row of its own
    (``number``, from 0), on the side that has room."""
    mark = marks.iloc[[number]]
    before = mark["seconds"].item() * _NEAR > longest_s
    return (
        alt.Chart(mark)
        .mark_text(
            color=colours.REST,
            fontWeight="bold",
            align="right" if before else "left",
            dx=-6 if before else 6,
            y=period_charts.HEIGHT - 12 - 18 * number,
        )
        .encode(x="seconds:Q", text="said:N")
    )


_NEAR: Final = 30
"""A limit that pauses do not pass by more than so many times is near the right edge."""


def held(course: pa.Table, field: str, step_ns: int) -> pd.DataFrame:
    """What was kept on average in each step, by how it ended, as ``period_charts.steps``."""
    levels: dict[tuple[int, str], float] = {}
    for row in course.to_pylist():
        if row[field] is not None and row["outcome"] in words.FATES:
            at = row["at_ns"], words.ENDS[Fate(row["outcome"])]
            levels[at] = levels.get(at, 0.0) + row[field]
    order = {end: place for place, end in enumerate(END_SHADES)}
    ranked = sorted(levels.items(), key=lambda item: (item[0][0], order[item[0][1]]))
    # What was added and taken away as fractions need not come out at 0 to the last digit.
    return period_charts.steps([(at, end, max(0.0, round(level, 3))) for (at, end), level in ranked], step_ns)


def fates(table: pa.Table) -> list[Row]:
    """One row for each thing that became of kept blocks, the most memory first."""
    rows = table.to_pylist()
    every = sum(row["token_seconds"] or 0 for row in rows)
    bytes_every = sum(row["byte_seconds"] or 0 for row in rows)
    rows.sort(key=lambda row: (-(row["byte_seconds"] or row["token_seconds"] or 0), -row["holds"]))
    return [{**row, "all_token_seconds": every, "all_byte_seconds": bytes_every} for row in rows]


def _memory(row: Row) -> float | None:
    """By bytes, and by tokens where no engine told bytes."""
    if row["all_byte_seconds"]:
        return percent(row["byte_seconds"], row["all_byte_seconds"])
    return percent(row["token_seconds"], row["all_token_seconds"])


FATES: Final = (
    Column(
        "fate",
        "What became of them",
        "Of memory that was kept of a turn (hold outcome).",
        Kind.WORD,
        vocabulary=words.FATES,
    ),
    Column("holds", "Times", "How often memory was kept (holds).", Kind.COUNT),
    Column(
        "memory",
        "Share of the memory used",
        "Memory times how long it was kept: what it cost others that could have used it.",
        Kind.SHARE,
        value=_memory,
    ),
    Column(
        "token_seconds",
        "Token-seconds",
        "Tokens kept, times the seconds for which they were.",
        Kind.AMOUNT,
    ),
    Column(
        "byte_seconds",
        "Gigabyte-seconds",
        "The same in memory: 10^9 bytes for a second.",
        Kind.AMOUNT,
        value=lambda row: None if row["byte_seconds"] is None else row["byte_seconds"] / 1e9,
    ),
    Column("tokens", "Kept", "All together.", Kind.TOKENS),
    Column("bytes", "Kept", "All together.", Kind.BYTES),
    Column(
        "held_median_ns",
        "Kept for, median",
        "By the own clock of the server that kept it (decode engine).",
        Kind.SECONDS,
    ),
)


_USED: Final = frozenset({Fate.READ, Fate.NOTIFIED})
_UNREAD: Final = frozenset({Fate.NOT_CONTINUED, Fate.TOO_LATE, Fate.NOT_ASKED, Fate.NO_SESSION, Fate.TTL})


def cards(gaps: list[Row], limits: list[float], fates: list[Row]) -> list[Card]:
    """What retention comes to."""
    every: dict[str, Any] = gaps[0] if gaps else dict.fromkeys(_COUNTS, 0)
    judged = every["in_time"] + every["too_late"]
    holds = sum(row["holds"] for row in fates)
    read = sum(row["holds"] for row in fates if row["fate"] in _USED)
    unread = [row for row in fates if row["fate"] in _UNREAD]
    return [
        Card(
            "Next turns in time",
            text.share(every["in_time"], judged),
            f"Came before the time limit of what was kept for them: {every['in_time']:,} of {judged:,}. "
            "What is known of a limit is measured, whether they then asked for it is another matter.",
        ),
        Card(
            "Time limit",
            " to ".join(text.duration(round(s * 1e9)) for s in limits) or words.NOT_MEASURED,
            "How long servers that write answers keep memory for a next turn (decoder_kv_blocks_ttl of decode "
            "engines).",
        ),
        Card(
            "Kept, and used",
            text.share(read, holds),
            f"Of {holds:,} times that memory was kept (holds), {read:,} ended because the next turn came for them.",
        ),
        Card(
            "Memory kept for nothing",
            text.share(_memory_of(unread), _memory_of(fates)),
            "Share of the memory, times how long it was kept, that ran into the time limit unread. Every session has a "
            "last turn, so that it is never 0.",
        ),
    ]


def _memory_of(rows: list[Row]) -> int | None:
    field = "byte_seconds" if any(row["all_byte_seconds"] for row in rows) else "token_seconds"
    known = [row[field] for row in rows if row[field] is not None]
    return round(sum(known)) if known else (0 if not rows else None)


def sentence(gaps: list[Row], fates: list[Row]) -> str:
    """What to make of it."""
    late = gaps[0]["too_late"] if gaps else 0
    not_asked = _holds(fates, Fate.NOT_ASKED)
    parts = []
    if late:
        after = max(gaps[1:], key=lambda row: row["too_late"])
        filled = f", most often after: {after['name'].lower()}" if after["name"] != FILLED[Part.UNKNOWN] else ""
        parts.append(f"**{text.turns(late)} came too late{filled}.**")
    if not_asked:
        parts.append(
            f"**{text.turns(not_asked)} came in time and did not ask** for what was kept for them: the page Reuse says "
            "why."
        )
    return " ".join(parts) or "Nothing that was kept was missed by a next turn."


_ROOMY: Final = 4
"""A limit of so many times the pause of 95 in 100 next turns is longer than they need."""


def remedies(gaps: list[Row], limits: list[float], fates: list[Row]) -> list[Action]:
    """What could be changed, by whom, and what it would cost: not only a longer limit."""
    late = {row["name"]: row["too_late"] for row in gaps}
    unread = text.share(_memory_of([row for row in fates if row["fate"] in _UNREAD]), _memory_of(fates))
    found = []
    if late.get(EVERY):
        found.append(
            Action(
                Owner.SERVING,
                "Keep it longer (raise `decoder_kv_blocks_ttl`, and the proxy's limit with it): the curve says how "
                "many "
                "turns a limit reaches. It costs memory that running requests then lack: of what is kept today, "
                f"{unread} of memory and time went unread.",
            )
        )
    if late.get(FILLED[Part.TOOL_WAIT]):
        found.append(
            Action(
                Owner.TOOLS,
                f"Shorten the pauses: {text.turns(late[FILLED[Part.TOOL_WAIT]])} came too late after a tool. Faster "
                "tools, or tools side by side, need no memory.",
            )
        )
    if late.get(FILLED[Part.USER_WAIT]):
        found.append(
            Action(
                Owner.APPLICATION,
                f"People's pauses nobody shortens ({text.turns(late[FILLED[Part.USER_WAIT]])} too late): a shorter "
                "history is quicker to read again.",
            )
        )
    p95 = gaps[0]["p95_ns"] if gaps else None
    if p95 and limits and limits[0] * 1e9 > _ROOMY * p95:
        found.append(
            Action(
                Owner.SERVING,
                f"Or keep it shorter: 95 of 100 next turns came within {text.about(p95)}, and memory is kept for "
                f"{text.duration(round(limits[0] * 1e9))}. A lower limit frees memory, and costs the few that come "
                "later.",
            )
        )
    nameless = _holds(fates, Fate.NO_SESSION)
    if nameless:
        found.append(
            Action(
                Owner.APPLICATION,
                f"Keep less for nobody: {nameless:,} times memory was kept of a turn without a session id, for which "
                "no next turn can come. Send one.",
            )
        )
    return found


def _holds(fates: list[Row], fate: Fate) -> int:
    return sum(row["holds"] for row in fates if row["fate"] == fate)
