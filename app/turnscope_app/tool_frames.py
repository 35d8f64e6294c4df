"""The page about tools and tasks, without Streamlit: its cards, frames, chart and columns."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd
import pyarrow as pa

from turnscope.semconv import SpanKind, TaskOutcome
from turnscope_app import colours, period_charts, plot, text, words
from turnscope_app.cards import Card
from turnscope_app.columns import APPLICATION, Column, Kind, Row, named, percent

_OUTCOMES: Final = tuple(str(outcome) for outcome in TaskOutcome)
TOOLS: Final = (
    Column("tool", "Tool", "As its spans name it (gen_ai.tool.name).", width=150, value=named("tool")),
    Column(
        "kind",
        "Kind",
        "A retrieval is a search in texts or vectors; both are tools to the agent.",
        value=lambda row: "Retrieval" if row["kind"] == SpanKind.RETRIEVAL else "Tool",
        width=90,
    ),
    APPLICATION,
    Column("calls", "Calls", "Spans of it.", Kind.COUNT),
    Column(
        "share",
        "Of all tool time",
        "Its calls' time of that of all tools here. Tools that run at once count each.",
        Kind.SHARE,
        value=lambda row: percent(row["total_ns"], row["all_ns"]),
    ),
    Column("total_ns", "Time", "Of all its calls together.", Kind.SECONDS),
    Column("median_ns", "A call, median", "Half of the calls took no longer.", Kind.MS),
    Column("p95_ns", "A call, 95 of 100", "95 of 100 calls took no longer (p95).", Kind.MS),
    Column("errors", "Errors", "Calls whose span ended in error.", Kind.COUNT),
    Column(
        "error_share",
        "Errors, share",
        "Of its calls.",
        Kind.SHARE,
        value=lambda row: percent(row["errors"], row["calls"]),
    ),
    Column(
        "error_type",
        "Most often",
        "The most frequent type of error (error.type).",
        value=lambda row: text.harmless(row["error_type"]) if row["error_type"] else "",
    ),
    Column("unsaid", "Outcome not said", "Calls whose span says neither ok nor error.", Kind.COUNT),
    Column("sessions", "Sessions", "In which it ran.", Kind.COUNT),
    Column(
        "known",
        "Times are",
        "Measured around the call, or inferred from when a log's lines were written.",
        value=lambda row: _known(row["inferred"], row["calls"]),
    ),
)


def _known(inferred: int, calls: int) -> str:
    if not inferred:
        return "measured"
    return "inferred" if inferred == calls else "partly inferred"


APPLICATIONS: Final = (
    APPLICATION._replace(
        value=lambda row: "All sessions" if row["every"] else APPLICATION.of(row),
    ),
    Column("sessions", "Sessions", "That ended in this period; one of two applications is in both.", Kind.COUNT),
    Column("tasks", "Tasks", "From a user's message to the first answer that asks for no tool.", Kind.COUNT),
    Column(
        "completed_share",
        "Completed",
        "Share of tasks that were answered (inferred).",
        Kind.SHARE,
        value=lambda row: percent(row["completed"], row["tasks"]),
    ),
    Column("failed", "Failed", "Tasks whose last turn, or span, ended in error.", Kind.COUNT),
    Column("abandoned", "Abandoned", "Tasks that were cancelled or left for another message.", Kind.COUNT),
    Column("unknown", "Outcome unknown", "Tasks that asked for a tool, and nothing came after.", Kind.COUNT),
    Column("first_token_median_ns", "First token, median", "From the user's message on: what moves first.", Kind.MS),
    Column("first_token_p95_ns", "First token, 95 of 100", "95 of 100 came sooner.", Kind.MS),
    Column("latency_median_ns", "Whole task, median", "Of completed tasks: what the user waits for.", Kind.SECONDS),
    Column("latency_p95_ns", "Whole task, 95 of 100", "95 of 100 completed tasks took no longer.", Kind.SECONDS),
    Column(
        "tool_share",
        "Waiting for tools",
        "Share of session time (tool wait).",
        Kind.SHARE,
        value=lambda row: percent(row["tool_wait_ns"], row["wall_ns"]),
    ),
    Column("tools", "Tool calls", "That ran, where spans tell.", Kind.COUNT),
    Column(
        "tool_calls", "Asked for", "Tool calls that answers asked for, where the proxy saw the answers.", Kind.COUNT
    ),
)
_MEDIANS: Final = (
    Column("turns", "Turns", "Of all applications of these sessions.", Kind.COUNT),
    Column("ttft_ns", "First token of the turn", "Median, from the turn's request on (TTFT).", Kind.MS),
    Column("tasks", "Tasks", "That began there.", Kind.COUNT),
    Column("failed_tasks", "Failed", "Tasks whose last turn, or span, ended in error.", Kind.COUNT),
    Column("first_token_ns", "First token of the task", "Median, from the user's message on.", Kind.MS),
    Column("task_latency_ns", "Whole task", "Median of completed tasks: what the user waits for.", Kind.SECONDS),
)
BY_TURN: Final = (
    Column("turn_index", "Turn", "Its place in its session, from 1.", Kind.COUNT),
    *_MEDIANS,
)
BY_PROMPT: Final = (
    Column("context_tokens", "Prompt from", "Up to twice as many tokens.", Kind.TOKENS),
    *_MEDIANS,
)
EVALUATIONS: Final = (
    Column("name", "Evaluation", "Its name (gen_ai.evaluation.name).", value=named("name")),
    Column(
        "label",
        "Label",
        "What it said, where it says a word (gen_ai.evaluation.score.label).",
        value=lambda row: text.harmless(row["label"]) if row["label"] else "",
    ),
    Column("results", "Results", "How often.", Kind.COUNT),
    Column("sessions", "Sessions", "With such a result.", Kind.COUNT),
    Column("mean", "Score, mean", "Of the results with a score.", Kind.NUMBER),
    Column("lowest", "Lowest", "The lowest score.", Kind.NUMBER),
    Column("highest", "Highest", "The highest score.", Kind.NUMBER),
)


def cards(every: Row, tools: list[Row]) -> list[Card]:
    """What tools and tasks come to; ``every`` are all sessions together."""
    calls = sum(row["calls"] for row in tools)
    unseen = not tools and not every["tool_wait_ns"] and every["unknown_ns"]
    errors = sum(row["errors"] for row in tools)
    inferred = every["tool_wait_inferred_ns"]
    measured = inferred is not None and inferred < (every["tool_wait_ns"] or 0)
    return [
        Card(
            "Waiting for tools",
            words.NOT_MEASURED if unseen else text.share(every["tool_wait_ns"], every["wall_ns"]),
            f"Share of session time (tool wait): {text.duration(every['tool_wait_ns'])}. "
            f"{text.share(inferred, every['tool_wait_ns'])} of it is told by the model calls around it.",
            words.Known.MEASURED if measured else words.Known.INFERRED,
        ),
        Card(
            "Tool calls",
            text.count(calls) if tools else words.NOT_MEASURED,
            "Spans of tools and retrievals. Answers asked for "
            f"{text.count(every['tool_calls'])}, as far as the proxy saw them.",
        ),
        Card(
            "Tool errors",
            f"{errors:,} ({text.share(errors, calls)})" if calls else words.NOT_MEASURED,
            "Calls whose span ended in error.",
        ),
    ]


def task_cards(every: Row) -> list[Card]:
    """Tasks, with both things that a user waits for side by side."""
    tasks = every["tasks"] or 0
    ended = ", ".join(f"{every[name] or 0:,} {name}" for name in _OUTCOMES)
    return [
        Card(
            "Tasks completed",
            text.share(every["completed"], tasks),
            f"Of {tasks:,} tasks: {ended}. A task goes from a user's message to the first answer that asks for no "
            "tool.",
            words.Known.INFERRED,
        ),
        Card(
            "First token, median",
            text.duration(every["first_token_median_ns"]),
            f"From the user's message on; 95 of 100 within {text.duration(every['first_token_p95_ns'])}.",
        ),
        Card(
            "Whole task, median",
            text.duration(every["latency_median_ns"]),
            f"Of completed tasks; 95 of 100 within {text.duration(every['latency_p95_ns'])}. A faster first token is "
            "not a faster task.",
        ),
    ]


_TENS: Final = alt.Axis(values=[10**power for power in range(-3, 6)], format=",~r")
_SHADES: Final = {"Whole task": colours.REST, "First token": colours.READING}


def course(table: pa.Table) -> pd.DataFrame:
    """``at, when, what, seconds, time, tasks``: medians by step, where there are such."""
    found = []
    for row in table.to_pylist():
        if row["at_ns"] is None:
            continue
        for what, ns in (("Whole task", row["latency_ns"]), ("First token", row["first_token_ns"])):
            if ns is not None:
                at = period_charts.moment(row["at_ns"])
                found.append((at, text.when(row["at_ns"]), what, ns / 1e9, text.duration(ns), row["tasks"]))
    return pd.DataFrame(found, columns=["at", "when", "what", "seconds", "time", "tasks"])


def waits(frame: pd.DataFrame) -> alt.Chart:
    """First token beside the whole task, over the period; each ten times as long is as far apart."""
    made = (
        alt.Chart(frame[frame["seconds"] > 0])
        .mark_line(point=alt.OverlayMarkDef(size=45, filled=True), strokeWidth=2)
        .encode(
            x=plot.TIME,
            y=alt.Y("seconds:Q", title="Seconds, median", scale=alt.Scale(type="log"), axis=_TENS),
            color=plot.colour(_SHADES, [name for name in _SHADES if name in set(frame["what"])]),
            tooltip=[
                alt.Tooltip("when:N", title="From"),
                alt.Tooltip("what:N", title="What"),
                alt.Tooltip("time:N", title="Median"),
                alt.Tooltip("tasks:Q", title="Tasks", format=","),
            ],
        )
    )
    return plot.sized(made, period_charts.HEIGHT)


def longest(table: pa.Table, most: int = 12) -> pd.DataFrame:
    """``tool, seconds, time, calls, errors, share``: the tools with the most time, over all applications."""
    sums: dict[str, list[int]] = {}
    for row in table.to_pylist():
        mine = sums.setdefault(named("tool")(row), [0, 0, 0])
        for place, value in enumerate((row["total_ns"] or 0, row["calls"], row["errors"])):
            mine[place] += value
    every = sum(ns for ns, _, _ in sums.values())
    ranked = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))[:most]
    rows = [
        (name, ns / 1e9, text.duration(ns), calls, errors, ns / every if every else 0.0)
        for name, (ns, calls, errors) in ranked
    ]
    return pd.DataFrame(rows, columns=["tool", "seconds", "time", "calls", "errors", "share"])


def bars(frame: pd.DataFrame) -> alt.Chart:
    """A bar a tool, the longest first."""
    made = (
        alt.Chart(frame)
        .mark_bar(color=colours.TOOLS, cornerRadiusEnd=3)
        .encode(
            y=alt.Y("tool:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
            x=alt.X("share:Q", title="Share of all tool time", axis=alt.Axis(format=".0%", grid=True, tickCount=5)),
            tooltip=[
                alt.Tooltip("tool:N", title="Tool"),
                alt.Tooltip("time:N", title="Time"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
                alt.Tooltip("calls:Q", title="Calls", format=","),
                alt.Tooltip("errors:Q", title="Errors", format=","),
            ],
        )
    )
    return plot.sized(made, period_charts.HEIGHT)
