"""``turnscope sessions``: where each session's time went, one line each."""

from __future__ import annotations

import re
import time
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from turnscope.cli import arguments, session_words
from turnscope.cli.errors import Sorry
from turnscope.cli.session_store import FRESH, StoreOption, opened
from turnscope.cli.session_words import duration, share
from turnscope.cli.terminal import Terminal
from turnscope.model import SessionSummary, shown
from turnscope.semconv import Part, TaskOutcome
from turnscope.store import summaries
from turnscope.store.session_queries import Latency, SessionSums, SummaryFilter, SummarySort

_SORTS: Final = {sort.name.lower().replace("_", "-"): sort for sort in SummarySort}
_PARTS: Final = {
    "input": Part.INPUT_PROCESSING,
    "generation": Part.GENERATION,
    "tools": Part.TOOL_WAIT,
    "application": Part.APPLICATION_WORK,
    "user": Part.USER_WAIT,
    "unknown": Part.UNKNOWN,
}
_SINCE: Final = re.compile(r"(\d{1,6})(m|h|d)")
_UNIT_S: Final = {"m": 60, "h": 3600, "d": 86400}

Sort = StrEnum("Sort", {name: name for name in _SORTS})  # type: ignore[misc]
_LAST: Final = Sort("last")
Outcome = StrEnum("Outcome", {outcome.name: outcome.value for outcome in TaskOutcome})  # type: ignore[misc]


def since_ns(value: str, now_ns: int) -> int:
    """``90m``, ``24h`` or ``7d`` before now. Raises ``Sorry``."""
    found = _SINCE.fullmatch(value)
    if found is None:
        raise Sorry(f"--since: {shown(value)} is no time span: write it like 90m, 24h or 7d")
    return now_ns - int(found[1]) * _UNIT_S[found[2]] * 1_000_000_000


def spent(value: str) -> tuple[Part, float]:
    """``tools:50``: at least half of the time. Raises ``Sorry``."""
    name, _, percent = value.partition(":")
    if name not in _PARTS:
        raise Sorry(f"--spent: {shown(value)} names no part: write one of {', '.join(_PARTS)}, as in tools:50")
    return _PARTS[name], arguments.number("--spent", percent, 0, 100) / 100 if percent else 0.0


def show(found: list[SessionSummary], all_of: SessionSums, console: Console) -> None:
    """For people: a bar for each session, then what the marks mean."""
    wide = console.width >= session_words.WIDE
    table = session_words.table(
        "Session",
        "Last" if wide else None,
        "Time>",
        "Where it went",
        "Tasks>" if wide else None,
        "First\ntoken>",
        "Whole\ntask>",
        "Reuse\ncould spare>",
    )
    table.columns[0].max_width, table.columns[0].overflow, table.columns[0].no_wrap = (
        28 if wide else 18,
        "ellipsis",
        True,
    )
    width = max(10, min(40, console.width - (98 if wide else 68)))
    for one in found:
        row: list[str | Text] = [
            Text(one.session_id),
            *([session_words.moment(one.ended_ns)[5:16]] if wide else []),
            duration(one.wall_ns),
            session_words.bar(one, width),
            *([_tasks(one)] if wide else []),
            duration(one.first_token_median_ns),
            duration(one.task_latency_median_ns),
            _spare(one),
        ]
        table.add_row(*row)
    console.print(table)
    console.print()
    console.print(session_words.legend())
    console.print()
    console.print(
        "First token and whole task: the median of the session's tasks, from the user's message on. Reuse could spare: "
        "the most that it could give; +: some turns could not be judged. Times are UTC."
    )
    console.print()
    for sentence in session_words.sums_sentences(all_of):
        console.print(sentence)
    if all_of.sessions > len(found):
        console.print(f"Shown: {len(found)} of them; --limit shows more, --sort and the filters others.")


def show_latencies(found: list[Latency], console: Console) -> None:
    """For people: first tokens beside completed tasks."""
    for head, name in (("Turn>", "turn_index"), ("Prompt\nfrom>", "context_tokens")):
        if all(getattr(one, name) is None for one in found):
            continue
        table = session_words.table(
            head, "Turns>", "First\ntoken>", "Tasks>", "Failed>", "First token\nof the task>", "Whole\ntask>"
        )
        for one in found:
            key = getattr(one, name)
            if key is not None:
                figures = duration(one.first_token_ns), duration(one.task_latency_ns)
                counts = f"{one.tasks:,}", str(one.failed_tasks or "")
                table.add_row(f"{key:,}", f"{one.turns:,}", duration(one.ttft_ns), *counts, *figures)
        console.print(table)
        console.print()
    console.print(
        "Medians. A task counts where its first turn stands; the whole task is of completed ones. A prompt counts up "
        "to twice the length in its line."
    )


