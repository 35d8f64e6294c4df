"""Agents' clocks against the proxy's: by how much a host's spans must be moved for its calls to enclose their turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_low

from msgspec.structs import replace

from turnscope.model import AgentSpan, Turn


def clock_of(span: AgentSpan) -> str:
    """Spans of one clock have the same; where no host is named, its service stands for it."""
    return span.host or span.service_name or ""


def aligned(turns: Iterable[Turn], spans: Sequence[AgentSpan]) -> list[AgentSpan]:
    """The spans by the proxy's clock, those of clocks that fit as they are."""
    called = {(turn.caller_trace_id, turn.caller_span_id) for turn in turns}
    by_id = {key: span for span in spans if (key := (span.trace_id, span.span_id)) in called}
    callers = ((by_id.get((turn.caller_trace_id or "", turn.caller_span_id or "")), turn) for turn in turns)
    moved = shifts((span, turn) for span, turn in callers if span is not None)
    return [_moved(span, moved.get(clock_of(span), 0)) for span in spans] if moved else list(spans)


def _moved(span: AgentSpan, ns: int) -> AgentSpan:
    if not ns:
        return span
    ended_ns = None if span.ended_ns is None else span.ended_ns + ns
    return replace(span, started_ns=span.started_ns + ns, ended_ns=ended_ns)


def shifts(pairs: Iterable[tuple[AgentSpan, Turn]]) -> dict[str, int]:
    """Nanoseconds to add to the times of a clock's spans, by ``clock_of``; clocks that fit, or that nothing tells of,
    are missing.

    A model call cannot begin after its turn has reached the proxy, nor end before the proxy has answered: each pair
    bounds the difference from both sides. Within the bounds of all pairs the middle is taken, and nothing is moved
    where 0 is among them. Where bounds contradict each other (a clock was set) it is the median of what pairs say.
    """
    bounds: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for span, turn in pairs:
        if span.ended_ns is None or turn.ended_ns is None:
            continue
        low, high = turn.ended_ns - span.ended_ns, turn.started_ns - span.started_ns
        if low <= high:
            bounds[clock_of(span)].append((low, high))
    found = {}
    for clock, known in bounds.items():
        low, high = max(low for low, _ in known), min(high for _, high in known)
        shift = _middle(low, high) if low <= high else median_low(sorted(_middle(*pair) for pair in known))
        if shift:
            found[clock] = shift
    return found


def _middle(low: int, high: int) -> int:
    return 0 if low <= 0 <= high else (low + high) // 2
