"""Every turn beside what followed it and the blocks that it left: worked out once for what is stored, since each filter
of a page asks for another part of it, and the working out takes most of the time. At once it would take several times
the memory: sessions are taken some at a time, after what connects them to others has been found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from turnscope.semconv import HoldKind, Status
from turnscope.store.fates import PAUSE_NEEDS, keyed, keyed_pauses
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import HOLDS, TURNS
from turnscope.store.sql import newest

FOLLOWED: Final = "followed_turns"
"""The relation that a question gets, where its text names it. One row for each turn, and for each hold of a turn that
is not stored; what it has not is NULL. A hold that several turns claim is the first one's.

Of the turn ``began_ns, model, fine, asked`` (whether it was answered, and asked for a tool), ``session_key``, and
whether it ``left`` anything; ``pause_ns`` until the next one and what that ``brings``. Of the hold ``held`` (true),
``hold_started_ns``, for how long it ``lasted_ns``, ``ttl_ns, outcome, tokens, bytes``.
"""
TURNED: Final = "keyed_turns"
STRAYS: Final = "stray_turns"
DISPUTED: Final = "disputed_holds"
"""Relations that it is made of."""
Ask = Callable[[str, Params, dict[str, pa.Table]], pa.Table]
TOOL, USER = 1, 2
"""What a turn brings; NULL or 0 for anything else."""

KEPT: Final = """held AS hold_id, outcome, lasted_ns AS held_ns, NULL::BIGINT AS ended_ns,
        hold_started_ns AS started_ns, ttl_ns, nullif("left", false) AS hold_key, session_key, pause_ns"""
"""Of its rows that have a hold: what ``fate`` takes, of the hold and of the pause."""

_ASKED: Final = "CASE WHEN finish_reason = 'tool_calls' THEN true ELSE tool_calls > 0 END"
_FINE: Final = f"status = '{Status.OK}'"
_BRINGS: Final = f"CASE last_role WHEN 'tool' THEN {TOOL} WHEN 'user' THEN {USER} ELSE 0 END::UTINYINT"
_PIECE: Final = 250_000
_MINE: Final = "coalesce(session_key, 0) % $pieces = $piece"


def work_out(src: Sources, ask: Ask, piece: int = _PIECE) -> pa.Table:
    """The relation ``FOLLOWED``, of about ``piece`` turns at a time. Meanwhile each turn of the store takes 60 bytes of
    memory, and each of those several hundred. ``ask`` answers a text with its parameters, over the files and the
    relations that it gets."""
    given: dict[str, pa.Table] = {}
    given[TURNED] = ask(_keyed_turns(src), {}, given)
    given[STRAYS] = ask(_STRAY_TURNS, {}, given)
    given[DISPUTED] = ask(_DISPUTED_HOLDS, {}, given)
    pieces = 1 + given[TURNED].num_rows // piece
    some = [ask(_unclaimed(src), {}, given)]
    some += [ask(_of_sessions(src), {"piece": at, "pieces": pieces}, given) for at in range(pieces)]
    return pa.concat_tables(some, promote_options="default")


def _keyed_turns(src: Sources) -> str:
    """The relation ``TURNED``: each turn with what is read of it."""
    turns = newest(TURNS, src.turns, f"{PAUSE_NEEDS}, model, status, last_role, tool_calls, finish_reason")
    return f"SELECT * FROM {keyed(turns, _BRINGS, f', model, {_FINE} AS fine, {_ASKED} AS asked')}"


_STRAY_TURNS: Final = f"""SELECT t.* FROM {TURNED} t JOIN {TURNED} b ON b.turn_key = t.previous_key
WHERE b.session_key IS DISTINCT FROM t.session_key"""
"""The relation ``STRAYS``, made of ``TURNED``: turns that continue one of another session."""
_DISPUTED_HOLDS: Final = f"""SELECT hold_key, arg_min(turn_key, (started_ns, turn_key)) AS turn_key FROM {TURNED}
WHERE hold_key IN (SELECT hold_key FROM {TURNED} GROUP BY hold_key HAVING count(*) > 1) GROUP BY hold_key"""
"""The relation ``DISPUTED``, made of ``TURNED``: holds that several turns claim, and the first of these."""


def _of_sessions(src: Sources) -> str:
    """Of the rows of ``FOLLOWED``, those of the turns of every ``$pieces``-th session, beginning at ``$piece``."""
    return f"""WITH mine AS (SELECT * FROM {TURNED} WHERE {_MINE}),
among AS (FROM mine UNION ALL SELECT * FROM {STRAYS} WHERE NOT {_MINE}),
paused AS MATERIALIZED (
    SELECT p.* EXCLUDE (turn_key, hold_key, started_ns), p.started_ns AS began_ns, p.hold_key IS NOT NULL AS "left",
        CASE WHEN d.turn_key IS NULL OR d.turn_key = p.turn_key THEN p.hold_key END AS claims
    FROM {keyed_pauses("among", ", model, fine, asked")} p LEFT JOIN {DISPUTED} d ON d.hold_key = p.hold_key
    WHERE {_MINE})
SELECT p.* EXCLUDE (claims), h.* EXCLUDE (hold_key)
FROM paused p LEFT JOIN (
    SELECT * FROM {_left_behind(src)} WHERE hold_key IN (SELECT claims FROM paused)) h ON h.hold_key = p.claims"""


def _unclaimed(src: Sources) -> str:
    """Those of the holds of turns that are not stored."""
    return f"""SELECT false AS "left", h.* EXCLUDE (hold_key)
FROM {_left_behind(src)} h ANTI JOIN {TURNED} t ON t.hold_key = h.hold_key"""


def _left_behind(src: Sources) -> str:
    holds = newest(HOLDS, src.holds, "hold_id, kind, started_ns, ended_ns, held_ns, ttl_ns, outcome, tokens, bytes")
    return f"""(SELECT hash(hold_id) AS hold_key, true AS held, started_ns AS hold_started_ns,
        coalesce(held_ns, ended_ns - started_ns) AS lasted_ns, ttl_ns, outcome, tokens, bytes
    FROM {holds} WHERE kind = '{HoldKind.HOLD}')"""
