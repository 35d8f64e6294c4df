"""Events to export requests that receivers take, in steps short enough for an interpreter that serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from turnscope import semconv
from turnscope.decode import codec
from turnscope.emit.outbox import Batch
from turnscope.emit.sealed import SealedRequest
from turnscope.model import Emitter, Engine, Event

BATCH_BYTES: Final = 256_000
"""A batch has no more, unless one event alone does: it is put together in one call. Receivers take 4 MiB, and drop for
good what is larger; one event alone stays below."""

_TOGETHER: Final = 8
"""Records put into a request in one step."""


class Encoder:
    """Encodes batches; keeps the encoded resource of each source. ``pause()`` is called between steps."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self._resources: dict[tuple[Emitter, Engine | None], bytes] = {}
        self.failed = 0
        """Events that could not be encoded."""

    def encode(self, events: Iterable[Event], *, observed_ns: int) -> Iterator[Batch]:
        """One batch, or several where one would have more than ``BATCH_BYTES``; none where no event can be encoded."""
        records: list[tuple[Event, bytes]] = []
        size = 0
        for event in events:
            record = self._record(event, observed_ns)
            if record is None:
                continue
            if records and size + len(record) > BATCH_BYTES:
                yield self._batch(records)
                records, size = [], 0
            records.append((event, record))
            size += len(record)
        if records:
            yield self._batch(records)

    def _record(self, event: Event, observed_ns: int) -> bytes | None:
        try:
            record = codec.encode_event(event, observed_ns=observed_ns, pause=self._pause)
            self._pause()
            return record.SerializeToString()
        except Exception:  # whatever it holds, the others of its batch are sent
            self.failed += 1
            return None
        finally:
            self._pause()

    def _batch(self, records: list[tuple[Event, bytes]]) -> Batch:
        request = SealedRequest()
        # By identity, which is enough, since a watch gives all its events the same two objects, and takes no time.
        for _, group in groupby(records, key=lambda one: (id(one[0].emitter), id(one[0].engine))):
            same = list(group)
            event = same[0][0]
            block = request.resource_logs.add(resource=self._resource(event.emitter, event.engine))
            scope = block.scope_logs.add()
            scope.scope.name = semconv.SCOPE
            for at in range(0, len(same), _TOGETHER):
                scope.log_records.extend(record for _, record in same[at : at + _TOGETHER])
                self._pause()
        body = request.SerializeToString()
        self._pause()
        return Batch(body, len(records))

    def _resource(self, emitter: Emitter, engine: Engine | None) -> bytes:
        known = self._resources.get((emitter, engine))
        if known is None:
            known = self._resources[emitter, engine] = codec.encode_resource(emitter, engine).SerializeToString()
            self._pause()
        return known
