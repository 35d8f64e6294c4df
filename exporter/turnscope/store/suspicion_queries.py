"""What the reader asks about answers that may be wrong: each with the evidence."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import ContinuityEvidence, MismatchEvidence, Status
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import HOLDS, TURNS
from turnscope.store.scope import Scope, turns
from turnscope.store.sql import newest_of_few

_NEEDS: Final = (
    "turn_id, session_id, turn_index, previous_turn_id, started_ns, ended_ns, model, prefill_engine, decode_engine, "
    "path, reason, status, stage, suspicions, mismatch_evidence, suspect_tokens, prompt_tokens, fetched_tokens, "
    "local_hit_tokens, handoff_tokens, decode_computed_tokens, diverged_after, diverged_before, diverged_message, "
    "diverged_role, diverged_kind, diverged_chars_before, diverged_chars, diverged_evidence, used_hold_id, "
    "late_by_ns, late_by_error_ns"
)


_COMPARED: Final = f"('{ContinuityEvidence.DIGESTS}', '{ContinuityEvidence.FIRST_TURN}')"


def listed(src: Sources, scope: Scope, kind: str | None, session_id: str | None = None) -> tuple[str, Params]:
    """A page of turns whose answers may be wrong (of one kind, of one session), the newest first: with what they reused
    (``held_*`` of the hold that they were offered, ``held_turn_*`` of the turn that left it) and ``previous_*`` of the
    turn before."""
    found, params = turns(src, scope, _NEEDS)
    test = "len(suspicions) > 0"
    if kind is not None:
        test = "list_contains(suspicions, $kind)"
        params["kind"] = kind
    if session_id is not None:
        test += " AND session_id = $session_id"
        params["session_id"] = session_id
    page = "SELECT used_hold_id FROM page WHERE used_hold_id IS NOT NULL"
    held = newest_of_few(HOLDS, f"(SELECT * FROM {src.holds} WHERE hold_id IN ({page}))")
    others = "SELECT previous_turn_id FROM page UNION SELECT turn_id FROM held"
    before = newest_of_few(TURNS, f"(SELECT * FROM {src.turns} WHERE turn_id IN ({others}))")
    return (
        f"""WITH page AS MATERIALIZED (
    SELECT *, count(*) OVER () AS total FROM {found} WHERE {test}
    ORDER BY started_ns DESC, turn_id LIMIT $limit OFFSET $offset),
held AS MATERIALIZED {held},
others AS MATERIALIZED (SELECT turn_id, session_id, turn_index, started_ns FROM {before})
SELECT page.*, b.turn_index AS previous_index, b.started_ns AS previous_started_ns,
    h.engine AS held_engine, h.started_ns AS held_started_ns, h.held_ns AS held_held_ns, h.outcome AS held_outcome,
    h.tokens AS held_tokens, h.late_notices AS held_late_notices, h.late_notice_ns AS held_late_notice_ns,
    o.turn_index AS held_turn_index, o.session_id AS held_session_id
FROM page LEFT JOIN held h ON h.hold_id = page.used_hold_id
LEFT JOIN others b ON b.turn_id = page.previous_turn_id LEFT JOIN others o ON o.turn_id = h.turn_id
ORDER BY page.started_ns DESC, page.turn_id"""
    ), params


def counted(src: Sources, scope: Scope) -> tuple[str, Params]:
    """``kind, turns, sessions``: how many turns have each kind of suspicion. First, with the kind NULL, those with any:
    (``answered`` to their end, ``proven`` by digests) of ``judged`` turns, of which ``compared`` could be compared with
    what their session had computed, and ``failed`` were not answered, which is another matter."""
    found, params = turns(src, scope, "session_id, suspicions, status, continuity_evidence, mismatch_evidence")
    return (
        f"""WITH found AS MATERIALIZED {found}
SELECT NULL AS kind, count(*) FILTER (len(suspicions) > 0) AS turns, count(*) AS judged,
    count(DISTINCT session_id) FILTER (len(suspicions) > 0) AS sessions,
    count(*) FILTER (len(suspicions) > 0 AND status = '{Status.OK}') AS answered,
    count(*) FILTER (len(suspicions) > 0 AND mismatch_evidence = '{MismatchEvidence.DIGESTS}') AS proven,
    count(*) FILTER (status != '{Status.OK}') AS failed,
    count(*) FILTER (continuity_evidence IN {_COMPARED}) AS compared
FROM found
UNION ALL BY NAME (SELECT kind, count(*) AS turns, count(DISTINCT session_id) AS sessions
FROM (SELECT unnest(suspicions) AS kind, session_id FROM found) GROUP BY kind ORDER BY turns DESC, kind)"""
    ), params
