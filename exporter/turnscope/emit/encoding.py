"""Events to one export request, in slices short enough for an interpreter that serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from turnscope.decode import codec
from turnscope.emit.outbox import Batch
from turnscope.model import Emitter, Engine, Event

SLICE: Final = 8
"""Events serialised in one call; each slice repeats the resource, so few would cost bytes and many time."""

_Source = tuple[Emitter, Engine | None]


class Encoder:
    """Encodes batches; keeps the encoded resource of each source. ``pause()`` is called between slices."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self._resources: dict[_Source, Any] = {}
        self.failed = 0
        """Events that could not be encoded."""

    def encode(self, events: Sequence[Event], *, observed_ns: int) -> Batch | None:
        """One batch: serialised requests laid end to end are one request with all their resources."""
        bodies = []
        count = 0
        # By identity, which is enough, since a watch gives all its events the same two objects, and takes no time.
        for _, group in groupby(events, key=lambda event: (id(event.emitter), id(event.engine))):
            same = list(group)
            source = (same[0].emitter, same[0].engine)
            self._pause()
            for start in range(0, len(same), SLICE):
                request = self._with_resource(source)
                self._pause()
                records = request.resource_logs[0].scope_logs[0].log_records
                for event in same[start : start + SLICE]:
                    kept = len(records)
                    try:
                        codec.encode_event(records, event.engine, event, observed_ns=observed_ns, pause=self._pause)
                    except Exception:  # whatever it holds, the others of its batch are sent
                        del records[kept:]
                        self.failed += 1
                    self._pause()
                if len(records):
                    count += len(records)
                    bodies.append(request.SerializeToString())
                    self._pause()
        return Batch(b"".join(bodies), count) if bodies else None

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
