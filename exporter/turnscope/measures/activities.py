"""What ran in a session, also what ran beside something else: for those who draw it. What its time was spent on, each
nanosecond once, says ``partition``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from turnscope.measures.calls import Slice, cut, cut_span
from turnscope.measures.forest import Node, plant
from turnscope.model import Activity, AgentSpan, Segment, Turn
from turnscope.semconv import Evidence, SpanKind, Status

_DRAWN: Final = frozenset({SpanKind.MODEL_CALL, SpanKind.TOOL, SpanKind.RETRIEVAL, SpanKind.AGENT})


def activities(turns: Sequence[Turn], spans: Sequence[AgentSpan]) -> list[Activity]:
    """Of one session, in the order of their begins; turns and spans in their newest revisions and by one clock. Pure.

    A model call of which both a turn and its caller's span tell is one activity, the turn.
    """
    every = plant(turns, spans)
    for node in every:
        every.extend(node.children)
    return [_activity(node) for node in sorted(every, key=lambda node: node.order) if _is_drawn(node)]


def _is_drawn(node: Node) -> bool:
    return node.turn is not None or (node.kind in _DRAWN and not (node.kind is SpanKind.MODEL_CALL and node.calls))


def _activity(node: Node) -> Activity:
    if node.turn is not None:
        turn = node.turn
        return Activity(
            kind=SpanKind.MODEL_CALL,
            start_ns=node.start,
            end_ns=node.end,
            name=turn.model,
            agent=turn.agent_id or _agent_above(node),
            failed=turn.status not in (Status.OK, Status.CANCELLED),
            turn_id=turn.turn_id,
            slices=_placed(node, cut(turn)),
        )
    span = node.span
    assert span is not None
    names = {SpanKind.AGENT: _agent_name(span), SpanKind.MODEL_CALL: span.model}
    called = node.kind is SpanKind.MODEL_CALL
    return Activity(
        kind=node.kind,
        start_ns=node.start,
        end_ns=node.end,
        name=names.get(node.kind, span.tool_name or span.name),
        agent=_agent_above(node),
        failed=span.status == "error",
        evidence=Evidence.INFERRED if span.timing == Evidence.INFERRED else Evidence.MEASURED,
        slices=_placed(node, cut_span(span, node.end - node.start)) if called else (),
    )


def _agent_above(node: Node) -> str | None:
    above = node.parent
    while above is not None:
        if above.kind is SpanKind.AGENT and above.span is not None:
            return _agent_name(above.span)
        above = above.parent
    return None


def _agent_name(span: AgentSpan) -> str | None:
    return span.agent_name or span.agent_id or span.name


def _placed(node: Node, slices: list[Slice]) -> tuple[Segment, ...]:
    turn_id, span_key = (node.key, None) if node.turn is not None else (None, node.key)
    out, at = [], node.start
    for ns, part, detail, evidence in slices:
        out.append(Segment(at, at + ns, part, detail, evidence, turn_id, span_key))
        at += ns
    return tuple(out)
