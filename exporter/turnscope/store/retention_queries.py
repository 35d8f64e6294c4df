"""What the reader asks about blocks that decode engines keep: pauses against their time limit, what was held, and what
became of it. One question, since all of it is made of each turn's next turn and the hold that it left."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import Part
from turnscope.store.fates import fate
from turnscope.store.followed import FOLLOWED, KEPT, TOOL, USER
from turnscope.store.queries import Params, Sources
from turnscope.store.scope import Scope, keys_of_application

GAPS: Final = "gaps"
FATES: Final = "fates"
COURSE: Final = "course"

_FILLED: Final = f"""CASE
        WHEN fine AND asked AND brings = {TOOL} THEN '{Part.TOOL_WAIT}'
        WHEN fine AND NOT asked AND brings = {USER} THEN '{Part.USER_WAIT}' ELSE '{Part.UNKNOWN}' END"""
"""What filled a pause: inferred, as in ``measures.waits``, from what the turn asked for and the next one brings."""
_SLOT: Final = "floor(4 * log2(greatest(pause_ns, 1000000) / 1e9))::BIGINT"
_UNTIL: Final = "coalesce(lasted_ns, least(ttl_ns, $newest_ns - hold_started_ns), 0)"


def slot_begin_s(slot: int) -> float:
    """Where slot ``slot`` of pauses begins, in seconds: four of them double it."""
    return float(2 ** (slot / 4))


def retention(src: Sources, scope: Scope, step_ns: int, newest_ns: int) -> tuple[str, Params]:
    """Rows of three kinds, told apart by ``what``.

    ``gaps``: pauses between turns and the next of their sessions, per ``filled`` and ``slot`` (``slot_begin_s``);
    where ``slot`` is NULL per ``filled`` as a whole, and over all where that is NULL too. Of the ``turns`` that were
    followed, how many were so before the kept blocks' time limit (``in_time``), after it, where nothing was kept, and
    where no limit is known.

    ``fates``: per ``fate``, holds, the tokens and bytes that they kept, and those times the seconds for which they did.

    ``course``: per step, which begins at ``at_ns``, and ``outcome``, the tokens and bytes that were kept on average.
    What is not known to have ended is kept until its time limit, and ``newest_ns`` at the latest.
    """
    params: Params = {"step_ns": step_ns, "newest_ns": newest_ns}
    turn, hold, reaching = ["pause_ns IS NOT NULL"], ["held"], ["held"]
    if scope.since_ns is not None:
        params["since_ns"] = scope.since_ns
        turn.append("began_ns >= $since_ns")
        hold.append("hold_started_ns >= $since_ns")
        reaching.append(f"hold_started_ns + {_UNTIL} >= $since_ns")
    if scope.until_ns is not None:
        params["until_ns"] = scope.until_ns
        turn.append("began_ns < $until_ns")
        hold.append("hold_started_ns < $until_ns")
        reaching.append("hold_started_ns < $until_ns")
    if scope.model is not None:
        params["model"] = scope.model
        for tests in (turn, hold, reaching):
            tests.append("model = $model")
    if scope.application is not None:
        params["application"] = scope.application
        for tests in (turn, hold, reaching):
            tests.append(f"session_key IN {keys_of_application(src)}")
    shown = "step * $step_ns <= $newest_ns" + (" AND (step + 1) * $step_ns > $since_ns" if scope.since_ns else "")
    return (
        f"""WITH gaps AS (
    SELECT {_FILLED} AS filled, {_SLOT} AS slot, pause_ns, ttl_ns, "left"
    FROM {FOLLOWED} WHERE {" AND ".join(turn)}),
kept AS (
    SELECT {KEPT}, tokens, bytes, lasted_ns FROM {FOLLOWED} WHERE {" AND ".join(hold)}),
reaching AS MATERIALIZED (
    SELECT hold_started_ns, hold_started_ns + greatest(0, {_UNTIL}) AS hold_ended_ns,
        coalesce(outcome, 'held') AS outcome, tokens, bytes FROM {FOLLOWED} WHERE {" AND ".join(reaching)}),
{_COURSE}
SELECT '{GAPS}' AS what, filled, slot, {_COUNTED} FROM gaps GROUP BY filled, slot
UNION ALL BY NAME SELECT '{GAPS}' AS what, filled, {_COUNTED}, {_SPREAD} FROM gaps GROUP BY filled
UNION ALL BY NAME SELECT '{GAPS}' AS what, {_COUNTED}, {_SPREAD} FROM gaps HAVING count(*) > 0
UNION ALL BY NAME SELECT '{FATES}' AS what, {fate("kept", "kept")} AS fate, count(*) AS holds,
    count(lasted_ns) AS timed, sum(tokens)::BIGINT AS tokens, sum(bytes)::BIGINT AS bytes,
    sum(tokens * (lasted_ns / 1e9)) AS token_seconds, sum(bytes * (lasted_ns / 1e9)) AS byte_seconds,
    quantile_disc(lasted_ns, 0.5) AS held_median_ns
FROM kept GROUP BY fate
UNION ALL BY NAME SELECT '{COURSE}' AS what, step * $step_ns AS at_ns, outcome, level_tokens, level_bytes
FROM levels WHERE {shown}
ORDER BY what, filled NULLS FIRST, slot NULLS FIRST, holds DESC, fate, at_ns, outcome"""
    ), params


_COUNTED: Final = """count(*) AS turns, count_if(coalesce(pause_ns <= ttl_ns, false))::BIGINT AS in_time,
    count_if(coalesce(pause_ns > ttl_ns, false))::BIGINT AS too_late, count_if(NOT "left")::BIGINT AS not_kept,
    count_if("left" AND ttl_ns IS NULL)::BIGINT AS no_limit"""
_SPREAD: Final = """quantile_disc(pause_ns, [0.5, 0.95])[1] AS median_ns,
    quantile_disc(pause_ns, [0.5, 0.95])[2] AS p95_ns, min(ttl_ns) AS ttl_low_ns, max(ttl_ns) AS ttl_high_ns"""
"""Both quantiles of one pass."""
_COURSE: Final = """changes AS (
    SELECT moment // $step_ns AS step, outcome, sum(tokens) AS tokens, sum(bytes) AS bytes,
        sum(tokens * rest) AS tokens_in, sum(bytes * rest) AS bytes_in
    FROM (SELECT *, 1 - (moment % $step_ns) / $step_ns::DOUBLE AS rest FROM (
        SELECT hold_started_ns AS moment, outcome, tokens, bytes FROM reaching
        UNION ALL SELECT hold_ended_ns, outcome, -tokens, -bytes FROM reaching)) GROUP BY step, outcome),
steps AS (
    SELECT step, outcome FROM (SELECT unnest(range((SELECT min(step) FROM changes),
        (SELECT max(step) + 1 FROM changes))) AS step), (SELECT DISTINCT outcome FROM changes)),
levels AS (
    SELECT step, outcome, coalesce(sum(tokens) OVER before, 0) + coalesce(tokens_in, 0) AS level_tokens,
        coalesce(sum(bytes) OVER before, 0) + coalesce(bytes_in, 0) AS level_bytes
    FROM steps LEFT JOIN changes USING (step, outcome)
    WINDOW before AS (PARTITION BY outcome ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))"""
