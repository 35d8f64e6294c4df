"""A store as large as they get, compacted, made by SQL in seconds: 1,000,000 turns in 50,000 sessions by default.

``python -m tests.store.huge FOLDER`` writes one to look at. What each row holds follows from its number alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from tests.store.rows import HOUR, NOON, SECOND
from turnscope.store import manifest
from turnscope.store.manifest import File, Manifest
from turnscope.store.parts import write_table
from turnscope.store.schema import HOLDS, SESSIONS, SPANS, TURNS, Table, partition

SESSIONS_MADE: Final = 50_000
TURNS_EACH: Final = 20
DAYS: Final = 7
DAY: Final = 24 * HOUR
WRITER: Final = "huge"
_TTL: Final = 480 * SECOND

_TURNS: Final = f"""
    SELECT s, i, s * {TURNS_EACH} + i AS n, {NOON}::BIGINT + s * ({DAYS * DAY} // $sessions) AS begun_ns,
        begun_ns + (i - 1) * 40::BIGINT * {SECOND}
            + CASE WHEN hash(s, i) % 20 = 0 THEN 600::BIGINT * {SECOND} ELSE 0 END AS started_ns,
        (hash(s, i, 1) % 1000)::BIGINT AS a, (hash(s, i, 2) % 1000)::BIGINT AS b, (hash(s, i, 3) % 1000)::BIGINT AS c
    FROM range($sessions) sessions(s), range(1, {TURNS_EACH + 1}) turns(i)"""

_PATH: Final = "CASE WHEN i = 1 OR b < 300 THEN 'recompute' WHEN b < 800 THEN 'reverse_fetch' ELSE 'mixed' END"
_REASON: Final = """
        CASE WHEN i = 1 THEN 'first_turn' WHEN b < 60 THEN 'declined_expired' WHEN b < 200 THEN 'no_handle_from_decode'
            WHEN b < 240 THEN 'prefix_diverged' WHEN b < 300 THEN 'below_threshold' ELSE 'none' END"""
_FETCHED: Final = "CASE WHEN i > 1 AND b >= 300 THEN 1000 * (i - 1) ELSE 0 END"
_AGAIN: Final = "CASE WHEN i > 1 AND b < 300 THEN 1000 * (i - 1) ELSE 0 END"

_QUERIES: Final[dict[str, str]] = {
    TURNS.name: f"""
    SELECT printf('%032x', n) AS turn_id, 1 AS revision, 'hooks' AS source, 'agent-' || printf('%06d', s) AS session_id,
        i AS turn_index, CASE WHEN i > 1 THEN printf('%032x', n - 1) END AS previous_turn_id,
        started_ns, started_ns + (2000 + a * 3) * 1000000 AS ended_ns, 'model-' || s % 3 AS model,
        'prefill-' || s % 4 AS prefill_engine, 'decode-' || s % 4 AS decode_engine, 'exact' AS "join",
        {_PATH} AS path,
        {_REASON} AS reason,
        CASE WHEN c < 10 THEN 'error' ELSE 'ok' END AS status,
        CASE WHEN a < 5 THEN ['kv_mismatch'] ELSE [] END AS suspicions,
        1000 * i AS prompt_tokens, 0 AS local_hit_tokens, {_FETCHED} AS fetched_tokens, 0 AS external_tokens,
        CASE WHEN i > 1 AND b >= 300 THEN 1000 ELSE 1000 * i END AS computed_tokens,
        {_AGAIN} AS recomputed_tokens, 1000 AS new_tokens,
        200 AS output_tokens, CASE WHEN i > 1 AND b >= 300 THEN 1024000 * (i - 1) END AS fetched_bytes,
        CASE WHEN i > 1 AND b >= 300 THEN (20 + a % 100) * 1000000 END AS fetch_ns,
        CASE WHEN i > 1 AND b >= 300 THEN (i * 8 - a // 20) * 1000000 END AS net_gain_ns,
        CASE WHEN i > 1 AND b < 300 THEN i * 50000000 ELSE 0 END AS recompute_ns,
        CASE WHEN i > 1 AND b < 300 THEN i * 10000000 END AS refetch_ns, 'measured' AS refetch_basis,
        (100 + a) * 1000000 AS prefill_ns, (150 + a) * 1000000 AS ttft_ns, (2000 + a * 3) * 1000000 AS duration_ns,
        CASE WHEN a < 5 THEN 300 END AS suspect_tokens, CASE WHEN a < 5 THEN 'digests' END AS mismatch_evidence,
        'digests' AS continuity_evidence, 'none' AS local_miss, 1 AS samples, 1 AS attempts,
        CASE WHEN c < 10 THEN 500000 END AS wasted_bytes,
        CASE WHEN i % 5 = 1 THEN 'user' ELSE 'tool' END AS last_role, CASE WHEN i % 5 = 0 THEN 0 ELSE 1 END
            AS tool_calls, CASE WHEN i > 1 AND b >= 300 THEN printf('%032x', n - 1) END AS used_hold_id,
        printf('%032x', n) AS left_hold_id, true AS has_prefill, true AS has_decode, true AS has_attempt, false AS late
    FROM made""",
    HOLDS.name: f"""
    SELECT printf('%032x', n) AS hold_id, 1 AS revision, 'hold' AS kind, 'decode-' || s % 4 AS engine, 'd' AS engine_id,
        'g' AS generation, 'r' || n AS request_id, 'agent-' || printf('%06d', s) AS session_id,
        printf('%032x', n) AS turn_id, 1000 * i + 200 AS tokens, 1024 * (1000 * i + 200) AS bytes,
        started_ns + (2000 + a * 3) * 1000000 AS started_ns, {_TTL} AS ttl_ns,
        started_ns + (2000 + a * 3) * 1000000 + held_ns AS ended_ns, held_ns, outcome, 0 AS late_notices,
        ['issued decode', 'held decode'] AS steps
    FROM (SELECT *, CASE WHEN i = {TURNS_EACH} OR b < 300 THEN 'ttl' ELSE 'read' END AS outcome,
        CASE WHEN i = {TURNS_EACH} OR b < 300 THEN {_TTL} ELSE 38::BIGINT * {SECOND} END AS held_ns FROM made)""",
    SPANS.name: f"""
    SELECT printf('%032x-%016x', s + 1, n) AS span_key, printf('%032x', s + 1) AS trace_id, printf('%016x', n)
            AS span_id, 1 AS revision, 'agent-' || printf('%06d', s) AS session_id, 'tool' AS kind, 'otlp' AS source,
        'application-' || s % 5 AS service_name, '1.' || s % 2 AS service_version,
        'tool-' || c % 12 AS tool_name, started_ns + 6::BIGINT * {SECOND} AS started_ns,
        started_ns + 6::BIGINT * {SECOND} + c * 10000000 AS ended_ns, 'measured' AS timing,
        CASE WHEN a < 20 THEN 'error' ELSE 'ok' END AS status, CASE WHEN a < 20 THEN 'timeout' END AS error_type
    FROM made WHERE i % 2 = 0""",
    SESSIONS.name: f"""
    SELECT 'agent-' || printf('%06d', s) AS session_id, 1 AS revision, min(started_ns) AS started_ns,
        max(started_ns) + 6::BIGINT * {SECOND} AS ended_ns,
        max(started_ns) - min(started_ns) + 6::BIGINT * {SECOND} AS wall_ns,
        sum((150 + a) * 1000000)::BIGINT AS input_processing_ns, sum((1850 + a * 2) * 1000000)::BIGINT AS generation_ns,
        sum(CASE WHEN i % 2 = 0 THEN c * 10000000 ELSE 0 END)::BIGINT AS tool_wait_ns, 0 AS application_work_ns,
        (max(started_ns) - min(started_ns) + 6::BIGINT * {SECOND} - sum((2000 + a * 3) * 1000000)
            - sum(CASE WHEN i % 2 = 0 THEN c * 10000000 ELSE 0 END))::BIGINT AS user_wait_ns, 0 AS unknown_ns,
        count(*) AS turns, {TURNS_EACH // 2} AS spans, 0 AS model_calls, {TURNS_EACH // 2} AS tools,
        sum(CASE WHEN i % 5 = 0 THEN 0 ELSE 1 END)::BIGINT AS tool_calls, count_if(c < 10)::BIGINT AS errors,
        count_if(c < 10)::BIGINT AS failed_turns, count_if(a < 5)::BIGINT AS suspicious_turns,
        sum(1000 * i)::BIGINT AS prompt_tokens, sum(1000 * i)::BIGINT AS source_tokens,
        sum({_FETCHED})::BIGINT AS reused_tokens, 0 AS local_hit_tokens, sum({_FETCHED})::BIGINT AS fetched_tokens,
        0 AS external_tokens, sum(1000 * i - {_FETCHED})::BIGINT AS computed_tokens,
        sum({_AGAIN})::BIGINT AS recomputed_tokens, 200 * count(*) AS output_tokens,
        sum(1024 * {_FETCHED})::BIGINT AS fetched_bytes,
        ['decode-' || s % 4, 'prefill-' || s % 4] AS engines, list(DISTINCT {_PATH}) AS paths,
        list(DISTINCT {_REASON}) AS reasons,
        CASE WHEN count_if(a < 5) > 0 THEN ['kv_mismatch'] ELSE [] END AS suspicions,
        mode({_REASON}) FILTER (b < 240 AND i > 1) AS main_reason, 650000000 AS ttft_median_ns,
        ['model-' || s % 3] AS models,
        ['planner'] AS agents, ['application-' || s % 5 || ' 1.' || s % 2] AS applications,
        ['production'] AS deployments,
        ['otlp', 'proxy'] AS sources,
        list_transform(range(1, {TURNS_EACH // 5 + 1}), lambda k: {{'number': k, 'started_ns': begun_ns + k,
            'outcome': CASE WHEN hash(s, k) % 20 = 0 THEN 'failed' ELSE 'completed' END,
            'latency_ns': CASE WHEN hash(s, k) % 20 = 0 THEN NULL ELSE (20 + hash(s, k) % 300)::BIGINT * {SECOND} END,
            'first_token_ns': (400 + hash(s, k) % 900) * 1000000, 'turns': 5, 'tools': 2, 'tools_evidence': 'measured',
            'tool_wait_ns': 5::BIGINT * {SECOND}, 'evaluations': CASE WHEN s % 10 = 0
                THEN [{{'name': 'helpfulness', 'label': NULL::VARCHAR, 'score': ((hash(s, k) % 100) / 100)::DOUBLE}}]
                ELSE [] END}}) AS tasks,
        {TURNS_EACH // 5} AS completed_tasks, 0 AS failed_tasks, 0 AS abandoned_tasks,
        CASE WHEN s % 10 = 0 THEN [{{'name': 'helpfulness', 'label': NULL::VARCHAR, 'score': 0.5::DOUBLE}}] ELSE [] END
            AS evaluations,
        {{'fetched_ns': 400000000, 'free_ns': 500000000, 'judged_turns': {TURNS_EACH}, 'unjudged_turns': 0,
            'recomputed_tokens': 1000, 'transfer': 'measured', 'reasons': []}} AS ceiling
    FROM made GROUP BY s, begun_ns""",
}


def build(folder: str | Path, sessions: int = SESSIONS_MADE) -> str:
    """A store of ``sessions`` sessions, compacted, one file a table and date; its address."""
    root = Path(folder)
    connection = duckdb.connect()
    files: list[File] = []
    try:
        connection.execute(f"CREATE TABLE made AS {_TURNS}", {"sessions": sessions})
        for table in (TURNS, HOLDS, SPANS, SESSIONS):
            connection.execute(f"CREATE TABLE rows AS {_QUERIES[table.name]}")
            for day in range(DAYS + 2):
                begin = NOON // DAY * DAY + day * DAY
                order = ", ".join(table.sort)
                found = connection.sql(
                    f"SELECT * FROM rows WHERE started_ns >= $begin AND started_ns < $end ORDER BY {order}",
                    params={"begin": begin, "end": begin + DAY},
                ).to_arrow_table()
                if found.num_rows:
                    files.append(_write(root, table, partition(begin), _typed(table, found)))
            connection.execute("DROP TABLE rows")
    finally:
        connection.close()
    path = root / manifest.manifest_path(WRITER)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(manifest.encode(Manifest(writer=WRITER, generation=1, files=tuple(files))))
    return str(root)


def _typed(table: Table, found: pa.Table) -> pa.Table:
    """In the schema's columns: what is not made is missing, in structs as well."""
    return pa.table([_cast(found, field) for field in table.schema], schema=table.schema)


def _cast(found: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if field.name not in found.column_names:
        return pa.nulls(found.num_rows, field.type)
    column = found[field.name]
    if pa.types.is_nested(field.type):
        return pa.array(column.to_pylist(), field.type)
    return column.cast(field.type)


def _write(root: Path, table: Table, date: str, data: pa.Table) -> File:
    name = manifest.data_path(table.name, date, 1, 1, WRITER)
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sink:
        write_table(table, data, sink)
    return File(
        path=name,
        table=table.name,
        date=date,
        rows=data.num_rows,
        bytes=path.stat().st_size,
        level=2,
        created_ns=NOON,
    )


if __name__ == "__main__":
    build(sys.argv[1])
