"""What the reader asks about reuse over a period: its course, what could have been avoided, and what it cost."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import Reason
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import SESSIONS
from turnscope.store.scope import Scope, turns
from turnscope.store.sql import newest


def course(src: Sources, scope: Scope, step_ns: int) -> tuple[str, Params]:
    """``at_ns, path, reason, turns``: how many turns began in each step, which begins at ``at_ns``."""
    found, params = turns(src, scope, "started_ns, path, reason")
    return (
        f"SELECT started_ns // $step_ns * $step_ns AS at_ns, path, reason, count(*) AS turns FROM {found} "
        "GROUP BY ALL ORDER BY ALL"
    ), {**params, "step_ns": step_ns}


_AVOIDED: Final = """count(*) AS turns, sum(recomputed_tokens)::BIGINT AS tokens,
    count(recompute_ns) AS judged_turns, sum(recompute_ns)::BIGINT AS recompute_ns,
    sum(recompute_low_ns)::BIGINT AS recompute_low_ns, sum(recompute_high_ns)::BIGINT AS recompute_high_ns,
    sum(greatest(0, recompute_ns - coalesce(refetch_ns, 0))) FILTER (recompute_ns IS NOT NULL)::BIGINT AS spared_ns,
    count_if(recompute_ns IS NOT NULL AND refetch_basis IS DISTINCT FROM 'measured')::BIGINT AS assumed_turns"""
MOST_NAMES: Final = 100
"""Of models and applications."""


def avoidable(src: Sources, scope: Scope) -> tuple[str, Params]:
    """``axis, name`` and sums over turns that computed again what their session had computed before: ``axis`` is
    reason, model or application, the most tokens first. A turn of a session of two applications is in both; without any
    its name is NULL."""
    wanted = (
        "session_id, reason, model, recomputed_tokens, recompute_ns, recompute_low_ns, recompute_high_ns, refetch_ns, "
        "refetch_basis"
    )
    found, params = turns(src, scope, wanted)
    named = newest(SESSIONS, src.sessions, "session_id, applications")
    return (
        f"WITH found AS MATERIALIZED (SELECT * FROM {found} WHERE recomputed_tokens > 0), "
        f"named AS (SELECT session_id, unnest(applications) AS application FROM {named}) "
        f"SELECT * FROM (SELECT 'reason' AS axis, reason AS name, {_AVOIDED} FROM found GROUP BY name "
        f"UNION ALL SELECT 'model', model, {_AVOIDED} FROM found GROUP BY model "
        f"UNION ALL SELECT 'application', application, {_AVOIDED} FROM found LEFT JOIN named USING (session_id) "
        "GROUP BY application) QUALIFY row_number() OVER (PARTITION BY axis ORDER BY tokens DESC, name) "
        f"<= {MOST_NAMES} ORDER BY axis, tokens DESC, name"
    ), params


FAILED: Final = f"reason IN ('{Reason.TRANSFER_FAILED}', '{Reason.HANDSHAKE_FAILED}')"
_BALANCE_NEEDS: Final = (
    "prefill_engine, reason, fetched_tokens, fetched_bytes, net_gain_ns, net_gain_low_ns, net_gain_high_ns, "
    "suspect_tokens, wasted_bytes, recomputed_tokens"
)


def balance(src: Sources, scope: Scope) -> tuple[str, Params]:
    """One row for all, whose ``every`` is true, and one a prefill engine: what fetching gained and what it cost."""
    found, params = turns(src, scope, _BALANCE_NEEDS)
    return (
        f"""SELECT grouping(prefill_engine) = 1 AS every, prefill_engine, count(*) AS turns,
    count_if(fetched_tokens > 0)::BIGINT AS fetches, sum(fetched_tokens)::BIGINT AS fetched_tokens,
    sum(fetched_bytes)::BIGINT AS fetched_bytes, count(net_gain_ns) AS judged,
    count_if(net_gain_ns >= 0)::BIGINT AS gained_fetches,
    sum(net_gain_ns) FILTER (net_gain_ns >= 0)::BIGINT AS gained_ns,
    count_if(net_gain_ns < 0)::BIGINT AS lost_fetches, -sum(net_gain_ns) FILTER (net_gain_ns < 0)::BIGINT AS lost_ns,
    count_if(net_gain_high_ns < 0)::BIGINT AS surely_lost,
    count_if({FAILED})::BIGINT AS failed_reads,
    count_if(wasted_bytes > 0)::BIGINT AS wasted_turns, sum(wasted_bytes)::BIGINT AS wasted_bytes,
    count_if(suspect_tokens > 0)::BIGINT AS suspect_turns, sum(suspect_tokens)::BIGINT AS suspect_tokens,
    count(recomputed_tokens) AS split_turns, sum(recomputed_tokens)::BIGINT AS recomputed_tokens
FROM {found} GROUP BY GROUPING SETS ((), (prefill_engine)) ORDER BY every DESC, fetches DESC, prefill_engine"""
    ), params


_WORST_NEEDS: Final = (
    "turn_id, session_id, turn_index, started_ns, model, prefill_engine, reason, status, fetched_tokens, fetch_ns, "
    "net_gain_ns, net_gain_low_ns, net_gain_high_ns, wasted_bytes, suspect_tokens"
)


def worst(src: Sources, scope: Scope) -> tuple[str, Params]:
    """A page of the turns that fetching cost something: slower than computing, failed, or read for nothing; the
    costliest first."""
    found, params = turns(src, scope, _WORST_NEEDS)
    return (
        f"SELECT *, count(*) OVER () AS total FROM {found} WHERE net_gain_ns < 0 OR wasted_bytes > 0 OR {FAILED} "
        "ORDER BY net_gain_ns NULLS LAST, wasted_bytes DESC NULLS LAST, started_ns, turn_id "
        "LIMIT $limit OFFSET $offset"
    ), params
