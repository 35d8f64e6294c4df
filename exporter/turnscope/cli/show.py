"""``turnscope show SESSION``: one session's time, tasks and turns."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnscope.assembly.reasons import TABLE
from turnscope.cli import arguments, session_words
from turnscope.cli.errors import Sorry
from turnscope.cli.session_store import StoreOption, found_id, opened
from turnscope.cli.session_words import OUTCOMES, PARTS, duration, share
from turnscope.cli.terminal import Terminal
from turnscope.measures.forest import newest
from turnscope.measures.reuse import reused_tokens
from turnscope.measures.sessions import Session, summarise
from turnscope.model import AgentSpan, SessionSummary, Task, Turn, plural, shown
from turnscope.semconv import Part, Reason, Status
from turnscope.store import StoreReader, summing


def find(reader: StoreReader, wanted: str) -> tuple[Session, list[Turn], list[AgentSpan]]:
    """The session with this id, or the only one whose id contains it; raises ``Sorry`` where there is none."""
    session_id = found_id(reader, wanted)
    large = summing.large(reader, session_id, time.time_ns())
    if large is not None:
        return large, [], []
    turns, spans = reader.known([session_id]).get(session_id, ([], []))
    session = summarise(session_id, turns, spans, revision=time.time_ns())
    if session is None:
        raise Sorry(f"the session {shown(session_id)} has just gone from {reader.url}: try again")
    return session, newest(turns, lambda turn: turn.turn_id), spans


def show_session(session: Session, turns: list[Turn], console: Console, limit: int) -> None:
    """For people: the head, where the time went, what reuse could give, tasks, turns."""
    one = session.summary
    console.print(Text(one.session_id, "bold"), soft_wrap=True)
    console.print(_head(one))
    console.print()
    console.print(session_words.bar(one, min(100, console.width - 2)))
    wide = console.width >= session_words.WIDE
    console.print(_parts(one, wide))
    console.print()
    for sentence in (*session_words.ceiling_sentences(one), *session_words.evidence_sentences(one)):
        console.print(sentence)
    if one.suspicious_turns:
        console.print(
            f"{one.suspicious_turns} of its turns may have been answered from wrong KV: see the suspicions below.",
            style="bold red",
        )
    if one.tasks:
        console.print()
        console.print(_tasks(one.tasks[:limit], wide))
        _more(len(one.tasks), limit, "tasks", console)
    if turns:
        console.print()
        listed = sorted(turns, key=lambda turn: (turn.started_ns, turn.turn_id))[:limit]
        console.print(_turns(listed, wide))
        _more(len(turns), limit, "turns", console)
        for line in _reasons(listed):
            console.print(line)


def _more(count: int, limit: int, what: str, console: Console) -> None:
    if count > limit:
        console.print(f"... {limit} of {count:,} {what}: --limit shows more.")


def _head(one: SessionSummary) -> str:
    facts = [
        f"{session_words.moment(one.started_ns)} UTC, {duration(one.wall_ns)}",
        plural(one.turns, "turn") if one.turns else "",
        plural(one.model_calls, f"{'other ' if one.turns else ''}model call") if one.model_calls else "",
        plural(one.tools, "tool call") if one.tools is not None else "",
        f"model {session_words.names(one.models)}" if one.models else "",
        f"application {session_words.names(one.applications)}" if one.applications else "",
        f"agents {session_words.names(one.agents)}" if one.agents else "",
        f"in {session_words.names(one.deployments)}" if one.deployments else "",
        f"started by {one.parent_session_id}" if one.parent_session_id else "",
    ]
    return ", ".join(filter(None, facts))


def _parts(one: SessionSummary, wide: bool) -> Table:
    table = session_words.table("Part", "Time>", "Share>", "Inferred>", "What it is" if wide else None)
    for part, word in PARTS.items():
        ns = getattr(one, f"{part}_ns")
        inferred = getattr(one, f"{part}_inferred_ns", 0)
        name = Text.assemble((word.mark, f"{word.style} reverse"), f" {word.plain}")
        table.add_row(name, duration(ns), share(ns, one.wall_ns), duration(inferred) if inferred else "", word.meaning)
        for label, more in _details(one, part):
            table.add_row(Text(f"    {label}", "dim"), Text(duration(more), "dim"))
    table.add_row(Text("Whole session", "bold"), Text(duration(one.wall_ns), "bold"), "100%")
    return table


def _details(one: SessionSummary, part: Part) -> list[tuple[str, int]]:
    if part is Part.INPUT_PROCESSING:
        found = [(label, getattr(one, field)) for field, label in session_words.INPUT.items()]
    elif part is Part.TOOL_WAIT:
        found = [("retrieval", one.retrieval_ns)]
    elif part is Part.UNKNOWN:
        found = [("in model calls", one.unknown_model_call_ns)]
    else:
        return []
    return [(label, ns) for label, ns in found if ns]


def _tasks(tasks: list[Task], wide: bool) -> Table:
    """Where the window is narrow, without what can be missed."""
    judged = any(task.evaluations for task in tasks)
    table = session_words.table(
        "Task>",
        "Outcome",
        "First\ntoken>",
        "Whole\ntask>",
        "Turns>",
        "Tools>",
        "Errors>" if wide else None,
        "Prompt>" if wide else None,
        "Mostly",
        "Evaluation" if judged else None,
    )
    for task in tasks:
        parts = {part: getattr(task, f"{part}_ns") for part in PARTS}
        whole, most = sum(parts.values()), max(parts, key=lambda part: parts[part])
        row: list[str | Text] = [
            str(task.number),
            Text(task.outcome, OUTCOMES.get(task.outcome, "")),
            duration(task.first_token_ns),
            duration(task.latency_ns),
            str(task.turns),
            str(task.tools),
            *([str(task.errors or ""), _tokens(task.context_tokens)] if wide else []),
            f"{PARTS[most].plain.lower()} {share(parts[most], whole)}" if whole else "-",
            *([_evaluation(task)] if judged else []),
        ]
        table.add_row(*row)
    return table


def _evaluation(task: Task) -> str:
    told = []
    for each in task.evaluations:
        value = each.label if each.label is not None else f"{each.score:g}" if each.score is not None else "?"
        told.append(f"{each.name or 'evaluation'}: {value}")
    return ", ".join(told)


def _turns(turns: list[Turn], wide: bool) -> Table:
    """Where the window is narrow, without what can be missed."""
    table = session_words.table(
        "Turn>",
        "After" if wide else None,
        "First\ntoken>",
        "Whole\nturn>" if wide else None,
        "Prompt>",
        "Reused>",
        "Again>",
        "Path",
        "Not more,\nbecause",
        "",
    )
    for turn in turns:
        table.add_row(
            str(turn.turn_index or "-"),
            *([turn.last_role or "-"] if wide else []),
            duration(turn.ttft_ns),
            *([duration(turn.duration_ns)] if wide else []),
            _tokens(turn.prompt_tokens),
            _tokens(reused_tokens(turn)),
            _tokens(turn.recomputed_tokens),
            turn.path.replace("_", " "),
            turn.reason.replace("_", " "),
            _trouble(turn),
        )
    return table


def _reasons(turns: list[Turn]) -> list[str]:
    """What the reasons in the table mean, in the order in which they come first."""
    out = []
    for reason in dict.fromkeys(turn.reason for turn in turns if turn.reason != Reason.NONE):
        says = [row.says for row in TABLE if row.reason == reason]
        if says:
            out.append(f"{reason.replace('_', ' ')}: {' Or: '.join(says)}")
    return ["", *out] if out else []


def _tokens(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _trouble(turn: Turn) -> Text:
    told = Text()
    if turn.status != Status.OK:
        told.append(f"{turn.status}{f' at {turn.stage}' if turn.stage else ''} ", "bold red")
    if turn.suspicions:
        told.append(" ".join(name.replace("_", " ") for name in turn.suspicions), "bold yellow")
    return told


def show(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session's id, or a part of it that no other contains.")
    ],
    store: StoreOption = None,
    limit: Annotated[str, typer.Option(metavar="COUNT", help="How many tasks and turns are shown.")] = "50",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print summary, segments, turns and spans as JSON, times in nanoseconds.")
    ] = False,
) -> None:
    """Show one session: where its time went and how that is known, what reuse could give it, its tasks and turns.

    What each part means, and which of several things at once is counted: docs/sessions.md.
    """
    wanted = arguments.text("SESSION", session)
    count = int(arguments.number("--limit", limit, 1, 100_000))
    with opened(store) as reader:
        found, turns, spans = find(reader, wanted)
    if as_json:
        out = {"summary": found.summary, "segments": found.segments, "turns": turns, "spans": spans}
        typer.echo(msgspec.json.format(msgspec.json.encode(out), indent=1))
    else:
        show_session(found, turns, Terminal(), count)
