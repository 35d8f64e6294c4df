"""The figures at the head of a page."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from turnscope.store.totals import Totals
from turnscope_app import text, words

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
