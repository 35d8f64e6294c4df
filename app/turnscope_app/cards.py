"""The figures at the head of a page."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from turnscope.model import Figures
from turnscope.semconv import Part
from turnscope.store.totals import Totals
from turnscope_app import answers, text, words

_REUSED: Final = (
    "Share of the prompt tokens that were not computed: already there, fetched back, or from another store. "
    "Reuse that may be wrong is included, as the engine counts it."
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


def store(totals: Totals) -> list[Card]:
    """The figures of the whole store."""
    return [
        Card("Sessions", text.count(totals.sessions), "Conversations or agent runs with an id."),
        Card(
            "Turns",
            text.count(totals.turns),
            "Model calls, as the client sees them: "
            f"{text.count(totals.turns - totals.unattributed_turns)} in sessions, "
            f"{text.count(totals.unattributed_turns)} without a session id.",
        ),
        Card(
            "Prompt tokens reused",
            text.share(totals.reused_tokens, totals.source_tokens),
            f"{_REUSED}{_measured(totals.source_turns, totals.turns)}",
        ),
        _fetched(totals.fetched_tokens, totals.fetched_bytes),
        Card("Possibly wrong answers", text.count(totals.suspicious_turns), _WRONG),
    ]


def parts(figures: Figures) -> dict[Part, Card]:
    """The parts that took any time: the legend of their bar. How each is known is said in words."""
    found = {}
    for part in map(Part, words.PARTS):
        ns = getattr(figures, f"{part}_ns")
        if ns:
            word = answers.part_word(part, figures)
            label = word.plain if word.plain.lower() == word.term else f"{word.plain} ({word.term})"
            found[part] = Card(
                label, text.share(ns, figures.wall_ns), f"{word.story} {_known(part, figures)}", more=text.duration(ns)
            )
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
    return f"*Inferred{some}, from the model calls before and after: an upper bound.*"


def reuse(figures: Figures) -> list[Card]:
    """What is known of a period's reuse."""
    return [
        Card(
            "Input reused",
            text.share(figures.reused_tokens, figures.source_tokens),
            f"Prompt tokens. {_REUSED}",
        ),
        Card(
            "Input read again",
            text.share(figures.recomputed_tokens, figures.prompt_tokens),
            "Share of prompt tokens that had been computed in the same session before and were computed again "
            "(recomputed).",
        ),
        Card(
            "Saved at best",
            text.share(figures.fetched_ns, figures.wall_ns),
            "How much shorter all sessions would be, had what was computed again been fetched back: between "
            f"{text.duration(figures.fetched_low_ns)} and {text.duration(figures.fetched_high_ns)}. Judged for "
            f"{figures.judged_turns:,} of {text.turns(figures.turns)}.",
            words.Known.ESTIMATED,
        ),
    ]


def changes(now: Figures, before: Figures) -> list[Change]:
    """What is other than in the period before. Shares change by points, times and counts by percent."""
    shares = (
        ("Waiting for tools", now.tool_wait_ns, before.tool_wait_ns),
        ("Reading the prompt", now.input_processing_ns, before.input_processing_ns),
        ("Writing the answer", now.generation_ns, before.generation_ns),
    )
    times = (
        ("Whole task, median", now.task_latency_median_ns, before.task_latency_median_ns),
        ("First token, median", now.ttft_median_ns, before.ttft_median_ns),
    )
    return [
        Change("Sessions", text.count(now.sessions), _percent(now.sessions, before.sessions), None),
        *(Change(label, text.duration(a), _percent(a, b), False) for label, a, b in times if a is not None),
        *(
            Change(label, text.share(a, now.wall_ns), _points(a, now.wall_ns, b, before.wall_ns), None)
            for label, a, b in shares
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


def session(summary: dict[str, Any]) -> list[Card]:
    """The figures of one session; how much was computed again only where there is evidence of it."""
    turns = summary["turns"]
    found = [
        Card("Turns", text.count(turns), "Model calls, as the client sees them."),
        Card(
            "Prompt tokens",
            text.count(summary["prompt_tokens"]),
            f"Of all its turns together.{_measured(summary['measured_turns'], turns)}",
        ),
        Card(
            "Prompt tokens reused",
            text.share(summary["reused_tokens"], summary["source_tokens"]),
            f"{_REUSED}{_measured(summary['source_turns'], turns)}",
        ),
        _fetched(summary["fetched_tokens"], summary["fetched_bytes"]),
    ]
    if summary["split_turns"]:
        found.append(
            Card(
                "Tokens computed again",
                text.count(summary["recomputed_tokens"]),
                f"Had been computed in this session before: wasted work.{_measured(summary['split_turns'], turns)}",
            )
        )
    return [
        *found,
        Card(
            "First token, median",
            text.duration(summary["ttft_median_ns"]),
            "Half of the turns had their first content byte within this time. Measured by the proxy hook."
            f"{_measured(summary['ttft_turns'], turns)}",
        ),
        Card("Possibly wrong answers", text.count(summary["suspicious_turns"]), _WRONG),
    ]


def _fetched(tokens: int | None, size: int | None) -> Card:
    return Card(
        "Tokens fetched back",
        text.count(tokens),
        f"Read back from decode workers (reverse fetch). Bytes moved: {text.size(size)}.",
    )


def _measured(measured: int, turns: int) -> str:
    return "" if measured == turns else f" Measured for {measured:,} of {turns:,} turns."
