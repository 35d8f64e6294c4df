"""What happened to a turn, in sentences."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from turnscope.semconv import Reason, Status, diverges_in
from turnscope.store.totals import Totals
from turnscope_app import text, words

MOST_WARNINGS: Final = 3
"""Turns whose suspicions are spelled out above the charts."""
_REUSED_HELP: Final = (
    "Share of the prompt tokens that were not computed: already there, fetched back, or from another store. "
    "Reuse that may be wrong is included, as the engine counts it."
)
_REUSED: Final = ("local_hit_tokens", "fetched_tokens", "external_tokens")

Turn = dict[str, Any]
"""A row of the store reader's turns."""


def prompt(turn: Turn) -> str:
    """Where the prompt's tokens came from."""
    total = turn["prompt_tokens"]
    if total is None:
        return "The prompt's length was not measured: the prefill engine did not report this turn."
    parts = []
    if turn["local_hit_tokens"]:
        parts.append(f"{turn['local_hit_tokens']:,} were already in the prefill worker's cache")
    if turn["fetched_tokens"]:
        parts.append(f"{turn['fetched_tokens']:,} were fetched back from the decode worker{_fetch(turn)}")
    if turn["external_tokens"]:
        parts.append(f"{turn['external_tokens']:,} came from another KV store")
    if turn["computed_tokens"]:
        parts.append(f"{turn['computed_tokens']:,} were computed{_split(turn)}")
    if not parts:
        return f"The prompt had {total:,} tokens; where they came from was not measured."
    return f"Of the prompt's {total:,} tokens, {_listed(parts)}."


def _fetch(turn: Turn) -> str:
    facts = []
    if turn["fetched_bytes"] is not None:
        facts.append(text.size(turn["fetched_bytes"]))
    if turn["fetch_ns"] is not None:
        facts.append(f"in {text.duration(turn['fetch_ns'])}")
    return f" ({' '.join(facts)})" if facts else ""


def _split(turn: Turn) -> str:
    if turn["recomputed_tokens"] is None or turn["new_tokens"] is None:
        return ""
    return f" ({turn['recomputed_tokens']:,} of them had been computed before)"


def why(turn: Turn) -> str:
    """Why no more was fetched back."""
    word = words.REASONS.get(turn["reason"])
    return word.story if word else f"The reason given is {turn['reason']!r}."


def parted(turn: Turn) -> str:
    """Which part of the request is not as the turn before had it; empty where nothing was seen to differ."""
    role, kind = turn["diverged_role"], turn["diverged_kind"]
    if role is None:
        return ""
    where = diverges_in(turn["diverged_message"], role)
    what = words.DIVERGENCES.get(kind, str(kind).replace("_", " "))
    before, now = turn["diverged_chars_before"], turn["diverged_chars"]
    size = f"; {before or 0:,} characters before, {now or 0:,} now" if (before, now) != (None, None) else ""
    late = " Only lengths could be compared: it may differ earlier." if turn["diverged_evidence"] == "lengths" else ""
    return f"The request diverges from the turn before in {where} ({what}{size}).{late}"


def ending(turn: Turn) -> str:
    """How the turn ended; empty when it was simply answered."""
    if turn["status"] == Status.OK:
        return ""
    word = words.STATUSES.get(turn["status"])
    said = word.story if word else f"The turn ended as {turn['status']!r}."
    return said if turn["stage"] is None else f"{said[:-1]} (at: {turn['stage']})."


def kept(turn: Turn) -> str:
    """What the decode worker kept for the next turn, and what became of it."""
    if turn["left_hold_id"] is None:
        return "No blocks were kept for a next turn, as far as was seen."
    if not turn["hold_seen"]:
        return "Blocks were kept for the next turn; what became of them has not been reported."
    what = "Blocks" if turn["hold_tokens"] is None else f"Blocks of {turn['hold_tokens']:,} tokens"
    if turn["hold_outcome"] is None:
        return f"{what} are still kept on the decode worker for the next turn."
    word = words.HOLD_OUTCOMES.get(turn["hold_outcome"])
    for_time = "" if turn["hold_held_ns"] is None else f" for {text.duration(turn['hold_held_ns'])}"
    return f"{what} were kept on the decode worker{for_time}. {word.story if word else turn['hold_outcome']}"


