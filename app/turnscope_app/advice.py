"""What to do next: the words of every verdict, who can do what about it, and what needs someone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from turnscope.measures.verdict import Verdict, judge, largest, working_ns
from turnscope.model import Figures, SessionSummary, plural
from turnscope_app import answers, text, words
from turnscope_app.answers import AT_WORK, where


class Owner(StrEnum):
    """Who can take a step."""

    APPLICATION = "application"
    SERVING = "serving"
    MODEL = "model"
    TOOLS = "tools"


OWNERS: Final[dict[Owner, tuple[str, str]]] = {
    Owner.APPLICATION: ("for the application's team", "violet"),
    Owner.SERVING: ("for those who run the model servers", "blue"),
    Owner.MODEL: ("for whoever chooses the model", "green"),
    Owner.TOOLS: ("for the tools' owners", "orange"),
}
"""Words and a badge's colour."""


class Action(NamedTuple):
    """One thing to do, by one owner."""

    owner: Owner
    said: str


class Advice(NamedTuple):
    """What a verdict says, and what to do."""

    title: str
    why: Callable[[Figures], str]
    actions: tuple[Action, ...]
    page: str
    """Where it begins: one of ``views``."""
    filters: Mapping[str, str] = MappingProxyType({})
    """What that page is to be narrowed to or ordered by: its query parameters."""


def _most(figures: Figures) -> str:
    ns = getattr(figures, f"{largest(figures)}_ns")
    return f"{text.share(ns, working_ns(figures))} of {AT_WORK} goes into {where(figures)}."


def _saved(figures: Figures) -> str:
    best, interval = answers.saved(figures)
    return f"Fetching back what was computed again would save {best} of {AT_WORK} ({interval})."


def _obstacle(figures: Figures) -> str:
    word = words.REASONS.get(figures.main_reason or "")
    return f" Most often in the way: {text.uncapitalised(word.shown)}. {word.story}" if word else ""


def _failed_tasks(figures: Figures) -> str:
    every = figures.completed_tasks + figures.failed_tasks + figures.abandoned_tasks
    return (
        f"{plural(figures.failed_tasks, 'task')} of {text.count(every)} that ended: what a person asked for ended in "
        f"an "
        "error of the model or of a tool."
    )


_APP, _SERVING, _MODEL, _TOOLS = Owner.APPLICATION, Owner.SERVING, Owner.MODEL, Owner.TOOLS
ADVICE: Final[dict[Verdict, Advice]] = {
    Verdict.NOTHING_SEEN: Advice(
        "No session was seen",
        lambda _: "In this period no session ended.",
        (
            Action(_SERVING, "Choose a longer period. If there is none at all, ask `turnscope doctor` why."),
            Action(_APP, "Send a session id with each request."),
        ),
        "about",
    ),
    Verdict.ANSWERS_IN_DOUBT: Advice(
        "Some answers may be wrong",
        lambda f: (
            f"{text.turns(f.suspicious_turns)} in {text.sessions(f.suspicious_sessions)} rest on memory that may be of "
            "another text. The model server reported success."
        ),
        (
            Action(
                _SERVING,
                "Read the evidence of one of them. Until it is explained, stop fetching back where it was used (the "
                "runbook says how): a slow answer is better than a wrong one.",
            ),
            Action(_APP, "Ask again, in a new session, what relies on these answers."),
        ),
        "suspicions",
    ),
    Verdict.NOT_ANSWERED: Advice(
        "Turns are not answered",
        lambda f: f"{text.turns(f.failed_turns)} of {text.count(f.turns)} failed, were broken off or stand still.",
        (
            Action(_SERVING, "Open the worst session below: each turn says where it ended and why."),
            Action(_APP, "Where the client itself broke off (cancelled), see whether that was meant."),
        ),
        "sessions",
        {"sessions_check": "Not answered", "sessions_sort": "Most not answered"},
    ),
    Verdict.TASKS_FAILED: Advice(
        "Tasks failed",
        _failed_tasks,
        (Action(_APP, "Open one: the last turn or tool of the task is what failed."),),
        "sessions",
        {"sessions_check": "Failed tasks"},
    ),
    Verdict.NOTHING_TIMED: Advice(
        "No time was measured",
        lambda _: "Sessions were seen, and none of their time but waits for people.",
        (Action(_SERVING, "See on the last page which hooks report."),),
        "about",
    ),
    Verdict.MOSTLY_UNKNOWN: Advice(
        "Most of the time is unknown",
        lambda f: (
            f"Nothing tells what {text.share(f.unknown_ns, working_ns(f))} of {AT_WORK} was spent on"
            + (", since no proxy hook saw the requests." if not f.proxied_sessions else ".")
        ),
        (
            Action(_SERVING, "Start the proxy with `turnscope run`: it tells waits for tools from waits for people."),
            Action(_APP, "Send the agent's spans, which measure both."),
        ),
        "about",
    ),
    Verdict.REUSE_WOULD_HELP: Advice(
        "Reuse would help",
        lambda f: f"{_saved(f)}{_obstacle(f)}",
        (Action(_SERVING, "Remove what is most often in the way."),),
        "reuse",
    ),
    Verdict.TOOLS: Advice(
        "Tools are where the time goes",
        _most,
        (
            Action(_TOOLS, "Make the slowest tools faster."),
            Action(_APP, "Let tools that do not need each other run at the same time."),
        ),
        "tools",
    ),
    Verdict.OUTSIDE_THE_MODEL: Advice(
        "Most of the time is outside the model",
        _most,
        (Action(_APP, "Send the agent's spans here: four lines, below the bar, separate the two."),),
        "tools",
    ),
    Verdict.APPLICATION: Advice(
        "The application itself takes the time",
        _most,
        (Action(_APP, "Profile the agent's own program between its model calls; open the slow session to see when."),),
        "tools",
    ),
    Verdict.WAITING_FOR_ENGINES: Advice(
        "Requests wait for model servers",
        lambda f: f"{_most(f)} More of that is queues and transfers than computing.",
        (
            Action(
                _SERVING,
                "Add servers that read prompts (prefill engines), or spread the load: a session's page tells for each "
                "turn what it waited for.",
            ),
        ),
        "sessions",
        {"sessions_sort": "Largest share of reading prompts"},
    ),
    Verdict.READING_PROMPTS: Advice(
        "Reading prompts takes the time",
        lambda f: f"{_most(f)} It is mostly computing.",
        (
            Action(_APP, "Shorten what the agents send."),
            Action(_SERVING, "Add servers that read prompts, or faster ones (prefill engines)."),
        ),
        "reuse",
    ),
    Verdict.WRITING_ANSWERS: Advice(
        "Writing answers takes the time",
        lambda f: f"{_most(f)} Reuse does not touch this.",
        (
            Action(_APP, "Ask for shorter answers."),
            Action(_MODEL, "Choose a faster model."),
            Action(_SERVING, "Add servers that write answers, or faster ones (decode engines)."),
        ),
        "sessions",
        {"sessions_sort": "Largest share of writing answers"},
    ),
    Verdict.LARGEST_UNKNOWN: Advice(
        "The largest part is unknown",
        _most,
        (Action(_APP, "Send the agent's spans: they tell what happens between model calls."),),
        "about",
    ),
}
"""Of every verdict. A test compares them."""


