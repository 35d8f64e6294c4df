"""What the reader asks for a period as a whole, from sessions' summaries alone: sums, the one before, its course, its
applications, and which sessions are worth opening. A session is of the period in which it ended."""

from __future__ import annotations

from typing import Final

from turnscope.model import Period
from turnscope.semconv import Part
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import SESSIONS
from turnscope.store.sql import newest, newest_of_few

STEPS: Final = 24
"""Of a period's course."""
MOST_APPLICATIONS: Final = 20
_MOST: Final = 2**63 - 1
"""Sums of absurd times are cut to what an integer holds."""
_SUMMED: Final = (
    "wall_ns",
    *(f"{part}_ns" for part in Part),
    "inferred_ns",
    "tool_wait_inferred_ns",
    "user_wait_inferred_ns",
    "generation_inferred_ns",
    "input_proxy_ns",
    "input_queue_ns",
    "input_reverse_fetch_ns",
    "input_prefill_ns",
    "input_handoff_ns",
    "input_first_step_ns",
    "input_unattributed_ns",
    "input_client_ns",
    "turns",
    "spans",
    "errors",
    "failed_turns",
    "suspicious_turns",
    "completed_tasks",
    "failed_tasks",
    "abandoned_tasks",
)
_KNOWN: Final = ("prompt_tokens", "source_tokens", "reused_tokens", "recomputed_tokens")
_CEILING: Final = ("free_ns", "fetched_ns", "fetched_low_ns", "fetched_high_ns")
_JUDGED: Final = ("judged_turns", "unjudged_turns")
_NEEDS: Final = ", ".join(
    (
        "session_id, started_ns, ended_ns, applications, agents, models, deployments, sources, tools, ttft_median_ns, "
        "task_latency_median_ns, main_reason, ceiling",
        *_SUMMED,
        *_KNOWN,
    )
)
_COLUMNS: Final = ", ".join(
    (
        "count(*) AS sessions",
        "count_if(spans > 0)::BIGINT AS spanned_sessions",
        "count_if(tools IS NOT NULL)::BIGINT AS tooled_sessions",
        "count_if(list_contains(sources, 'proxy'))::BIGINT AS proxied_sessions",
        "count_if(suspicious_turns > 0)::BIGINT AS suspicious_sessions",
        "count_if(errors > 0)::BIGINT AS failing_sessions",
        *(f"least(coalesce(sum({name}), 0), {_MOST})::BIGINT AS {name}" for name in _SUMMED),
        *(f"sum({name})::BIGINT AS {name}" for name in _KNOWN),
        *(f"sum(ceiling.{name})::BIGINT AS {name}" for name in _CEILING),
        *(f"coalesce(sum(ceiling.{name}), 0)::BIGINT AS {name}" for name in _JUDGED),
        "coalesce(bool_or(ceiling.transfer != 'measured'), false) AS assumed",
        "quantile_disc(wall_ns - user_wait_ns, 0.5) AS working_median_ns",
        "quantile_disc(ttft_median_ns, 0.5) AS ttft_median_ns",
        "quantile_disc(task_latency_median_ns, 0.5) AS task_latency_median_ns",
        "mode(main_reason) AS main_reason",
    )
)


def figures(src: Sources, period: Period) -> tuple[str, Params]:
    """One row: the sums over its sessions."""
    found, params = _of(src, period)
    return f"SELECT {_COLUMNS} FROM {found}", params


def course(src: Sources, period: Period) -> tuple[str, Params]:
    """The same for each of ``STEPS`` equal parts of the period that has a session, by ``step``."""
    found, params = _of(src, period)
    step = f"(({_ENDED}::HUGEINT - $since_ns) * {STEPS} // ($until_ns::HUGEINT - $since_ns))::BIGINT"
    return f"SELECT {step} AS step, {_COLUMNS} FROM {found} GROUP BY step ORDER BY step", params


def by_application(src: Sources, period: Period) -> tuple[str, Params]:
    """The same for each application, those with most sessions first; a session of two is in both."""
    found, params = _of(src, period)
    return (
        f"SELECT {_COLUMNS}, application FROM (SELECT *, unnest(applications) AS application FROM {found}) "
        f"GROUP BY application ORDER BY sessions DESC, application LIMIT {MOST_APPLICATIONS}"
    ), params


def telling(src: Sources, period: Period) -> tuple[str, Params]:
    """At most three summaries without their tasks, each with ``what`` it is: the ``typical`` one, whose working time is
    the median, the ``slow`` one, which worked longest, and the ``worst``, with most turns that may be wrong, else most
    errors."""
    found, params = _of(src, period)
    order = {
        "typical": f"WHERE {_WORKING} >= (SELECT quantile_disc({_WORKING}, 0.5) FROM found) ORDER BY {_WORKING}",
        "slow": f"ORDER BY {_WORKING} DESC",
        "worst": f"WHERE suspicious_turns + errors > 0 ORDER BY suspicious_turns DESC, errors DESC, {_WORKING} DESC",
    }
    picked = " UNION ALL ".join(
        f"(SELECT '{what}' AS what, session_id FROM found {by}, session_id LIMIT 1)" for what, by in order.items()
    )
    whole = newest_of_few(
        SESSIONS, f"(SELECT * FROM {src.sessions} WHERE session_id IN (SELECT session_id FROM picked))"
    )
    return (
        f"WITH found AS MATERIALIZED {found}, picked AS MATERIALIZED ({picked}) "
        f"SELECT what, s.* EXCLUDE (filename, tasks) FROM picked p JOIN {whole} s ON s.session_id = p.session_id"
    ), params


def bounds(src: Sources) -> tuple[str, Params]:
    """One row: when the first session ended and the last, and how many there are."""
    found = newest(SESSIONS, src.sessions, "session_id, ended_ns, turns, spans")
    return (
        "SELECT count(*) AS sessions, min(ended_ns) AS first_ns, max(ended_ns) AS last_ns "
        f"FROM {found} WHERE turns + spans > 0"
    ), {}


def names(src: Sources) -> tuple[str, Params]:
    """``(kind, value, sessions)`` rows: every application, agent, model, deployment and engine, the frequent first."""
    kinds = ("applications", "agents", "models", "deployments", "engines")
    found = newest(SESSIONS, src.sessions, f"session_id, {', '.join(kinds)}")
    rows = " UNION ALL ".join(f"SELECT '{kind}' AS kind, unnest({kind}) AS value FROM found" for kind in kinds)
    return (
        f"WITH found AS MATERIALIZED {found} SELECT kind, value, count(*) AS sessions FROM ({rows}) "
        "GROUP BY kind, value ORDER BY kind, sessions DESC, value"
    ), {}


_ENDED: Final = "ended_ns"
_WORKING: Final = "(wall_ns - user_wait_ns)"


def _of(src: Sources, period: Period) -> tuple[str, Params]:
    tests = ["turns + spans > 0", f"{_ENDED} >= $since_ns", f"{_ENDED} < $until_ns"]
    params: Params = {"since_ns": period.since_ns, "until_ns": period.until_ns}
    if period.application is not None:
        tests.append("list_contains(applications, $application)")
        params["application"] = period.application
    return f"(SELECT * FROM {newest(SESSIONS, src.sessions, _NEEDS)} WHERE {' AND '.join(tests)})", params
