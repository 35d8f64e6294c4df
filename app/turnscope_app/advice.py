"""What to do next: the words of every verdict, whose it is, and what needs someone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from turnscope.measures.verdict import Owner, Verdict, largest, working_ns
from turnscope.model import Figures, plural
from turnscope_app import text, words
from turnscope_app.answers import where


class Advice(NamedTuple):
    """What a verdict says, and what to do."""

    title: str
    why: Callable[[Figures], str]
    step: str
    page: str
    """Where it begins: one of ``views``."""


def _most(figures: Figures) -> str:
    ns = getattr(figures, f"{largest(figures)}_ns")
    at_work = text.share(ns, working_ns(figures))
    return f"{at_work} of the time in which nobody waits for a person goes into {where(figures)}."


ADVICE: Final[dict[Verdict, Advice]] = {
    Verdict.NOTHING_SEEN: Advice(
        "No session was seen",
        lambda _: "In this period no session ended.",
        "Choose a longer period. If there is none at all, let clients send a session id, and ask `turnscope doctor` "
        "what is missing.",
        "about",
    ),
    Verdict.ANSWERS_IN_DOUBT: Advice(
        "Some answers may be wrong",
        lambda f: (
            f"{text.turns(f.suspicious_turns)} in {text.sessions(f.suspicious_sessions)} reused memory that may not "
            "belong to their prompt. The engine reported success."
        ),
        "Open one of them below and read its evidence. Until it is explained, switch fetching back off on the engines "
        "concerned: a slow answer is better than a wrong one.",
        "suspicions",
    ),
    Verdict.NOT_ANSWERED: Advice(
        "Turns are not answered",
        lambda f: f"{text.turns(f.failed_turns)} of {text.count(f.turns)} failed, were broken off or stand still.",
        "Open the worst session below: each turn says where it ended and why.",
        "sessions",
    ),
    Verdict.NOTHING_TIMED: Advice(
        "No time was measured",
        lambda _: "Sessions were seen, and none of their time but waits for people.",
        "See on the last page which hooks report.",
        "about",
    ),
    Verdict.MOSTLY_UNKNOWN: Advice(
        "Most of the time is unknown",
        lambda f: (
            f"Nothing tells what {text.share(f.unknown_ns, working_ns(f))} of the time was spent on"
            + (", since no proxy hook saw the requests." if not f.proxied_sessions else ".")
        ),
        "Start the proxy with `turnscope run`, which tells waits for tools from waits for people; send spans of the "
        "agent, which measure both.",
        "about",
    ),
    Verdict.REUSE_WOULD_HELP: Advice(
        "Reuse would help",
        lambda f: (
            f"Fetching back what was computed again would save {text.share(f.fetched_low_ns or 0, working_ns(f))} to "
            f"{text.share(f.fetched_high_ns or 0, working_ns(f))} of the time in which agents work."
            + (
                f" Most often in the way: {words.REASONS[f.main_reason].plain.lower()}."
                if f.main_reason in words.REASONS
                else ""
            )
        ),
        "Remove what is most often in the way.",
        "reuse",
    ),
    Verdict.TOOLS: Advice(
        "Tools are where the time goes",
        _most,
        "Make the slowest tools faster, or let them run at the same time.",
        "tools",
    ),
    Verdict.OUTSIDE_THE_MODEL: Advice(
        "Most of the time is outside the model",
        _most,
        "Send the agent's spans here: four lines, below the bar, separate the two.",
        "tools",
    ),
    Verdict.APPLICATION: Advice(
        "The application itself takes the time",
        _most,
        "Profile the agent's own program between its model calls; open the slow session to see when.",
        "tools",
    ),
    Verdict.WAITING_FOR_ENGINES: Advice(
        "Requests wait for engines",
        lambda f: f"{_most(f)} More of that is queues and transfers than computing.",
        "Add prefill capacity, or spread the load: the first-token parts of a session's turns show where they wait.",
        "sessions",
    ),
    Verdict.READING_PROMPTS: Advice(
        "Reading prompts takes the time",
        lambda f: f"{_most(f)} It is mostly computing.",
        "Shorten what agents send, or add prefill capacity.",
        "reuse",
    ),
    Verdict.WRITING_ANSWERS: Advice(
        "Writing answers takes the time",
        _most,
        "Let answers be shorter, or use a faster model or decode engine. Reuse does not touch this.",
        "sessions",
    ),
    Verdict.LARGEST_UNKNOWN: Advice(
        "The largest part is unknown",
        _most,
        "Send spans of the agent: they tell what happens between model calls.",
        "about",
    ),
}
"""Of every verdict. A test compares them."""

OWNERS: Final[dict[Owner, tuple[str, str]]] = {
    Owner.APPLICATION: ("for the application's team", "violet"),
    Owner.SERVING: ("for the serving team", "blue"),
    Owner.MODEL: ("for whoever chooses the model", "green"),
    Owner.TOOLS: ("for the tools' owners", "orange"),
    Owner.TOOLS_OR_APPLICATION: ("for the application's or the tools' team", "orange"),
    Owner.UNKNOWN: ("owner unknown", "gray"),
}
"""Words and a badge's colour."""


class Warning(NamedTuple):
    """What needs someone."""

    said: str
    check: str
    """Of ``filters.CHECKS``: which sessions to look at."""


def warnings(figures: Figures) -> list[Warning]:
    """The gravest first."""
    tools = figures.errors - figures.failed_turns
    found = (
        (figures.suspicious_turns, "turn", "may have a **wrong answer**", "Possibly wrong"),
        (figures.failed_turns, "turn", "got **no answer**: failed, cancelled or stuck", "Not answered"),
        (tools, "call", "of **tools failed**", "Errors"),
        (figures.failed_tasks, "task", "**failed**", "Failed tasks"),
    )
    return [Warning(f"{plural(count, noun)} {said}.", check) for count, noun, said, check in found if count > 0]
