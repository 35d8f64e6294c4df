"""What a period's figures say should be done next: a table of rules, each with its evidence."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from turnscope.model import Figures
from turnscope.semconv import Part

WORTH: Final = 0.03
"""Reuse that spares less of the working time than this is not worth changing a deployment for."""
DARK: Final = 0.5
"""Of the working time: with more of it unknown, nothing else that is said of it holds."""


class Reuse(StrEnum):
    """Whether fetching back what was computed again would make sessions shorter."""

    WOULD = "would"
    """By ``WORTH`` of the working time at least, even at the low end of the estimate."""
    MIGHT = "might"
    """Only at its high end."""
    WOULD_NOT = "would not"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """What figures can say. The sentences for it are the screen's."""

    NOTHING_SEEN = "nothing_seen"
    ANSWERS_IN_DOUBT = "answers_in_doubt"
    NOT_ANSWERED = "not_answered"
    TASKS_FAILED = "tasks_failed"
    NOTHING_TIMED = "nothing_timed"
    MOSTLY_UNKNOWN = "mostly_unknown"
    REUSE_WOULD_HELP = "reuse_would_help"
    TOOLS = "tools"
    OUTSIDE_THE_MODEL = "outside_the_model"
    APPLICATION = "application"
    WAITING_FOR_ENGINES = "waiting_for_engines"
    READING_PROMPTS = "reading_prompts"
    WRITING_ANSWERS = "writing_answers"
    LARGEST_UNKNOWN = "largest_unknown"


class Kind(StrEnum):
    """How a rule goes with the others."""

    BLIND = "blind"
    """There is nothing that later ones could stand on."""
    TROUBLE = "trouble"
    GAIN = "gain"
    WHERE = "where"
    """Where most of the time goes: the first that holds is enough."""


class Rule(NamedTuple):
    """When a verdict is given."""

    verdict: Verdict
    kind: Kind
    holds: Callable[[Figures], bool]


def working_ns(figures: Figures) -> int:
    """Session time in which nobody waited for a person."""
    return figures.wall_ns - figures.user_wait_ns


def share(ns: int | None, figures: Figures) -> float:
    """Of the working time, 0 to 1; 0 where there is none."""
    whole = working_ns(figures)
    return (ns or 0) / whole if whole > 0 else 0.0


def reuse(figures: Figures) -> Reuse:
    """Judged by the turns that told what they computed again and what that cost; with half of them or more that did
    not, a small effect is no answer."""
    judged = figures.judged_turns
    if not judged or figures.fetched_ns is None:
        return Reuse.UNKNOWN
    if share(figures.fetched_low_ns, figures) >= WORTH:
        return Reuse.WOULD
    if share(figures.fetched_high_ns, figures) >= WORTH:
        return Reuse.MIGHT
    return Reuse.WOULD_NOT if judged > figures.unjudged_turns else Reuse.UNKNOWN


def largest(figures: Figures) -> Part:
    """The part that most of the working time was spent on."""
    parts = (part for part in Part if part is not Part.USER_WAIT)
    return max(parts, key=lambda part: getattr(figures, f"{part}_ns"))


_ENGINES: Final = ("queue", "reverse_fetch", "handoff", "first_step", "proxy")
"""What of input processing is no computing of the prompt."""


def waits_for_engines(figures: Figures) -> bool:
    """More of input processing went into queues and transfers than into computing prompts."""
    waited: int = sum(getattr(figures, f"input_{name}_ns") for name in _ENGINES)
    return waited > figures.input_prefill_ns


def separated(figures: Figures) -> bool:
    """Most of the tool wait was told by spans, and not by what came before and after it."""
    return figures.tool_wait_inferred_ns * 2 < figures.tool_wait_ns


RULES: Final = (
    Rule(Verdict.NOTHING_SEEN, Kind.BLIND, lambda f: f.sessions == 0),
    Rule(Verdict.ANSWERS_IN_DOUBT, Kind.TROUBLE, lambda f: f.suspicious_turns > 0),
    Rule(Verdict.NOT_ANSWERED, Kind.TROUBLE, lambda f: f.failed_turns > 0),
    Rule(Verdict.TASKS_FAILED, Kind.TROUBLE, lambda f: f.failed_tasks > 0),
    Rule(Verdict.NOTHING_TIMED, Kind.BLIND, lambda f: working_ns(f) <= 0),
    Rule(Verdict.MOSTLY_UNKNOWN, Kind.BLIND, lambda f: share(f.unknown_ns, f) >= DARK),
    Rule(Verdict.REUSE_WOULD_HELP, Kind.GAIN, lambda f: reuse(f) is Reuse.WOULD),
    Rule(Verdict.TOOLS, Kind.WHERE, lambda f: largest(f) is Part.TOOL_WAIT and separated(f)),
    Rule(Verdict.OUTSIDE_THE_MODEL, Kind.WHERE, lambda f: largest(f) is Part.TOOL_WAIT),
    Rule(Verdict.APPLICATION, Kind.WHERE, lambda f: largest(f) is Part.APPLICATION_WORK),
    Rule(
        Verdict.WAITING_FOR_ENGINES,
        Kind.WHERE,
        lambda f: largest(f) is Part.INPUT_PROCESSING and waits_for_engines(f),
    ),
    Rule(Verdict.READING_PROMPTS, Kind.WHERE, lambda f: largest(f) is Part.INPUT_PROCESSING),
    Rule(Verdict.WRITING_ANSWERS, Kind.WHERE, lambda f: largest(f) is Part.GENERATION),
    Rule(Verdict.LARGEST_UNKNOWN, Kind.WHERE, lambda f: largest(f) is Part.UNKNOWN),
)
"""In the order of urgency."""


def judge(figures: Figures) -> list[Rule]:
    """The rules that hold, the most urgent first: at least one, and at most one that says where most of the time goes.
    Pure."""
    found: list[Rule] = []
    for rule in RULES:
        if rule.holds(figures):
            found.append(rule)
            if rule.kind in (Kind.BLIND, Kind.WHERE):
                break
    return found
