"""What goes into one batch: few events, and few bytes where the events are long."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import D, Process, request
from tests.emit.stubs import events_of
from turnscope.decode.codec import MAX_BLOB, MAX_LIST
from turnscope.emit.emitter import BATCH, IDLE_LIMIT, OPEN_LIMIT
from turnscope.emit.encoding import BATCH_BYTES, SLICE_BYTES, Encoder
from turnscope.emit.outbox import Batch
from turnscope.model import Attempt, Body, Digest, Event, Heartbeat
from turnscope.semconv import Leg

TAKEN = 4 * 2**20
"""The largest message that a gRPC server takes, unless it is told otherwise."""
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
    return events, Encoder(lambda: pauses.append(None)).encode(events, observed_ns=1), len(pauses)


def test_attempts_of_very_long_histories_leave_in_several_batches_that_receivers_take_whole() -> None:
    events, batches, _ = encoded(BATCH * [attempt(MAX_LIST)])
    assert len(batches) > 1
    assert max(len(batch.body) for batch in batches) <= BATCH_BYTES < TAKEN
    assert [event for batch in batches for event in events_of(batch.body)] == events
    assert sum(batch.events for batch in batches) == BATCH


def test_a_slice_of_long_events_holds_fewer_of_them() -> None:
    few, many = encoded(8 * [attempt(32)]), encoded(8 * [attempt(MAX_LIST)])
    assert len(few[1]) == 1
    assert len(many[1][0].body) > 8 * SLICE_BYTES
    # Beyond the pauses within its lists, each long event has those round a slice of its own.
    assert many[2] - few[2] >= 8 * 2 * (MAX_LIST - 32) // 32 + 7


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
        assert len(batch.body) < BATCH_BYTES


def test_nothing_to_encode_is_no_batch() -> None:
    assert encoded([])[1] == []
