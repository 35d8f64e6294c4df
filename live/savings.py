"""Sessions held without reuse and with it: what was predicted of the first that reuse would spare, against what it did.

Each trial is one session held three times, in random order and right after each other, so that slow drift of the
machine divides out: without a handle in D's answers, once more so, and with it. P has no prefix caching, so that all
that was computed before is computed again unless it is fetched. Nothing else differs but a word at the begin, without
which D would find the first one's prompt in its own cache.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from live.conversations import FIRST, NONE, Conversation, Groups
from live.driver import TurnTruth
from turnscope.measures.sessions import summarise
from turnscope.model import AgentSpan, Ceiling, Turn

TRIALS: Final = 20
LEARNING: Final = 3
"""Trials before those that are judged: from them turnscope learns what computing and fetching cost."""
ENOUGH: Final = 0.9
TURNS: Final = 5
WORDS: Final = (800, 2250)
"""Of what the user says first, least and most: 2,000 to 7,000 tokens, of the 8,192 that the model takes."""
ANSWER_TOKENS: Final = 12
Known = Mapping[str, tuple[list[Turn], list[AgentSpan]]]
OFF, AGAIN, ON = "off", "again", "on"
_REASONS: Final = {OFF: ("no_handle_from_decode",), AGAIN: ("no_handle_from_decode",), ON: NONE}


def sessions(seed: int) -> Groups:
    """All of them, one after the other."""
    rng = random.Random(seed)
    out = []
    for trial in range(LEARNING + TRIALS):
        words = rng.randint(*WORDS)
        for how in rng.sample([OFF, AGAIN, ON], 3):
            out.append(
                Conversation(
                    f"{how}-{trial}",
                    (FIRST, *[_REASONS[how]] * (TURNS - 1)),
                    handle_in_stream=how == ON,
                    words=words,
                    seed=f"saving {trial}",
                    answer=ANSWER_TOKENS,
                )
            )
    return (tuple(out),)


@dataclass(frozen=True)
class Saving:
    """One session, held three times; times are sums over its turns, by the client's clock."""

    number: int
    off_ns: int
    again_ns: int
    on_ns: int
    predicted: Ceiling
    """Of the first one without reuse."""

    @property
    def seen_ns(self) -> int:
        """What reuse spared."""
        return (self.off_ns + self.again_ns) // 2 - self.on_ns

    @property
    def bounds(self) -> tuple[int, int]:
        """What was predicted, lowest and highest."""
        return self.predicted.fetched_low_ns or 0, self.predicted.fetched_high_ns or 0


def predicted(truth: Iterable[TurnTruth]) -> list[str]:
    """The sessions that it is predicted of."""
    return sorted({turn.session_id or "" for turn in truth if turn.conversation.startswith(f"{OFF}-")})


def trials(truth: Iterable[TurnTruth], known: Known) -> list[Saving]:
    """Those that are judged; ``known``: turns and spans by session."""
    took: defaultdict[tuple[int, str], int] = defaultdict(int)
    ids = {}
    for turn in truth:
        how, _, number = turn.conversation.rpartition("-")
        if how in _REASONS:
            took[int(number), how] += turn.total_ns
            ids[int(number), how] = turn.session_id or ""
    out = []
    for trial in sorted({trial for trial, _ in took if trial >= LEARNING}):
        found = summarise(ids[trial, OFF], *known.get(ids[trial, OFF], ([], [])))
        most = found.summary.ceiling if found is not None else Ceiling()
        out.append(Saving(trial, took[trial, OFF], took[trial, AGAIN], took[trial, ON], most))
    return out


def inside(trial: Saving) -> bool:
    """Whether what was seen lies in what was predicted of all its turns."""
    low, high = trial.bounds
    whole = trial.predicted.judged_turns == TURNS and not trial.predicted.unjudged_turns
    return whole and low <= trial.seen_ns <= high


def judge(found: list[Saving]) -> list[str]:
    """One sentence where the predictions are not what they claim to be: right nine times in ten."""
    right = sum(map(inside, found))
    if found and right < ENOUGH * len(found):
        return [f"what reuse spared lies within its predicted interval in {right} of {len(found)} sessions"]
    return []


def table(found: list[Saving]) -> str:
    """Milliseconds, a line for each session; then how wide the intervals are, and how far one session held twice
    differs from itself."""
    rows: list[tuple[str, ...]] = [
        ("session", "off", "again", "on", "spared", "predicted", "low", "high", "fetch", "inside")
    ]
    for trial in found:
        low, high = trial.bounds
        ns = trial.off_ns, trial.again_ns, trial.on_ns, trial.seen_ns, trial.predicted.fetched_ns or 0, low, high
        basis = trial.predicted.transfer or "-"
        rows.append((str(trial.number), *(f"{each / 1e6:.0f}" for each in ns), basis, "yes" if inside(trial) else "NO"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    width = median((high - low) / 2e6 for low, high in (trial.bounds for trial in found))
    middle = median((trial.predicted.fetched_ns or 0) / 1e6 for trial in found)
    twice = median(abs(trial.off_ns - trial.again_ns) / 1e6 for trial in found)
    lines += [
        f"{sum(map(inside, found))} of {len(found)} inside; medians: predicted {middle:.0f} ms, half of the interval's "
        f"width {width:.0f} ms; the same session held twice without reuse differs by {twice:.0f} ms"
    ]
    return "\n".join(lines)
