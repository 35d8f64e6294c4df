"""From vLLM-shaped objects to a real gRPC receiver."""

from __future__ import annotations

import pytest

from tests.hook import fakes
from tests.hook.conftest import FakeVllm
from tests.hook.receiver import Receiver
from turnscope.hook.plugin import load
from turnscope.marks import Keys, Shared, common_prefix
from turnscope.model import Digest, EngineState, Handle, Heartbeat, Hold, HoldUse, Request, Transfer
from turnscope.semconv import Direction, HoldKind, Leg, TransferState


def test_a_prefill_turn_with_reverse_fetch_arrives_whole(hooked: FakeVllm, receiver: Receiver) -> None:
    connector = fakes.NixlConnector(None, fakes.SCHEDULER, None)
    scheduler = hooked.scheduler(fakes.vllm_config("kv_producer", engine_id="p0"), connector=connector)
    request = fakes.Request("r2", prompt=1250, params=fakes.handle("d0", "d-r1"))
    scheduler.add_request(request)
    scheduler.schedule(request, local=0, external=1199)
    scheduler.output(request)
    scheduler.answer = True, fakes.handle("p0", "r2", do_remote_prefill=True, do_remote_decode=False)
    scheduler.finish(request, fakes.RequestStatus.FINISHED_LENGTH_CAPPED)
    receiver.wait_for(lambda: len(receiver.bodies(HoldUse)) == 1)

    (sent,) = receiver.bodies(Request)
    assert (sent.leg, sent.finish_reason, sent.stats_sent) == (Leg.PREFILL, "length", True)
    assert (sent.computed_tokens, sent.local_hit_tokens, sent.external_tokens) == (51, 0, 1199)
    assert (sent.input_tokens, sent.output_tokens, sent.session_id) == (1250, 1, "s1")
    assert sent.handle_in == Handle(engine_id="d0", request_id="d-r1", tokens=1199, blocks=10, expiry_s=1234.5)
    assert sent.handle_out is not None
    assert sent.handle_out.request_id == "r2"
    assert sent.scheduled_mono_ns is not None
    assert sent.scheduled_mono_ns >= sent.added_mono_ns
    (lease,) = receiver.bodies(Hold)
    assert (lease.kind, lease.phase, lease.blocks, lease.ttl_ns) == (HoldKind.LEASE, "held", 10, 30_000_000_000)
    assert lease.bytes == 10 * 2 * 65_536 * 2, "blocks x layers x page x ranks"
    (use,) = receiver.bodies(HoldUse)
    assert (use.handle.request_id, use.external_tokens, use.processed) == ("d-r1", 1199, True)
    assert receiver.rejected == []
    event = receiver.events[0]
    assert event.engine is not None
    assert (event.engine.id, event.engine.role, event.engine.connector) == ("p0", "prefill", "NixlConnector")
    assert (event.engine.hold_ttl_ns, event.engine.recompute_threshold) == (60_000_000_000, 64)
    assert (event.engine.bidirectional, event.engine.block_bytes) == (True, 131_072)


def test_a_workers_read_and_the_end_of_its_holds_arrive(hooked: FakeVllm, receiver: Receiver) -> None:
    worker = hooked.worker(fakes.vllm_config("kv_consumer", engine_id="d0"))
    worker._remote_agents["p0"] = {(0, 0): "agent"}
    worker._read_blocks_for_req("d-r2", fakes.remote("p0", "r2"))
    (handle,) = worker.nixl_wrapper.made
    worker.nixl_wrapper.get_xfer_telemetry(handle)
    worker.nixl_wrapper.release_xfer_handle(handle)
    worker._reqs_to_process |= {"d-r2", "d-r3"}
    worker.nixl_wrapper.notices = {"agent": [b"HB:d-r2", b"d-r2:1"]}
    worker.sent = {"d-r2", "d-r3"}
    worker.get_transfer_results()
    receiver.wait_for(lambda: len(receiver.bodies(Hold)) == 2)

    (read,) = receiver.bodies(Transfer)
    assert (read.request_id, read.direction, read.state) == ("d-r2", Direction.HANDOFF, TransferState.DONE)
    assert (read.remote_engine_id, read.remote_request_id) == ("p0", "r2")
    assert (read.bytes, read.descriptors, read.duration_ns, read.post_ns) == (786_432, 12, 1_500_000, 20_000)
    ended = {hold.request_id: hold.phase for hold in receiver.bodies(Hold)}
    assert ended == {"d-r2": "released", "d-r3": "expired"}
    assert {hold.kind for hold in receiver.bodies(Hold)} == {HoldKind.HOLD}
    assert receiver.events[-1].engine is not None
    assert receiver.events[-1].engine.rank == 0


