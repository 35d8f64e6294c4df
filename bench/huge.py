"""A store of 1,000,000 turns in 50,000 sessions, as daily compaction leaves it, made in seconds by SQL.

``python -m bench.huge FOLDER`` writes one to look at.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from turnscope.store import manifest, parts, sql
from turnscope.store.files import open_files
from turnscope.store.manifest import File, Manifest
from turnscope.store.schema import HOLDS, SESSIONS, TABLES, TURNS, Table

SESSIONS_: Final = 50_000
TURNS_PER_SESSION: Final = 20
DAYS: Final = 14
SECOND: Final = 1_000_000_000
BEGIN: Final = 1_796_040_000 * SECOND - DAYS * 86_400 * SECOND
WRITER: Final = "huge"
_STEP: Final = 45 * SECOND
"""Between the begins of two turns of a session."""
# Of turn n (0, 1, ...) of session s; hash() stands for chance.
_TURNS: Final = f"""
    SELECT printf('%032x', n) AS turn_id, 1 AS revision, 'hooks' AS source, printf('agent-%06d', s) AS session_id,
        'body.conversation_id' AS session_source, k + 1 AS turn_index,
        begun + k * {_STEP} AS started_ns, begun + k * {_STEP} + {4 * SECOND} AS ended_ns,
        'model-' || (s % 3) AS model, 'prefill-' || (s % 4) AS prefill_engine, 'decode-' || (s % 4) AS decode_engine,
        'prefill-' || (s % 4) AS prefill_engine_id, 'decode-' || (s % 4) AS decode_engine_id, 'exact' AS "join",
        CASE WHEN fetched > 0 THEN 'reverse_fetch' ELSE 'recompute' END AS path,
        CASE WHEN k = 0 THEN 'first_turn' WHEN fetched > 0 THEN 'none' WHEN r % 3 = 0 THEN 'no_handle_from_decode'
            WHEN r % 3 = 1 THEN 'declined_expired' ELSE 'prefix_diverged' END AS reason,
        CASE WHEN r % 100 = 0 THEN 'error' ELSE 'ok' END AS status,
        CASE WHEN r % 500 = 0 THEN ['kv_mismatch'] ELSE [] END AS suspicions,
        'digests' AS continuity_evidence, 'none' AS local_miss, 1 AS samples, 64 AS threshold_tokens,
        500 * (k + 1) AS prompt_tokens, 0 AS local_hit_tokens, fetched AS fetched_tokens, 0 AS external_tokens,
        500 * (k + 1) - fetched AS computed_tokens, 500 * k - fetched AS recomputed_tokens, 500 AS new_tokens,
        300 AS output_tokens, fetched * 1024 AS fetched_bytes,
        CASE WHEN fetched > 0 THEN 20000000 + r * 1000 END AS fetch_ns,
        CASE WHEN fetched > 0 THEN 1 END AS fetch_reads,
        400000000 + r * 10000 AS prefill_ns, 500000000 + r * 10000 AS ttft_ns, {4 * SECOND} AS duration_ns,
        (500 * k - fetched) * 40000 AS recompute_ns, 1 AS attempts,
        CASE WHEN k > 0 THEN printf('%032x', n - 1) END AS previous_turn_id,
        printf('%032x', n) AS left_hold_id, CASE WHEN fetched > 0 THEN printf('%032x', n - 1) END AS used_hold_id,
        true AS has_prefill, true AS has_decode, true AS has_attempt, true AS streamed, 1 AS tool_calls, false AS late
    FROM drawn"""
_HOLDS: Final = f"""
    SELECT printf('%032x', n) AS hold_id, 1 AS revision, 'hold' AS kind, 'decode-' || (s % 4) AS engine,
        'decode-' || (s % 4) AS engine_id, 'g' AS generation, 'r' || n AS request_id,
        printf('agent-%06d', s) AS session_id, printf('%032x', n) AS turn_id, 500 * (k + 1) AS tokens,
        500 * (k + 1) * 1024 AS bytes, begun + k * {_STEP} + {4 * SECOND} AS started_ns, {480 * SECOND} AS ttl_ns,
        begun + k * {_STEP} + 4{4 * SECOND} AS ended_ns, {40 * SECOND} AS held_ns,
        CASE WHEN r % 10 < 7 THEN 'read' ELSE 'ttl' END AS outcome
    FROM drawn"""
_SESSIONS: Final = f"""
    SELECT session_id, 1 AS revision, min(started_ns) AS started_ns, min(started_ns) + wall AS ended_ns,
        wall AS wall_ns, count(*) * 1 * {SECOND} AS input_processing_ns, count(*) * 3 * {SECOND} AS generation_ns,
        wall * (any_value(s) % 6) // 10 AS tool_wait_ns, 0 AS application_work_ns,
        wall - {80 * SECOND} - wall * (any_value(s) % 6) // 10 AS user_wait_ns, 0 AS unknown_ns,
        wall - {80 * SECOND} AS inferred_ns, wall * (any_value(s) % 6) // 10 AS tool_wait_inferred_ns,
        wall - {80 * SECOND} - wall * (any_value(s) % 6) // 10 AS user_wait_inferred_ns,
        0 AS generation_inferred_ns, count(*) * {SECOND} // 2 AS input_prefill_ns,
        count(*) * {SECOND} // 2 AS input_queue_ns, count(*) AS turns, 0 AS spans, 0 AS model_calls,
        count(*) AS tool_calls, count_if(status != 'ok') AS errors, count_if(status != 'ok') AS failed_turns,
        count_if(len(suspicions) > 0) AS suspicious_turns, sum(prompt_tokens)::BIGINT AS prompt_tokens,
        sum(prompt_tokens)::BIGINT AS source_tokens, sum(fetched_tokens)::BIGINT AS reused_tokens,
        0 AS local_hit_tokens, sum(fetched_tokens)::BIGINT AS fetched_tokens, 0 AS external_tokens,
        sum(computed_tokens)::BIGINT AS computed_tokens, sum(recomputed_tokens)::BIGINT AS recomputed_tokens,
        sum(output_tokens)::BIGINT AS output_tokens, sum(fetched_bytes)::BIGINT AS fetched_bytes,
        list_distinct(list(prefill_engine) || list(decode_engine)) AS engines, list(DISTINCT path) AS paths,
        list(DISTINCT reason) AS reasons, flatten(list(suspicions)) AS suspicions,
        mode(reason) FILTER (reason NOT IN ('none', 'first_turn')) AS main_reason,
        quantile_disc(ttft_ns, 0.5) AS ttft_median_ns, list(DISTINCT model) AS models,
        ['agent-' || any_value(s) % 5] AS agents, ['shop ' || any_value(s) % 4] AS applications,
        []::VARCHAR[] AS deployments, ['proxy'] AS sources,
        [] AS tasks,
        1 AS completed_tasks, 0 AS failed_tasks, 0 AS abandoned_tasks, wall AS task_latency_median_ns,
        {{'fetched_ns': sum(recompute_ns)::BIGINT * 4 // 5, 'fetched_low_ns': sum(recompute_ns)::BIGINT * 3 // 5,
          'fetched_high_ns': sum(recompute_ns)::BIGINT, 'free_ns': sum(recompute_ns)::BIGINT, 'judged_turns': count(*),
          'unjudged_turns': 0, 'recomputed_tokens': sum(recomputed_tokens)::BIGINT, 'transfer': 'measured',
          'reasons': [{{'reason': 'declined_expired', 'turns': 3, 'tokens': sum(recomputed_tokens)::BIGINT,
                        'free_ns': sum(recompute_ns)::BIGINT}}]}} AS ceiling
    FROM (SELECT *, session_id[7:]::BIGINT AS s, {TURNS_PER_SESSION * _STEP} AS wall FROM turns)
    GROUP BY session_id, wall"""


def build(folder: Path, sessions: int = SESSIONS_) -> str:
    """The store's address. One file a table and day."""
    files, found = open_files(str(folder)), []
    db = sql.connect(memory="4GB", threads=2)
    for table in TABLES.values():
        sql.create_empty(db, table)
    per_day = sessions // DAYS + 1
    for day in range(DAYS):
        first, last = day * per_day, min(sessions, (day + 1) * per_day)
        db.execute(f"""
            CREATE OR REPLACE TEMP TABLE drawn AS
            SELECT *, CASE WHEN k > 0 AND r % 10 < 7 THEN 500 * k ELSE 0 END AS fetched FROM (
                SELECT n, n // {TURNS_PER_SESSION} AS s, n % {TURNS_PER_SESSION} AS k, hash(n) % 10000 AS r,
                    {BEGIN} + n // {TURNS_PER_SESSION} * {DAYS * 86_400 * SECOND // sessions} AS begun
                FROM (SELECT unnest(range({first * TURNS_PER_SESSION}, {last * TURNS_PER_SESSION})) AS n))""")
        db.execute(f"CREATE OR REPLACE TEMP TABLE turns AS {_whole(TURNS, _TURNS)}")
        for table, made in ((TURNS, "FROM turns"), (HOLDS, _HOLDS), (SESSIONS, _SESSIONS)):
            found.append(_write(files, db, table, made, day))
    files.replace(manifest.manifest_path(WRITER), manifest.encode(Manifest(writer=WRITER, files=tuple(found))), "")
    files.close()
    db.close()
    return str(folder)


def _whole(table: Table, rows: str) -> str:
    """``rows`` with every column of the table."""
    return f"SELECT {table.columns()} FROM (SELECT * FROM empty_{table.name} UNION ALL BY NAME ({rows}))"


def _write(files: Any, db: Any, table: Table, rows: str, day: int) -> File:
    data = db.sql(f"{_whole(table, rows)} ORDER BY {', '.join(table.sort)}").to_arrow_table().cast(table.schema)
    date = f"2026-11-{16 + day:02d}"
    path = manifest.data_path(table.name, date, 1, day, WRITER)
    size = files.write(path, lambda sink: parts.write_table(table, data, sink))
    return File(path=path, table=table.name, date=date, rows=data.num_rows, bytes=size, level=2, created_ns=BEGIN)


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
