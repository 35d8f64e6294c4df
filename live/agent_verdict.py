"""Where the scripted agent's time went, as turnscope tells it, against the agent's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from live.agent import Session
from turnscope.measures.sessions import summarise
from turnscope.model import AgentSpan, SessionSummary, Turn
from turnscope.semconv import Part, TaskOutcome

NEAR_NS: Final = 20_000_000
NEAR: Final = 0.02
"""A part may be off by so many nanoseconds, or by so much of itself, whichever is more."""
Known = Mapping[str, tuple[list[Turn], list[AgentSpan]]]


def judge(sessions: Iterable[Session], known: Known) -> list[str]:
    """One sentence for each part that is told wrongly; ``known``: turns and spans by session."""
    out = []
    for session in sessions:
        turns, spans = known.get(session.session_id, ([], []))
        if not turns or not spans:
            out.append(f"{session.session_id}: {len(turns)} turns and {len(spans)} spans are stored of it")
            continue
        found = [*_measured(session, turns, spans), *_inferred(session, turns), *_tasks(session, turns, spans)]
        out += [f"{session.session_id}: {sentence}" for sentence in found]
    return out


def _measured(session: Session, turns: list[Turn], spans: list[AgentSpan]) -> Iterable[str]:
    """With all spans: each part."""
    told = _told(session, turns, spans)
    for part in Part:
        yield from _between(part, _ns(told, part), session.parts[part], session.parts[part])


def _inferred(session: Session, turns: list[Turn]) -> Iterable[str]:
    """With the proxy alone: model calls as they were; each wait is at least what it was, at most what was between the
    model calls."""
    told, true = _told(session, turns, []), session.parts
    most = {
        Part.TOOL_WAIT: session.between_calls_ns,
        Part.USER_WAIT: true[Part.USER_WAIT] + true[Part.APPLICATION_WORK],
    }
    # A call reaches the proxy after it was made, and leaves it before it has come: that is in the waits around it.
    way = NEAR_NS * session.model_calls
    for part, at_most in most.items():
        yield from _between(part, _ns(told, part), true[part], at_most + way, "alone")
    # Between a call that was given up and the same one again nothing else can have been.
    if told.application_work_ns > way:
        yield "application work is told apart without spans, which nobody can"


def _tasks(session: Session, turns: list[Turn], spans: list[AgentSpan]) -> Iterable[str]:
    tasks = _told(session, turns, spans).tasks
    outcomes = [str(task.outcome) for task in tasks]
    if outcomes != [TaskOutcome.COMPLETED] * session.tasks:
        yield f"its {session.tasks} tasks were completed, and are told as {outcomes}"
    if sum(task.tools for task in tasks) != session.tools:
        yield f"{session.tools} tools ran, and {[task.tools for task in tasks]} are told"


def _told(session: Session, turns: list[Turn], spans: list[AgentSpan]) -> SessionSummary:
    found = summarise(session.session_id, turns, spans)
    assert found is not None
    return found.summary


def _ns(told: SessionSummary, part: Part) -> int:
    return int(getattr(told, f"{part}_ns"))


def _between(part: Part, ns: int, least: int, most: int, how: str = "") -> Iterable[str]:
    low, high = least - max(NEAR_NS, NEAR * least), most + max(NEAR_NS, NEAR * most)
    if not low <= ns <= high:
        bounds = f"{least / 1e6:.1f}" if least == most else f"{least / 1e6:.1f} to {most / 1e6:.1f}"
        yield f"{part} was {bounds} ms, and is told as {ns / 1e6:.1f}{f' by the proxy {how}' if how else ''}"
