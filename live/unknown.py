"""How many turns have no known reason, where both kinds of hooks told of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from live.agent import Session
from live.driver import TurnTruth
from live.verdict import Row
from turnscope.semconv import Reason

ALLOWED: Final = 0.01


class Share(NamedTuple):
    """Of ``turns``, so many are ``unknown``."""

    turns: int
    unknown: int


def unknown_of(truth: Iterable[TurnTruth], scripted: Iterable[Session], stored: Sequence[Row]) -> dict[str, Share]:
    """By configuration, of the turns in ``truth`` and of the scripted agent's."""
    configurations = {turn.traceparent.split("-")[1]: turn.configuration for turn in truth}
    configurations |= {name: session.configuration for session in scripted for name in session.conversations}
    found: dict[str, Share] = {}
    for row in stored:
        name = configurations.get(str(row["caller_trace_id"])) or configurations.get(str(row["session_id"]))
        if name is not None and row["has_attempt"] and (row["has_prefill"] or row["has_decode"]):
            share = found.get(name, Share(0, 0))
            found[name] = Share(share.turns + 1, share.unknown + (row["reason"] == Reason.UNKNOWN))
    return found


def unexplained(counted: Mapping[str, Share], stored: Mapping[str, Share]) -> Iterator[str]:
    """The metric and the store must know the same turns, and of less than one in a hundred no reason; a later fact may
    have given a turn one in the store alone. One sentence where it is not so."""
    for name in sorted(counted.keys() | stored.keys()):
        ours, rows = counted.get(name, Share(0, 0)), stored.get(name, Share(0, 0))
        unknown = max(ours.unknown, rows.unknown)
        if ours.turns != rows.turns or (unknown and unknown >= ALLOWED * rows.turns):
            yield f"{name}: {_text(ours)} as counted, {_text(rows)} as stored"


def total(shares: Iterable[Share]) -> str:
    """All of them in words."""
    found = list(shares)
    return _text(Share(sum(s.turns for s in found), sum(s.unknown for s in found)))


def _text(share: Share) -> str:
    return f"{share.unknown} of {share.turns} turns have no known reason"
