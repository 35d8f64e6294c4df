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
    """``turn_key, hold_key, session_key, pause_ns`` of each of ``turns``: how long until the next turn, which is looked
    for in the table ``among`` that ``turns`` are part of. Keys are ``key`` of the ids; NULL where there is none."""
    part = f" WHERE turn_key IN (SELECT {key('turn_id')} FROM {turns})" if turns != among else ""
    return f"(SELECT turn_key, hold_key, session_key, pause_ns FROM {keyed_pauses(keyed(among))}{part})"


def keyed(turns: str, brings: str = "NULL", keeps: str = "") -> str:
    """What ``keyed_pauses`` takes: rows of turns, with keys instead of their ids. ``brings`` is an expression,
    ``keeps`` further ones, each after a comma."""
    return f"""(SELECT {key("turn_id")} AS turn_key, {key("left_hold_id")} AS hold_key, {key(SESSION)} AS session_key,
        {key("previous_turn_id")} AS previous_key, started_ns, coalesce(ended_ns, started_ns) AS ended_ns,
        {brings} AS brings{keeps} FROM {turns})"""


def keyed_pauses(turns: str, keeps: str = "") -> str:
    """The same of the relation ``turns`` of ``keyed``, all of whose rows are answered: ``turn_key, hold_key,
    session_key, started_ns, pause_ns``, what the next turn ``brings``, and the further columns ``keeps``.

    The next turn is the one that continues it, or else the first of its session that began after it had ended. Turns
    are compared by their own times, which mostly are of one clock, the proxy's; where engines' clocks put a turn before
    the end of the one it continues, the pause is 0. NULL: none has come.

    Nearly always the next turn is the one beside it in its session's order. Only what is not so (parallel turns, turns
    that continue another than the one before) is searched for: searching for all takes five times as long.
    """
    return f"""(
    WITH beside AS MATERIALIZED (
        SELECT *, lead(started_ns) OVER next AS after_ns, lead(brings) OVER next AS after_brings,
            lead(previous_key) OVER next = turn_key AS continued,
            previous_key IS NOT NULL AND lag(turn_key) OVER next IS DISTINCT FROM previous_key AS apart
        FROM {turns}
        WINDOW next AS (PARTITION BY session_key ORDER BY started_ns, turn_key)),
    crossed AS MATERIALIZED (
        SELECT turn_key, session_key, ended_ns FROM beside WHERE session_key IS NOT NULL AND after_ns <= ended_ns),
    later AS (
        SELECT c.turn_key, b.started_ns, b.brings FROM crossed c ASOF JOIN (
            SELECT session_key, started_ns, brings FROM beside WHERE session_key IN (SELECT session_key FROM crossed)) b
        ON c.session_key = b.session_key AND c.ended_ns < b.started_ns),
    continuing AS (
        SELECT previous_key, min(started_ns) AS started_ns, arg_min(brings, started_ns) AS brings
        FROM beside WHERE apart GROUP BY previous_key),
    nexts AS (
        SELECT t.turn_key, t.hold_key, t.session_key, t.started_ns, t.ended_ns,
            CASE WHEN t.continued OR (t.session_key IS NOT NULL AND t.after_ns > t.ended_ns) THEN t.after_ns END
                AS beside_ns, t.after_brings, l.started_ns AS later_ns, l.brings AS later_brings,
            c.started_ns AS continuing_ns, c.brings AS continuing_brings,
            least(beside_ns, later_ns, continuing_ns) AS next_ns{keeps}
        FROM beside t LEFT JOIN later l ON l.turn_key = t.turn_key
        LEFT JOIN continuing c ON c.previous_key = t.turn_key)
    SELECT turn_key, hold_key, session_key, started_ns,
        CASE WHEN next_ns IS NOT NULL THEN greatest(0, next_ns - ended_ns) END AS pause_ns,
        CASE next_ns WHEN beside_ns THEN after_brings WHEN continuing_ns THEN continuing_brings
            ELSE later_brings END AS brings{keeps}
    FROM nexts)"""


def key(column: str) -> str:
    """SQL for a number that stands for an id: joining and sorting by it takes a third of the time. NULL for NULL."""
    return f"CASE WHEN {column} IS NOT NULL THEN hash({column}) END"


def fate(hold: str, pause: str) -> str:
    """SQL for the ``Fate`` of the row ``hold``, given its row of ``pauses`` (all NULL: its turn is not known)."""
    held = f"coalesce({hold}.held_ns, {hold}.ended_ns - {hold}.started_ns, {hold}.ttl_ns)"
    return f"""CASE
        WHEN {hold}.hold_id IS NULL THEN NULL
        WHEN {hold}.outcome IS NULL THEN '{Fate.HELD}'
        WHEN {hold}.outcome != '{HoldOutcome.TTL}' THEN {hold}.outcome
        WHEN {pause}.hold_key IS NULL THEN '{Fate.TTL}'
        WHEN {pause}.session_key IS NULL THEN '{Fate.NO_SESSION}'
        WHEN {pause}.pause_ns IS NULL THEN '{Fate.NOT_CONTINUED}'
        WHEN {pause}.pause_ns > {held} THEN '{Fate.TOO_LATE}'
        WHEN {pause}.pause_ns <= {held} THEN '{Fate.NOT_ASKED}'
        ELSE '{Fate.TTL}' END"""
