"""From the bytes of an export request to events in the journal, whatever protocol brought them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse

from turnscope.decode import codec
from turnscope.model import Count, Event
from turnscope.receivers.errors import Invalid, Refused, TooLarge

MAX_SENTENCES: Final = 3
"""How many rejected records an answer explains."""

Accept = Callable[[list[Event]], None]
"""Returns when the events are safe on disk; raises ``Unavailable``."""


class LogsIntake:
    """Takes export requests in. Thread-safe if ``accept`` and ``count`` are."""

    def __init__(self, accept: Accept, count: Count, *, max_bytes: int) -> None:
        self._accept = accept
        self._count = count
        self._max_bytes = max_bytes

    def export(self, body: bytes) -> ExportLogsServiceResponse:
        """Answer a serialized ``ExportLogsServiceRequest`` once its events are journalled. Raises ``Refused``."""
        try:
            return self._export(body)
        except Refused as error:
            self._count("turnscope_exporter_requests_refused_total", (error.reason,), 1)
            raise

    def _export(self, body: bytes) -> ExportLogsServiceResponse:
        if len(body) > self._max_bytes:
            raise TooLarge(f"the message has {len(body)} bytes, the limit is {self._max_bytes}: send smaller batches")
        try:
            request = ExportLogsServiceRequest.FromString(body)
        except DecodeError as error:
            raise Invalid(f"not an ExportLogsServiceRequest: {error}") from None
        decoded = codec.decode(request)
        if decoded.events:
            self._accept(decoded.events)
        for name, n in Counter(str(type(e.body).EVENT) for e in decoded.events).items():
            self._count("turnscope_exporter_records_received_total", (name.removeprefix("turnscope."),), n)
        if decoded.foreign:
            self._count("turnscope_exporter_records_foreign_total", (), decoded.foreign)
        response = ExportLogsServiceResponse()
        if decoded.rejected:
            self._count("turnscope_exporter_records_rejected_total", (), len(decoded.rejected))
            response.partial_success.rejected_log_records = len(decoded.rejected)
            response.partial_success.error_message = _explain(decoded.rejected)
        return response


def _explain(rejected: list[str]) -> str:
    different = list(dict.fromkeys(rejected))
    more = len(different) - MAX_SENTENCES
    return "; ".join(different[:MAX_SENTENCES]) + (f"; and {more} more" if more > 0 else "")
