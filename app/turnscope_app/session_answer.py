"""A session's answer in sentences: where its time went, what reuse could give, what is unknown, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from turnscope.measures import ceiling_sentence
from turnscope.measures.verdict import Verdict, judge
from turnscope.model import SessionSummary
from turnscope.model.figures import of_session
from turnscope.semconv import Part
from turnscope.store import summing
from turnscope_app import answers, text, words
from turnscope_app.advice import Action, Owner


def parts(summary: SessionSummary) -> dict[Part, int]:
    """Nanoseconds of each part, those that took any time."""
    found = {part: getattr(summary, f"{part}_ns") for part in Part}
    return {part: ns for part, ns in found.items() if ns}


def inferred(summary: SessionSummary, part: Part) -> int:
    """How much of a part is told by what came before and after it."""
    ns: int = getattr(summary, f"{part}_inferred_ns", 0)
    return ns


def head(summary: SessionSummary) -> str:
    """Whose session it was, of what, and when."""
    facts = [
        *(f"application {name}" for name in _names(summary.applications)),
        *(f"agent {name}" for name in _names(summary.agents)),
        *(f"model {name}" for name in _names(summary.models)),
        *(f"in {name}" for name in _names(summary.deployments)),
        f"started by {text.harmless(summary.parent_session_id)}" if summary.parent_session_id else "",
        text.turns(summary.turns) if summary.turns else "",
        f"{summary.model_calls:,} {'other ' if summary.turns else ''}model calls" if summary.model_calls else "",
        f"from {text.when(summary.started_ns)}",
    ]
    return ", ".join(fact for fact in facts if fact)


def _names(values: Sequence[str]) -> list[str]:
    names = [text.harmless(value) for value in values[:3]]
    return [*names, f"and {len(values) - 3:,} more"] if len(values) > 3 else names


SPENT: Final = {
    Part.INPUT_PROCESSING: "the model server read prompts",
    Part.GENERATION: "the model wrote",
    Part.TOOL_WAIT: "it waited for tools",
    Part.APPLICATION_WORK: "the agent's own program worked",
    Part.USER_WAIT: "it waited for a person",
    Part.UNKNOWN: "nothing tells what happened",
}
"""Of a part, in a sentence after how much of the time it was."""


def answer(summary: SessionSummary) -> str:
    """Where the time went, in a sentence: the three largest parts."""
    if summary.too_large:
        return f"It took {text.duration(summary.wall_ns)}, and is too large to be taken apart."
    spent = sorted(parts(summary).items(), key=lambda item: -item[1])
    if not spent:
        return "Nothing of it lasted any time that was measured."
    shares = answers.shares(summary)
    said = [f"{shares[part]} of the time {SPENT[part]}" for part, _ in spent[:1]]
    said += [f"{shares[part]} {SPENT[part]}" for part, _ in spent[1:3]]
    worked = ""
    if summary.user_wait_ns:
        working = text.duration(summary.wall_ns - summary.user_wait_ns)
        worked = f", {working} of it working time (waits for a person left out)"
    return f"It took {text.duration(summary.wall_ns)}{worked}: {', '.join(said)}."


def ceiling(summary: SessionSummary) -> str:
    """The most that reuse could still give."""
    return ceiling_sentence.sentence(summary, duration=text.about, share=text.share)


def doubts(summary: SessionSummary) -> list[str]:
    """What is not measured, and what would measure it."""
    if summary.too_large:
        return [
            f"It has {summary.turns + summary.spans:,} turns and spans, more than the {summing.MOST_ROWS:,} that are "
            "taken apart at once: where its time went, and what its spans tell, is not shown."
        ]
    out = []
    whole, between = summary.wall_ns, summary.unknown_ns - summary.unknown_model_call_ns
    known = answers.measured(summary)
    if known is not None:
        out.append(" ".join(known))
    if summary.unknown_model_call_ns:
        dark = text.share(summary.unknown_model_call_ns, whole)
        out.append(
            f"Of its time {dark} was in model calls whose first word nobody timed: how much of it was reading and how "
            "much writing is not known."
        )
    if between:
        seen = "proxy" in summary.sources or not summary.turns
        why = (
            "neither requests nor the agent's spans tell" if seen else "it takes the proxy's hook, or the agent's spans"
        )
        out.append(f"Of its time {text.share(between, whole)} is unknown: {why}.")
    return out


def separated(summary: SessionSummary) -> bool:
    """Whether the agent's own spans tell tools from the application's work, or there is nothing to be told apart."""
    return bool(summary.spans) or summary.turns < 2


NOT_SEPARATED: Final = (
    "**Outside the model: tools or application, not separated.** No spans of this agent came, so a wait between two "
    "model calls is told by what the second one brings, and the application's own work is in it. Settings of the "
    "agent's OpenTelemetry SDK separate them, with the session's id on its spans (for each SDK: docs/agents.md):"
)
SEPARATES: Final = """OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST_OF_TURNSCOPE:4318
OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
OTEL_SERVICE_NAME=my-agent"""
"""What the agent's environment needs."""