def whole(turn: Turn) -> list[str]:
    """The turn's story, a sentence or two each."""
    parts = [prompt(turn), why(turn), parted(turn), ending(turn), kept(turn)]
    return [p for p in parts if p]


def warning(turn: Turn) -> str:
    """Why the turn's answer may be wrong; empty when there is no suspicion."""
    found = []
    for suspicion in turn["suspicions"] or []:
        word = words.SUSPICIONS.get(suspicion)
        found.append(f"{word.shown}: {word.story}" if word else f"{suspicion}.")
    return " ".join(found)


def session(summary: dict[str, Any]) -> str:
    """One session in a sentence."""
    wall = text.duration(summary["last_ns"] - summary["first_ns"])
    parts = [f"{text.turns(summary['turns'])} over {wall}"]
    if summary["prompt_tokens"] is not None:
        reused = _reused(summary)
        if reused is not None:
            parts.append(f"{text.share(reused, summary['prompt_tokens'])} of the prompt tokens reused")
    reason = summary["main_reason"]
    if reason is not None and reason not in (Reason.UNKNOWN, Reason.OTHER):
        parts.append(
            f"most often in the way: {words.REASONS[reason].plain.lower()}" if reason in words.REASONS else reason
        )
    if summary["suspicious_turns"]:
        parts.append(f"{text.turns(summary['suspicious_turns'])} with a possibly wrong answer")
    return "; ".join(parts) + "."


class Card(NamedTuple):
    """One figure at the head of a page."""

    label: str
    value: str
    help: str


def cards(totals: Totals) -> list[Card]:
    """The figures of the whole store."""
    reused = _reused({name: getattr(totals, name) for name in _REUSED})
    return [
        Card("Sessions", text.count(totals.sessions), "Sessions with an id. Turns without one are a row of their own."),
        Card("Turns", text.count(totals.turns), "Model calls, as the client sees them."),
        Card(
            "Prompt tokens reused",
            text.share(reused, totals.prompt_tokens),
            _REUSED_HELP,
        ),
        Card(
            "Tokens fetched back",
            text.count(totals.fetched_tokens),
            f"Read back from decode workers (reverse fetch). Bytes moved: {text.size(totals.fetched_bytes)}.",
        ),
        Card(
            "Possibly wrong answers",
            text.count(totals.suspicious_turns),
            "Turns that were answered, with evidence that reused memory did not belong to their prompt.",
        ),
    ]


def session_cards(summary: dict[str, Any]) -> list[Card]:
    """The figures of one session."""
    return [
        Card("Turns", text.count(summary["turns"]), "Model calls, as the client sees them."),
        Card("Prompt tokens", text.count(summary["prompt_tokens"]), "Of all its turns together."),
        Card(
            "Reused",
            text.share(_reused(summary), summary["prompt_tokens"]),
            _REUSED_HELP,
        ),
        Card(
            "Tokens fetched back",
            text.count(summary["fetched_tokens"]),
            f"Read back from decode workers (reverse fetch). Bytes moved: {text.size(summary['fetched_bytes'])}.",
        ),
        Card(
            "First token, median",
            text.duration(summary["ttft_median_ns"]),
            "Half of the turns had their first content byte within this time. Measured by the proxy hook.",
        ),
        Card(
            "Possibly wrong answers",
            text.count(summary["suspicious_turns"]),
            "Turns that were answered, with evidence that reused memory did not belong to their prompt.",
        ),
    ]


def most_telling(turns: list[Turn]) -> int:
    """The position of the turn to tell first: a suspicious one, else one that failed, else the last."""
    for test in (lambda t: bool(t["suspicions"]), lambda t: t["status"] != Status.OK):
        for position, turn in enumerate(turns):
            if test(turn):
                return position
    return max(0, len(turns) - 1)


def _reused(sums: dict[str, Any]) -> int | None:
    parts = [sums[name] for name in _REUSED]
    return None if None in parts else sum(parts)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
