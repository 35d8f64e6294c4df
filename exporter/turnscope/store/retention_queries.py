"""What the reader asks about blocks that decode engines keep: pauses against their time limit, what was held, and what
became of it."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import Part, Status
from turnscope.store.fates import PAUSE_NEEDS, fate, pauses
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import HOLDS, TURNS
from turnscope.store.scope import Scope, holds, turns
from turnscope.store.sql import newest

_ASKED: Final = "(finish_reason = 'tool_calls' OR tool_calls > 0)"
_SLOT: Final = "floor(4 * log2(greatest(p.pause_ns, 1000000) / 1e9))::BIGINT"
FILLED: Final = f"""CASE
    WHEN t.status = '{Status.OK}' AND {_ASKED} AND p.brings = 'tool' THEN '{Part.TOOL_WAIT}'
    WHEN t.status = '{Status.OK}' AND NOT {_ASKED} AND p.brings = 'user' THEN '{Part.USER_WAIT}'
    ELSE '{Part.UNKNOWN}' END"""
"""What filled the pause after turn ``t``, inferred from what its next turn ``p`` brings."""


def slot_begin_s(slot: int) -> float:
    """Where slot ``slot`` of pauses begins, in seconds: four of them double it."""
    return float(2 ** (slot / 4))


def gaps(src: Sources, scope: Scope) -> tuple[str, Params]:
    """Pauses between turns and the next of their sessions, by what filled them: per ``filled`` and ``slot``
    (``slot_begin_s``) and, where ``slot`` is NULL, per ``filled`` and over all. Of the ``turns`` that followed, how
    many came before the kept blocks' time limit (``in_time``), after it, where nothing was kept, and where no limit is
    known."""
    needs = f"{PAUSE_NEEDS}, last_role, tool_calls, finish_reason, status"
    wanted, params = turns(src, scope, "turn_id, left_hold_id, status, tool_calls, finish_reason")
    among = newest(TURNS, src.turns, needs)
    if scope.since_ns is not None:
        among = f"(SELECT * FROM {among} WHERE started_ns >= $since_ns)"
    limits = newest(HOLDS, src.holds, "hold_id, ttl_ns")
    return (
        f"""WITH among AS MATERIALIZED (SELECT * FROM {among}),
followed AS MATERIALIZED (
    SELECT {FILLED} AS filled, {_SLOT} AS slot, p.pause_ns, h.ttl_ns, t.left_hold_id IS NOT NULL AS kept
    FROM {pauses("among", "among", "last_role")} p JOIN {wanted} t ON t.turn_id = p.turn_id
    LEFT JOIN {limits} h ON h.hold_id = t.left_hold_id WHERE p.pause_ns IS NOT NULL)
SELECT filled, slot, count(*) AS turns, count_if(pause_ns <= ttl_ns)::BIGINT AS in_time,
    count_if(pause_ns > ttl_ns)::BIGINT AS too_late, count_if(NOT kept)::BIGINT AS not_kept,
    count_if(kept AND ttl_ns IS NULL)::BIGINT AS no_limit, quantile_disc(pause_ns, 0.5) AS median_ns,
    quantile_disc(pause_ns, 0.95) AS p95_ns, min(ttl_ns) AS ttl_low_ns, max(ttl_ns) AS ttl_high_ns
FROM followed GROUP BY GROUPING SETS ((), (filled), (filled, slot)) ORDER BY filled NULLS FIRST, slot NULLS FIRST"""
    ), params


_HELD: Final = "coalesce(held_ns, ended_ns - started_ns)"


def outcomes(src: Sources, scope: Scope) -> tuple[str, Params]:
    """Per ``fate``: holds, and the tokens and bytes that they kept, times the seconds for which they did."""
    wanted = "hold_id, tokens, bytes, blocks, outcome, started_ns, ended_ns, held_ns, ttl_ns"
    found, params = holds(src, scope, wanted)
    among = newest(TURNS, src.turns, PAUSE_NEEDS)
    if scope.since_ns is not None:
        among = f"(SELECT * FROM {among} WHERE coalesce(ended_ns, started_ns) >= $since_ns - 1000000000)"
    seconds = f"({_HELD} / 1e9)"
    return (
        f"""WITH among AS MATERIALIZED {among}
SELECT {fate("h", "p")} AS fate, count(*) AS holds, count({_HELD}) AS timed, sum(tokens)::BIGINT AS tokens,
    sum(bytes)::BIGINT AS bytes, sum(tokens * {seconds}) AS token_seconds, sum(bytes * {seconds}) AS byte_seconds,
    quantile_disc({_HELD}, 0.5) AS held_median_ns
FROM {found} h LEFT JOIN (SELECT hold_id, any_value(session_id) AS session_id, min(pause_ns) AS pause_ns
    FROM {pauses("among", "among")} WHERE hold_id IS NOT NULL GROUP BY hold_id) p USING (hold_id)
GROUP BY fate ORDER BY holds DESC, fate"""
    ), params


def course(src: Sources, scope: Scope, step_ns: int, newest_ns: int) -> tuple[str, Params]:
    """``at_ns, outcome, tokens, bytes``: what decode engines kept on average in each step, by how that ended. What is
    not known to have ended is kept until its time limit, and ``newest_ns`` at the latest."""
    ends = f"(started_ns + coalesce(held_ns, ended_ns - started_ns, least(ttl_ns, $newest_ns - started_ns), 0))"
    found, params = holds(src, scope, f"started_ns, {ends} AS ended_ns, outcome, tokens, bytes", ends=ends)
    begin = "$since_ns" if scope.since_ns is not None else "(SELECT min(started_ns) FROM found)"
    return (
        f"""WITH found AS MATERIALIZED (
    SELECT started_ns, greatest(started_ns, ended_ns) AS ended_ns, coalesce(outcome, 'held') AS outcome, tokens, bytes
    FROM {found}),
changes AS (
    SELECT moment // $step_ns AS step, outcome, sum(tokens) AS tokens, sum(bytes) AS bytes,
        sum(tokens * rest) AS tokens_in, sum(bytes * rest) AS bytes_in
    FROM (SELECT *, 1 - (moment % $step_ns) / $step_ns::DOUBLE AS rest FROM (
        SELECT started_ns AS moment, outcome, tokens, bytes FROM found
        UNION ALL SELECT ended_ns, outcome, -tokens, -bytes FROM found)) GROUP BY step, outcome),
steps AS (
    SELECT step, outcome FROM (SELECT unnest(range((SELECT min(step) FROM changes),
        (SELECT max(step) + 1 FROM changes))) AS step), (SELECT DISTINCT outcome FROM changes)),
levels AS (
    SELECT step, outcome,
        coalesce(sum(tokens) OVER before, 0) + coalesce(tokens_in, 0) AS tokens,
        coalesce(sum(bytes) OVER before, 0) + coalesce(bytes_in, 0) AS bytes
    FROM steps LEFT JOIN changes USING (step, outcome)
    WINDOW before AS (PARTITION BY outcome ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT step * $step_ns AS at_ns, outcome, tokens, bytes FROM levels
WHERE step >= {begin} // $step_ns AND step * $step_ns <= $newest_ns ORDER BY at_ns, outcome"""
    ), {**params, "step_ns": step_ns, "newest_ns": newest_ns}
