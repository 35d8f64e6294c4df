"""Metrics of sessions and of their tasks."""

from __future__ import annotations

from turnscope.catalog.labels import SECONDS, TASK_SECONDS
from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import Evidence, Part, TaskOutcome

_OWNER = "sessions"

SESSIONS = (
    Metric(
        name="turnscope_sessions_total",
        kind=Kind.COUNTER,
        unit="sessions",
        help="Sessions that came to rest: nothing came of them for as long as --session-rest-seconds says. Each once; "
        "what one that goes on later adds is in the metrics below.",
        owner=_OWNER,
    ),
    Metric(
        name="turnscope_session_seconds_total",
        kind=Kind.COUNTER,
        unit="seconds",
        help="Time of sessions, counted when they have come to rest, by what it was spent on (part) and how that is "
        "known (evidence; none: of unknown). The parts are disjoint and sum to the sessions' wall time, with users' "
        "pauses in it; imported sessions are not in it.",
        labels=(Label("part", tuple(Part)), Label("evidence", tuple(Evidence))),
        owner=_OWNER,
    ),
    Metric(
        name="turnscope_tasks_total",
        kind=Kind.COUNTER,
        unit="tasks",
        help="Tasks, from a user's message to the first answer that asks for no tool, by how they ended; counted with "
        "their session.",
        labels=(Label("outcome", tuple(TaskOutcome)),),
        owner=_OWNER,
    ),
    Metric(
        name="turnscope_task_first_token_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="A task's begin to the first token of its first answer, of tasks with a streamed answer. Counted with the "
        "session: beside turnscope_task_latency_seconds, since a faster first token is not a faster task.",
        buckets=SECONDS,
        owner=_OWNER,
    ),
    Metric(
        name="turnscope_task_latency_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="A task's begin to its end, of completed tasks. Counted with the session.",
        buckets=TASK_SECONDS,
        owner=_OWNER,
    ),
)
