"""The figures at the head of a page."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

from turnscope.measures import ceiling_sentence, verdict
from turnscope.model import Figures, SessionSummary
from turnscope.semconv import Part
from turnscope_app import answers, text, words

_REUSED: Final = (
    "Share of the prompt tokens that were not computed: found in the server's own memory, fetched back, or from "
    "another store. Reuse that may be wrong is included, as the engine counts it."
)
_WRONG: Final = "Turns that were answered, with evidence that reused memory did not belong to their prompt."


class Card(NamedTuple):
    """One figure."""

    label: str
    value: str
    help: str
    known: words.Known = words.Known.MEASURED
    more: str | None = None
    """A second figure, below."""


class Change(NamedTuple):
    """One figure against the period before."""

    label: str
    value: str
    delta: str | None
    more_is_good: bool | None
    """None: neither is."""


def all_sessions(figures: Figures, unattributed_turns: int) -> list[Card]:
    """The figures of all sessions; so many turns are in none of them."""
    apart = f" {text.turns(unattributed_turns)} without a session id stand apart, below." if unattributed_turns else ""
    return [
        Card("Sessions", text.count(figures.sessions), "Conversations or agent runs with an id."),
        Card("Turns", text.count(figures.turns), f"Model calls of these, as the client sees them.{apart}"),
        Card(
            "Prompt tokens reused",
            text.share(figures.reused_tokens, figures.source_tokens),
            f"{_REUSED} Of the turns that told where their prompt came from.",
        ),
        _fetched(figures.fetched_tokens, figures.fetched_bytes),
        Card("Possibly wrong answers", text.count(figures.suspicious_turns), _WRONG),
    ]


def parts(figures: Figures) -> dict[Part, Card]:
    """The parts that took any time: the legend of their bar. How each is known is said in words."""
    found = {}
    for part, share in answers.shares(figures).items():
        word = answers.part_word(part, figures)
        more = text.duration(getattr(figures, f"{part}_ns"))
        found[part] = Card(word.shown, share, f"{word.story} {_known(part, figures)}", more=more)
    return found


def _known(part: Part, figures: Figures) -> str:
    if part is Part.UNKNOWN:
        return ""
    whole = getattr(figures, f"{part}_ns")
    inferred = {
        Part.TOOL_WAIT: figures.tool_wait_inferred_ns,
        Part.USER_WAIT: figures.user_wait_inferred_ns,
        Part.GENERATION: figures.generation_inferred_ns,
    }.get(part, 0)
    if not inferred:
        return f"*{words.KNOWN[words.Known.MEASURED]}*"
    some = "" if inferred == whole else f" for {text.share(inferred, whole)} of it"
    return f"*Inferred{some}: told by the model calls before and after it. An upper bound.*"


def reuse(figures: Figures) -> list[Card]:
    """What is known of a period's reuse."""
    spared = None if verdict.reuse(figures) is verdict.Reuse.UNKNOWN else figures.fetched_ns
    return [
        Card(
            "Input reused",
            text.share(figures.reused_tokens, figures.source_tokens),
            f"Prompt tokens. {_REUSED}",
        ),
        Card(
            "Input read again",
            answers.read_again(figures) or words.NOT_MEASURED,
            "Share of prompt tokens that had been computed in the same session before and were computed again "
            f"(recomputed). Known for {figures.turns - figures.unjudged_turns:,} of {text.turns(figures.turns)}.",
        ),
        Card(
            "Could be saved, about",
            text.share(spared, verdict.working_ns(figures)),
            f"Of {answers.AT_WORK}, had what was computed again been fetched back: between "
            f"{text.about(figures.fetched_low_ns)} and {text.about(figures.fetched_high_ns)} in all. Judged for "
            f"{figures.judged_turns:,} of {text.turns(figures.turns)}. {answers.WORKING}",
            words.Known.ESTIMATED,
        ),
    ]


