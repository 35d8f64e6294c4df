"""What reuse could still give a session, in a sentence: the same words on every screen."""

from __future__ import annotations

from collections.abc import Callable

from turnscope.measures.ceiling import BOTH, MEASURED
from turnscope.model import Ceiling, SessionSummary, plural

_NOT_KNOWN = "What reuse could still spare is not known"
_BASIS = {
    MEASURED: ", by what fetching took on these engines",
    BOTH: ", in part by what fetching took in the published reference, since too little was measured here",
}
_ASSUMED = ", if fetching takes what it took in the published reference: not measured here yet"


def known(summary: SessionSummary) -> bool:
    """Whether the turns tell enough: where none that recomputed could be judged, nothing is no answer."""
    found = summary.ceiling
    return found.free_ns is not None and bool(found.recomputed_tokens or not found.unjudged_turns)


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
    if not known(summary):
        if summary.recomputed_tokens:
            tokens = plural(summary.recomputed_tokens, "token was", "tokens were")
            return (
                f"{_NOT_KNOWN}: {tokens} computed again, and no engine was measured often enough to tell what that "
                "cost."
            )
        return f"{_NOT_KNOWN}: of {plural(found.unjudged_turns, 'turn')} nobody can tell what was computed again."
    if not found.recomputed_tokens:
        return "Reuse would not help: nothing was computed twice."
    again = f"what was computed again ({plural(found.recomputed_tokens, 'token')})"
    basis = _BASIS.get(found.transfer or "", _ASSUMED)
    if not found.fetched_high_ns:
        return (
            f"Reuse would not help: to fetch {again} would have taken as long as computing it did{basis}."
            f"{_unjudged(found)}"
        )
    high = duration(found.fetched_high_ns)
    if not found.fetched_ns:
        return (
            f"Reuse would probably not help: had {again} been fetched back instead, it would be at most {high} shorter "
            f"(estimated){basis}.{_unjudged(found)}"
        )
    part = share(found.fetched_ns, summary.wall_ns - summary.user_wait_ns)
    return (
        f"Reuse would make it about {duration(found.fetched_ns)} shorter ({part} of its working time; estimated: nine "
        f"times in ten between {duration(found.fetched_low_ns)} and {high}), had {again} been fetched back "
        f"instead{basis}.{_unjudged(found)}"
    )


def _unjudged(found: Ceiling) -> str:
    return f" {plural(found.unjudged_turns, 'turn')} could not be judged." if found.unjudged_turns else ""
