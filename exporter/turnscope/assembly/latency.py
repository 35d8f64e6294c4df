"""What was measured of a turn's way to its first token, gathered for ``ttft``."""

from __future__ import annotations

from typing import Final, NamedTuple

from turnscope.assembly.clocks import Clocks
from turnscope.assembly.evidence import fetches
from turnscope.assembly.moments import Moment
from turnscope.assembly.ranks import MOVING, lasted_ns
from turnscope.assembly.state import EndedRequest, Read, TurnState
from turnscope.assembly.tokens import Split
from turnscope.assembly.ttft import Parts, Stamps, parts
from turnscope.assembly.turns import decode
from turnscope.semconv import Direction, Leg

WAY_ERROR_NS: Final = 1_000_000
"""The way to D is told from its first step only where the clocks are known this well."""


class OnP(NamedTuple):
    """Where the time of a P leg went, in nanoseconds; None: not measured."""

    queue: int | None = None
    """From being accepted to its first step, less the fetch, which engines count as waiting. Of a whole request too."""
    fetch: int | None = None
    prefill: int | None = None
    """From its first step on."""


def ttft_parts(turn: TurnState, on_p: OnP, clocks: Clocks) -> Parts | None:
    """None without the proxy's stamp of the first byte: P's and D's times do not make one."""
    attempt, leg = turn.attempt, turn.prefill
    if attempt is None or attempt.first_byte_ns is None:
        return None
    whole = leg is not None and leg.request.leg is Leg.WHOLE
    last = leg if whole else decode(turn)
    if whole:
        on_p = OnP()
    way_ns = _way_ns(turn, last, clocks)
    decode_queue_ns, handoff_ns = _on_d(turn, last)
    waited_ns = _waited_ns(last)
    if waited_ns is not None and decode_queue_ns is None:
        way_ns = waited_ns + (way_ns or 0)  # what it waited for is not known: it explains nothing
    return parts(
        Stamps(
            ttft=attempt.first_byte_ns,
            prefill_start=attempt.prefill_start_ns,
            prefill_end=attempt.prefill_end_ns,
            decode_start=attempt.decode_start_ns,
            retried=attempt.number > 1,
            prefill_queue=on_p.queue,
            fetch=on_p.fetch,
            prefill=on_p.prefill,
            way=way_ns,
            decode_queue=decode_queue_ns,
            handoff=handoff_ns,
            # An answer that is not streamed comes with its last step, not with its first.
            begun=waited_ns is not None and attempt.streamed,
            computes=whole or (last is not None and _computes(last)),
            usual_step=turn.usual_step_ns,
        )
    )


def _computes(last: EndedRequest) -> bool:
    """D was handed nothing and computes the prompt."""
    return not last.request.external_tokens and (last.request.computed_tokens or 0) > 1


def _waited_ns(leg: EndedRequest | None) -> int | None:
    """From being accepted to its first step: engines count a load as waiting. None when the engine's clock says that it
    began before."""
    if leg is None or leg.request.scheduled_mono_ns is None:
        return None
    waited = leg.request.scheduled_mono_ns - leg.request.added_mono_ns
    return waited if waited >= 0 else None


def on_p(turn: TurnState, split: Split | None) -> OnP:
    """Of the P leg, or of a whole request."""
    leg, waited_ns = turn.prefill, _waited_ns(turn.prefill)
    if leg is None or leg.request.scheduled_mono_ns is None or waited_ns is None:
        return OnP(fetch=lasted_ns(fetches(turn)))
    took_ns = leg.mono_ns - leg.request.scheduled_mono_ns
    prefill_ns = took_ns if took_ns >= 0 else None
    moved = _load_ns(leg, waited_ns, fetches(turn))
    if moved is None and (split is None or split.fetched or split.fetched is None):
        return OnP(prefill=prefill_ns)
    return OnP(waited_ns - (moved or 0), moved, prefill_ns)


def _on_d(turn: TurnState, last: EndedRequest | None) -> tuple[int | None, int | None]:
    """Queue and load of the D leg."""
    waited_ns = _waited_ns(last)
    if last is None or waited_ns is None:
        return None, None
    mine = ("", last.request.request_id)
    handoffs = (read for read in turn.reads if read.transfer.direction is Direction.HANDOFF)
    moved = _load_ns(last, waited_ns, [read for read in handoffs if read.transfer.request_id in mine])
    if moved is None and last.request.external_tokens and last.request.leg is Leg.DECODE:
        return None, None
    return waited_ns - (moved or 0), moved


def _load_ns(leg: EndedRequest, waited_ns: int, reads: list[Read]) -> int | None:
    """How much of a leg's waiting was its load: from the first rank's begin to the last one's end, within it.

    Ranks on other hosts than the scheduler tell only how long they took.
    """
    request = leg.request
    assert request.scheduled_mono_ns is not None
    moving = [r for r in reads if r.transfer.state in MOVING]
    begun = [r.transfer.started_mono_ns for r in moving if r.transfer.started_mono_ns is not None]
    if moving and len(begun) == len(moving) and all(leg.clock and r.clock == leg.clock for r in moving):
        begin = max(request.added_mono_ns, min(begun))
        end = min(request.scheduled_mono_ns, max(r.mono_ns for r in moving))
        return max(0, end - begin)
    took = [r.transfer.duration_ns for r in moving if r.transfer.duration_ns is not None]
    return min(waited_ns, max(0, *took)) if took and len(took) == len(moving) else None


def _way_ns(turn: TurnState, last: EndedRequest | None, clocks: Clocks) -> int | None:
    attempt = turn.attempt
    if last is None or attempt is None or attempt.started_mono_ns is None or attempt.decode_start_ns is None:
        return None
    sent = Moment(turn.attempt_clock, attempt.started_mono_ns + attempt.decode_start_ns)
    way = clocks.between(sent, Moment(last.clock, last.request.added_mono_ns))
    return max(0, way.ns) if way is not None and way.error_ns <= WAY_ERROR_NS else None
