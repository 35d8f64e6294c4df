"""Every turn beside what followed it and the blocks that it left: worked out once for what is stored, since each filter
of a page asks for another part of it, and the working out takes most of the time."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import HoldKind, Status
from turnscope.store.fates import PAUSE_NEEDS, pauses
from turnscope.store.queries import Sources
from turnscope.store.schema import HOLDS, TURNS
from turnscope.store.sql import newest

FOLLOWED: Final = "followed_turns"
"""The relation that a question gets, where its text names it."""
TOOL, USER = 1, 2
"""What a turn brings; NULL or 0 for anything else."""

KEPT: Final = """held AS hold_id, outcome, lasted_ns AS held_ns, NULL::BIGINT AS ended_ns,
        hold_started_ns AS started_ns, ttl_ns, nullif("left", false) AS hold_key, session_key, pause_ns"""
"""Of its rows that have a hold: what ``fate`` takes, of the hold and of the pause."""

_ASKED: Final = "CASE WHEN finish_reason = 'tool_calls' THEN true ELSE tool_calls > 0 END"
_BRINGS: Final = f"CASE last_role WHEN 'tool' THEN {TOOL} WHEN 'user' THEN {USER} ELSE 0 END::UTINYINT"


def followed(src: Sources) -> str:
    """One row for each turn, and for each hold of a turn that is not stored; what it has not is NULL.

    A hold that several turns claim is the first one's.

    Of the turn ``began_ns, model, fine, asked`` (whether it was answered, and asked for a tool), ``session_key``, and
    whether it ``left`` anything; ``pause_ns`` until the next one and what that ``brings``. Of the hold ``held`` (true),
    ``hold_started_ns``, for how long it ``lasted_ns``, ``ttl_ns, outcome, tokens, bytes``.
    """
    turns = newest(TURNS, src.turns, f"{PAUSE_NEEDS}, model, status, last_role, tool_calls, finish_reason")
    holds = newest(HOLDS, src.holds, "hold_id, kind, started_ns, ended_ns, held_ns, ttl_ns, outcome, tokens, bytes")
    return f"""WITH turned AS (
    SELECT {PAUSE_NEEDS}, started_ns AS began_ns, model, {_BRINGS} AS brought, status = '{Status.OK}' AS fine,
        {_ASKED} AS asked FROM {turns}),
left_behind AS (
    SELECT hash(hold_id) AS hold_key, true AS held, started_ns AS hold_started_ns,
        coalesce(held_ns, ended_ns - started_ns) AS lasted_ns, ttl_ns, outcome, tokens, bytes
    FROM {holds} WHERE kind = '{HoldKind.HOLD}'),
paused AS MATERIALIZED {pauses("turned", "turned", "brought", ", model, fine, asked, began_ns")},
disputed AS (
    SELECT hold_key, arg_min(turn_key, (began_ns, turn_key)) AS turn_key FROM paused
    WHERE hold_key IS NOT NULL GROUP BY hold_key HAVING count(*) > 1)
SELECT f.* EXCLUDE (turn_key, hold_key, claims), f.hold_key IS NOT NULL AS "left", h.* EXCLUDE (hold_key)
FROM (SELECT p.*, CASE WHEN d.turn_key IS NULL OR d.turn_key = p.turn_key THEN p.hold_key END AS claims
    FROM paused p LEFT JOIN disputed d ON d.hold_key = p.hold_key) f
FULL JOIN left_behind h ON h.hold_key = f.claims"""
