"""Spans passed on to the user's own backend as they were received."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from turnscope.model import Count
from turnscope.outputs.otlp import TraceSender
from turnscope.outputs.outbox import Outbox

QUEUE_BYTES: Final = 64 * 2**20


class PassingOn:
    """Sends each request once, in the order received. ``add`` never waits: beyond ``queue_bytes`` the newest is dropped
    and counted. ``protobuf`` makes the bytes to send of a request in JSON, since not every backend takes that."""

    def __init__(
        self, sender: TraceSender, protobuf: Callable[[bytes], bytes], *, count: Count, queue_bytes: int = QUEUE_BYTES
    ) -> None:
        def send(requests: list[tuple[bytes, bool]]) -> tuple[int, str]:
            ((body, as_json),) = requests
            return sender.send_bytes(protobuf(body) if as_json else body)

        self._sender = sender
        self._outbox = Outbox(
            "requests with agents' spans",
            send,
            sent=lambda n: count("turnscope_exporter_span_requests_passed_on_total", (), n),
            dropped=lambda reason, n: count("turnscope_exporter_span_requests_not_passed_on_total", (reason,), n),
            limit=queue_bytes,
            size=lambda request: len(request[0]),
        )

    @property
    def trouble(self) -> str | None:
        """Why the last request failed; None once one succeeded."""
        return self._outbox.trouble

    def add(self, body: bytes, as_json: bool) -> None:
        """Queue one request."""
        self._outbox.add((body, as_json))

    def close(self, timeout_s: float) -> None:
        """Send what is queued, for at most ``timeout_s``; the rest is dropped and counted."""
        self._outbox.close(timeout_s)
        self._sender.close()
