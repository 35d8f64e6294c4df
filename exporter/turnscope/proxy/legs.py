"""The proxy's requests to the engines, and the attempts they make up."""

from __future__ import annotations

from collections.abc import Callable

from turnscope.model import Handle
from turnscope.proxy.answer import AnswerReader
from turnscope.proxy.requests import LegRequest
from turnscope.semconv import Leg


class LegRecord:
    """One request of the proxy to an engine."""

    __slots__ = (
        "_clock",
        "cancelled",
        "end_ns",
        "failed",
        "kind",
        "reader",
        "request",
        "start_ns",
        "status",
        "x_request_id",
    )

    def __init__(self, kind: Leg, request: LegRequest, clock: Callable[[], int]) -> None:
        self.kind = kind
        self.request = request
        self._clock = clock
        self.start_ns = clock()
        self.end_ns: int | None = None
        self.status: int | None = None
        self.failed = False
        self.cancelled = False
        self.x_request_id: str | None = None
        self.reader = AnswerReader()

    @property
    def in_flight(self) -> bool:
        """Not ended yet."""
        return self.end_ns is None

    @property
    def ok(self) -> bool:
        """Ended with an answer that is no error."""
        good = self.status is not None and self.status < 400
        return good and not (self.failed or self.cancelled or self.in_flight or self.reader.answer.failed)

    def responded(self, status: int, content_type: str, content_encoding: str) -> None:
        """The engine's response head has come."""
        self.status = status
        self.reader = AnswerReader(content_type, content_encoding)

    def ended(self, *, failed: bool = False, cancelled: bool = False) -> None:
        """The answer is complete, or broke off (``failed``), or the proxy closed it (``cancelled``; after a
        finish reason that is no loss)."""
        if self.end_ns is None:
            self.end_ns = self._clock()
            self.reader.finish()
            self.failed = failed
            self.cancelled = cancelled and self.reader.answer.finish_reason is None


class AttemptRecord:
    """A prefill leg and the decode leg that followed; on an aggregated engine the one leg alone."""

    __slots__ = ("decode", "number", "prefill", "sent", "superseded")

    def __init__(self, number: int) -> None:
        self.number = number
        self.prefill: LegRecord | None = None
        self.decode: LegRecord | None = None
        self.superseded = False
        self.sent = False

    @property
    def turn_handle(self) -> Handle | None:
        """P's identity of the turn's P leg."""
        return self.prefill.reader.answer.handle if self.prefill else None

    @property
    def in_flight(self) -> bool:
        """One of its legs has not ended."""
        return any(leg is not None and leg.in_flight for leg in (self.prefill, self.decode))

    @property
    def failing(self) -> LegRecord | None:
        """The leg that went wrong, the later one first; None when the last one went well."""
        last = self.decode or self.prefill
        return last if last is not None and not last.ok else None

    @property
    def stage(self) -> str:
        """Where the attempt is: in a leg, or in the proxy between and around them."""
        for leg in (self.decode, self.prefill):
            if leg is not None and leg.in_flight:
                return stage_of(leg)
        return "proxy"


def stage_of(leg: LegRecord) -> str:
    """The stage a leg belongs to; a whole request on an aggregated engine is its decode."""
    return "prefill" if leg.kind is Leg.PREFILL else "decode"
