"""What happened in a session, in sentences: a line for each thing that mattered, in order of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from turnscope.model import Segment
from turnscope.semconv import NO_OBSTACLE, Evidence, Part, Status
from turnscope_app import text, words
from turnscope_app.because import because
from turnscope_app.session_answer import SPENT
from turnscope_app.stories import Turn

LINES: Final = 8
"""Of a story at most."""
_LONE: Final = 2
"""Turns of one kind, such as with one and the same obstacle that are told one by one; more are told together."""
_LONG: Final = 0.1
"""A wait of at least this share of the session is told of."""
_NS_A_TOKEN: Final = 100_000
"""For the order of a story alone, where nobody knows what computing cost."""
_WAITS: Final = 3
_BETWEEN: Final = (Part.TOOL_WAIT, Part.USER_WAIT, Part.APPLICATION_WORK)

READS: Final = (
    "turn_id",
    "turn_index",
    "started_ns",
    "ended_ns",
    "reason",
    "status",
    "stage",
    "suspicions",
    "prompt_tokens",
    "fetched_tokens",
    "computed_tokens",
    "recomputed_tokens",
    "suspect_tokens",
    "fetch_ns",
    "net_gain_ns",
    "net_gain_low_ns",
    "net_gain_high_ns",
    "recompute_ns",
    "recompute_low_ns",
    "recompute_high_ns",
    "refetch_ns",
    "refetch_low_ns",
    "refetch_high_ns",
    "refetch_basis",
    "late_by_ns",
    "late_by_error_ns",
    "diverged_role",
    "diverged_message",
)
"""Columns of turns that a story is made of."""


class Line(NamedTuple):
    """One thing that happened. ``turn``: the number of the turn to look at, None where it was between turns."""

    said: str
    turn: int | None
    weight: float
    """How much it matters, against others of the same session."""
    at_ns: int


_Numbered = tuple[int, Turn]


def lines(turns: Sequence[Turn], numbers: Sequence[int], segments: Sequence[Segment]) -> tuple[list[Line], int]:
    """The story: what matters most, in order of time, and how many more things could be told. ``turns``: the whole
    session's, with the columns ``READS``."""
    numbered = list(zip(numbers, turns, strict=True))
    wrong = [(n, turn) for n, turn in numbered if turn["suspicions"]]
    failed = [(n, turn) for n, turn in numbered if turn["status"] != Status.OK and not turn["suspicions"]]
    rest = [(n, turn) for n, turn in numbered if turn["status"] == Status.OK and not turn["suspicions"]]
    again = [(n, turn) for n, turn in rest if _is_avoidable(turn)]
    fetched = [(n, turn) for n, turn in rest if not _is_avoidable(turn) and turn["fetched_tokens"]]
    gained = [(n, turn) for n, turn in fetched if turn["net_gain_ns"] is not None]
    found = _told(wrong, lambda turn: ", ".join(map(_suspicion, turn["suspicions"])), _wrong)
    found += _told(failed, lambda turn: turn["status"], _unanswered)
    found += _told(again, lambda turn: turn["reason"], _computed_again)
    found += _told(gained, lambda turn: "gain" if turn["net_gain_ns"] >= 0 else "loss", _gained)
    found += _waits(numbered, segments)
    found.sort(key=lambda line: -line.weight)
    kept = sorted(found[:LINES], key=lambda line: (line.at_ns, line.turn or 0))
    return kept, len(found) - len(kept)


_FIRST: Final = 1e18
"""More than any time in nanoseconds: possibly wrong answers come first, then those that never came."""


def _told(
    turns: Sequence[_Numbered], key: Callable[[Turn], str], tell: Callable[[str, Sequence[_Numbered]], Line]
) -> list[Line]:
    """Turns of the same kind one by one where they are few, else together."""
    by_kind: defaultdict[str, list[_Numbered]] = defaultdict(list)
    for number, turn in turns:
        by_kind[key(turn)].append((number, turn))
    found = []
    for same in by_kind.values():
        if len(same) <= _LONE:
            found += [tell(f"Turn {number:,}", [(number, turn)]) for number, turn in same]
        else:
            found.append(tell(_who(same), same))
    return found


def _who(same: Sequence[_Numbered]) -> str:
    first = ", ".join(f"{number:,}" for number, _ in same[:3])
    return f"{len(same):,} turns ({first} and {len(same) - 3:,} more)" if len(same) > 3 else f"Turns {first}"


def _wrong(who: str, same: Sequence[_Numbered]) -> Line:
    number, turn = same[0]
    suspect = sum(turn["suspect_tokens"] or 0 for _, turn in same)
    some = f" ({suspect:,} tokens)" if suspect else ""
    kinds = ", ".join(map(_suspicion, turn["suspicions"]))
    said = f"{who} may have a wrong answer{some}: {kinds}."
    return Line(said, number, 2 * _FIRST, turn["started_ns"])


def _suspicion(kind: str) -> str:
    word = words.SUSPICIONS.get(kind)
    return word.shown.lower() if word else text.harmless(kind)


_ENDED: Final[dict[str, str]] = {
    Status.ERROR: "ended with an error",
    Status.CANCELLED: "was broken off: the client went away",
    Status.STUCK: "waits for something that will never come (stuck)",
}


