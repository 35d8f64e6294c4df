"""What the reader asks of sessions' summaries, and of the turns and spans that they are made of."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from turnscope.semconv import Part
from turnscope.store import session_sums
from turnscope.store.fates import SESSION
from turnscope.store.queries import TURNS_NEED, Params, SessionFilter, Sources, turn_tests
from turnscope.store.schema import SESSIONS, SPANS, TURNS, Table
from turnscope.store.sql import newest, newest_of_few


class SummarySort(StrEnum):
    """What sessions can be ordered by."""

    LAST = "ended_ns"
    FIRST = "started_ns"
    WALL = "wall_ns"
    TURNS = "turns"
    TASKS = "len(tasks)"
    LATENCY = "task_latency_median_ns"
    CEILING = "ceiling.fetched_ns"
    ERRORS = "errors"
    INPUT = "input_processing_ns"
    GENERATION = "generation_ns"
    TOOLS = "tool_wait_ns"
    APPLICATION = "application_work_ns"
    USER = "user_wait_ns"
    UNKNOWN = "unknown_ns"
    INPUT_SHARE = "input_processing_ns / nullif(wall_ns, 0)"
    GENERATION_SHARE = "generation_ns / nullif(wall_ns, 0)"
    TOOLS_SHARE = "tool_wait_ns / nullif(wall_ns, 0)"
    APPLICATION_SHARE = "application_work_ns / nullif(wall_ns, 0)"
    USER_SHARE = "user_wait_ns / nullif(wall_ns, 0)"
    UNKNOWN_SHARE = "unknown_ns / nullif(wall_ns, 0)"
    CEILING_SHARE = "ceiling.fetched_ns / nullif(wall_ns, 0)"
    WORKING = "wall_ns - user_wait_ns"
    TTFT = "ttft_median_ns"
    PROMPT = "prompt_tokens"
    COMPUTED = "computed_tokens"
    RECOMPUTED = "recomputed_tokens"
    FETCHED = "fetched_tokens"
    SUSPICIOUS = "suspicious_turns"
    FAILED = "failed_turns"


class SummaryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps sessions that meet every given condition."""

    text: str | None = None
    """Part of the session id, in any case."""
    model: str | None = None
    application: str | None = None
    """Part of an application's name, in any case."""
    agent: str | None = None
    deployment: str | None = None
    engine: str | None = None
    """Name of a prefill or decode engine."""
    path: str | None = None
    """At least one turn of it, as of the two below."""
    reason: str | None = None
    suspicion: str | None = None
    suspicious: bool | None = None
    failed: bool | None = None
    """With turns that were not answered."""
    errors: bool | None = None
    """With turns or tools that failed."""
    longer_ns: int | None = None
    """Its working time, without waits for a person, at least."""
    outcome: str | None = None
    """At least one task ended so."""
    since_ns: int | None = None
    """Ended at or after it."""
    until_ns: int | None = None
    """Began before it."""
    part: Part | None = None
    """At least ``share`` of its time was this part."""
    share: float | None = None
    """From 0 to 1."""
    turn: SessionFilter = SessionFilter()
    """At least one turn meets all of it."""


_TESTS: Final = {
    "text": "contains(lower(session_id), lower($text))",
    "model": "list_contains(models, $model)",
    "application": "contains(lower(array_to_string(applications, chr(10))), lower($application))",
    "agent": "list_contains(agents, $agent)",
    "deployment": "list_contains(deployments, $deployment)",
    "engine": "list_contains(engines, $engine)",
    "path": "list_contains(paths, $path)",
    "reason": "list_contains(reasons, $reason)",
    "suspicion": "list_contains(suspicions, $suspicion)",
    "suspicious": "(suspicious_turns > 0) = $suspicious",
    "failed": "(failed_turns > 0) = $failed",
    "errors": "(errors > 0) = $errors",
    "longer_ns": "wall_ns - user_wait_ns >= $longer_ns",
    "outcome": "list_contains(list_transform(tasks, lambda task: task.outcome), $outcome)",
    "since_ns": "ended_ns >= $since_ns",
    "until_ns": "started_ns < $until_ns",
}


def summaries(src: Sources, where: SummaryFilter, sort: SummarySort, *, descending: bool) -> tuple[str, Params]:
    """A page of summaries, with the number of all that match in ``total`` on every row."""
    found, params = _matching(src, where)
    order = f"{sort.value} {'DESC' if descending else 'ASC'} NULLS LAST, session_id"
    return (
        f"SELECT {SESSIONS.columns()}, count(*) OVER () AS total FROM {found} "
        f"ORDER BY {order} LIMIT $limit OFFSET $offset"
    ), params


