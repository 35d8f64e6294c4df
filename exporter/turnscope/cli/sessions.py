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
from turnscope.model import Figures, SessionSummary, plural, shown
from turnscope.semconv import Part, Path, Reason, Status, Suspicion, TaskOutcome, Transport
from turnscope.store import summing
from turnscope.store.queries import SessionFilter
from turnscope.store.session_queries import Latency, SummaryFilter, SummarySort

_SORTS: Final = {sort.name.lower().replace("_", "-"): sort for sort in SummarySort}
PARTS: Final = {
    "input": Part.INPUT_PROCESSING,
    "generation": Part.GENERATION,
    "tools": Part.TOOL_WAIT,
    "application": Part.APPLICATION_WORK,
    "user": Part.USER_WAIT,
    "unknown": Part.UNKNOWN,
}
ORDERS: Final = {
    "last": "when it ended",
    "first": "when it began",
    "wall": "its whole time",
    "working": "that without user wait",
    "turns": "how many",
    "tasks": "how many",
    "latency": "median of whole tasks",
    "ttft": "median of first tokens",
    "ceiling": "what reuse could spare",
    "errors": "how many",
    "prompt": "tokens",
    "computed": "tokens",
    "recomputed": "tokens",
    "fetched": "tokens",
    "suspicious": "turns",
    "failed": "turns",
}
"""What ``--sort`` takes beside parts and shares."""
_SPAN: Final = re.compile(r"(\d{1,6})(ms|s|m|h|d)")
_UNIT_NS: Final = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}

Sort = StrEnum("Sort", {name: name for name in _SORTS})  # type: ignore[misc]
_LAST: Final = Sort("last")
ANY: Final = "any"
Doubt = StrEnum("Doubt", {"any": ANY, **{kind.name: kind.value for kind in Suspicion}})  # type: ignore[misc]
Outcome = StrEnum("Outcome", {outcome.name: outcome.value for outcome in TaskOutcome})  # type: ignore[misc]


def span_ns(option: str, value: str, like: str) -> int:
    """``500ms``, ``2s``, ``90m``, ``24h`` or ``7d`` in nanoseconds. Raises ``Sorry``."""
    found = _SPAN.fullmatch(value)
    if found is None:
        raise Sorry(f"{option}: {shown(value)} is no time span: write it like {like}")
    return int(found[1]) * _UNIT_NS[found[2]]


def spent(value: str) -> tuple[Part, float]:
    """``tools:50``: at least half of the time. Raises ``Sorry``."""
    name, _, percent = value.partition(":")
    if name not in PARTS:
        raise Sorry(f"--spent: {shown(value)} names no part: write one of {', '.join(PARTS)}, as in tools:50")
    return PARTS[name], arguments.number("--spent", percent, 0, 100) / 100 if percent else 0.0


def show(found: list[SessionSummary], all_of: Figures, console: Console) -> None:
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
        "the most that it could give; nothing: no turn computed anything again that fetching would have spared; -: its "
        "turns could not be judged; +: some of them could not. Times are UTC."
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
    deployment: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only sessions of this deployment: prod.")
    ] = None,
    outcome: Annotated[
        Outcome | None, typer.Option(metavar="|".join(Outcome), help="Only sessions with a task that ended so.")
    ] = None,
    spent_on: Annotated[
        str | None,
        typer.Option(
            "--spent",
            metavar="PART[:PERCENT]",
            help="Only sessions that spent at least so much of their time on input, generation, tools, application, "
            "user or unknown: tools:50.",
        ),
    ] = None,
    path: Annotated[
        Path | None, typer.Option(metavar="|".join(Path), help="Only sessions with a turn that got its prompt so.")
    ] = None,
    reason: Annotated[
        Reason | None,
        typer.Option(metavar="REASON", help="Only sessions with a turn of this reason: docs/reasons.md has them."),
    ] = None,
    suspicion: Annotated[
        Doubt | None,
        typer.Option(
            metavar="KIND|any",
            help="Only sessions with a turn whose answer may be wrong: kv_mismatch, read_after_release, stale_handle, "
            "duplicate_handle or answered_after_failed_load.",
        ),
    ] = None,
    status: Annotated[
        Status | None, typer.Option(metavar="|".join(Status), help="Only sessions with a turn that ended so.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only sessions with a turn on this engine.")
    ] = None,
    transport: Annotated[
        Transport | None,
        typer.Option(metavar="|".join(Transport), help="Only sessions with a turn whose transfers this carried."),
    ] = None,
    first_token: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only sessions with a turn that waited so long for it: 2s.")
    ] = None,
    rewritten: Annotated[
        bool, typer.Option("--rewritten", help="Only sessions with a turn whose history had moved in the prompt.")
    ] = False,
    lost: Annotated[
        bool, typer.Option("--lost", help="Only sessions with a turn whose fetch took longer than computing.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Only sessions that ended within it (with --path to --lost: that had such a turn within it): 90m, "
            "24h, 7d.",
        ),
    ] = None,
    sort: Annotated[
        Sort,
        typer.Option(
            metavar="WHAT",
            help="What they are ordered by, the most first: "
            + ", ".join(f"{name} ({what})" for name, what in ORDERS.items())
            + ", or a part as of --spent (its time); input-share and the like, and ceiling-share: by their share of "
            "the whole time.",
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

    Conditions on turns (--path to --lost) have to be met by one and the same turn.

    Reads what 'turnscope serve' stores, also while it runs: sessions appear about a minute after their first turn or
    span. 'turnscope show SESSION' opens one.
    """
    part, least = spent(spent_on) if spent_on is not None else (None, None)
    begin_ns = None if since is None else time.time_ns() - span_ns("--since", since, "90m, 24h or 7d")
    turn = SessionFilter(
        path=path,
        reason=reason,
        suspicion=None if suspicion is None or suspicion == ANY else suspicion.value,
        suspicious=suspicion is not None,
        status=status,
        engine=None if engine is None else arguments.text("--engine", engine),
        transport=transport,
        ttft_ns=None if first_token is None else span_ns("--first-token", first_token, "500ms or 2s"),
        rewritten=rewritten,
        lost=lost,
    )
    where = SummaryFilter(
        text=None if text is None else arguments.text("--text", text),
        model=None if model is None else arguments.text("--model", model),
        application=None if application is None else arguments.text("--application", application),
        agent=None if agent is None else arguments.text("--agent", agent),
        deployment=None if deployment is None else arguments.text("--deployment", deployment),
        outcome=None if outcome is None else outcome.value,
        part=part,
        share=least,
        since_ns=begin_ns,
        # Of a session that went on, not of a turn from long before.
        turn=turn if turn == SessionFilter() else msgspec.structs.replace(turn, since_ns=begin_ns),
    )
    count = int(arguments.number("--limit", limit, 1, 100_000))
    with opened(store) as reader:
        newer, left = summing.fresh(reader, time.time_ns(), FRESH)
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
        typer.echo(
            "No sessions yet: they appear about a minute after their first turn or span that names its session. "
            "'turnscope doctor' says whether some came without."
        )
    else:
        typer.echo("No session meets these conditions.")
    if left and not as_json:
        typer.echo(
            f"{plural(left, 'more has', 'more have')} not been summed up yet: a running 'turnscope serve' does so "
            "within minutes."
        )