def _nothing_per_turn(sessions: int) -> str:
    who = f"these {sessions:,} sessions have" if sessions != 1 else "this session has"
    return (
        f"Nothing per turn: {who} no turn that engines or a proxy told of. Spans and most imported files tell no "
        "call's place in its session and no prompt beside its first token: run your proxy under 'turnscope run', or "
        "import a benchmark run. Without --latency, first token and whole task of each session are shown."
    )


def _spare(one: SessionSummary) -> str:
    """``+``: of some of its turns only, as far as they could be judged."""
    spare, some = one.ceiling.fetched_ns, one.ceiling.unjudged_turns
    if spare is None or (some and not spare):
        return "-"
    return f"{duration(spare)} ({share(spare, one.wall_ns)}){'+' if some else ''}" if spare else "nothing"


def _tasks(one: SessionSummary) -> Text:
    out = Text(str(len(one.tasks)) if one.tasks else "-")
    for count, what, style in ((one.failed_tasks, "failed", "bold red"), (one.abandoned_tasks, "left", "yellow")):
        if count:
            out.append(f", {count} {what}", style)
    return out


def sessions(
    store: StoreOption = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Only ids that contain it.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only sessions with this model.")] = None,
    application: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only sessions of applications whose name contains it.")
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only sessions with this agent.")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="Only sessions with a task that ended so.")] = None,
    spent_on: Annotated[
        str | None,
        typer.Option(
            "--spent",
            metavar="PART[:PERCENT]",
            help="Only sessions that spent at least so much of their time on input, generation, tools, application, "
            "user or unknown: tools:50.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only sessions that ended within it: 90m, 24h, 7d.")
    ] = None,
    sort: Annotated[
        Sort,
        typer.Option(
            metavar="WHAT",
            help="What they are ordered by, the most first: last, first, wall, turns, tasks, latency, ceiling, errors, "
            "or a part as of --spent; input-share and the like by its share of the time.",
        ),
    ] = _LAST,
    ascending: Annotated[bool, typer.Option("--ascending", help="The least first.")] = False,
    limit: Annotated[str, typer.Option(metavar="COUNT", help="How many are shown.")] = "20",
    latency: Annotated[
        bool,
        typer.Option(
            "--latency",
            help="Instead of sessions: first tokens beside completed tasks, per turn and per length of prompt.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them whole as JSON, times in nanoseconds.")] = False,
) -> None:
    """Show where each session's time went: input processing, generation, tools, application, user, unknown.

    Reads what 'turnscope serve' stores, also while it runs: sessions appear about a minute after their first turn or
    span. 'turnscope show SESSION' opens one.
    """
    part, least = spent(spent_on) if spent_on is not None else (None, None)
    where = SummaryFilter(
        text=None if text is None else arguments.text("--text", text),
        model=None if model is None else arguments.text("--model", model),
        application=None if application is None else arguments.text("--application", application),
        agent=None if agent is None else arguments.text("--agent", agent),
        outcome=None if outcome is None else outcome.value,
        part=part,
        share=least,
        since_ns=None if since is None else since_ns(since, time.time_ns()),
    )
    count = int(arguments.number("--limit", limit, 1, 100_000))
    with opened(store) as reader:
        newer, left = summaries.fresh(reader, time.time_ns(), FRESH)
        found, total = reader.summaries(
            where, sort=_SORTS[sort.value], descending=not ascending, limit=count, fresh=newer
        )
        all_of = reader.summed(where, newer)
        latencies = reader.latencies(where, newer) if latency else []
    console = Terminal()
    if as_json:
        out: dict[str, Any] = {"total": total, "not_summed_up": left, "sums": all_of}
        out |= {"latencies": latencies} if latency else {"sessions": found}
        typer.echo(msgspec.json.format(msgspec.json.encode(out), indent=1))
    elif latencies:
        show_latencies(latencies, console)
    elif found and latency:
        console.print(_nothing_per_turn(total))
    elif found:
        show(found, all_of, console)
    elif where == SummaryFilter():
        typer.echo("No sessions yet: they appear about a minute after their first turn or span.")
    else:
        typer.echo("No session meets these conditions.")
    if left and not as_json:
        typer.echo(f"{left:,} more have not been summed up yet: a running 'turnscope serve' does so within minutes.")
