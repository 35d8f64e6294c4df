"""A period's answer in sentences, each with what its figures allow and no more. Markdown; nothing foreign in it."""

from __future__ import annotations

from typing import Final, NamedTuple

from turnscope.measures.verdict import Reuse, largest, reuse, separated, working_ns
from turnscope.model import Figures, SessionSummary, plural
from turnscope.semconv import Part
from turnscope_app import text, words

NOT_SEPARATED: Final = words.Word(
    "Outside the model: tools or application",
    "tool wait, not separated",
    "The time between a model's call for a tool and the tool's result. No spans of the agent tell how much of it the "
    "tool ran and how much the application worked.",
)
AT_WORK: Final = "the agents' working time"
"""The base of every share that reuse could save: session time in which nobody waits for a person."""
WORKING: Final = "Working time is session time without the waits for people: nothing but people makes those shorter."
_MUCH: Final = 0.05
"""Waits for people from which on a share of all session time is another one, and told as well."""
_SMALL: Final = 0.01
"""Parts below it are not worth a word in a sentence."""


def part_word(part: Part, figures: Figures) -> words.Word:
    """How a part is called: tool wait that only its neighbours tell of is not told apart from application work."""
    if part is Part.TOOL_WAIT and figures.tool_wait_ns and not separated(figures):
        return NOT_SEPARATED
    return words.PARTS[part]


def shares(of: Figures | SessionSummary) -> dict[Part, str]:
    """Of each part that took any time: together 100 %."""
    found = {Part(part): getattr(of, f"{part}_ns") for part in words.PARTS}
    return text.shares({part: ns for part, ns in found.items() if ns})


def time(figures: Figures) -> str:
    """Where the time went."""
    if figures.wall_ns <= 0:
        return "Where the time went is unknown: no session of this period lasted any measured time."
    found = shares(figures)
    parts = sorted(found, key=lambda part: -getattr(figures, f"{part}_ns"))
    said = []
    for number, part in enumerate(parts):
        if number and getattr(figures, f"{part}_ns") < _SMALL * figures.wall_ns:
            continue
        named = f"{found[part]} {text.uncapitalised(part_word(part, figures).plain)}"
        said.append(named if number else f"**{named}**")
    worked = ""
    if figures.user_wait_ns:
        worked = f", {text.duration(working_ns(figures))} of it working time (waits for a person left out)"
    return f"{text.duration(figures.wall_ns)} of session time{worked}: {', '.join(said)}."


def measured(of: Figures | SessionSummary) -> tuple[str, str] | None:
    """What of the time is measured and what is told by something else, and by what evidence, for the place where the
    pointer rests; None where all is measured."""
    told = of.inferred_ns
    if not told:
        return None
    kinds = {
        "the waits between model calls, where the next call tells what they were for: it brings a tool's result or a "
        "person's message (the application's own work is in them, so they are upper bounds)": of.tool_wait_inferred_ns
        + of.user_wait_inferred_ns,
        "the border between reading and writing of answers that came in one piece": of.generation_inferred_ns,
    }
    by = "; and ".join(said for said, ns in kinds.items() if ns) or "what came before and after it"
    share = text.share(told, of.wall_ns)
    return (
        f"All of this time was clocked. For {share} of it, what it was spent on is told by the model calls before and "
        "after it (inferred).",
        f"When each model call began and ended is measured. Inferred: {by}. The agent's own spans would measure it.",
    )


def repeated(figures: Figures) -> str:
    """How much input was read again that had been read before, and what that cost."""
    if not figures.turns:
        return "How much input was read twice is unknown: no model call passed engines that are watched here."
    tokens = figures.recomputed_tokens
    if tokens is None or not (tokens or figures.judged_turns):
        return "How much input was read twice is unknown: no turn told what it computed again."
    if not tokens:
        return f"**No input was read twice** where it could be judged ({_judged(figures)})."
    return (
        f"**{_much(figures)} read again** although it had been read before ({tokens:,} tokens, recomputed). "
        f"{_cost(figures)}"
    )


def _much(figures: Figures) -> str:
    """Of the input, up to a verb. Turns that could not be judged may have read more of it again."""
    return f"{read_again(figures) or 'Some'} of the input was"


def read_again(figures: Figures) -> str | None:
    """Share of the input that was read again: a lower end where turns could not be judged; None where it is unknown."""
    tokens, whole = figures.recomputed_tokens, figures.prompt_tokens
    if tokens is None or not whole:
        return None
    if not figures.unjudged_turns:
        return text.capitalised(text.share(tokens, whole))
    least = 100 * tokens // whole
    if least:
        return f"At least {least} %"
    return "Some" if tokens else None


