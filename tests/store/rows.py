"""Builders for rows of the store, a clock that tests set, and the store's folder seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turnscope.model import AgentSpan, HoldRecord, Turn
from turnscope.store import StoreReader, StoreWriter

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
NOON = 1_796_040_000 * SECOND
"""2026-11-30 12:00 UTC."""


class Clock:
    """``now`` for a writer: stands still until a test moves it."""

    def __init__(self, now_ns: int = NOON) -> None:
        self.ns = now_ns

    def __call__(self) -> int:
        return self.ns

    def forward(self, ns: int) -> None:
        self.ns += ns


def turn(number: int = 1, **changes: Any) -> Turn:
    """A turn whose id is made of ``number``."""
    values: dict[str, Any] = {
        "turn_id": f"{number:032x}",
        "session_id": "s1",
        "turn_index": number,
        "started_ns": NOON + number * SECOND,
        "ended_ns": NOON + (number + 1) * SECOND,
    }
    return Turn(**{**values, **changes})


def hold(number: int = 1, **changes: Any) -> HoldRecord:
    """A hold whose id is made of ``number``."""
    values: dict[str, Any] = {
        "hold_id": f"{number:032x}",
        "kind": "hold",
        "engine": "decode-0",
        "engine_id": "d",
        "generation": "g",
        "request_id": f"r{number}",
        "started_ns": NOON + number * SECOND,
    }
    return HoldRecord(**{**values, **changes})


def span(number: int = 1, **changes: Any) -> AgentSpan:
    """A span of trace ``1`` whose id is made of ``number``."""
    span_id = f"{number:016x}"
    values: dict[str, Any] = {
        "span_key": f"{1:032x}-{span_id}",
        "trace_id": f"{1:032x}",
        "span_id": span_id,
        "session_id": "s1",
        "started_ns": NOON + number * SECOND,
        "ended_ns": NOON + (number + 1) * SECOND,
    }
    return AgentSpan(**{**values, **changes})


def writer(url: str | Path, clock: Clock | None = None, writer_id: str = "w1") -> StoreWriter:
    return StoreWriter(str(url), writer_id=writer_id, now=clock or Clock())


def fill(url: str | Path, *rows: Turn | HoldRecord | AgentSpan, clock: Clock | None = None) -> None:
    """Write ``rows`` in one flush."""
    out = writer(url, clock)
    for row in rows:
        if isinstance(row, Turn):
            out.add_turn(row)
        elif isinstance(row, AgentSpan):
            out.add_span(row)
        else:
            out.add_hold(row)
    out.close()


def read_turns(url: str | Path) -> list[dict[str, Any]]:
    """All turns that a reader sees, newest first."""
    reader = StoreReader(str(url))
    try:
        return reader.recent_turns(limit=1_000_000).table.to_pylist()
    finally:
        reader.close()


def parquet_files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*.parquet"))
