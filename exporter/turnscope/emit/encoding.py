"""Events to export requests that receivers take, in slices short enough for an interpreter that serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from turnscope.decode import codec
from turnscope.emit.outbox import Batch
from turnscope.model import Emitter, Engine, Event

SLICE: Final = 8
"""Events serialised in one call; each slice repeats the resource, so few would cost bytes and many time."""
SLICE_BYTES: Final = 64 * 1024
"""A slice that has so many is full: an attempt of a long history has as much as a hundred others."""
BATCH_BYTES: Final = 4_000_000
"""A batch has no more: receivers take 4 MiB, and drop for good what is larger. One event alone stays below."""

_Source = tuple[Emitter, Engine | None]


class Encoder:
    """Encodes batches; keeps the encoded resource of each source. ``pause()`` is called between slices."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self._resources: dict[_Source, Any] = {}
        self.failed = 0
        """Events that could not be encoded."""

    def encode(self, events: Sequence[Event], *, observed_ns: int) -> list[Batch]:
        """One batch, or several where one would have more than ``BATCH_BYTES``; none where no event can be encoded."""
        batches: list[Batch] = []
        bodies: list[bytes] = []
        size = count = 0
        for body, n in self._slices(events, observed_ns):
            if bodies and size + len(body) > BATCH_BYTES:
                batches.append(Batch(b"".join(bodies), count))
                bodies, size, count = [], 0, 0
            bodies.append(body)
            size, count = size + len(body), count + n
        # Serialised requests laid end to end are one request with all their resources.
        return [*batches, Batch(b"".join(bodies), count)] if bodies else batches

    def _slices(self, events: Sequence[Event], observed_ns: int) -> Iterator[tuple[bytes, int]]:
        """Serialised requests, and how many events each holds."""
        # By identity, which is enough, since a watch gives all its events the same two objects, and takes no time.
        for _, group in groupby(events, key=lambda event: (id(event.emitter), id(event.engine))):
            same = list(group)
            source = (same[0].emitter, same[0].engine)
            self._pause()
            while same:
                request = self._with_resource(source)
                self._pause()
                records = request.resource_logs[0].scope_logs[0].log_records
                size = 0
                while same and len(records) < SLICE and size < SLICE_BYTES:
                    size += self._add(records, same.pop(0), observed_ns)
                    self._pause()
                if len(records):
                    yield request.SerializeToString(), len(records)
                    self._pause()

    def _add(self, records: Any, event: Event, observed_ns: int) -> int:
        """Append one event; its bytes."""
        kept = len(records)
        try:
            codec.encode_event(records, event.engine, event, observed_ns=observed_ns, pause=self._pause)
        except Exception:  # whatever it holds, the others of its batch are sent
            del records[kept:]
            self.failed += 1
            return 0
        self._pause()
        return int(records[kept].ByteSize())

    def _with_resource(self, source: _Source) -> Any:
        template = self._resources.get(source)
        if template is None:
            template = ExportLogsServiceRequest()
            codec.encode_resource(template, *source)
            self._resources[source] = template
            self._pause()
        request = ExportLogsServiceRequest()
        request.CopyFrom(template)
        return request
