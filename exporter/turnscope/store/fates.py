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


def pauses(turns: str, among: str) -> str:
    """``turn_id, hold_id, session_id, pause_ns`` of each of ``turns`` that left a hold: how long until the next turn.

    The next turn, looked for in the table ``among``, is the one that continues it, or else the first of its session
    that began after it had ended. Turns are compared by their own times, which mostly are of one clock, the proxy's;
    where engines' clocks put a turn before the end of the one it continues, the pause is 0. NULL: none has come.
    """
    return f"""(
    WITH ended AS (
        SELECT left_hold_id AS hold_id, turn_id, {SESSION} AS session_id, coalesce(ended_ns, started_ns) AS ended_ns
        FROM {turns} WHERE left_hold_id IS NOT NULL),
    begun AS (SELECT session_id, started_ns FROM {among}),
    continued AS (
        SELECT previous_turn_id, min(started_ns) AS started_ns FROM {among}
        WHERE previous_turn_id IS NOT NULL GROUP BY previous_turn_id)
    SELECT e.turn_id, e.hold_id, e.session_id, CASE WHEN coalesce(b.started_ns, c.started_ns) IS NOT NULL
        THEN greatest(0, least(b.started_ns, c.started_ns) - e.ended_ns) END AS pause_ns
    FROM ended e
    ASOF LEFT JOIN begun b ON e.session_id = b.session_id AND e.ended_ns < b.started_ns
    LEFT JOIN continued c ON c.previous_turn_id = e.turn_id)"""


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
