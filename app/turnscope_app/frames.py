"""Rows of the store as DataFrames in the units that screens show. Missing stays missing: never 0."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from turnscope.semconv import Status
from turnscope.store.totals import Totals
from turnscope_app import text, words

Row = dict[str, Any]


def sessions(table: pa.Table) -> pd.DataFrame:
    """One row a session, with the columns of ``columns.SESSIONS``."""
    rows = table.to_pylist()
    return pd.DataFrame(
        {
            "session": pd.Series([text.session(r["session_id"]) for r in rows], dtype="str"),
            "last": _times(rows, "last_ns"),
            "turns": _whole(rows, "turns"),
            "warnings": pd.Series([_warnings(r) for r in rows], dtype="str"),
            "reused": pd.Series([reused_percent(r) for r in rows], dtype="Float64"),
            "prompt_tokens": _whole(rows, "prompt_tokens"),
            "local_hit_tokens": _whole(rows, "local_hit_tokens"),
            "fetched_tokens": _whole(rows, "fetched_tokens"),
            "computed_tokens": _whole(rows, "computed_tokens"),
            "recomputed_tokens": _whole(rows, "recomputed_tokens"),
            "fetched_bytes": _whole(rows, "fetched_bytes"),
            "ttft": _scaled(rows, "ttft_median_ns", 1e6),
            "reason": pd.Series([_reason(r["main_reason"]) for r in rows], dtype="str"),
            "models": [r["models"] or [] for r in rows],
        }
    )


def turns(table: pa.Table, offset: int = 0) -> pd.DataFrame:
    """One row a turn, with the columns of ``columns.TURNS``; ``offset`` turns come before the first row."""
    rows = table.to_pylist()
    return pd.DataFrame(
        {
            "turn": pd.Series(numbers(rows, offset), dtype="Int64"),
            "mark": pd.Series([_mark(r) for r in rows], dtype="str"),
            "started": _times(rows, "started_ns"),
            "path": pd.Series([words.shown(words.PATHS, r["path"]) for r in rows], dtype="str"),
            "reason": pd.Series([words.shown(words.REASONS, r["reason"]) for r in rows], dtype="str"),
            **{
                name: _whole(rows, name)
                for name in (
                    "prompt_tokens",
                    "local_hit_tokens",
                    "fetched_tokens",
                    "external_tokens",
                    "computed_tokens",
                    "recomputed_tokens",
                    "new_tokens",
                    "output_tokens",
                    "fetched_bytes",
                    "handoff_bytes",
                )
            },
            "ttft": _scaled(rows, "ttft_ns", 1e6),
            "queue": _scaled(rows, "prefill_queue_ns", 1e6),
            "prefill": _scaled(rows, "prefill_ns", 1e6),
            "fetch": _scaled(rows, "fetch_ns", 1e6),
            "decode": _scaled(rows, "decode_ns", 1e6),
            "duration": _scaled(rows, "duration_ns", 1e6),
            "kept": pd.Series([hold_shown(r) for r in rows], dtype="str"),
            "kept_for": _scaled(rows, "hold_held_ns", 1e9),
            "status": pd.Series([words.shown(words.STATUSES, r["status"]) for r in rows], dtype="str"),
            "turn_id": pd.Series([r["turn_id"] for r in rows], dtype="str"),
        }
    )


def numbers(rows: list[Row], offset: int = 0) -> list[int]:
    """Each turn's number: its index in the session, or its place in the list where indexes are missing or repeat."""
    indexes = [r["turn_index"] for r in rows]
    if None in indexes or len(set(indexes)) < len(indexes):
        return list(range(offset + 1, offset + 1 + len(rows)))
    return indexes


def reused_percent(row: Row) -> float | None:
    """Reused over prompt tokens, 0 to 100; None unless every source and the prompt were measured."""
    parts = [row["local_hit_tokens"], row["fetched_tokens"], row["external_tokens"]]
    if None in parts or not row["prompt_tokens"]:
        return None
    return percent(sum(parts), row["prompt_tokens"])


