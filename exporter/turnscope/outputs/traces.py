"""Turn traces on their way out."""

from __future__ import annotations

from typing import Final

from turnscope.model import Count, Turn
from turnscope.outputs.otlp import TraceSender
from turnscope.outputs.outbox import Outbox
from turnscope.outputs.spans import encode

BATCH: Final = 64
"""Turns a request: about 4 KB each and never more than 64 KiB, so within the 4 MiB that receivers take."""


class TraceExporter:
    """Sends each turn once. ``add`` never blocks: a full queue drops the newest turn and counts it."""

    def __init__(self, sender: TraceSender, *, count: Count, version: str, queue: int = 2_048) -> None:
        self._sender = sender
        self._outbox: Outbox[Turn] = Outbox(
            "turn traces",
            lambda turns: sender.send(encode(turns, version=version)),
            sent=lambda n: count("turnscope_exporter_traces_exported_total", (), n),
            dropped=lambda reason, n: count("turnscope_exporter_traces_dropped_total", (reason,), n),
            limit=queue,
            batch=BATCH,
        )

    @property
    def trouble(self) -> str | None:
        """Why the last request failed; None once one succeeded."""
        return self._outbox.trouble

    def add(self, turn: Turn) -> None:
        """Queue the trace of ``turn``."""
        self._outbox.add(turn)

    def close(self, timeout_s: float) -> None:
        """Send what is queued, for at most ``timeout_s``; the rest is dropped and counted."""
        self._outbox.close(timeout_s)
        self._sender.close()
