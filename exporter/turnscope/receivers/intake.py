"""From the bytes of an export request to what is in the journal, whatever protocol brought them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from turnscope.decode import codec, evaluations, otlp_json, spans
from turnscope.decode.spans import DecodedSpans
from turnscope.model import AgentSpan, Count, Event
from turnscope.receivers.errors import Invalid, Refused, TooLarge

MAX_SENTENCES: Final = 3
"""How many rejected records an answer explains."""

Accept = Callable[[list[Event]], None]
"""Returns when the events are safe on disk; raises ``Unavailable``."""
AcceptSpans = Callable[[list[AgentSpan]], None]
"""The same for spans."""
PassOn = Callable[[bytes, bool], None]
"""Takes a request as it was received, and whether it is JSON. Never waits."""


class Intake(Protocol):
    """Answers one signal's export requests."""

    signal: str
    """Value of the label ``signal``."""
    response: type[Any]
    """The message it answers with."""

    def export(self, body: bytes, *, as_json: bool = False) -> Any:
        """Answer a serialized request once what it holds is journalled. Raises ``Refused``."""

    def refuse(self, error: Refused) -> Refused:
        """Count a request that is refused, also one that never got as far as ``export``."""


class _Counting:
    """What both signals do with a request before they look into it."""

    def __init__(self, signal: str, count: Count, max_bytes: int) -> None:
        self.signal = signal
        self.count = count
        self._max_bytes = max_bytes

    def refuse(self, error: Refused) -> Refused:
        self.count("turnscope_exporter_requests_refused_total", (self.signal, error.reason), 1)
        return error

    def check(self, body: bytes) -> None:
        if len(body) > self._max_bytes:
            raise TooLarge(f"the message has {len(body)} bytes, the limit is {self._max_bytes}: send smaller batches")


def _parsed(request: Any, body: bytes) -> Any:
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise Invalid(f"not an {type(request).__name__}: {error}") from None
    return request


class LogsIntake:
    """Takes log records of hooks in, and evaluations of agents' spans. Thread-safe if its functions are."""

    response = ExportLogsServiceResponse

    def __init__(
        self, accept: Accept, count: Count, *, max_bytes: int, accept_evaluations: AcceptSpans = lambda _: None
    ) -> None:
        self._accept = accept
        self._accept_evaluations = accept_evaluations
        self._counting = _Counting("logs", count, max_bytes)
        self.signal, self.refuse = self._counting.signal, self._counting.refuse

    def export(self, body: bytes, *, as_json: bool = False) -> ExportLogsServiceResponse:
        """Answer a serialized ``ExportLogsServiceRequest`` once its events are journalled. Raises ``Refused``."""
        try:
            self._counting.check(body)
            return self._take(_json_logs(body) if as_json else _parsed(ExportLogsServiceRequest(), body))
        except Refused as error:
            raise self.refuse(error) from None

    def _take(self, request: ExportLogsServiceRequest) -> ExportLogsServiceResponse:
        count = self._counting.count
        decoded = codec.decode(request)
        if decoded.events:
            self._accept(decoded.events)
        told = evaluations.read(request) if decoded.foreign else []
        if told:
            self._accept_evaluations(told)
            count("turnscope_exporter_evaluations_received_total", (), len(told))
        for name, n in Counter(str(type(e.body).EVENT) for e in decoded.events).items():
            count("turnscope_exporter_records_received_total", (name.removeprefix("turnscope."),), n)
        if decoded.foreign > len(told):
            count("turnscope_exporter_records_foreign_total", (), decoded.foreign - len(told))
        response = ExportLogsServiceResponse()
        if decoded.rejected:
            count("turnscope_exporter_records_rejected_total", (), len(decoded.rejected))
            response.partial_success.rejected_log_records = len(decoded.rejected)
            response.partial_success.error_message = _explain(decoded.rejected)
        return response


class SpansIntake:
    """Takes spans of agents in, reduced to what may be kept. Thread-safe if its functions are.

    What was taken in is handed to ``pass_on`` as it came, content and all.
    """

    response = ExportTraceServiceResponse

    def __init__(self, accept: AcceptSpans, count: Count, *, max_bytes: int, pass_on: PassOn | None = None) -> None:
        self._accept = accept
        self._pass_on = pass_on
        self._counting = _Counting("traces", count, max_bytes)
        self.signal, self.refuse = self._counting.signal, self._counting.refuse

    def export(self, body: bytes, *, as_json: bool = False) -> ExportTraceServiceResponse:
        """Answer a serialized ``ExportTraceServiceRequest`` once its spans are journalled. Raises ``Refused``."""
        try:
            self._counting.check(body)
            decoded = _json_spans(body) if as_json else spans.decode(_parsed(ExportTraceServiceRequest(), body))
            if decoded.spans:
                self._accept(decoded.spans)
        except Refused as error:
            raise self.refuse(error) from None
        if self._pass_on is not None:
            self._pass_on(body, as_json)
        return self._answer(decoded)

    def _answer(self, decoded: DecodedSpans) -> ExportTraceServiceResponse:
        count = self._counting.count
        for kind, n in Counter(span.kind for span in decoded.spans).items():
            count("turnscope_exporter_spans_received_total", (kind,), n)
        if decoded.without_end:
            count("turnscope_exporter_spans_without_end_total", (), decoded.without_end)
        response = ExportTraceServiceResponse()
        for reason, n in Counter(reason for reason, _ in decoded.rejected).items():
            count("turnscope_exporter_spans_rejected_total", (reason,), n)
        if decoded.rejected:
            response.partial_success.rejected_spans = len(decoded.rejected)
            response.partial_success.error_message = _explain([sentence for _, sentence in decoded.rejected])
        return response


def _json_logs(body: bytes) -> ExportLogsServiceRequest:
    try:
        return otlp_json.logs(otlp_json.parse(body))
    except otlp_json.NotOtlp as error:
        raise Invalid(str(error)) from None


def _json_spans(body: bytes) -> DecodedSpans:
    try:
        return otlp_json.spans(otlp_json.parse(body))
    except otlp_json.NotOtlp as error:
        raise Invalid(str(error)) from None


def _explain(rejected: list[str]) -> str:
    different = list(dict.fromkeys(rejected))
    more = len(different) - MAX_SENTENCES
    return "; ".join(different[:MAX_SENTENCES]) + (f"; and {more} more" if more > 0 else "")
