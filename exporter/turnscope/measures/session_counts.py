"""What a session that has come to rest adds to the metrics."""

from __future__ import annotations

from collections import Counter

from turnscope.measures.partition import clip
from turnscope.measures.sessions import Session
from turnscope.model import Contribution
from turnscope.semconv import TaskOutcome


def contributions(session: Session, since_ns: int) -> list[Contribution]:
    """Its time after ``since_ns``, up to which it was counted before (0: not yet), and the tasks begun since.

    What is learnt later of the time before changes nothing that was counted. Pure.
    """
    found = [] if since_ns else [Contribution("turnscope_sessions_total", (), 1)]
    spent: Counter[tuple[str, str]] = Counter()
    for at in clip(session.segments, since_ns, session.summary.ended_ns):
        spent[str(at.part), str(at.evidence)] += at.end_ns - at.start_ns
    found += [Contribution("turnscope_session_seconds_total", how, ns / 1e9) for how, ns in sorted(spent.items())]
    for task in session.summary.tasks:
        if task.started_ns < since_ns:
            continue
        found.append(Contribution("turnscope_tasks_total", (task.outcome,), 1))
        if task.first_token_ns is not None:
            found.append(Contribution("turnscope_task_first_token_seconds", (), task.first_token_ns / 1e9))
        if task.outcome == TaskOutcome.COMPLETED and task.latency_ns is not None:
            found.append(Contribution("turnscope_task_latency_seconds", (), task.latency_ns / 1e9))
    return found
