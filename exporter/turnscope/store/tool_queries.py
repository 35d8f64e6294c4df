"""What the reader asks about tools and tasks over a period: from agents' spans and sessions' summaries."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import Part, TaskOutcome, Timing
from turnscope.store.queries import Params, Sources
from turnscope.store.scope import APPLICATION, Scope, sessions, tools
from turnscope.store.session_queries import latencies_of

MOST_NAMES: Final = 1_000
_LASTED: Final = "(ended_ns - started_ns)"


def called(src: Sources, scope: Scope) -> tuple[str, Params]:
    """A page of ``tool, kind, application``, one row each, the most time first: calls, how they ended and how long they
    took. ``tool`` is NULL where spans do not name it. ``all_ns`` is the time of all calls of all tools together."""
    found, params = tools(
        src,
        scope,
        f"tool_name, kind, {APPLICATION} AS application, started_ns, ended_ns, status, error_type, timing, session_id",
    )
    return (
        f"""SELECT nullif(tool_name, '') AS tool, kind, application, count(*) AS calls,
    count(DISTINCT session_id) AS sessions, count_if(status = 'error')::BIGINT AS errors,
    count_if(status = 'ok')::BIGINT AS ok, count_if(status NOT IN ('ok', 'error'))::BIGINT AS unsaid,
    mode(error_type) FILTER (status = 'error') AS error_type, count(ended_ns) AS timed,
    count_if(timing = '{Timing.INFERRED}')::BIGINT AS inferred, sum({_LASTED})::BIGINT AS total_ns,
    quantile_disc({_LASTED}, 0.5) AS median_ns, quantile_disc({_LASTED}, 0.95) AS p95_ns,
    sum(sum({_LASTED})) OVER ()::BIGINT AS all_ns, count(*) OVER () AS total
FROM {found} GROUP BY ALL ORDER BY total_ns DESC NULLS LAST, calls DESC, tool, application
LIMIT $limit OFFSET $offset"""
    ), params


_SUMMED: Final = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ("wall_ns", *(f"{part}_ns" for part in Part)))
_OUTCOMES: Final = ", ".join(f"count_if(task.outcome = '{outcome}')::BIGINT AS {outcome}" for outcome in TaskOutcome)


def applications(src: Sources, scope: Scope) -> tuple[str, Params]:
    """A page of applications, each version a row, and first (``every``) all sessions together: what their sessions'
    time was spent on, their tasks' outcomes, first token and whole task. A session of two is in both; those that no
    span names have the name NULL."""
    parts = ", ".join(f"{part}_ns" for part in Part)
    found, params = sessions(
        src,
        scope,
        f"session_id, applications, wall_ns, {parts}, tool_wait_inferred_ns, tasks, tools, tool_calls, spans",
    )
    only = "WHERE application = $application" if scope.application is not None else ""
    return (
        f"""WITH found AS MATERIALIZED {found},
named AS (
    SELECT *, unnest(CASE WHEN len(applications) > 0 THEN applications ELSE [NULL] END) AS application FROM found),
kept AS MATERIALIZED (
    SELECT true AS every, NULL AS application, * EXCLUDE applications FROM found
    UNION ALL BY NAME SELECT false AS every, * EXCLUDE applications FROM named {only}),
told AS (
    SELECT every, application, count(*) AS tasks, {_OUTCOMES},
        quantile_disc(task.first_token_ns, 0.5) AS first_token_median_ns,
        quantile_disc(task.first_token_ns, 0.95) AS first_token_p95_ns,
        quantile_disc(task.latency_ns, 0.5) AS latency_median_ns, quantile_disc(task.latency_ns, 0.95) AS latency_p95_ns
    FROM (SELECT every, application, unnest(tasks) AS task FROM kept) GROUP BY every, application),
spent AS (
    SELECT every, application, count(*) AS sessions, count_if(spans > 0)::BIGINT AS spanned_sessions,
        count(tools)::BIGINT AS tooled_sessions, sum(tools)::BIGINT AS tools, sum(tool_calls)::BIGINT AS tool_calls,
        sum(tool_wait_inferred_ns)::BIGINT AS tool_wait_inferred_ns, {_SUMMED} FROM kept GROUP BY every, application)
SELECT spent.*, told.* EXCLUDE (every, application), count(*) OVER () AS total
FROM spent LEFT JOIN told ON spent.every = told.every AND spent.application IS NOT DISTINCT FROM told.application
ORDER BY spent.every DESC, sessions DESC, spent.application LIMIT $limit OFFSET $offset"""
    ), params


def course(src: Sources, scope: Scope, step_ns: int) -> tuple[str, Params]:
    """Per step, which begins at ``at_ns``: the tasks that began in it, their median first token, and the median of the
    completed ones' whole time."""
    found, params = sessions(src, scope, "tasks")
    return (
        f"""SELECT task.started_ns // $step_ns * $step_ns AS at_ns, count(*) AS tasks,
    quantile_disc(task.first_token_ns, 0.5) AS first_token_ns, quantile_disc(task.latency_ns, 0.5) AS latency_ns
FROM (SELECT unnest(tasks) AS task FROM {found}) GROUP BY at_ns ORDER BY at_ns"""
    ), {**params, "step_ns": step_ns}


def latencies(src: Sources, scope: Scope) -> tuple[str, Params]:
    """First token beside completed tasks, per turn of a session and per length of the prompt: the fields of
    ``Latency``."""
    found, params = sessions(src, scope, "session_id, tasks")
    return latencies_of(src, found), params


def evaluated(src: Sources, scope: Scope) -> tuple[str, Params]:
    """A page of ``name, label``, one row each: how often evaluations gave it, and their scores."""
    found, params = sessions(src, scope, "session_id, evaluations")
    return (
        f"""SELECT result.name AS name, result.label AS label, count(*) AS results,
    count(DISTINCT session_id) AS sessions,
    count(result.score) AS scored, avg(result.score) AS mean, min(result.score) AS lowest, max(result.score) AS highest,
    count(*) OVER () AS total
FROM (SELECT session_id, unnest(evaluations) AS result FROM {found}) GROUP BY ALL
ORDER BY results DESC, name, label LIMIT $limit OFFSET $offset"""
    ), params