def _unanswered(who: str, same: Sequence[_Numbered]) -> Line:
    number, turn = same[0]
    what = _ENDED.get(turn["status"], f"ended as {text.harmless(turn['status'])}")
    if len(same) > 1:
        what = f"each {what}"
    where = f", at {text.harmless(turn['stage'])}" if turn["stage"] and len(same) == 1 else ""
    return Line(f"{who} {what}{where}.", number, _FIRST, turn["started_ns"])


def _is_avoidable(turn: Turn) -> bool:
    again = turn["recomputed_tokens"]
    some = again or (again is None and turn["computed_tokens"])
    return bool(some and turn["reason"] not in NO_OBSTACLE and because(turn))


def _computed_again(who: str, same: Sequence[_Numbered]) -> Line:
    known = [turn for _, turn in same if turn["recomputed_tokens"] is not None]
    worst, turn = max(same, key=lambda item: (item[1]["recompute_ns"] or 0, item[1]["recomputed_tokens"] or 0))
    if len(same) == 1:
        clause = because(turn)
    else:
        clause = f"each time {because({**turn, 'late_by_ns': None, 'diverged_role': None})}"
    began = same[0][1]["started_ns"]
    if not known:
        computed = sum(turn["computed_tokens"] or 0 for _, turn in same)
        said = f"{who} computed {computed:,} tokens because {clause}; how many of them once more is not known."
        return Line(said, worst, computed * _NS_A_TOKEN, began)
    again = sum(turn["recomputed_tokens"] for turn in known)
    said = f"{who} recomputed {again:,} tokens because {clause}{_would_save(known)}."
    return Line(said, worst, _saved(known)[0] or again * _NS_A_TOKEN, began)


def _saved(turns: Sequence[Turn]) -> tuple[int | None, int, int]:
    """By fetching instead: the estimate and its ends; None where no turn tells what computing cost."""
    known = [turn for turn in turns if turn["recompute_ns"] is not None]
    if not known:
        return None, 0, 0
    best = sum(max(0, t["recompute_ns"] - (t["refetch_ns"] or 0)) for t in known)
    low = sum(max(0, (t["recompute_low_ns"] or 0) - (t["refetch_high_ns"] or 0)) for t in known)
    high = sum(max(0, (t["recompute_high_ns"] or 0) - (t["refetch_low_ns"] or 0)) for t in known)
    return best, min(low, best), max(high, best)


def _would_save(turns: Sequence[Turn]) -> str:
    best, low, high = _saved(turns)
    if best is None:
        return "; what that cost is not known"
    if not high:
        return "; fetching would have been no faster"
    assumed = any(turn["refetch_basis"] == "assumed" for turn in turns)
    basis = ", if fetching takes what it took in the published reference" if assumed else ""
    between = f" ({text.about(low)} to {text.about(high)})" if (low, high) != (best, best) else ""
    return f"; fetching would have saved about {text.about(best)}{between}{basis}"


def _gained(who: str, same: Sequence[_Numbered]) -> Line:
    """All of them gained, or all lost."""
    gain = sum(turn["net_gain_ns"] for _, turn in same)
    tokens = sum(turn["fetched_tokens"] for _, turn in same)
    times = [turn["fetch_ns"] for _, turn in same]
    time = "" if None in times else f" in {text.about(sum(times))}"
    number, _ = max(same, key=lambda item: abs(item[1]["net_gain_ns"]))
    began = same[0][1]["started_ns"]
    said = f"{who} fetched {tokens:,} tokens back{time}"
    if gain >= 0:
        return Line(f"{said}, which saved about {text.about(gain)}.", number, gain, began)
    said += f": computing them would have been about {text.about(-gain)} faster."
    return Line(said, number, -gain, began)


def _waits(turns: Sequence[tuple[int, Turn]], segments: Sequence[Segment]) -> list[Line]:
    """The longest stretches in which no model call ran, and something tells what did."""
    if not segments:
        return []
    least = _LONG * (segments[-1].end_ns - segments[0].start_ns)
    found: list[Line] = []
    held: tuple[int, int, Part, Evidence] | None = None
    starts = [(turn["started_ns"], number) for number, turn in turns]
    for at in [*segments, None]:
        same = held is not None and at is not None and (held[2], held[1]) == (at.part, at.start_ns)
        if same and held is not None and at is not None:
            held = held[0], at.end_ns, held[2], held[3]
            continue
        if held is not None and held[2] in _BETWEEN and held[1] - held[0] >= least:
            found.append(_wait(held, starts))
        held = None if at is None or at.turn_id is not None else (at.start_ns, at.end_ns, at.part, at.evidence)
    return sorted(found, key=lambda line: -line.weight)[:_WAITS]


def _wait(held: tuple[int, int, Part, Evidence], starts: Sequence[tuple[int, int]]) -> Line:
    start, end, part, evidence = held
    before = max((item for item in starts if item[0] < start), default=None)
    after = min((item for item in starts if item[0] >= end), default=None)
    if before and after:
        where = f"Between turn {before[1]} and turn {after[1]}"
    elif after:
        where = f"Before turn {after[1]}"
    else:
        where = f"After turn {before[1]}" if before else "In between"
    known = " (inferred)" if evidence is Evidence.INFERRED else ""
    return Line(f"{where} {SPENT[part]} for {text.duration(end - start)}{known}.", None, end - start, start)