LISTED: Final = (
    "session_id",
    "applications",
    "agents",
    "deployments",
    "models",
    "engines",
    "started_ns",
    "ended_ns",
    "wall_ns",
    *(f"{part}_ns" for part in Part),
    "inferred_ns",
    "turns",
    "spans",
    "errors",
    "failed_turns",
    "suspicious_turns",
    "suspicions",
    "too_large",
    "completed_tasks",
    "failed_tasks",
    "abandoned_tasks",
    "task_latency_median_ns",
    "ttft_median_ns",
    "main_reason",
    "prompt_tokens",
    "source_tokens",
    "reused_tokens",
    "local_hit_tokens",
    "fetched_tokens",
    "external_tokens",
    "computed_tokens",
    "recomputed_tokens",
    "output_tokens",
    "fetched_bytes",
)
"""Columns of a session in a list: those of its summary that are no list of structures."""


def listed(src: Sources, where: SummaryFilter, sort: SummarySort, *, descending: bool) -> tuple[str, Params]:
    """A page of sessions in a list, each with what reuse could spare it at best (``spared_ns``), and the number of all
    that match in ``total`` on every row."""
    found, params = _matching(src, where)
    order = f"{sort.value} {'DESC' if descending else 'ASC'} NULLS LAST, session_id"
    return (
        f"SELECT {', '.join(LISTED)}, ceiling.fetched_ns AS spared_ns, count(*) OVER () AS total FROM {found} "
        f"ORDER BY {order} LIMIT $limit OFFSET $offset"
    ), params


def _matching(src: Sources, where: SummaryFilter) -> tuple[str, Params]:
    params = {name: value for name in _TESTS if (value := getattr(where, name)) is not None}
    tests = ["turns + spans > 0", *(_TESTS[name] for name in params)]
    if where.part is not None:
        tests.append(f"{where.part}_ns > 0 AND {where.part}_ns >= $share * wall_ns")
        params["share"] = where.share or 0.0
    of_turn, more = turn_tests(where.turn)
    if of_turn:
        turns = newest(TURNS, src.turns, TURNS_NEED)
        tests.append(f"session_id IN (SELECT session_id FROM {turns} WHERE {of_turn})")
    return f"(SELECT * FROM {newest(SESSIONS, src.sessions)} WHERE {' AND '.join(tests)})", params | more


def summed(src: Sources, where: SummaryFilter) -> tuple[str, Params]:
    """One row: the sums over all sessions that match."""
    found, params = _matching(src, where)
    return f"SELECT {session_sums.COLUMNS} FROM {found}", params


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """What turns and tasks of one kind took: medians in nanoseconds, None where none was measured."""

    turn_index: int | None = None
    """Of the turn, and of the task's first turn."""
    context_tokens: int | None = None
    """Prompts of so many tokens or more, and of less than twice as many."""
    turns: int
    ttft_ns: int | None = None
    tasks: int
    completed_tasks: int
    failed_tasks: int
    first_token_ns: int | None = None
    task_latency_ns: int | None = None
    """Of completed tasks."""


MOST_INDEXES: Final = 20


def latencies(src: Sources, where: SummaryFilter) -> tuple[str, Params]:
    """Time to first token beside completed tasks, per turn index (up to 20) and per length of the context."""
    found, params = _matching(src, where)
    return latencies_of(src, found), params


