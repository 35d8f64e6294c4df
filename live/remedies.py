"""What runbooks say that stops the harm, done to a live pair: the alert fired before it, and is quiet while it is in
place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from alerts.groups import alerts
from live.conversations import FIRST, NONE, Act, Conversation, Groups
from live.driver import TurnTruth
from live.verdict import Row

NO_HANDLES: Final = ("--handle-ttl", "0")
"""The proxy keeps no handle, as one without its session store."""
EARLY: Final = ("--handle-ttl", "12")
"""It forgets them before D gives up what it holds, and before P would decline them."""
GIVES_UP_S: Final = 3
GIVES_UP: Final = ("--prefill-timeout", str(GIVES_UP_S))
"""It gives up a prefill that does not answer, and asks once more without the handle."""
TOO_HIGH: Final = 8192
"""A threshold that no turn reaches: as many tokens as the model takes."""
THRESHOLD: Final = 64
FEATURE_OFF: Final = "TurnscopeNothingReused feature_off"
BELOW_THRESHOLD: Final = "TurnscopeNothingReused below_threshold"
NOT_GIVEN: Final = ("handle_not_given", "proxy_entry_expired")
_RANGE: Final = re.compile(r"\[\d+[smhd]\]")


def without_handles() -> Groups:
    """What spoiled turns before: another system prompt, the same as then, and coming back late."""
    return (
        (Conversation("unkept", (FIRST, ("prefix_diverged",), NOT_GIVEN), acts={2: Act.REPLACE_SYSTEM}),),
        (Conversation("unkept-late", (FIRST, NOT_GIVEN), acts={2: Act.WAIT_PAST_TTL}),),
    )


def forgotten_early() -> Groups:
    """Who comes back soon still fetches; who comes back late is not declined, but computes."""
    return (
        (Conversation("soon", (FIRST, NONE)),),
        *(
            (Conversation(f"forgotten-{number}", (FIRST, NOT_GIVEN), acts={2: Act.WAIT_PAST_TTL}),)
            for number in range(3)
        ),
    )


def asked_again(name: str) -> Groups:
    """The handle comes to a P that has the feature off, and its request hangs until the proxy asks without it."""
    return ((Conversation(name, (FIRST, ("handle_consumed_by_retry",))),),)


def fetching(name: str) -> Groups:
    """All is as it should be."""
    return ((Conversation(name, (FIRST, NONE, NONE)),),)


@dataclass(frozen=True)
class Calmed:
    """A remedy while it was in place; all times are of scrapes."""

    alerts: tuple[str, ...]
    """That it is a remedy for: name, and cause where it has several."""
    configuration: str
    since_s: float
    """From when on things were as before it."""
    begin_s: float
    end_s: float


def judge(calmed: Iterable[Calmed], moment: Callable[[str, float], Sequence[object]]) -> Iterator[str]:
    """``moment``: the series that an expression has at a time. One sentence for each alert that had not
    fired before its remedy, or does with it: by its own expression, over just that time."""
    for each in calmed:
        by_name = {" ".join((alert.name, *alert.labels.values())): alert for alert in alerts()}
        for name in each.alerts:
            alert, where = by_name[name], f"{each.configuration}, {name}"
            if not moment(_over(alert.expr, each.since_s, each.begin_s), each.begin_s):
                yield f"{where}: had not fired before its remedy"
            if moment(_over(alert.expr, each.begin_s, each.end_s), each.end_s):
                yield f"{where}: fires in spite of its remedy"


def judge_unseen(truth: Iterable[TurnTruth], rows: Iterable[Row]) -> Iterator[str]:
    """Of turns that were done while hooks were off: serving went on as before, also what hung did, and nothing of them
    is told."""
    callers = {row["caller_trace_id"] for row in rows}
    for turn in truth:
        where = f"{turn.configuration}, hooks off, {turn.conversation} turn {turn.turn}"
        hung = turn.total_ns >= GIVES_UP_S * 1e9
        if turn.outcome != "ok" or hung == (turn.reasons == FIRST):
            yield f"{where}: {turn.outcome} after {turn.total_ns / 1e9:.1f} s"
        if turn.traceparent.split("-")[1] in callers:
            yield f"{where}: is in the store"


def _over(expression: str, begin_s: float, end_s: float) -> str:
    return _RANGE.sub(f"[{math.ceil(end_s - begin_s) + 1}s]", expression)
