"""What became of the blocks a turn left: a hold's outcome, told apart by whether a later turn of its session came.

A hold that reached its time limit is no fault where nobody came back, and a loss where the next turn came too late.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from turnscope.semconv import HoldOutcome

SESSION: Final = "nullif(session_id, '')"
"""Turns without a session id (NULL or empty) form one bucket, whose id is NULL."""


class Fate(StrEnum):
    """A hold's outcome; ``ttl`` is told apart wherever the turn that left the hold is known."""

    HELD = "held"
    """It has not ended."""
    READ = HoldOutcome.READ
    NOTIFIED = HoldOutcome.NOTIFIED
    NOT_CONTINUED = "not_continued"
    """``ttl``, and no later turn of the session has come."""
    TOO_LATE = "too_late"
    """``ttl``, and the next turn came after it."""
    NOT_ASKED = "not_asked"
    """``ttl``, although the next turn came before it."""
    NO_SESSION = "no_session"
    """``ttl``, left by a turn without a session id: no later turn could know of it."""
    TTL = HoldOutcome.TTL
    """``ttl``, and the turn that left it is not in the store."""
    LEASE = HoldOutcome.LEASE
    HOLDER_LOST = HoldOutcome.HOLDER_LOST
    ABORTED = HoldOutcome.ABORTED
    UNKNOWN = HoldOutcome.UNKNOWN


PAUSE_NEEDS: Final = "turn_id, session_id, previous_turn_id, started_ns, ended_ns, left_hold_id"
"""Columns of turns that ``pauses`` reads."""


def pauses(turns: str, among: str, brings: str = "NULL") -> str:
    """``turn_id, hold_id, session_id, pause_ns, brings`` of each of ``turns``: how long until the next turn, and what
    the expression ``brings`` is of that one.

    The next turn, looked for in the table ``among``, which ``turns`` are part of, is the one that continues it, or else
    the first of its session that began after it had ended. Turns are compared by their own times, which mostly are of
    one clock, the proxy's; where engines' clocks put a turn before the end of the one it continues, the pause is 0.
    NULL: none has come.

    Nearly always the next turn is the one beside it in its session's order. Only what is not so (parallel turns, turns
    that continue another than the one before) is searched for: searching for all takes five times as long.
    """
    return f"""(
    WITH beside AS MATERIALIZED (
        SELECT turn_id, left_hold_id, session_id, started_ns, ended_ns, brings, previous_turn_id,
            lead(started_ns) OVER next AS after_ns, lead(brings) OVER next AS after_brings,
            lead(hash(previous_turn_id)) OVER next = hash(turn_id) AS continued,
            previous_turn_id IS NOT NULL AND lag(hash(turn_id)) OVER next IS DISTINCT FROM hash(previous_turn_id)
                AS apart
        FROM (SELECT turn_id, left_hold_id, {SESSION} AS session_id, started_ns,
            coalesce(ended_ns, started_ns) AS ended_ns, previous_turn_id, {brings} AS brings FROM {among})
        WINDOW next AS (PARTITION BY hash(session_id) ORDER BY started_ns, turn_id)),
    crossed AS MATERIALIZED (
        SELECT turn_id, session_id, ended_ns FROM beside WHERE session_id IS NOT NULL AND after_ns <= ended_ns),
    later AS (
        SELECT c.turn_id, b.started_ns, b.brings FROM crossed c ASOF JOIN (
            SELECT session_id, started_ns, brings FROM beside WHERE session_id IN (SELECT session_id FROM crossed)) b
        ON c.session_id = b.session_id AND c.ended_ns < b.started_ns),
    continuing AS (
        SELECT previous_turn_id, min(started_ns) AS started_ns, arg_min(brings, started_ns) AS brings
        FROM beside WHERE apart GROUP BY previous_turn_id),
    nexts AS (
        SELECT t.turn_id, t.left_hold_id AS hold_id, t.session_id, t.ended_ns,
            CASE WHEN t.continued OR (t.session_id IS NOT NULL AND t.after_ns > t.ended_ns) THEN t.after_ns END
                AS beside_ns, t.after_brings, l.started_ns AS later_ns, l.brings AS later_brings,
            c.started_ns AS continuing_ns, c.brings AS continuing_brings,
            least(beside_ns, later_ns, continuing_ns) AS next_ns
        FROM beside t LEFT JOIN later l ON l.turn_id = t.turn_id
        LEFT JOIN continuing c ON c.previous_turn_id = t.turn_id)
    SELECT turn_id, hold_id, session_id,
        CASE WHEN next_ns IS NOT NULL THEN greatest(0, next_ns - ended_ns) END AS pause_ns,
        CASE next_ns WHEN beside_ns THEN after_brings WHEN continuing_ns THEN continuing_brings
            ELSE later_brings END AS brings
    FROM nexts{f" WHERE turn_id IN (SELECT turn_id FROM {turns})" if turns != among else ""})"""


def fate(hold: str, pause: str) -> str:
    """SQL for the ``Fate`` of the row ``hold``, given its row of ``pauses`` (all NULL: its turn is not known)."""
    held = f"coalesce({hold}.held_ns, {hold}.ended_ns - {hold}.started_ns, {hold}.ttl_ns)"
    return f"""CASE
        WHEN {hold}.hold_id IS NULL THEN NULL
        WHEN {hold}.outcome IS NULL THEN '{Fate.HELD}'
        WHEN {hold}.outcome != '{HoldOutcome.TTL}' THEN {hold}.outcome
        WHEN {pause}.hold_id IS NULL THEN '{Fate.TTL}'
        WHEN {pause}.session_id IS NULL THEN '{Fate.NO_SESSION}'
        WHEN {pause}.pause_ns IS NULL THEN '{Fate.NOT_CONTINUED}'
        WHEN {pause}.pause_ns > {held} THEN '{Fate.TOO_LATE}'
        WHEN {pause}.pause_ns <= {held} THEN '{Fate.NOT_ASKED}'
        ELSE '{Fate.TTL}' END"""
