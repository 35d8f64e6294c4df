"""Words, figures and bars of sessions on a terminal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final, NamedTuple

from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from turnscope.measures import ceiling_sentence
from turnscope.model import SECOND_NS, Ceiling, Figures, SessionSummary, plural
from turnscope.semconv import Part
from turnscope.store import summing


class Word(NamedTuple):
    """How a part is shown."""

    plain: str
    style: str
    mark: str
    """In bars without colour: each part has its own."""
    meaning: str


PARTS: Final = {
    Part.INPUT_PROCESSING: Word("Input processing", "blue", "#", "waiting for the model's first token"),
    Part.GENERATION: Word("Generation", "green", "=", "the model writes"),
    Part.TOOL_WAIT: Word("Tool wait", "yellow", "t", "tools run"),
    Part.APPLICATION_WORK: Word("Application work", "magenta", "a", "the agent's own program"),
    Part.USER_WAIT: Word("User wait", "bright_black", ".", "the agent waits for a person"),
    Part.UNKNOWN: Word("Unknown", "white", "?", "nothing tells"),
}
"""Every part, in the order in which they are shown."""
INPUT: Final = {
    "input_proxy_ns": "in the proxy",
    "input_queue_ns": "in the engines' queues",
    "input_reverse_fetch_ns": "fetching back",
    "input_prefill_ns": "computing the prompt",
    "input_handoff_ns": "handing over to the decode engine",
    "input_first_step_ns": "first step of the decode engine",
    "input_unattributed_ns": "not attributed",
    "input_client_ns": "in the agent's client, before the proxy",
}
OUTCOMES: Final = {"completed": "green", "failed": "bold red", "abandoned": "yellow", "unknown": "bright_black"}
WIDE: Final = 110
"""Columns from which on a window has room for everything."""


def duration(ns: int | None) -> str:
    """``3 min 20 s``, ``1.25 s``, ``40 ms``; ``-`` where it was not measured."""
    if ns is None:
        return "-"
    if ns < 0:
        return f"-{duration(-ns)}"
    if ns < 50_000:
        return "<0.1 ms" if ns else "0"
    if ns < 9_950_000:
        return f"{ns / 1_000_000:.1f} ms"
    if ns < 999_500_000:
        return f"{ns / 1_000_000:.0f} ms"
    if ns < 59_995_000_000:
        return f"{ns / SECOND_NS:.2f} s" if ns < 9_995_000_000 else f"{ns / SECOND_NS:.1f} s"
    seconds = round(ns / SECOND_NS)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def share(part: int | None, whole: int) -> str:
    """0% and 100% are none and all of it; ``-`` where there is no such share."""
    if part is None or whole <= 0:
        return "-"
    percent = 100 * part / whole
    if 0 < part < whole and not 1 <= percent <= 99:
        return "<1%" if percent < 1 else ">99%"
    return f"{percent:.0f}%"


def moment(ns: int) -> str:
    """UTC, to the second."""
    try:
        return dt.datetime.fromtimestamp(ns // SECOND_NS, tz=dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "-"


def table(*heads: str | None) -> Table:
    """Without lines; a head that ends in ``>`` is over figures, one that is None is left out."""
    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        if head is not None:
            made.add_column(
                head.removesuffix(">"), justify="right" if head.endswith(">") else "left", vertical="bottom"
            )
    return made


def bar(summary: SessionSummary, width: int) -> Text:
    """The parts side by side, ``width`` columns in all; each that took any time has one at least."""
    values = {part: getattr(summary, f"{part}_ns") for part in PARTS}
    shown = [part for part, ns in values.items() if ns]
    out = Text()
    if not shown or width < len(shown):
        return out
    free, whole = width - len(shown), sum(values.values())
    exact = {part: free * values[part] / whole for part in shown}
    cells = {part: 1 + int(exact[part]) for part in shown}
    rest = sorted(shown, key=lambda part: int(exact[part]) - exact[part])
    for part in rest[: width - sum(cells.values())]:
        cells[part] += 1
    for part in shown:
        out.append(PARTS[part].mark * cells[part], f"{PARTS[part].style} reverse")
    return out


def legend() -> Columns:
    """What the marks of a bar mean, as many side by side as there is room for, none of them broken."""
    meanings = (
        Text.assemble((word.mark, f"{word.style} reverse"), f" {word.plain.lower()}: {word.meaning}")
        for word in PARTS.values()
    )
    return Columns(meanings, padding=(0, 3))


def ceiling_sentences(summary: SessionSummary) -> list[str]:
    """The most that reuse could give this session, and where its time really is, if that is not there."""
    found = summary.ceiling
    out = [ceiling_sentence.sentence(summary, duration=duration, share=share)]
    if found.recomputed_tokens and found.free_ns is not None:
        out.append(f"Had it cost nothing: {duration(found.free_ns)} shorter.")
        out += _elsewhere(summary, found)
    return out


def sums_sentences(all_of: Figures) -> list[str]:
    """All sessions that were asked for: their time, their tasks, and the most that reuse could give them."""
    parts = {part: getattr(all_of, f"{part}_ns") for part in PARTS}
    spent = [f", {PARTS[part].plain.lower()} {share(ns, all_of.wall_ns)}" for part, ns in parts.items() if ns]
    one = all_of.sessions == 1
    who = "One session" if one else f"All {all_of.sessions:,} sessions"
    out = [f"{who}: {duration(all_of.wall_ns)}{''.join(spent)}."]
    if all_of.fetched_ns is not None:
        basis = ", in part assuming what a fetch takes" if all_of.assumed else ""
        some = f"; {all_of.unjudged_turns:,} of {plural(all_of.turns, 'turn')} could not be judged"
        out.append(
            f"Reuse could spare {'it' if one else 'them'} about {duration(all_of.fetched_ns)} "
            f"({share(all_of.fetched_ns, all_of.wall_ns)}; estimated: nine times in ten between "
            f"{duration(all_of.fetched_low_ns)} and {duration(all_of.fetched_high_ns)}{basis}), "
            f"{duration(all_of.free_ns)} if it cost nothing{some if all_of.unjudged_turns else ''}."
        )
    return out


def _elsewhere(summary: SessionSummary, found: Ceiling) -> list[str]:
    parts = {part: getattr(summary, f"{part}_ns") for part in PARTS if part is not Part.UNKNOWN}
    most = max(parts, key=lambda part: parts[part])
    if most is Part.INPUT_PROCESSING or parts[most] <= (found.fetched_high_ns or 0):
        return []
    return [f"{_longest(most)} ({share(parts[most], summary.wall_ns)}), which no reuse can shorten."]


def _longest(part: Part) -> str:
    return {
        Part.GENERATION: "Most of the time the model was writing",
        Part.TOOL_WAIT: "Most of the time it waited for tools",
        Part.APPLICATION_WORK: "Most of the time the agent's own program worked",
        Part.USER_WAIT: "Most of the time it waited for a person",
    }[part]


def evidence_sentences(summary: SessionSummary) -> list[str]:
    """What is not measured, and what would measure it."""
    if summary.too_large:
        return [
            f"It has {summary.turns + summary.spans:,} turns and spans, more than the {summing.MOST_ROWS:,} that are "
            "taken apart at once: where its time went is not told. An agent whose runs have sessions of their own, or "
            "that sends fewer spans, is shown whole."
        ]
    out = []
    if summary.inferred_ns:
        parts = [
            f"{name} {duration(ns)}"
            for name, ns in (
                ("tool wait", summary.tool_wait_inferred_ns),
                ("user wait", summary.user_wait_inferred_ns),
                ("generation", summary.generation_inferred_ns),
            )
            if ns
        ]
        out.append(
            f"{share(summary.inferred_ns, summary.wall_ns)} of the time is inferred from what came before and after it"
            f"{': ' + ', '.join(parts) if parts else ''}. Such waits are upper bounds: the application's own work is "
            "in them. Spans of the agent would measure it."
        )
    dark, between = summary.unknown_model_call_ns, summary.unknown_ns - summary.unknown_model_call_ns
    if dark:
        out.append(
            f"{share(dark, summary.wall_ns)} was in model calls whose first token nobody timed: how much of it was "
            "input processing and how much generation is unknown."
        )
    if between:
        why = (
            "no proxy hook saw what its requests brought"
            if "proxy" not in summary.sources and summary.turns
            else "neither its requests nor spans tell what it was"
        )
        out.append(f"{share(between, summary.wall_ns)} of the time is unknown: {why}.")
    return out


def names(values: Iterable[str]) -> str:
    """A short list; ``-`` of none."""
    known = list(values)
    more = f" and {len(known) - 3} more" if len(known) > 3 else ""
    return ", ".join(known[:3]) + more if known else "-"