def percent(part: int, whole: int) -> float | None:
    """``part`` of ``whole``, 0 to 100; None when there is no whole."""
    return 100 * part / whole if whole else None


def hold_shown(turn: Row) -> str | None:
    """What became of the blocks a turn left; None when a hold is known to exist and nothing was reported of it."""
    if turn["left_hold_id"] is None:
        return words.NO_HOLD
    if not turn["hold_seen"]:
        return None
    if turn["hold_outcome"] is None:
        return words.STILL_HELD.shown
    return words.shown(words.HOLD_OUTCOMES, turn["hold_outcome"])


def vocabulary(table: dict[str, words.Word], counts: dict[str, int], total: int) -> pd.DataFrame:
    """Every word of a closed vocabulary with how many of ``total`` turns have it, the frequent first."""
    order = sorted(table, key=lambda value: -counts.get(value, 0))
    return pd.DataFrame(
        {
            "plain": pd.Series([table[v].plain for v in order], dtype="str"),
            "term": pd.Series([str(v) for v in order], dtype="str"),
            "turns": pd.Series([counts.get(v, 0) for v in order], dtype="Int64"),
            "share": pd.Series([percent(counts.get(v, 0), total) for v in order], dtype="Float64"),
            "story": pd.Series([table[v].story for v in order], dtype="str"),
        }
    )


def coverage(totals: Totals) -> pd.DataFrame:
    """How many turns have each kind of measurement, and what it needs."""
    rows = [
        ("Reported by a prefill engine", totals.prefill_turns, "The hook on every prefill engine"),
        ("Reported by a decode engine", totals.decode_turns, "The hook on every decode engine"),
        ("Reported by the proxy", totals.attempt_turns, "The proxy hook (turnscope run, or the middleware)"),
        ("Prompt tokens told apart by source", totals.source_turns, "The hook on the prefill engine"),
        ("Computed tokens split into new and again", totals.split_turns, "The previous turn of the session, seen too"),
        ("Time to first token", totals.ttft_turns, "The proxy hook"),
        ("Belongs to a session", totals.turns - totals.unattributed_turns, "A session id from the client"),
        ("Legs joined by exact ids", totals.turns - totals.inferred_turns, "A connector that passes request ids on"),
        ("Reason known", totals.turns - totals.by_reason.get("unknown", 0), "All three hooks"),
    ]
    return pd.DataFrame(
        {
            "what": pd.Series([r[0] for r in rows], dtype="str"),
            "turns": pd.Series([r[1] for r in rows], dtype="Int64"),
            "share": pd.Series([percent(r[1], totals.turns) for r in rows], dtype="Float64"),
            "missing": pd.Series([r[2] for r in rows], dtype="str"),
        }
    )


def _whole(rows: list[Row], name: str) -> pd.Series[Any]:
    return pd.Series([r[name] for r in rows], dtype="Int64")


def _scaled(rows: list[Row], name: str, divisor: float) -> pd.Series[Any]:
    return pd.Series([None if r[name] is None else r[name] / divisor for r in rows], dtype="Float64")


def _times(rows: list[Row], name: str) -> pd.Series[Any]:
    """To the millisecond; times that a calendar cannot show are missing."""
    ms = pd.Series([None if r[name] is None else r[name] // 1_000_000 for r in rows], dtype="Int64")
    return pd.to_datetime(ms.where(ms.between(-62_000_000_000_000, 253_000_000_000_000)), unit="ms", utc=True)


def _reason(reason: str | None) -> str:
    return "Nothing" if reason is None else words.shown(words.REASONS, reason) or reason


def _warnings(row: Row) -> str:
    parts = []
    if row["suspicious_turns"]:
        parts.append(f"⚠ {row['suspicious_turns']:,} possibly wrong")
    if row["failed_turns"]:
        parts.append(f"✕ {row['failed_turns']:,} not answered")
    return " · ".join(parts)


def _mark(row: Row) -> str:
    marks = ["⚠"] if row["suspicions"] else []
    if row["status"] != Status.OK:
        marks.append("✕")
    return " ".join(marks)