def _cost(figures: Figures) -> str:
    """What reading it again took, and what of that fetching would have spared."""
    took = figures.free_ns
    if took is None or (not took and figures.unjudged_turns):
        return "What that cost is unknown: no engine was measured often enough."
    if not took:
        return "That made no session longer: something else took longer meanwhile."
    what = f"Of these, the {_timed(figures)} took" if _partly(figures) else "That took"
    said = f"{what} {text.share(took, working_ns(figures))} of {AT_WORK}"
    if figures.fetched_ns is None:
        return f"{said}; how much of it fetching would have saved is unknown."
    if not figures.fetched_ns:
        return f"{said}, and fetching it back would have taken no less."
    return f"{said}, and fetching it back would have saved {text.share(figures.fetched_ns, took)} of that."


def _partly(figures: Figures) -> bool:
    """Only some of the tokens that were read again are known to have taken a time."""
    return 0 < figures.judged_tokens < (figures.recomputed_tokens or 0)


def _timed(figures: Figures) -> str:
    return f"{plural(figures.judged_tokens, 'token')} whose time is known"


def ceiling(figures: Figures) -> str:
    """The most that reuse could give."""
    if reuse(figures) is Reuse.UNKNOWN:
        return f"Whether more reuse would make sessions shorter is unknown: {_judged(figures)}."
    if not figures.fetched_high_ns:
        return "**More reuse cannot make sessions shorter**: there is nothing left that fetching would have saved."
    basis = ", partly assuming what a fetch takes" if figures.assumed else ""
    best, interval = saved(figures)
    all_time = (
        f", or {text.share(figures.fetched_ns or 0, figures.wall_ns)} of all session time"
        if figures.user_wait_ns >= _MUCH * figures.wall_ns and figures.fetched_ns
        else ""
    )
    what = f"the {_timed(figures)}" if _partly(figures) else "all of that"
    return (
        f"**Fetching back {what} would save {best} of {AT_WORK}** ({interval}): "
        f"{text.about(figures.fetched_ns or 0)} in all{all_time}{basis}."
    )


def saved(figures: Figures) -> tuple[str, str]:
    """The estimate of what fetching would save, and the interval in which it lies: shares of the working time."""
    best, low, high = (
        text.share(ns or 0, working_ns(figures))
        for ns in (figures.fetched_ns, figures.fetched_low_ns, figures.fetched_high_ns)
    )
    about = "nothing" if not figures.fetched_ns else f"about {best}" if best[0].isdigit() else best
    interval = f"estimated: nine times in ten between {low if figures.fetched_low_ns else 'nothing'} and {high}"
    return about, interval if low != high else f"estimated: nine times in ten {high}"


def _judged(figures: Figures) -> str:
    return f"{text.count(figures.judged_turns)} of {text.turns(figures.turns)} could be judged"


class Answer(NamedTuple):
    """A short answer and why."""

    short: str
    colour: str
    """Streamlit's name of it, for a badge."""
    why: str


def reuse_answer(figures: Figures) -> Answer:
    """Would reuse help?"""
    best, interval = saved(figures)
    match reuse(figures):
        case Reuse.WOULD:
            return Answer("Yes", "green", f"It would save {best} of {AT_WORK} ({interval}).")
        case Reuse.MIGHT:
            why = f"It would save {best} of {AT_WORK} ({interval}), which may be too little to be worth it."
            return Answer("Perhaps", "orange", why)
        case Reuse.WOULD_NOT:
            why = f"It would save {best} of {AT_WORK} ({interval}): too little to be worth it."
            if largest(figures) is not Part.INPUT_PROCESSING:
                why += f" Most of it goes into {where(figures)}, which no reuse shortens."
            return Answer("Hardly", "gray", why)
        case _:
            return Answer("Unknown", "gray", f"Too little is known: {_judged(figures)}.")


def where(figures: Figures) -> str:
    """What most of the working time goes into, within a sentence."""
    word = part_word(largest(figures), figures)
    if word is NOT_SEPARATED:
        return "tools or the application's own program, which are not told apart"
    return text.uncapitalised(word.plain)


TELLING: Final = {
    "typical": ("A typical session", "Half of the sessions worked longer, half shorter."),
    "slow": ("The slowest session", "It worked longest, waits for a person left out."),
    "worst": ("The worst session", "Most turns that may be wrong, else most errors."),
}
"""What a session worth opening is, and why it is."""


def session(summary: SessionSummary) -> str:
    """One session in a line."""
    said = [text.duration(summary.wall_ns), text.turns(summary.turns)]
    if summary.suspicious_turns:
        said.append(f"{summary.suspicious_turns:,} possibly wrong")
    if summary.errors:
        said.append(f"{summary.errors:,} failed")
    return " · ".join(said)
