"""What the reader asks for a period as a whole, from sessions' summaries alone: sums, the one before, its course, its
applications, and which sessions are worth opening. A session is of the period in which it ended."""

from __future__ import annotations

from typing import Final

from turnscope.model import Period
from turnscope.store import session_sums
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import SESSIONS
from turnscope.store.sql import newest, newest_of_few

STEPS: Final = 24
"""Of a period's course."""
MOST_APPLICATIONS: Final = 20


def figures(src: Sources, period: Period) -> tuple[str, Params]:
    """One row: the sums over its sessions."""
    found, params = _of(src, period)
    return f"SELECT {session_sums.COLUMNS} FROM {found}", params


def course(src: Sources, period: Period) -> tuple[str, Params]:
    """The same for each of ``STEPS`` equal parts of the period that has a session, by ``step``."""
    found, params = _of(src, period)
    step = f"(({_ENDED}::HUGEINT - $since_ns) * {STEPS} // ($until_ns::HUGEINT - $since_ns))::BIGINT"
    return f"SELECT {step} AS step, {session_sums.COLUMNS} FROM {found} GROUP BY step ORDER BY step", params


def by_application(src: Sources, period: Period) -> tuple[str, Params]:
    """The same for each application, those with most sessions first; a session of two is in both."""
    found, params = _of(src, period)
    return (
        f"SELECT {session_sums.COLUMNS}, application FROM (SELECT *, unnest(applications) AS application FROM {found}) "
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
    return f"(SELECT * FROM {newest(SESSIONS, src.sessions, session_sums.NEEDS)} WHERE {' AND '.join(tests)})", params
