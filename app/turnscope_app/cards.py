"""The figures at the head of a page."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from turnscope.measures import verdict
from turnscope.model import Figures, SessionSummary
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


def store(totals: Totals, sessions: int) -> list[Card]:
    """The figures of the whole store, which has so many sessions."""
    return [
        Card("Sessions", text.count(sessions), "Conversations or agent runs with an id."),
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
    spared = None if verdict.reuse(figures) is verdict.Reuse.UNKNOWN else figures.fetched_ns
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
            text.share(spared, figures.wall_ns),
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


def session(summary: SessionSummary, turns: pa.Table) -> list[Card]:
    """The figures of one session; how much was computed again only where there is evidence of it."""
    sums = {name: _sum(turns[name]) for name in _SUMMED}
    measured = {name: len(turns) - turns[name].null_count for name in (*_SUMMED, "ttft_ns")}
    reused = [sums[name] for name in ("local_hit_tokens", "fetched_tokens", "external_tokens")]
    source = min(measured[name] for name in ("local_hit_tokens", "fetched_tokens", "external_tokens"))
    found = [
        Card("Whole session", text.duration(summary.wall_ns), "From the first thing known of it to the last."),
        _spared(summary),
        Card("Turns", text.count(summary.turns), "Model calls, as the client sees them."),
        _tools(summary),
        Card(
            "Prompt tokens reused",
            text.share(None if None in reused else sum(n or 0 for n in reused), sums["prompt_tokens"]),
            f"{_REUSED} Of {text.count(sums['prompt_tokens'], 'tokens')} together.{_measured(source, summary.turns)}",
        ),
        _fetched(sums["fetched_tokens"], sums["fetched_bytes"]),
    ]
    if measured["recomputed_tokens"]:
        found.append(
            Card(
                "Tokens computed again",
                text.count(sums["recomputed_tokens"]),
                "Had been computed in this session before: wasted work."
                f"{_measured(measured['recomputed_tokens'], summary.turns)}",
            )
        )
    return [
        *found,
        Card(
            "First token, median",
            text.duration(summary.ttft_median_ns),
            "Half of the turns had their first content byte within this time. Measured by the proxy hook."
            f"{_measured(measured['ttft_ns'], summary.turns)}",
        ),
        Card("Possibly wrong answers", text.count(summary.suspicious_turns), _WRONG),
    ]


_SUMMED: Final = (
    "prompt_tokens",
    "local_hit_tokens",
    "fetched_tokens",
    "external_tokens",
    "recomputed_tokens",
    "fetched_bytes",
)


def _sum(column: Any) -> int | None:
    total: int | None = pc.sum(column).as_py()
    return total


def _spared(summary: SessionSummary) -> Card:
    found = summary.ceiling
    what = (
        "How much shorter the session would be had all that was computed again been fetched back instead (the ceiling)."
    )
    if found.fetched_ns is None:
        why = "No turn tells what it computed again, or what that cost."
        return Card("Reuse could spare", words.NOT_MEASURED, f"{what} {why}", words.Known.ESTIMATED)
    between = f"{text.about(found.fetched_low_ns)} to {text.about(found.fetched_high_ns)}"
    return Card(
        "Reuse could spare", f"≤ {text.about(found.fetched_ns)}", f"{what} Range: {between}.", words.Known.ESTIMATED
    )


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
        f"Read back from decode workers (reverse fetch). Bytes moved: {text.size(size)}.",
    )


def _measured(measured: int, turns: int) -> str:
    return "" if measured == turns else f" Measured for {measured:,} of {turns:,} turns."
