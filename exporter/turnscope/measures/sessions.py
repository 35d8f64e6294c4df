"""A session's summary: everything that is told of it as a whole, from its turns and spans alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median_low
from typing import Any, Final, NamedTuple

from turnscope.measures.alignment import aligned
from turnscope.measures.ceiling import ceiling
from turnscope.measures.forest import newest
from turnscope.measures.partition import cut_up, sums
from turnscope.measures.reuse import reuse
from turnscope.measures.tasks import evaluations, tasks
from turnscope.model import AgentSpan, Segment, SessionSummary, Turn
from turnscope.semconv import Detail, Evidence, Part, SpanKind, Status, TaskOutcome

HOOKS: Final = "hooks"
"""The source of turns that were seen and not imported."""
_TOOLS: Final = (SpanKind.TOOL, SpanKind.RETRIEVAL)
_INPUT: Final = (
    Detail.PROXY,
    Detail.QUEUE,
    Detail.REVERSE_FETCH,
    Detail.PREFILL,
    Detail.HANDOFF,
    Detail.FIRST_STEP,
    Detail.UNATTRIBUTED,
    Detail.CLIENT,
)


class Session(NamedTuple):
    """One session: its summary, and its time in order."""

    summary: SessionSummary
    segments: list[Segment]


def summarise(
    session_id: str, turns: Iterable[Turn], spans: Iterable[AgentSpan], *, revision: int = 1
) -> Session | None:
    """Of all that is known of one session, in any order; None where that is nothing. Pure."""
    kept = newest(turns, lambda turn: turn.turn_id)
    kept_spans = aligned(kept, newest(spans, lambda span: span.span_key))
    if not kept and not kept_spans:
        return None
    rows: list[Turn | AgentSpan] = [*kept, *kept_spans]
    segments = cut_up(kept, kept_spans)
    told = tasks(kept, kept_spans, segments)
    parts, inferred = sums(segments), sums(s for s in segments if s.evidence is Evidence.INFERRED)
    details: Counter[tuple[Part, Detail | None]] = Counter()
    for segment in segments:
        details[segment.part, segment.detail] += segment.end_ns - segment.start_ns
    started = segments[0].start_ns if segments else min(row.started_ns for row in rows)
    wall = parts.total()
    tools = [span for span in kept_spans if span.kind in _TOOLS]
    asked = [turn.tool_calls for turn in kept if turn.tool_calls is not None]
    outcomes = Counter(task.outcome for task in told)
    times: dict[str, Any] = {f"{part}_ns": parts[part] for part in Part}
    times |= {f"input_{detail}_ns": details[Part.INPUT_PROCESSING, detail] for detail in _INPUT}
    summary = SessionSummary(
        session_id=session_id,
        revision=revision,
        parent_session_id=_first(row.parent_session_id for row in rows),
        started_ns=started,
        ended_ns=started + wall,
        wall_ns=wall,
        **times,
        inferred_ns=inferred.total(),
        tool_wait_inferred_ns=inferred[Part.TOOL_WAIT],
        user_wait_inferred_ns=inferred[Part.USER_WAIT],
        generation_inferred_ns=inferred[Part.GENERATION],
        retrieval_ns=details[Part.TOOL_WAIT, Detail.RETRIEVAL],
        unknown_model_call_ns=details[Part.UNKNOWN, Detail.MODEL_CALL],
        turns=len(kept),
        spans=len(kept_spans),
        model_calls=_calls_without_turn(kept, kept_spans),
        tools=len(tools) if tools else None,
        tool_calls=sum(asked) if asked else None,
        errors=sum(turn.status not in (Status.OK, Status.CANCELLED) for turn in kept)
        + sum(span.status == "error" for span in tools),
        suspicious_turns=sum(bool(turn.suspicions) for turn in kept),
        ttft_median_ns=_median(turn.ttft_ns for turn in kept),
        models=_names(row.model for row in rows),
        agents=_names([*(t.agent_id for t in kept), *(s.agent_name or s.agent_id for s in kept_spans)]),
        applications=_names(_application(span) for span in kept_spans),
        deployments=_names(span.deployment for span in kept_spans),
        sources=_names([*(_seen_by(t) for t in kept), *(s.source for s in kept_spans)]),
        tasks=told,
        completed_tasks=outcomes[TaskOutcome.COMPLETED],
        failed_tasks=outcomes[TaskOutcome.FAILED],
        abandoned_tasks=outcomes[TaskOutcome.ABANDONED],
        task_latency_median_ns=_median(task.latency_ns for task in told),
        first_token_median_ns=_median(task.first_token_ns for task in told),
        evaluations=evaluations(kept_spans),
        ceiling=ceiling(kept, segments),
        **reuse(kept),
    )
    return Session(summary, segments)


def _calls_without_turn(turns: list[Turn], spans: list[AgentSpan]) -> int:
    """Model calls that went somewhere else than to these engines, where turns name their callers."""
    called = {(turn.caller_trace_id, turn.caller_span_id) for turn in turns}
    return sum(s.kind == SpanKind.MODEL_CALL and (s.trace_id, s.span_id) not in called for s in spans)


def _seen_by(turn: Turn) -> str:
    if turn.source != HOOKS:
        return turn.source
    return "proxy" if turn.has_attempt else "engines"


def _application(span: AgentSpan) -> str | None:
    if span.service_name is None:
        return None
    return f"{span.service_name} {span.service_version}" if span.service_version else span.service_name


def _names(values: Iterable[str | None]) -> list[str]:
    return sorted({value for value in values if value})


def _first(values: Iterable[str | None]) -> str | None:
    return min((value for value in values if value), default=None)


def _median(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return median_low(known) if known else None
