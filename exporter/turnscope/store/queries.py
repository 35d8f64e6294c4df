"""What the reader asks: filters, sort orders and the SQL of each question, with data only as parameters."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from turnscope.semconv import NO_OBSTACLE, Reason, Status
from turnscope.store.fates import PAUSE_NEEDS, SESSION, fate, pauses
from turnscope.store.schema import HOLDS, PROCESSES, SESSIONS, SPANS, TURNS
from turnscope.store.sql import Stored, newest, newest_of_few, rows


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps sessions with at least one turn that meets every given condition; their totals still cover all turns. The
    empty one keeps all."""

    text: str | None = None
    """Part of the session id, in any case."""
    model: str | None = None
    engine: str | None = None
    """Name of a prefill or decode engine."""
    path: str | None = None
    reason: str | None = None
    suspicion: str | None = None
    status: str | None = None
    transport: str | None = None
    ttft_ns: int | None = None
    """It waited at least so long for its first token."""
    suspicious: bool = False
    failed: bool = False
    rewritten: bool = False
    """New prompt tokens that its session had seen at another place."""
    lost: bool = False
    """Its fetch took longer than computing would have."""
    since_ns: int | None = None
    """Turns that started at or after it."""
    until_ns: int | None = None


_TURN_TEST: Final = {
    "text": "contains(lower(session_id), lower($turn_text))",
    "model": "model = $turn_model",
    "engine": "(prefill_engine = $turn_engine OR decode_engine = $turn_engine)",
    "path": "path = $turn_path",
    "reason": "reason = $turn_reason",
    "suspicion": "list_contains(suspicions, $turn_suspicion)",
    "status": "status = $turn_status",
    "transport": "transport = $turn_transport",
    "ttft_ns": "ttft_ns >= $turn_ttft_ns",
    "since_ns": "started_ns >= $turn_since_ns",
    "until_ns": "started_ns < $turn_until_ns",
}
_TURN_MARKS: Final = {
    "suspicious": "len(suspicions) > 0",
    "failed": f"status != '{Status.OK}'",
    "rewritten": "rewritten_tokens > 0",
    "lost": "net_gain_ns < 0",
}
_OBSTACLE: Final = f"reason NOT IN {tuple(str(reason) for reason in (*NO_OBSTACLE, Reason.UNKNOWN))}"
REUSED: Final = "local_hit_tokens + fetched_tokens + external_tokens"
"""Prompt tokens of a turn that were not computed; NULL unless every source is known."""
TOKEN_SUMS: Final = f"""
    sum(prompt_tokens)::BIGINT AS prompt_tokens,
    sum(prompt_tokens) FILTER ({REUSED} IS NOT NULL)::BIGINT AS source_tokens,
    sum({REUSED})::BIGINT AS reused_tokens,
    sum(local_hit_tokens)::BIGINT AS local_hit_tokens,
    sum(fetched_tokens)::BIGINT AS fetched_tokens,
    sum(external_tokens)::BIGINT AS external_tokens,
    sum(computed_tokens)::BIGINT AS computed_tokens,
    sum(recomputed_tokens)::BIGINT AS recomputed_tokens,
    sum(new_tokens)::BIGINT AS new_tokens,
    sum(output_tokens)::BIGINT AS output_tokens,
    sum(fetched_bytes)::BIGINT AS fetched_bytes"""
