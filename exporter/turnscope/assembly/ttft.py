"""The parts of a time to first token. They add up to it to the nanosecond; what nothing tells of is ``unattributed``.

P's and D's own times to first token are no parts of it and are never added: P's ends with a token that is thrown away,
D's begins after a gap. The proxy's stamps divide the whole into windows; inside each, engines' durations are laid one
after the other, so that no difference between clocks can make a part.
"""

from __future__ import annotations

from typing import Final

import msgspec

SLOW: Final = 3
"""A first step longer than so many times the usual is not explained by being one."""


class Stamps(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was measured of one turn, in nanoseconds; None: not measured."""

    ttft: int
    # offsets at the proxy
    prefill_start: int | None = None
    prefill_end: int | None = None
    decode_start: int | None = None
    retried: bool = False
    """Earlier attempts ran before this one's prefill."""
    # durations at P
    prefill_queue: int | None = None
    fetch: int | None = None
    prefill: int | None = None
    # durations at D, or at the one engine of an aggregated deployment
    way: int | None = None
    """From the proxy sending the decode request to the engine accepting it."""
    decode_queue: int | None = None
    handoff: int | None = None
    begun: bool = False
    """It is known when D began to compute: the rest of the window is its first step."""
    computes: bool = False
    """That first step computes the prompt."""
    usual_step: int | None = None


class Parts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nanoseconds; None: not measured. Those that are known add up to the whole."""

    proxy: int | None = None
    queue: int | None = None
    reverse_fetch: int | None = None
    prefill: int | None = None
    handoff: int | None = None
    first_step: int | None = None
    unattributed: int
    measured_step: int | None = None
    """The first step before what is unusual in it was put to ``unattributed``; no part."""


class _Window:
    """A stretch of time that durations are taken out of, none of them more than is left."""

    def __init__(self, ns: int) -> None:
        self.left = ns

    def take(self, ns: int | None) -> int | None:
        if ns is None:
            return None
        taken = min(max(0, ns), self.left)
        self.left -= taken
        return taken


def parts(s: Stamps) -> Parts:
    """One turn's parts."""
    whole = max(0, s.ttft)

    def place(offset: int | None, after: int) -> int:
        return after if offset is None else min(max(offset, after), whole)

    first = s.prefill_start if s.prefill_start is not None else s.decode_start
    prefill_start = place(first, 0)
    prefill_end = place(s.prefill_end if s.prefill_end is not None else s.decode_start, prefill_start)
    decode_start = place(s.decode_start, prefill_end) if s.decode_start is not None else whole
    before = None if first is None or s.retried else prefill_start
    between = None if s.decode_start is None else decode_start - prefill_end
    on_p = _Window(prefill_end - prefill_start)
    queues = [on_p.take(s.prefill_queue)]
    fetch, prefill = on_p.take(s.fetch), on_p.take(s.prefill)
    on_d = _Window(whole - decode_start)
    on_d.take(s.way)
    queues.append(on_d.take(s.decode_queue))
    handoff = on_d.take(s.handoff)
    step = on_d.left if s.begun and not s.computes else None
    if s.begun and s.computes:
        prefill = (prefill or 0) + on_d.left
    usual = s.usual_step
    shown = step if step is None or usual is None or step <= SLOW * usual else usual
    known = {
        "proxy": _sum(before, between),
        "queue": _sum(*queues),
        "reverse_fetch": fetch,
        "prefill": prefill,
        "handoff": handoff,
        "first_step": shown,
    }
    return Parts(**known, unattributed=whole - sum(ns or 0 for ns in known.values()), measured_step=step)


def _sum(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
