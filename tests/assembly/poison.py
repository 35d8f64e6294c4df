"""A mismatch that leaves wrong KV behind, and turns of others that may find it."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.assembly.talk import Talk, text
from tests.builders import P, Pair, Process
from turnscope.model import Event

SYSTEM = text(1000, salt=1)
EDITED = [*SYSTEM[:300], 7, *SYSTEM[301:], *text(650, salt=2)]
"""Parts at token 300 from what the first turn left: its 1,599 fetched tokens are wrong from there on."""


def poisoned(pair: Pair) -> tuple[list[Event], list[Event]]:
    """Two turns of session ``s``: the second's prompt is not what it fetched. Events, and digests."""
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", EDITED, at_ms=5000, given=pair.handle("1", 1599))
    return [*pair.start(), *one[0], *two[0]], [*one[1], *two[1]]


def other(pair: Pair, n: str, *, at_ms: int, local: int, prompt: list[int] | None = None, **fields: Any) -> list[Event]:
    """A turn of another session that begins like the poisoned one, with a local hit."""
    prompt = prompt or [*EDITED[:1200], *text(100, salt=4)]
    events, told = Talk(pair, f"session {n}").turn(n, prompt, at_ms=at_ms, local=local, first=True, **fields)
    return [*events, *told]


def another(pair: Pair) -> Pair:
    """The same D and proxy with another P."""
    second = Pair(msgspec.structs.replace(P, id="q", generation="q-1"))
    second.p = Process("00000000000000e1", "engine", second.p.engine)
    second.pw = Process("00000000000000e2", "worker", second.pw.engine)
    second.d, second.dw, second.proxy = pair.d, pair.dw, pair.proxy
    return second


def flat(parts: tuple[list[Event], list[Event]]) -> list[Event]:
    """A turn's events and its digests."""
    return [*parts[0], *parts[1]]