"""Over turns; each NULL where no turn measured it."""
_SESSION_COLUMNS: Final = f"""
    {SESSION} AS session_id,
    arg_min(session_source, started_ns) AS session_source,
    count(*) AS turns,
    count(prompt_tokens) AS measured_turns,
    count({REUSED}) AS source_turns,
    count(recomputed_tokens + new_tokens) AS split_turns,
    count(ttft_ns) AS ttft_turns,
    count_if(has_attempt)::BIGINT AS attempt_turns,
    min(started_ns) AS first_ns,
    max(coalesce(ended_ns, started_ns)) AS last_ns,
    list_sort(list(DISTINCT model) FILTER (model IS NOT NULL)) AS models,
    {TOKEN_SUMS},
    sum(fetch_ns)::BIGINT AS fetch_ns,
    quantile_disc(ttft_ns, 0.5) AS ttft_median_ns,
    count_if(fetched_tokens > 0)::BIGINT AS fetch_turns,
    count_if(len(suspicions) > 0)::BIGINT AS suspicious_turns,
    count_if(status != '{Status.OK}')::BIGINT AS failed_turns,
    coalesce(
        mode(reason ORDER BY started_ns, turn_id) FILTER ({_OBSTACLE}),
        any_value(reason) FILTER (reason = '{Reason.UNKNOWN}')) AS main_reason"""
TURNS_NEED: Final = (
    "turn_id, session_id, session_source, started_ns, ended_ns, model, prefill_engine, decode_engine, path, reason, "
    "status, suspicions, prompt_tokens, local_hit_tokens, fetched_tokens, external_tokens, computed_tokens, "
    "recomputed_tokens, new_tokens, output_tokens, fetched_bytes, fetch_ns, ttft_ns, has_attempt, transport, "
    "rewritten_tokens, net_gain_ns"
)
Params = dict[str, Any]
Files = dict[str, Stored]
"""By table."""


class Sources(msgspec.Struct, frozen=True):
    """What there is to read: SQL for all stored rows of each table."""

    turns: str
    holds: str
    spans: str
    sessions: str
    processes: str


TABLES: Final = (TURNS, HOLDS, SPANS, SESSIONS, PROCESSES)


FRESH: Final = "fresh_sessions"
"""Name of a table with summaries that are not stored."""


def sources(files: Files, *, fresh: bool = False) -> Sources:
    """Sources over the files of each table, which the query gets as ``Stored.params`` of its name; with
    ``fresh``, over the table of that name besides."""
    found = {t.name: rows(t, t.name, files[t.name]) for t in TABLES}
    if fresh:
        stored = found[SESSIONS.name]
        found[SESSIONS.name] = f"({stored} UNION ALL BY NAME SELECT *, '' AS filename FROM {FRESH})"
    return Sources(**found)


def turn_tests(where: SessionFilter) -> tuple[str, Params]:
    """What a turn has to meet, as a condition on a row; empty where nothing is asked."""
    given = {name: v for name in _TURN_TEST if (v := getattr(where, name)) is not None}
    tests = [_TURN_TEST[name] for name in given]
    tests += [test for name, test in _TURN_MARKS.items() if getattr(where, name)]
    return " AND ".join(tests), {f"turn_{name}": value for name, value in given.items()}


def _session_test(session_id: str | None) -> tuple[str, Params]:
    if session_id is None:
        return f"{SESSION} IS NULL", {}
    return "session_id = $session_id", {"session_id": session_id}


def _turns_of(src: Sources, session_id: str | None) -> tuple[str, Params]:
    """The newest revisions of one session's turns. A revision may have moved a turn to another session."""
    test, params = _session_test(session_id)
    candidates = f"(SELECT * FROM {src.turns} WHERE turn_id IN (SELECT turn_id FROM {src.turns} WHERE {test}))"
    return f"(SELECT * FROM {newest_of_few(TURNS, candidates)} WHERE {test})", params


def session(src: Sources, session_id: str | None) -> tuple[str, Params]:
    """One session's turns summed into one row, or none (None: the turns without an id)."""
    turns, params = _turns_of(src, session_id)
    return f"SELECT {_SESSION_COLUMNS} FROM {turns} GROUP BY {SESSION}", params


_TURN_HOLD: Final = f"""
    h.outcome AS hold_outcome, h.hold_id IS NOT NULL AS hold_seen, h.held_ns AS hold_held_ns, h.ttl_ns AS hold_ttl_ns,
    h.tokens AS hold_tokens, h.bytes AS hold_bytes, h.used_by_turn_id AS hold_used_by_turn_id,
    p.pause_ns AS hold_pause_ns, {fate("h", "p")} AS hold_fate"""