def changes(now: Figures, before: Figures) -> list[Change]:
    """What is other than in the period before. Shares change by points, times and counts by percent."""
    shares = answers.shares(now)
    times = (
        ("Whole task, median", now.task_latency_median_ns, before.task_latency_median_ns),
        ("First token, median", now.ttft_median_ns, before.ttft_median_ns),
    )
    return [
        Change("Sessions", text.count(now.sessions), _percent(now.sessions, before.sessions), None),
        *(Change(label, text.duration(a), _percent(a, b), False) for label, a, b in times if a is not None),
        *(
            Change(
                words.PARTS[part].plain,
                shares.get(part, text.share(0, now.wall_ns)),
                _points(getattr(now, f"{part}_ns"), now.wall_ns, getattr(before, f"{part}_ns"), before.wall_ns),
                None,
            )
            for part in (Part.TOOL_WAIT, Part.INPUT_PROCESSING, Part.GENERATION)
        ),
        Change(
            "Possibly wrong answers",
            text.count(now.suspicious_turns),
            f"{now.suspicious_turns - before.suspicious_turns:+,}",
            False,
        ),
        Change("Not answered", text.count(now.failed_turns), f"{now.failed_turns - before.failed_turns:+,}", False),
    ]


def _percent(now: int | None, before: int | None) -> str | None:
    return f"{100 * (now - before) / before:+.0f} %" if now is not None and before else None


def _points(now: int, whole: int, before: int, whole_before: int) -> str | None:
    return f"{100 * now / whole - 100 * before / whole_before:+.0f} points" if whole and whole_before else None


def session(summary: SessionSummary, turns: pa.Table) -> list[Card]:
    """The figures of one session; how much was computed again only where there is evidence of it."""
    found = [
        Card("Whole session", text.duration(summary.wall_ns), "From the first thing known of it to the last."),
        Card("Working time", text.duration(summary.wall_ns - summary.user_wait_ns), answers.WORKING),
        _spared(summary),
        Card("Turns", text.count(summary.turns), "Model calls, as the client sees them."),
        _tools(summary),
        Card(
            "Prompt tokens reused",
            text.share(summary.reused_tokens, summary.source_tokens),
            f"{_REUSED} Of {text.count(summary.source_tokens, 'tokens')} together.{_measured(turns, *_SOURCES)}",
        ),
        _fetched(summary.fetched_tokens, summary.fetched_bytes),
    ]
    if summary.recomputed_tokens is not None:
        found.append(
            Card(
                "Tokens computed again",
                text.count(summary.recomputed_tokens),
                f"Had been computed in this session before: wasted work.{_measured(turns, 'recomputed_tokens')}",
            )
        )
    return [
        *found,
        Card(
            "First token, median",
            text.duration(summary.ttft_median_ns),
            "Half of the turns had their first content byte within this time. Measured by the proxy hook."
            f"{_measured(turns, 'ttft_ns')}",
        ),
        Card(
            "Whole task, median",
            text.duration(summary.task_latency_median_ns),
            "Half of its completed tasks took no longer, from the user's message to the first answer that asks for no "
            "tool. A faster first token is not a faster task.",
        ),
        Card("Possibly wrong answers", text.count(summary.suspicious_turns), _WRONG),
    ]


_SOURCES: Final = ("local_hit_tokens", "fetched_tokens", "external_tokens")


def _spared(summary: SessionSummary) -> Card:
    found = summary.ceiling
    what = (
        "How much shorter the session would be had all that was computed again been fetched back instead (the ceiling)."
    )
    if not ceiling_sentence.known(summary):
        why = "Too little tells what was computed again, or what that cost."
        return Card("Reuse could spare", words.NOT_MEASURED, f"{what} {why}", words.Known.ESTIMATED)
    between = f"{text.about(found.fetched_low_ns)} to {text.about(found.fetched_high_ns)}"
    spared = text.about(found.fetched_ns) if found.fetched_ns else "nothing"
    return Card("Reuse could spare", spared, f"{what} Range: {between}.", words.Known.ESTIMATED)


def _tools(summary: SessionSummary) -> Card:
    if summary.tools is not None:
        return Card("Tool calls", text.count(summary.tools), "Tools that ran, as the agent's spans tell.")
    return Card(
        "Tool calls asked for",
        text.count(summary.tool_calls),
        "By the model's answers; whether they ran, only the agent's spans would tell.",
    )


def _fetched(tokens: int | None, size: int | None) -> Card:
    return Card(
        "Tokens fetched back",
        text.count(tokens),
        f"Read back from servers that write answers, which had kept them (reverse fetch from decode engines). Bytes "
        f"moved: {text.size(size)}.",
    )


def _measured(turns: pa.Table, *names: str) -> str:
    measured = turns.select(names).drop_null().num_rows
    return "" if measured == len(turns) else f" Measured for {measured:,} of {len(turns):,} turns."