class Step(NamedTuple):
    """One verdict of a period, as the page tells it."""

    title: str
    why: str
    actions: tuple[Action, ...]
    page: str
    filters: Mapping[str, str]


def plan(figures: Figures, worst: SessionSummary | None = None) -> list[Step]:
    """What to do, in this order. ``worst``: the session with most answers in doubt."""
    verdicts = [rule.verdict for rule in judge(figures)]
    return [_step(verdict, figures, worst, after_doubt=verdicts[0] is _DOUBT) for verdict in verdicts]


_DOUBT: Final = Verdict.ANSWERS_IN_DOUBT
SUSPICIONS_OF: Final = "suspicions_session"
"""Query parameter of the page of suspicions: only those of this session."""
_ENGINES: Final = 4
"""Named at most."""


def _step(verdict: Verdict, figures: Figures, worst: SessionSummary | None, *, after_doubt: bool) -> Step:
    said = ADVICE[verdict]
    step = Step(said.title, said.why(figures), said.actions, said.page, said.filters)
    if verdict is _DOUBT and worst is not None:
        served = f" It was served by {text.listed(worst.engines, _ENGINES)}." if worst.engines else ""
        count = f"{worst.suspicious_turns:,} of them are in the worst session."
        return step._replace(why=f"{step.why} {count}{served}", filters={SUSPICIONS_OF: worst.session_id})
    if verdict is Verdict.REUSE_WOULD_HELP and after_doubt:
        return step._replace(
            title=f"{step.title}, once step 1 is explained",
            actions=(
                Action(
                    _SERVING,
                    "First finish step 1: it switches off what this one asks more of. Then remove "
                    "what is most often in the way.",
                ),
            ),
        )
    return step


class Warning(NamedTuple):
    """What needs someone."""

    said: str
    check: str
    """Of ``filters.CHECKS``: which sessions to look at."""
    action: Action


def warnings(figures: Figures) -> list[Warning]:
    """The gravest first."""
    tools = figures.errors - figures.failed_turns
    found = (
        (
            figures.suspicious_turns,
            "turn",
            "may have a **wrong answer**",
            "Possibly wrong",
            Action(_SERVING, "Read the evidence of one: page Suspicions."),
        ),
        (
            figures.failed_turns,
            "turn",
            "got **no answer**: failed, cancelled or stuck",
            "Not answered",
            Action(_SERVING, "Open one: its turns say where they ended. Cancelled ones the client broke off itself."),
        ),
        (
            tools,
            "call",
            "of **tools failed**",
            "Errors",
            Action(_TOOLS, "Open one: the timeline has the tool, and its error on hover."),
        ),
        (
            figures.failed_tasks,
            "task",
            "**failed**",
            "Failed tasks",
            Action(_APP, "Open one: the last turn or tool of the task is what failed."),
        ),
    )
    return [
        Warning(f"{plural(count, noun)} {said}.", check, action)
        for count, noun, said, check, action in found
        if count > 0
    ]
