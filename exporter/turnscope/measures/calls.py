"""One model call's own time: how long until its first token, of what, and how long it wrote."""

from __future__ import annotations

from operator import attrgetter
from typing import Final, NamedTuple

from turnscope.model import TTFT_FIELDS, AgentSpan, Turn
from turnscope.semconv import Detail, Evidence, Part

_MEASURED: Final = {field: detail for detail, field in TTFT_FIELDS.items() if detail is not Detail.UNATTRIBUTED}
_DETAILS: Final = tuple(_MEASURED.values())
_measured: Final = attrgetter(*_MEASURED)


class Slice(NamedTuple):
    """``ns`` nanoseconds, directly behind the slice before it."""

    ns: int
    part: Part
    detail: Detail | None
    evidence: Evidence


def wall_ns(turn: Turn) -> int:
    """From its begin to its end; 0 where that is not known."""
    if turn.ended_ns is not None:
        return max(0, turn.ended_ns - turn.started_ns)
    return max(0, turn.duration_ns or 0)


def cut(turn: Turn) -> list[Slice]:
    """The whole of a turn in slices; they sum to ``wall_ns``.

    A streamed answer's first token divides it. An answer that is not streamed has its first byte at its end: what D
    needed for it is divided evenly among its tokens, inferred. Where only engines saw the turn, likewise. A turn
    without a first byte waited for one all the time. What nobody timed is unknown.
    """
    whole = wall_ns(turn)
    if whole == 0:
        return []
    if turn.ttft_ns is None:
        return _without_first_byte(turn, whole)
    input_ns = min(max(0, turn.ttft_ns), whole)
    parts, rest = _parts(turn, input_ns)
    if turn.streamed is False:
        writing = _writing_ns(turn, rest)
        if writing is None:
            return [Slice(whole, Part.UNKNOWN, Detail.MODEL_CALL, Evidence.NONE)]
        return _not_streamed(parts, rest, writing, turn.output_tokens or 1, whole - input_ns)
    out = parts
    if rest:
        out.append(Slice(rest, Part.INPUT_PROCESSING, Detail.UNATTRIBUTED, Evidence.MEASURED))
    if whole > input_ns:
        out.append(Slice(whole - input_ns, Part.GENERATION, None, Evidence.MEASURED))
    return out


def _parts(turn: Turn, input_ns: int) -> tuple[list[Slice], int]:
    """What is measured of the time to the first byte, and what is left of it."""
    out, left = [], input_ns
    for ns, detail in zip(_measured(turn), _DETAILS, strict=True):
        if ns is not None and ns > 0 and left:
            ns = min(ns, left)
            out.append(Slice(ns, Part.INPUT_PROCESSING, detail, Evidence.MEASURED))
            left -= ns
    return out, left


def _writing_ns(turn: Turn, left: int) -> int | None:
    """How long D computed, first token included, within what is ``left``; None where D was not heard."""
    if turn.decode_ns is None:
        return None
    return min(left, max(0, turn.decode_ns - (turn.ttft_handoff_ns or turn.handoff_ns or 0)))


def _not_streamed(parts: list[Slice], left: int, writing: int, tokens: int, after: int) -> list[Slice]:
    step = writing // max(1, tokens)
    out = parts
    for ns, detail in ((step, Detail.FIRST_STEP), (left - writing, Detail.UNATTRIBUTED)):
        if ns:
            out.append(Slice(ns, Part.INPUT_PROCESSING, detail, Evidence.INFERRED))
    if writing - step + after:
        out.append(Slice(writing - step + after, Part.GENERATION, None, Evidence.INFERRED))
    return out


def _without_first_byte(turn: Turn, whole: int) -> list[Slice]:
    if turn.has_attempt:
        return [Slice(whole, Part.INPUT_PROCESSING, Detail.UNATTRIBUTED, Evidence.MEASURED)]
    writing = _writing_ns(turn, whole)
    if writing is None:
        return [Slice(whole, Part.UNKNOWN, Detail.MODEL_CALL, Evidence.NONE)]
    parts = []
    left = whole - writing
    measured = (
        (turn.prefill_queue_ns, Detail.QUEUE),
        (turn.fetch_ns, Detail.REVERSE_FETCH),
        (turn.handoff_ns, Detail.HANDOFF),
    )
    for value, detail in measured:
        ns = min(max(0, value or 0), left)
        if ns:
            parts.append(Slice(ns, Part.INPUT_PROCESSING, detail, Evidence.MEASURED))
            left -= ns
    return _not_streamed(parts, left + writing, writing, turn.output_tokens or 1, 0)


def cut_span(span: AgentSpan, whole: int) -> list[Slice]:
    """A model call that no turn is known of, ``whole`` nanoseconds long."""
    first = span.time_to_first_token_ns
    timed = Evidence.INFERRED if span.timing == Evidence.INFERRED else Evidence.MEASURED
    if whole <= 0:
        return []
    if first is None:
        return [Slice(whole, Part.UNKNOWN, Detail.MODEL_CALL, Evidence.NONE)]
    first = min(max(0, first), whole)
    out = []
    if first:
        out.append(Slice(first, Part.INPUT_PROCESSING, Detail.UNATTRIBUTED, timed))
    if whole > first:
        out.append(Slice(whole - first, Part.GENERATION, None, timed))
    return out