def next_steps(summary: SessionSummary) -> list[Action]:
    """What to do first, and by whom, by the same rules as a period's."""
    if summary.too_large:
        return [Action(Owner.APPLICATION, TO_MAKE_SMALLER)]
    verdict = judge(of_session(summary))[0].verdict
    if verdict is Verdict.REUSE_WOULD_HELP:
        word = words.REASONS.get(summary.main_reason or "")
        why = f" {word.story}" if word else ""
        return [Action(Owner.SERVING, f"Remove what is in the way of reuse.{why}")]
    if verdict is Verdict.ANSWERS_IN_DOUBT:
        where = f" ({text.listed(summary.engines, 4)})" if summary.engines else ""
        doubt = f"Until it is explained, stop fetching back (its runbook says how) on this session's engines{where}."
        return [STEPS[verdict][0], Action(Owner.SERVING, doubt)]
    if verdict in (Verdict.MOSTLY_UNKNOWN, Verdict.LARGEST_UNKNOWN) and summary.spans and _dark_calls(summary):
        return list(TO_TIME_CALLS)
    return list(STEPS[verdict])


def _dark_calls(summary: SessionSummary) -> bool:
    """Whether most of what is unknown is inside of model calls."""
    return 2 * summary.unknown_model_call_ns >= summary.unknown_ns


TO_TIME_CALLS: Final = (
    Action(
        Owner.APPLICATION,
        "Let the agent stream answers, with an instrumentation that tells when the first word came (docs/agents.md "
        "says which do): only that tells reading from writing.",
    ),
    Action(Owner.SERVING, "If the model is your own, start its proxy with `turnscope run`, which times every answer."),
)
"""Where the agent's spans came, and its model calls are what is unknown."""
TO_MAKE_SMALLER: Final = (
    "Give every run of the agent a session of its own, or send fewer spans: then it is taken apart."
)
STEPS: Final[dict[Verdict, tuple[Action, ...]]] = {
    Verdict.NOTHING_SEEN: (Action(Owner.SERVING, "Nothing is known of it: ask `turnscope doctor` what is missing."),),
    Verdict.ANSWERS_IN_DOUBT: (
        Action(
            Owner.APPLICATION,
            "Ask again, in a new session, what relies on the answers named below: the memory that they rest on may not "
            "have been theirs.",
        ),
    ),
    Verdict.NOT_ANSWERED: (
        Action(Owner.SERVING, "See below where turns ended without an answer, and why, before any slowness."),
        Action(Owner.APPLICATION, "Where the client itself broke off (cancelled), see whether that was meant."),
    ),
    Verdict.TASKS_FAILED: (
        Action(Owner.APPLICATION, "See the last turn or tool of the task below: it is what failed."),
    ),
    Verdict.NOTHING_TIMED: (Action(Owner.APPLICATION, "Nothing: all of its time was waiting for a person."),),
    Verdict.MOSTLY_UNKNOWN: (
        Action(Owner.SERVING, "Start the proxy with `turnscope run`: most of the time is unknown."),
        Action(Owner.APPLICATION, "Send the agent's spans."),
    ),
    Verdict.TOOLS: (
        Action(Owner.TOOLS, "Make the slowest tools faster: they took most of its working time."),
        Action(Owner.APPLICATION, "Let tools that do not need each other run at the same time."),
    ),
    Verdict.OUTSIDE_THE_MODEL: (
        Action(
            Owner.APPLICATION,
            "Send the agent's spans: most of its working time was outside the model, and only they tell tools from the "
            "application.",
        ),
    ),
    Verdict.APPLICATION: (
        Action(
            Owner.APPLICATION,
            "Profile the agent's own program between its model calls: it took most of the working time.",
        ),
    ),
    Verdict.WAITING_FOR_ENGINES: (
        Action(
            Owner.SERVING,
            "Add servers that read prompts (prefill engines), or spread the load: requests waited in queues and "
            "transfers.",
        ),
    ),
    Verdict.READING_PROMPTS: (
        Action(Owner.APPLICATION, "Send shorter prompts: reading them took most of its working time."),
        Action(Owner.SERVING, "Add servers that read prompts, or faster ones (prefill engines)."),
    ),
    Verdict.WRITING_ANSWERS: (
        Action(Owner.APPLICATION, "Ask for shorter answers: writing them took most of its working time."),
        Action(Owner.MODEL, "Choose a faster model."),
    ),
    Verdict.LARGEST_UNKNOWN: (
        Action(Owner.APPLICATION, "Send the agent's spans: they tell what happened between its model calls."),
    ),
}
"""Of every verdict but that reuse would help, which has the obstacle's own words."""
