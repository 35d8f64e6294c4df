"""The one mapping between events and OTLP log records."""

from __future__ import annotations

from turnscope import semconv
from turnscope.decode import codec, jsonlines
from turnscope.model import Digest, Emitter, Engine, Event, Handle, Request

EMITTER = Emitter(id="00" * 8, kind="engine", pid=7, host="h", version="0")
ENGINE = Engine(id="p", generation="ab", role="prefill", block_size=128, bidirectional=True)


def _request(**changes: object) -> Event:
    body = Request(
        **{
            "request_id": "r1",
            "leg": semconv.Leg.PREFILL,
            "input_tokens": 1250,
            "output_tokens": 1,
            "finish_reason": "length",
            "added_mono_ns": 5,
            "handle_in": Handle(engine_id="d", request_id="r0", tokens=1199, expiry_s=12.5),
            **changes,
        }
    )
    return Event(emitter=EMITTER, engine=ENGINE, seq=1, wall_ns=2, mono_ns=3, body=body)


def test_an_event_survives_the_round_trip() -> None:
    event = _request()
    decoded = codec.decode(codec.encode([event], observed_ns=9))
    assert decoded.events == [event]
    assert decoded.rejected == []


def test_an_attribute_outside_the_table_is_never_decoded() -> None:
    message = codec.encode([_request()], observed_ns=9)
    extra = message.resource_logs[0].scope_logs[0].log_records[0].attributes.add()
    extra.key, extra.value.string_value = "gen_ai.input.messages", "CANARY"
    assert "CANARY" not in repr(codec.decode(message).events)


def test_an_id_of_a_megabyte_is_cut_and_stays_distinct() -> None:
    one, two = (codec.decode(codec.encode([_request(request_id="x" * 2**20 + end)], observed_ns=9)) for end in "ab")
    ids = {d.events[0].body.request_id for d in (one, two)}  # type: ignore[union-attr]
    assert len(ids) == 2
    assert all(len(i) == semconv.MAX_TEXT for i in ids)


def test_a_bad_record_is_named_and_the_good_one_kept() -> None:
    message = codec.encode([_request(), _request(request_id="r2")], observed_ns=9)
    record = message.resource_logs[0].scope_logs[0].log_records[0]
    for item in record.attributes:
        if item.key == semconv.INPUT_TOKENS:
            item.value.string_value = "many"
    decoded = codec.decode(message)
    assert [e.body.request_id for e in decoded.events] == ["r2"]  # type: ignore[union-attr]
    assert decoded.rejected == ["turnscope.request: gen_ai.usage.input_tokens: expected int, got string_value"]


def test_the_decode_leg_shares_its_turns_trace_id() -> None:
    given = Handle(engine_id="p", request_id="r1")
    decode_leg = _request(request_id="d1", leg=semconv.Leg.DECODE, handle_in=given)
    message = codec.encode([_request(), decode_leg], observed_ns=9)
    ids = {r.trace_id for r in message.resource_logs[0].scope_logs[0].log_records}
    assert ids == {semconv.turn_key("p", "r1")}


def test_a_time_that_no_store_can_hold_is_refused_and_the_rest_kept() -> None:
    message = codec.encode([_request(), _request(request_id="r2")], observed_ns=9)
    message.resource_logs[0].scope_logs[0].log_records[0].time_unix_nano = 2**64 - 1
    decoded = codec.decode(message)
    assert [e.body.request_id for e in decoded.events] == ["r2"]  # type: ignore[union-attr]
    assert decoded.rejected == ["turnscope.request: time_unix_nano: out of range"]


def test_a_count_beyond_all_sense_is_refused() -> None:
    for value in (2**60, -(2**63)):
        decoded = codec.decode(codec.encode([_request(preemptions=value)], observed_ns=9))
        assert decoded.events == []
        assert decoded.rejected == ["turnscope.request: turnscope.request.preemptions: out of range"]


def test_a_figure_below_zero_counts_as_not_measured_unless_an_engine_says_it_of_a_prompt() -> None:
    given = Handle(engine_id="d", request_id="d1", tokens=-1, blocks=2)
    event = _request(computed_tokens=-7680, scheduled_mono_ns=-1, preemptions=-3, handle_in=given)
    (read,) = codec.decode(codec.encode([event], observed_ns=9)).events
    assert isinstance(read.body, Request)
    assert (read.body.computed_tokens, read.body.scheduled_mono_ns, read.body.preemptions) == (-7680, -1, 0)
    assert read.body.handle_in == Handle(engine_id="d", request_id="d1", blocks=2)


def test_a_refused_value_is_not_repeated_to_the_sender() -> None:
    message = codec.encode([_request()], observed_ns=9)
    for item in message.resource_logs[0].scope_logs[0].log_records[0].attributes:
        if item.key == "turnscope.request.leg":
            item.value.string_value = "CANARY"
    decoded = codec.decode(message)
    assert decoded.events == []
    assert "CANARY" not in repr(decoded)


def _digest(**changes: object) -> Event:
    fields = {"request_id": "d1", "leg": semconv.Leg.DECODE, "tokens": 3, "input_tokens": 2, "marks": b"\xff\x00" * 4}
    return Event(emitter=EMITTER, engine=ENGINE, seq=1, wall_ns=2, mono_ns=3, body=Digest(**{**fields, **changes}))


def test_bytes_survive_the_round_trip_over_the_wire_and_as_a_line() -> None:
    event = _digest(chunks=bytes(range(256)), key_id="ab", anchor_tokens=3)
    message = codec.encode([event], observed_ns=9)
    assert codec.decode(message).events == [event]
    assert codec.decode(jsonlines.read(jsonlines.write([event], 9))).events == [event]


def test_more_bytes_than_a_digest_can_have_are_refused() -> None:
    decoded = codec.decode(codec.encode([_digest(marks=bytes(codec.MAX_BLOB + 1))], observed_ns=9))
    assert decoded.events == []
    assert decoded.rejected == [f"turnscope.digest: turnscope.digest.marks: more than {codec.MAX_BLOB} bytes"]


def test_a_digest_has_its_turns_or_its_holds_trace_id() -> None:
    message = codec.encode([_digest(), _digest(leg=semconv.Leg.PREFILL)], observed_ns=9)
    ids = [r.trace_id for r in message.resource_logs[0].scope_logs[0].log_records]
    assert ids == [semconv.hold_key("p", "d1"), semconv.turn_key("p", "d1")]