def test_heartbeats_list_what_runs_and_the_last_number(hooked: FakeVllm, receiver: Receiver) -> None:
    scheduler = hooked.scheduler(fakes.vllm_config(None))
    scheduler.add_request(fakes.Request("running"))
    receiver.wait_for(lambda: any(beat.open_requests == ["running"] for beat in receiver.bodies(Heartbeat)))
    last = [event for event in receiver.events if isinstance(event.body, Heartbeat)][-1]
    assert isinstance(last.body, Heartbeat)
    assert last.body.last_seq == last.seq
    assert (last.body.dropped, last.body.errors) == (0, 0)
    (state,) = receiver.bodies(EngineState)
    assert (state.state, state.wrapped) == ("started", ["scheduler", "kv_cache_manager"])
    assert sorted(event.seq for event in receiver.events) == list(range(1, len(receiver.events) + 1))


def test_digests_of_what_d_holds_and_of_the_next_prompt_come_under_the_receivers_key(
    hooked: FakeVllm, receiver: Receiver
) -> None:
    receiver.digest_key = "ab" * 32
    p, d = (hooked.scheduler(fakes.vllm_config(role, engine_id=role)) for role in ("kv_producer", "kv_consumer"))
    left = fakes.Request("d-r1", prompt=1000, params=None)
    d.add_request(left)
    d.schedule(left)
    d.output(left, 200)
    d.answer = True, fakes.handle("kv_consumer", "d-r1", remote_num_tokens=1199)
    d.finish(left, fakes.RequestStatus.FINISHED_STOPPED)
    following = fakes.Request("r2", prompt=1250, params=fakes.handle("kv_consumer", "d-r1"))
    following._all_token_ids[1000:1199] = [1] * 199
    p.add_request(following)
    p.finish(following, fakes.RequestStatus.FINISHED_LENGTH_CAPPED)
    receiver.wait_for(lambda: len(receiver.bodies(Digest)) == 2)

    of = {digest.request_id: digest for digest in receiver.bodies(Digest)}
    assert {digest.key_id for digest in of.values()} == {Keys(receiver.digest_key.encode()).id}
    assert common_prefix(of["d-r1"], of["r2"]) == Shared(1199, None)


def test_behind_a_receiver_that_gives_no_key_digests_say_so(hooked: FakeVllm, receiver: Receiver) -> None:
    scheduler = hooked.scheduler(fakes.vllm_config(None))
    request = fakes.Request("r1", prompt=100)
    scheduler.add_request(request)
    scheduler.finish(request, fakes.RequestStatus.FINISHED_ABORTED)
    receiver.wait_for(lambda: len(receiver.bodies(Digest)) == 1)
    assert receiver.bodies(Digest)[0].unverifiable == "no_key"
    assert receiver.asked == {""}


def test_switched_off_there_are_no_digests_and_nobody_is_asked_for_a_key(
    vllm: FakeVllm, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNSCOPE_ENDPOINT", f"http://127.0.0.1:{receiver.port}")
    monkeypatch.setenv("TURNSCOPE_HEARTBEAT_SECONDS", "0.3")
    monkeypatch.setenv("TURNSCOPE_DIGESTS", "off")
    load()
    scheduler = vllm.scheduler(fakes.vllm_config(None))
    request = fakes.Request("r1", prompt=100)
    scheduler.add_request(request)
    scheduler.finish(request, fakes.RequestStatus.FINISHED_ABORTED)
    receiver.wait_for(lambda: len(receiver.bodies(Heartbeat)) >= 3)
    assert len(receiver.bodies(Request)) == 1
    assert receiver.bodies(Digest) == []
    assert receiver.asked == set()
