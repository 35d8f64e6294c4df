"""How late a turn came for the hold whose handle it brought, against the hold's true expiry."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.clocks import Clocks, Span
from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import fetches, used_hold
from turnscope.assembly.moments import Moment
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import TurnState
from turnscope.assembly.turns import given_handle
from turnscope.model import SECOND_NS
from turnscope.semconv import TransferState

_FAR_S: Final = 2**32
"""Seconds that no clock has counted since its boot."""


def late_by(turn: TurnState, settler: Settler, engines: Engines, clocks: Clocks) -> Span | None:
    """From the hold's expiry to P's using the handle: negative is in time. None where the clocks cannot be compared."""
    return clocks.between(_expiry(turn, settler, engines), _used(turn))


def _expiry(turn: TurnState, settler: Settler, engines: Engines) -> Moment | None:
    """As its holder was seen to begin it; else by the handle's own word, which is of the holder's clock."""
    key, given = used_hold(turn), given_handle(turn)
    if key is None or given is None:
        return None
    seen = settler.deadline(key)
    if seen is not None:
        return seen
    holder = engines.get(given.engine_id)
    if given.expiry_s is None or holder is None or not 0 <= given.expiry_s < _FAR_S:
        return None
    return Moment(holder.last_clock, int(given.expiry_s * SECOND_NS))


def _used(turn: TurnState) -> Moment | None:
    """When P declined the read or began it; else when the request was scheduled, or accepted."""
    for read in sorted(fetches(turn), key=lambda read: read.mono_ns):
        if read.transfer.state is TransferState.DECLINED:
            return Moment(read.clock, read.mono_ns)
        if read.transfer.started_mono_ns is not None:
            return Moment(read.clock, read.transfer.started_mono_ns)
    if turn.prefill is None:
        return None
    request = turn.prefill.request
    return Moment(turn.prefill.clock, request.scheduled_mono_ns or request.added_mono_ns)
