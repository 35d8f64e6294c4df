"""The most that reuse could still give a session: what its avoidable recomputes cost, less what fetching would have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from turnscope.model import Ceiling, Segment, Turn
from turnscope.model.sessions import CeilingReason
from turnscope.semconv import Part

ASSUMED: Final = "assumed"
MEASURED: Final = "measured"
BOTH: Final = "both"


def ceiling(turns: Sequence[Turn], segments: Iterable[Segment]) -> Ceiling:
    """Of one session's turns in their newest revision and the partition of its time.

    Every recomputed token is avoidable: it was computed before in this session. What a turn would be shorter by is at
    most its input processing that the session really waited for: one that ran beside something longer gives nothing.
    Low ends are summed, and so are high ends: turns of one engine err in the same direction.
    """
    waited: Counter[str] = Counter()
    for at in segments:
        if at.turn_id is not None and at.part is Part.INPUT_PROCESSING:
            waited[at.turn_id] += at.end_ns - at.start_ns
    out = Ceiling()
    free, fetched = [0, 0, 0], [0, 0, 0]
    by_reason: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    bases = set()
    for turn in turns:
        if turn.recomputed_tokens is None or (turn.recomputed_tokens and turn.recompute_ns is None):
            out.unjudged_turns += 1
            continue
        out.judged_turns += 1
        if not turn.recomputed_tokens:
            continue
        at_most = waited[turn.turn_id]
        spared = [min(max(0, ns or 0), at_most) for ns in _cost(turn)]
        fetch = [ns or 0 for ns in (turn.refetch_ns, turn.refetch_high_ns, turn.refetch_low_ns)]
        bases.add(turn.refetch_basis or ASSUMED)
        for place, ns in enumerate(spared):
            free[place] += ns
            fetched[place] += max(0, ns - fetch[place])
        out.recomputed_tokens += turn.recomputed_tokens
        mine = by_reason[turn.reason]
        for place, value in enumerate((1, turn.recomputed_tokens, spared[0])):
            mine[place] += value
    if out.judged_turns:
        out.free_ns, out.free_low_ns, out.free_high_ns = free
        out.fetched_ns, out.fetched_low_ns, out.fetched_high_ns = fetched
    out.transfer = (BOTH if len(bases) > 1 else next(iter(bases))) if bases else None
    out.reasons = [
        CeilingReason(reason=reason, turns=count, tokens=tokens, free_ns=ns)
        for reason, (count, tokens, ns) in sorted(by_reason.items(), key=lambda item: (-item[1][2], item[0]))
    ]
    return out


def _cost(turn: Turn) -> tuple[int | None, int | None, int | None]:
    return turn.recompute_ns, turn.recompute_low_ns, turn.recompute_high_ns
