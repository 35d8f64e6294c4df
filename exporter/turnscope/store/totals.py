"""What a whole store covers: one row of sums, and counts by path, reason, suspicion and what became of holds.

The sums are quick, the counts take several times as long: who needs the sums alone asks for them alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from turnscope.semconv import HoldKind, Status
from turnscope.store.fates import SESSION, fate
from turnscope.store.followed import FOLLOWED, KEPT
from turnscope.store.queries import REUSED, TOKEN_SUMS, Params, Sources
from turnscope.store.scope import Scope, holds, keys_of_application, turns


class Totals(msgspec.Struct, kw_only=True):
    """Sums over the newest revision of every turn. A sum is None when no turn measured it."""

    turns: int = 0
    sessions: int = 0
    """Sessions with an id."""
    unattributed_turns: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    prompt_tokens: int | None = None
    source_tokens: int | None = None
    """Prompt tokens of the turns whose sources are all known, and how many of them were not computed."""
    reused_tokens: int | None = None
    local_hit_tokens: int | None = None
    fetched_tokens: int | None = None
    external_tokens: int | None = None
    computed_tokens: int | None = None
    recomputed_tokens: int | None = None
    new_tokens: int | None = None
    output_tokens: int | None = None
    fetched_bytes: int | None = None
    handoff_bytes: int | None = None
    prompt_turns: int = 0
    """Turns whose prompt length is known."""
    source_turns: int = 0
    """Turns whose prompt tokens are all told apart by source."""
    split_turns: int = 0
    """Turns whose computed tokens are split into recomputed and new."""
    ttft_turns: int = 0
    prefill_turns: int = 0
    """Turns whose prefill engine reported them; likewise decode, and the proxy."""
    decode_turns: int = 0
    undecoded_turns: int = 0
    """Turns that ended before they came to a decode engine: it has nothing to report of them."""
    attempt_turns: int = 0
    inferred_turns: int = 0
    """Turns whose legs were joined by inference, not by an exact id."""
    late_turns: int = 0
    suspicious_turns: int = 0
    failed_turns: int = 0


class Counts(msgspec.Struct, kw_only=True):
    """How many turns and holds, each by its newest revision, have each value of the closed vocabularies."""

    by_path: dict[str, int] = {}
    by_reason: dict[str, int] = {}
    by_suspicion: dict[str, int] = {}
    holds: int = 0
    leases: int = 0
    by_hold_fate: dict[str, int] = {}
    """Of holds on D, by ``fates.Fate``."""


_SUMS = f"""
    count(*) AS turns,
    count(DISTINCT {SESSION}) AS sessions,
    count_if({SESSION} IS NULL)::BIGINT AS unattributed_turns,
    min(started_ns) AS first_ns,
    max(coalesce(ended_ns, started_ns)) AS last_ns,
    {TOKEN_SUMS},
    sum(handoff_bytes)::BIGINT AS handoff_bytes,
    count(prompt_tokens) AS prompt_turns,
    count({REUSED} + computed_tokens) AS source_turns,
    count(recomputed_tokens + new_tokens) AS split_turns,
    count(ttft_ns) AS ttft_turns,
    count_if(has_prefill)::BIGINT AS prefill_turns,
    count_if(has_decode)::BIGINT AS decode_turns,
    count_if(NOT has_decode AND status != '{Status.OK}' AND coalesce(stage, '') != 'decode')::BIGINT AS undecoded_turns,
    count_if(has_attempt)::BIGINT AS attempt_turns,
    count_if("join" = 'inferred')::BIGINT AS inferred_turns,
    count_if(late)::BIGINT AS late_turns,
    count_if(len(suspicions) > 0)::BIGINT AS suspicious_turns,
    count_if(status != '{Status.OK}')::BIGINT AS failed_turns"""


def sums(src: Sources, scope: Scope) -> tuple[str, Params]:
    """One row with the sums over turns."""
    found, params = turns(src, scope, "*")
    return f"SELECT {_SUMS} FROM {found}", params


def counts(src: Sources, scope: Scope) -> tuple[str, Params]:
    """``(kind, value, n)`` rows: how many turns have each path, reason and suspicion."""
    found, params = turns(src, scope, "path, reason, suspicions")
    return (
        f"WITH t AS (SELECT * FROM {found}) "
        "SELECT 'by_path' AS kind, path AS value, count(*) AS n FROM t GROUP BY path "
        "UNION ALL SELECT 'by_reason', reason, count(*) FROM t GROUP BY reason "
        "UNION ALL SELECT 'by_suspicion', value, count(*) "
        "FROM (SELECT unnest(suspicions) AS value FROM t) GROUP BY value "
        "ORDER BY kind, n DESC, value"
    ), params


def hold_counts(src: Sources, scope: Scope) -> tuple[str, Params]:
    """``(kind, value, n)`` rows: how many holds have each fate, as on the page about them; and how many leases there
    are."""
    leases, params = holds(src, scope, "kind")
    tests = ["held"]
    if scope.since_ns is not None:
        tests.append("hold_started_ns >= $since_ns")
    if scope.until_ns is not None:
        tests.append("hold_started_ns < $until_ns")
    if scope.model is not None:
        tests.append("model = $model")
    if scope.application is not None:
        tests.append(f"session_key IN {keys_of_application(src)}")
    return (
        f"WITH kept AS (SELECT {KEPT} FROM {FOLLOWED} WHERE {' AND '.join(tests)}) "
        f"SELECT '{HoldKind.HOLD}' AS kind, {fate('kept', 'kept')} AS value, count(*) AS n FROM kept GROUP BY value "
        f"UNION ALL SELECT kind, NULL, count(*) FROM {leases} WHERE kind != '{HoldKind.HOLD}' GROUP BY kind "
        "ORDER BY kind, n DESC, value"
    ), params


def build(count_rows: list[dict[str, Any]], hold_rows: list[dict[str, Any]]) -> Counts:
    """Put the answers of ``counts`` and ``hold_counts`` together."""
    out = Counts()
    for row in count_rows:
        getattr(out, row["kind"])[row["value"]] = row["n"]
    for row in hold_rows:
        if row["kind"] == HoldKind.HOLD:
            out.holds += row["n"]
            out.by_hold_fate[row["value"]] = row["n"]
        else:
            out.leases += row["n"]
    return out
