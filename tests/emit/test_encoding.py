"""What goes into one batch: few events, and few bytes where the events are long."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.builders import D, P, Process, request
from tests.emit.stubs import events_of
from turnscope.decode import codec
from turnscope.decode.codec import MAX_BLOB, MAX_LIST
from turnscope.emit.emitter import BATCH, IDLE_LIMIT, OPEN_LIMIT
from turnscope.emit.encoding import BATCH_BYTES, Encoder
from turnscope.emit.outbox import Batch
from turnscope.model import Attempt, Body, Digest, Event, Heartbeat
from turnscope.semconv import Leg

TAKEN = 4 * 2**20
"""The largest message that a gRPC server takes, unless it is told otherwise."""
RESOURCE = 2_000
"""Bytes of what is said of a source, once a batch, and of what stands around it."""
LONG = "x" * 2**20
"""An id as no engine makes it and any client may."""


def attempt(messages: int, role: str = "assistant") -> Attempt:
    """One of a long history."""
    digests = bytes(range(256)) * (messages // 32)
    return Attempt(
        proxy_turn_id="t1",
        message_roles=messages * [role],
        message_chars=messages * [100_000],
        message_digests=digests,
    )


def encoded(bodies: Sequence[Body]) -> tuple[list[Event], list[Batch], int]:
    """The events, their batches, and how often the interpreter was offered to others."""
    pauses: list[None] = []
    process = Process("00000000000000c1", "proxy", D)
    events = [process.say(body, at_ms=n) for n, body in enumerate(bodies)]
    batches = list(Encoder(lambda: pauses.append(None)).encode(events, observed_ns=1))
    return events, batches, len(pauses)


def test_attempts_of_very_long_histories_leave_in_several_batches_that_receivers_take_whole() -> None:
    events, batches, _ = encoded(BATCH * [attempt(MAX_LIST)])
    assert len(batches) > 1
    assert max(len(batch.body) for batch in batches) <= BATCH_BYTES + RESOURCE < TAKEN
    assert [event for batch in batches for event in events_of(batch.body)] == events
    assert sum(batch.events for batch in batches) == BATCH


def test_a_long_list_is_encoded_with_pauses_in_it() -> None:
    few, many = encoded([attempt(32)]), encoded([attempt(MAX_LIST)])
    assert many[2] - few[2] >= 2 * (MAX_LIST - 32) // 32


def test_events_of_one_source_share_its_resource() -> None:
    _, (batch,), _ = encoded(BATCH * [request("r1")])
    assert len(ExportLogsServiceRequest.FromString(batch.body).resource_logs) == 1


def test_a_batch_of_several_sources_is_what_protobuf_makes_of_its_events_in_one_request() -> None:
    one, other = Process("00000000000000c1", "proxy", D), Process("00000000000000c2", "engine", P)
    events = [process.say(request(f"r{n}"), at_ms=n) for n, process in enumerate((one, one, other, one))]
    (batch,) = Encoder(lambda: None).encode(events, observed_ns=1)
    assert batch.body == codec.encode(events, observed_ns=1).SerializeToString()


def test_events_with_ids_of_a_megabyte_fit_into_one_batch() -> None:
    events, (batch,), _ = encoded(BATCH * [request(LONG)])
    assert len(batch.body) < TAKEN / 16
    assert len(events_of(batch.body)) == len(events) == BATCH


def test_no_event_alone_is_too_long_for_a_batch() -> None:
    ids = [f"{n}{LONG}" for n in range(OPEN_LIMIT)]
    bodies: list[Body] = [
        attempt(MAX_LIST, role=LONG),
        Digest(
            request_id=LONG, leg=Leg.DECODE, tokens=1, input_tokens=1, marks=bytes(MAX_BLOB), chunks=bytes(MAX_BLOB)
        ),
        Heartbeat(last_seq=1, open_requests=ids, idle_requests=ids[:IDLE_LIMIT], idle_turns=ids[:IDLE_LIMIT]),
    ]
    for body in bodies:
        _, (batch,), _ = encoded([body])
        assert len(batch.body) < TAKEN


def test_nothing_to_encode_is_no_batch() -> None:
    assert encoded([])[1] == []