def latencies_of(src: Sources, found: str) -> str:
    """The same of the sessions ``found``, a relation with ``session_id`` and ``tasks``: the fields of ``Latency``."""
    wanted = "turn_id, session_id, turn_index, prompt_tokens, ttft_ns"
    by = {
        "turn_index": ("turn_index", f"turn_index <= {MOST_INDEXES}"),
        "context_tokens": ("(2 ** floor(log2({})))::BIGINT", "{} > 0"),
    }
    parts = []
    for name, (group, test) in by.items():
        of_turn, of_task = group.format("prompt_tokens"), group.format("context_tokens")
        columns = ", ".join(f"key AS {n}" if n == name else f"NULL::BIGINT AS {n}" for n in by)
        parts.append(
            f"SELECT {columns}, coalesce(t.n, 0) AS turns, t.ttft_ns, coalesce(k.n, 0) AS tasks, "
            "coalesce(k.completed, 0) AS completed_tasks, coalesce(k.failed, 0) AS failed_tasks, k.first_token_ns, "
            "k.latency_ns AS task_latency_ns FROM "
            f"(SELECT {of_turn} AS key, count(*) AS n, quantile_disc(ttft_ns, 0.5) AS ttft_ns FROM turned "
            f"WHERE {test.format('prompt_tokens')} GROUP BY key) t FULL JOIN "
            f"(SELECT {of_task} AS key, count(*) AS n, count_if(outcome = 'completed')::BIGINT AS completed, "
            "count_if(outcome = 'failed')::BIGINT AS failed, quantile_disc(first_token_ns, 0.5) AS first_token_ns, "
            f"quantile_disc(latency_ns, 0.5) AS latency_ns FROM tasked WHERE {test.format('context_tokens')} "
            "GROUP BY key) k USING (key)"
        )
    return (
        f"WITH found AS MATERIALIZED {found}, "
        f"turned AS MATERIALIZED (SELECT * FROM {newest(TURNS, src.turns, wanted)} "
        "WHERE session_id IN (SELECT session_id FROM found)), "
        "tasked AS MATERIALIZED (SELECT unnest(task) FROM (SELECT unnest(tasks) AS task FROM found)) "
        f"{' UNION ALL BY NAME '.join(parts)} ORDER BY turn_index NULLS LAST, context_tokens"
    )


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much is known of a session, of which nothing else is read."""

    session_id: str
    turns: int
    spans: int
    started_ns: int
    ended_ns: int


def sizes(src: Sources, session_ids: list[str]) -> tuple[str, Params]:
    """How many turns and spans some sessions have; one that has moved to another session may still be counted."""
    ids, test = _any_of(session_ids)
    counted = " UNION ALL BY NAME ".join(
        f"SELECT session_id, count(*) AS {kind}, 0 AS {other}, min(started_ns) AS started_ns, "
        f"max(coalesce(ended_ns, started_ns)) AS ended_ns "
        f"FROM {newest_of_few(table, f'(SELECT * FROM {source} WHERE {test})')} GROUP BY session_id"
        for table, source, kind, other in ((TURNS, src.turns, "turns", "spans"), (SPANS, src.spans, "spans", "turns"))
    )
    return (
        f"SELECT session_id, sum(turns)::BIGINT AS turns, sum(spans)::BIGINT AS spans, min(started_ns) AS started_ns, "
        f"max(ended_ns) AS ended_ns FROM ({counted}) GROUP BY session_id"
    ), ids


def turns_of(src: Sources, session_ids: list[str]) -> tuple[str, Params]:
    """All revisions of the turns that any revision says are of one of these sessions, with their ``filename``."""
    return _rows_of(TURNS, src.turns, session_ids)


def spans_of(src: Sources, session_ids: list[str]) -> tuple[str, Params]:
    """The same of spans."""
    return _rows_of(SPANS, src.spans, session_ids)


def _rows_of(table: Table, source: str, session_ids: list[str]) -> tuple[str, Params]:
    """Whoever asks finds the newest: to compare whole rows DuckDB would have all of them in memory, and twice."""
    ids, test = _any_of(session_ids)
    keys = f"(SELECT {table.key} FROM {source} WHERE {test})"
    return f"SELECT {table.columns()}, filename FROM {source} WHERE {table.key} IN {keys}", ids


def _any_of(session_ids: list[str]) -> tuple[Params, str]:
    """Parameters and a test. A list of parameters, and not one of a list: only so DuckDB passes over row groups that
    have none of them."""
    ids: Params = {f"id{number}": session_id for number, session_id in enumerate(session_ids)}
    return ids, f"session_id IN ({', '.join(f'${name}' for name in ids)})"


def left_by(src: Sources, turn_ids: list[str], span_keys: list[str]) -> tuple[str, Params]:
    """Sessions that any revision of these turns and spans was of."""
    return (
        f"SELECT DISTINCT session_id FROM {src.turns} WHERE list_contains($turn_ids, turn_id) AND {_NAMED} "
        f"UNION SELECT session_id FROM {src.spans} WHERE list_contains($span_keys, span_key) AND {_NAMED}"
    ), {"turn_ids": turn_ids, "span_keys": span_keys}


_NAMED: Final = f"{SESSION} IS NOT NULL"


def counted_until(src: Sources, session_ids: list[str]) -> tuple[str, Params]:
    """Up to when the metrics have some sessions: those of which they are to have any time."""
    return (
        f"SELECT session_id, counted_until_ns FROM {newest(SESSIONS, src.sessions, 'session_id, counted_until_ns')} "
        "WHERE counted_until_ns IS NOT NULL AND list_contains($session_ids, session_id)"
    ), {"session_ids": session_ids}


def uncounted(src: Sources) -> tuple[str, Params]:
    """Sessions that the metrics are to have more of."""
    columns = "session_id, counted_until_ns, ended_ns, turns, spans"
    return (
        f"SELECT session_id FROM {newest(SESSIONS, src.sessions, columns)} "
        "WHERE counted_until_ns < ended_ns AND turns + spans > 0 ORDER BY ended_ns"
    ), {}


def outdated(src: Sources) -> tuple[str, Params]:
    """Sessions with another number of turns or spans than their summary says, or without one, or with one of an older
    turnscope, which lacked columns; the newest first."""
    counted = " UNION ALL ".join(
        f"SELECT session_id, started_ns, {turns} AS turns, {spans} AS spans FROM {newest(table, source, columns)} "
        f"WHERE {_NAMED}"
        for table, source, columns, turns, spans in (
            (TURNS, src.turns, "turn_id, session_id, started_ns", 1, 0),
            (SPANS, src.spans, "span_key, session_id, started_ns", 0, 1),
        )
    )
    return (
        f"SELECT c.session_id FROM (SELECT session_id, max(started_ns) AS last_ns, sum(turns) AS turns, "
        f"sum(spans) AS spans FROM ({counted}) GROUP BY session_id) c "
        f"LEFT JOIN {newest(SESSIONS, src.sessions, 'session_id, turns, spans, reasons')} s USING (session_id) "
        "WHERE s.reasons IS NULL OR s.turns != c.turns OR s.spans != c.spans ORDER BY last_ns DESC"
    ), {}
