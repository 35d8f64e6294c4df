"""The most that reuse could still give a session, in a sentence: the same words on every screen."""

from __future__ import annotations

from collections.abc import Callable

from turnscope.measures.ceiling import BOTH, MEASURED
from turnscope.model import Ceiling, SessionSummary

_NOT_KNOWN = "Whether reuse would help is not known"
_BASIS = {
    MEASURED: ", by what fetching took on these engines",
    BOTH: ", in part by what fetching took in the published reference, since too little was measured here",
}
_ASSUMED = ", if fetching takes what it took in the published reference: not measured here yet"


def sentence(
    summary: SessionSummary, *, duration: Callable[[int | None], str], share: Callable[[int | None, int], str]
) -> str:
    """With its range and what it rests on. ``duration`` of nanoseconds and ``share`` of a whole: how the screen writes
    figures."""
    found = summary.ceiling
    if summary.too_large:
        return f"{_NOT_KNOWN}, since it was not taken apart."
    if not summary.turns:
        return f"{_NOT_KNOWN}: none of its model calls passed an engine that is watched here."
    if found.free_ns is None or (not found.recomputed_tokens and found.unjudged_turns):
        return (
            f"{_NOT_KNOWN}: {_turns(found.unjudged_turns)} of {summary.turns:,} tell neither what was computed again "
            "nor what that cost."
        )
    if not found.recomputed_tokens:
        return "Reuse would not help: nothing was computed twice."
    again = f"what was computed again ({found.recomputed_tokens:,} tokens)"
    basis = _BASIS.get(found.transfer or "", _ASSUMED)
    if not found.fetched_high_ns:
        return (
            f"Reuse would not help: to fetch {again} would have taken as long as computing it did{basis}."
            f"{_unjudged(found)}"
        )
    return (
        f"At best reuse would make it {duration(found.fetched_ns)} shorter "
        f"({share(found.fetched_ns, summary.wall_ns)} of its time; nine times in ten between "
        f"{duration(found.fetched_low_ns)} and {duration(found.fetched_high_ns)}): had {again} been fetched back "
        f"instead{basis}.{_unjudged(found)}"
    )


def _unjudged(found: Ceiling) -> str:
    return f" {_turns(found.unjudged_turns)} could not be judged." if found.unjudged_turns else ""


def _turns(count: int) -> str:
    return f"{count:,} turn" if count == 1 else f"{count:,} turns"