def _with_holds(src: Sources, turns: str, among: str) -> str:
    """The rows of the common table ``turns``, each with the hold its answer left, whose next turn is looked for in the
    common table ``among``; ``total`` is the number of its rows."""
    left = f"(SELECT * FROM {src.holds} WHERE hold_id IN (SELECT left_hold_id FROM {turns}))"
    return (
        f"SELECT {TURNS.columns('t.')}, {_TURN_HOLD}, (SELECT count(*) FROM {among}) AS total "
        f"FROM {turns} t LEFT JOIN {newest_of_few(HOLDS, left)} h ON h.hold_id = t.left_hold_id "
        f"LEFT JOIN {pauses(turns, among)} p ON p.turn_key = hash(t.turn_id)"
    )


def turns(src: Sources, session_id: str | None) -> tuple[str, Params]:
    """One session's turns, oldest first, each with the hold its answer left (``hold_*``)."""
    found, params = _turns_of(src, session_id)
    return (
        f"WITH found AS MATERIALIZED {found}, "
        "page AS MATERIALIZED (SELECT * FROM found ORDER BY started_ns, turn_id LIMIT $limit OFFSET $offset) "
        f"{_with_holds(src, 'page', 'found')} ORDER BY t.started_ns, t.turn_id"
    ), params


def recent_turns(src: Sources) -> tuple[str, Params]:
    """The newest turns of all sessions, newest first, each with the hold its answer left (``hold_*``)."""
    ids = newest(TURNS, src.turns, PAUSE_NEEDS)
    page = newest_of_few(TURNS, f"(SELECT * FROM {src.turns} WHERE turn_id IN (SELECT turn_id FROM wanted))")
    return (
        f"WITH ids AS MATERIALIZED {ids}, "
        "wanted AS MATERIALIZED "
        "(SELECT turn_id FROM ids ORDER BY started_ns DESC, turn_id LIMIT $limit OFFSET $offset), "
        f"page AS MATERIALIZED {page} "
        f"{_with_holds(src, 'page', 'ids')} ORDER BY t.started_ns DESC, t.turn_id"
    ), {}


def holds(src: Sources, hold_ids: list[str]) -> tuple[str, Params]:
    """Some holds, oldest first."""
    candidates = f"(SELECT * FROM {src.holds} WHERE hold_id IN (SELECT unnest($hold_ids)))"
    found = newest_of_few(HOLDS, candidates)
    return f"SELECT {HOLDS.columns()} FROM {found} ORDER BY started_ns, hold_id", {"hold_ids": hold_ids}


def spans(src: Sources, session_id: str) -> tuple[str, Params]:
    """The spans of one session's agents, oldest first. A revision may have moved a span to another session."""
    ids = f"(SELECT span_key FROM {src.spans} WHERE session_id = $session_id)"
    found = newest_of_few(SPANS, f"(SELECT * FROM {src.spans} WHERE span_key IN {ids})")
    return (
        f"SELECT {SPANS.columns()}, count(*) OVER () AS total FROM {found} WHERE session_id = $session_id "
        f"ORDER BY started_ns, span_key LIMIT $limit OFFSET $offset"
    ), {"session_id": session_id}


def run_turns(src: Sources, run: str) -> tuple[str, Params]:
    """What is compared of the turns of an imported run, one row a turn."""
    ids = f"(SELECT turn_id FROM {src.turns} WHERE run = $run)"
    found = newest_of_few(TURNS, f"(SELECT * FROM {src.turns} WHERE turn_id IN {ids})")
    return (
        f"SELECT prompt_tokens, ttft_ns, prefill_ns, fetch_ns, fetch_reads FROM {found} ORDER BY started_ns, turn_id"
    ), {"run": run}


def runs(src: Sources) -> tuple[str, Params]:
    """The names of the imported runs, sorted."""
    return f"SELECT DISTINCT run FROM {src.turns} WHERE run IS NOT NULL ORDER BY run", {}
