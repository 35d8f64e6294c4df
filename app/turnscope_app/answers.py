"""A period's answer in sentences, each with what its figures allow and no more. Markdown; nothing foreign in it."""

from __future__ import annotations

from typing import Final, NamedTuple

from turnscope.measures.verdict import Reuse, largest, reuse, separated, share, working_ns
from turnscope.model import Figures, SessionSummary
from turnscope.semconv import Part
from turnscope_app import text, words

NOT_SEPARATED: Final = words.Word(
    "Outside the model: tools or application",
    "tool wait, not separated",
    "The time between a model's call for a tool and the tool's result. No spans of the agent tell how much of it the "
    "tool ran and how much the application worked.",
)
_MUCH: Final = 0.05
"""Waits for people from which on the time without them is told as well."""
_SMALL: Final = 0.01
"""Parts below it are not worth a word in a sentence."""


def part_word(part: Part, figures: Figures) -> words.Word:
    """How a part is called: tool wait that only its neighbours tell of is not told apart from application work."""
    if part is Part.TOOL_WAIT and figures.tool_wait_ns and not separated(figures):
        return NOT_SEPARATED
    return words.PARTS[part]


def time(figures: Figures) -> str:
    """Where the time went."""
    if figures.wall_ns <= 0:
        return "Where the time went is unknown: no session of this period lasted any measured time."
    parts = sorted(Part, key=lambda part: -getattr(figures, f"{part}_ns"))
    said = []
    for number, part in enumerate(parts):
        ns = getattr(figures, f"{part}_ns")
        if number and ns < _SMALL * figures.wall_ns:
            continue
        word = part_word(part, figures)
        named = f"{text.share(ns, figures.wall_ns)} {text.uncapitalised(word.plain)}"
        said.append(named if number else f"**{named}**")
    some = f" {text.share(figures.inferred_ns, figures.wall_ns)} of it is inferred." if figures.inferred_ns else ""
    return f"{text.duration(figures.wall_ns)} of session time: {', '.join(said)}.{some}"


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
        f"**{_much(tokens, figures)} read again** although it had been read before ({tokens:,} tokens, recomputed). "
        f"{_cost(figures)}"
    )


def _much(tokens: int, figures: Figures) -> str:
    """Of the input, up to a verb. Turns that could not be judged may have read more of it again."""
    if not figures.prompt_tokens:
        return "Some of the input was"
    if not figures.unjudged_turns:
        return f"{text.capitalised(text.share(tokens, figures.prompt_tokens))} of the input was"
    least = 100 * tokens // figures.prompt_tokens
    return f"At least {least} % of the input was" if least else "Some of the input was"


def _cost(figures: Figures) -> str:
    """What reading it again took, and what of that fetching would have spared."""
    took = figures.free_ns
    if took is None or (not took and figures.unjudged_turns):
        return "What that cost is unknown: no engine was measured often enough."
    if not took:
        return "That made no session longer: something else took longer meanwhile."
    said = f"That took {text.share(took, figures.wall_ns)} of session time"
    if figures.fetched_ns is None:
        return f"{said}; how much of it fetching would have saved is unknown."
    if not figures.fetched_ns:
        return f"{said}, and fetching it back would have taken no less."
    return f"{said}, and fetching it back would have saved {text.share(figures.fetched_ns, took)} of that."


def ceiling(figures: Figures) -> str:
    """The most that reuse could give."""
    if reuse(figures) is Reuse.UNKNOWN:
        return f"Whether more reuse would make sessions shorter is unknown: {_judged(figures)}."
    if not figures.fetched_high_ns:
        return "**More reuse cannot make sessions shorter**: there is nothing left that fetching would have saved."
    basis = ", partly assuming what a fetch takes" if figures.assumed else ""
    spared = figures.fetched_ns or 0
    at_work = (
        f" ({text.share(spared, working_ns(figures))} of the time in which nobody waits for a person)"
        if figures.user_wait_ns >= _MUCH * figures.wall_ns
        else ""
    )
    low = text.duration(figures.fetched_low_ns) if figures.fetched_low_ns else "nothing"
    return (
        f"**At best, more reuse makes sessions {text.share(spared, figures.wall_ns)} shorter**{at_work}: "
        f"{text.duration(spared)} in all, between {low} and {text.duration(figures.fetched_high_ns)}{basis}."
    )


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
    low, high = (share(ns, figures) for ns in (figures.fetched_low_ns, figures.fetched_high_ns))
    match reuse(figures):
        case Reuse.WOULD:
            return Answer("Yes", "green", f"It would save at least {100 * low:.0f} % of the time in which agents work.")
        case Reuse.MIGHT:
            return Answer(
                "Perhaps",
                "orange",
                f"It would save up to {100 * high:.0f} % of the time in which agents work, and perhaps nothing.",
            )
        case Reuse.WOULD_NOT:
            why = "It would save less than 3 % of the time in which agents work."
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
