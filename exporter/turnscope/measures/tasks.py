"""Tasks: from a user message to the first answer that asks for no tool, and how each ended."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, TypeVar

from turnscope.measures.calls import wall_ns
from turnscope.measures.partition import clip, sums
from turnscope.measures.waits import asks
from turnscope.model import AgentSpan, Evaluation, Segment, Task, Turn
from turnscope.semconv import Evidence, Part, SpanKind, Status, TaskOutcome

_TOOLS: Final = (SpanKind.TOOL, SpanKind.RETRIEVAL)
_Row = TypeVar("_Row", Turn, AgentSpan)


class _Open:
    """A task while its turns are read."""

    def __init__(self, turn: Turn | None, start: int) -> None:
        self.start = start
        self.end = start
        self.turns: list[Turn] = []
        self.outcome = TaskOutcome.UNKNOWN
        self.first_token: int | None = None
        self.agent = turn.agent_id if turn is not None else None


def tasks(turns: Sequence[Turn], spans: Sequence[AgentSpan], segments: Sequence[Segment]) -> list[Task]:
    """Of one session, by begin; ``turns`` and ``spans`` in their newest revisions, ``segments`` their partition.

    By the turns where the proxy saw who wrote their last message: a user's, by the session's first agent, begins a
    task. A task with an agent's span of its own round it begins and ends with that. Where no turn tells, agents'
    outermost spans are the tasks.

    ``completed``: answered, asking for no tool. ``failed``: its last turn, or its span, ended in error. ``abandoned``:
    its last turn was cancelled, or asked for tools before another user message came. Else ``unknown``.
    """
    ordered = sorted(turns, key=lambda turn: (turn.started_ns, turn.turn_id))
    spans = sorted(spans, key=lambda span: (span.started_ns, span.span_key))
    tops = _tops(spans)
    found = _by_turns(ordered)
    if found:
        _widen(found, tops)
    else:
        found = [_of_span(span) for span in tops]
    measured = any(span.kind in _TOOLS for span in spans)
    return [_task(number, each, ordered, spans, segments, measured) for number, each in enumerate(found, 1)]


def end_ns(turn: Turn) -> int:
    """When it ended; its begin where that is not known."""
    return turn.started_ns + wall_ns(turn)


def _by_turns(turns: Sequence[Turn]) -> list[_Open]:
    found: list[_Open] = []
    now: _Open | None = None
    main = next((turn.agent_id for turn in turns if turn.last_role == "user"), None)
    for turn in turns:
        mine = turn.agent_id == main
        again = now is not None and (turn.retry_of or turn.fork_of) in {t.turn_id for t in now.turns}
        if mine and turn.last_role == "user" and not again:
            if now is not None and now.outcome is TaskOutcome.UNKNOWN and now.turns and asks(now.turns[-1]):
                now.outcome = TaskOutcome.ABANDONED
            now = _Open(turn, turn.started_ns)
            found.append(now)
        elif now is None or (now.outcome is TaskOutcome.COMPLETED and not again):
            continue
        now.turns.append(turn)
        now.end = max(now.end, end_ns(turn))
        if mine:
            now.outcome = _outcome(turn)
    return found


def _outcome(turn: Turn) -> TaskOutcome:
    if turn.status == Status.CANCELLED:
        return TaskOutcome.ABANDONED
    if turn.status != Status.OK:
        return TaskOutcome.FAILED
    return TaskOutcome.COMPLETED if asks(turn) is False else TaskOutcome.UNKNOWN


# --- agents' spans ------------------------------------------------------------------------------------
def _tops(spans: Sequence[AgentSpan]) -> list[AgentSpan]:
    """Agents' spans that are in no other agent's, by begin."""
    agents = [s for s in spans if s.kind == SpanKind.AGENT and s.ended_ns is not None and s.ended_ns > s.started_ns]
    agents.sort(key=lambda span: (span.started_ns, -(span.ended_ns or 0), span.span_key))
    tops: list[AgentSpan] = []
    until = None
    for span in agents:
        assert span.ended_ns is not None
        if until is None or span.ended_ns > until:
            tops.append(span)
            until = span.ended_ns
    return tops


def _widen(found: list[_Open], tops: Sequence[AgentSpan]) -> None:
    """To the agent's span around each, where that has no other task's turns in it."""
    for span in tops:
        end = span.ended_ns or 0
        inside = [task for task in found if span.started_ns <= task.start < end]
        if len(inside) == 1 and inside[0].end <= end:
            inside[0].start, inside[0].end = span.started_ns, end


def _of_span(span: AgentSpan) -> _Open:
    task = _Open(None, span.started_ns)
    task.end = span.ended_ns or span.started_ns
    task.outcome = TaskOutcome.FAILED if span.status == "error" else TaskOutcome.COMPLETED
    return task


# --- what is told of one ------------------------------------------------------------------------------
def _task(
    number: int,
    task: _Open,
    turns: Sequence[Turn],
    spans: Sequence[AgentSpan],
    segments: Sequence[Segment],
    measured: bool,
) -> Task:
    inside = _begun(spans, task)
    mine = task.turns or _begun(turns, task)
    tools = [span for span in inside if span.kind in _TOOLS]
    calls = [span for span in inside if span.kind == SpanKind.MODEL_CALL]
    recomputed = [turn.recomputed_tokens for turn in mine if turn.recomputed_tokens is not None]
    parts = sums(clip(segments, task.start, task.end))
    completed = task.outcome is TaskOutcome.COMPLETED
    return Task(
        number=number,
        started_ns=task.start,
        ended_ns=task.end,
        outcome=task.outcome,
        latency_ns=task.end - task.start if completed else None,
        first_token_ns=_first_token(task.start, mine, calls),
        turn_index=mine[0].turn_index if mine else None,
        context_tokens=mine[0].prompt_tokens if mine else None,
        turns=len(mine) if mine else len(calls),
        tools=len(tools) if measured else sum(turn.tool_calls or 0 for turn in mine),
        tools_evidence=Evidence.MEASURED if measured else Evidence.INFERRED,
        errors=sum(turn.status not in (Status.OK, Status.CANCELLED) for turn in mine)
        + sum(span.status == "error" for span in tools),
        recomputed_tokens=sum(recomputed) if recomputed else None,
        evaluations=evaluations(inside),
        **{f"{part}_ns": parts[part] for part in Part},
    )


def _begun(rows: Sequence[_Row], task: _Open) -> Sequence[_Row]:
    """Those of ``rows``, in the order of their begins, that began in it."""
    first = bisect_left(rows, task.start, key=lambda row: row.started_ns)
    return rows[first : bisect_left(rows, task.end, key=lambda row: row.started_ns)]


def _first_token(start: int, turns: Sequence[Turn], calls: Sequence[AgentSpan]) -> int | None:
    """Streamed answers only: the first byte of another is its last."""
    told = [turn.started_ns + turn.ttft_ns for turn in turns if turn.ttft_ns is not None]
    told += [call.started_ns + ns for call in calls if (ns := call.time_to_first_token_ns) is not None]
    return max(0, min(told) - start) if told else None


def evaluations(spans: Sequence[AgentSpan]) -> list[Evaluation]:
    """The results that spans carry."""
    return [
        Evaluation(name=span.evaluation_name, label=span.evaluation_label, score=span.evaluation_score)
        for span in spans
        if span.evaluation_name is not None or span.evaluation_label is not None or span.evaluation_score is not None
    ]
