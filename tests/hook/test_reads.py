"""Which request a transfer served, and how it ended."""

# The signatures are vLLM's.
# ruff: noqa: ARG002

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tests.hook import fakes
from tests.hook.watches import WatchedWorker
from turnscope.semconv import Direction, TransferState


def states(watched: WatchedWorker) -> list[TransferState]:
    return [event.state for event in watched.events()]


def test_a_read_with_several_handles_gives_one_event_for_each_with_its_own_bytes() -> None:
    watched = WatchedWorker()
    watched.worker.reads = 2
    watched.read("r1", remote="d-r0")
    for handle in watched.nixl.made:
        watched.complete(handle)
    first, second = watched.events()
    assert first.started_mono_ns <= second.started_mono_ns
    second.started_mono_ns = first.started_mono_ns
    assert first == second
    assert (first.request_id, first.remote_request_id, first.bytes) == ("r1", "d-r0", 786_432)
    assert first.direction is Direction.REVERSE_FETCH
    assert first.started_mono_ns > 0


def test_interleaved_reads_are_told_apart_also_when_both_use_one_handle() -> None:
    watched = WatchedWorker()
    watched.read("r1", remote="same")
    watched.read("r2", remote="same")
    for handle in reversed(watched.nixl.made):
        watched.complete(handle)
    assert [(event.request_id, event.state) for event in watched.events()] == [("r2", "done"), ("r1", "done")]


def test_a_transfer_made_outside_of_any_read_is_counted_and_serves_nobody() -> None:
    watched = WatchedWorker()
    watched.read("r1")
    watched.complete(watched.nixl.made[0])
    watched.complete(watched.nixl.make_prepped_xfer("READ"))
    assert [event.request_id for event in watched.events()] == ["r1", ""]


def test_a_transfer_released_before_it_was_complete_has_failed() -> None:
    watched = WatchedWorker()
    watched.read()
    watched.nixl.release_xfer_handle(watched.nixl.made[0])
    (event,) = watched.events()
    assert (event.state, event.bytes, event.request_id) == (TransferState.FAILED, None, "r1")


def test_a_handle_that_could_not_be_made_has_failed_and_the_engine_sees_its_own_error() -> None:
    watched = WatchedWorker()
    watched.nixl.refuse = True
    with pytest.raises(RuntimeError, match="no descriptors"):
        watched.read()
    assert states(watched) == [TransferState.FAILED]


def test_a_handle_whose_release_fails_stays_open_until_it_succeeds() -> None:
    class Stubborn(fakes.NixlWrapper):
        fails = True

        def release_xfer_handle(self, handle: Any) -> None:
            if self.fails:
                raise RuntimeError("in flight")

    watched = WatchedWorker(worker=fakes.ConnectorWorker(Stubborn()))
    watched.read()
    with pytest.raises(RuntimeError, match="in flight"):
        watched.nixl.release_xfer_handle(watched.nixl.made[0])
    assert states(watched) == []
    watched.nixl.fails = False
    watched.complete(watched.nixl.made[0])
    assert states(watched) == [TransferState.DONE]


def test_numbers_as_handles_and_numbers_used_again_work_too() -> None:
    class Numbered(fakes.NixlWrapper):
        def make_prepped_xfer(self, *args: Any, notif_msg: bytes = b"") -> Any:
            return 7

    watched = WatchedWorker(worker=fakes.ConnectorWorker(Numbered()))
    for name in ("r1", "r2"):
        watched.read(name)
        watched.complete(7)
    assert [event.request_id for event in watched.events()] == ["r1", "r2"]


def test_no_handle_is_kept_alive() -> None:
    watched = WatchedWorker()
    watched.read()
    gone = weakref.ref(watched.nixl.made.pop())
    gc.collect()
    assert gone() is None, "NIXL aborts a transfer whose handle object is lost, and we must not be what keeps it"


def test_a_declined_read_is_told_from_its_count_and_vllms_statistics_stay_as_they_are() -> None:
    watched = WatchedWorker()
    watched.worker.decline = True
    watched.read("r1", expiry=12.5)
    (event,) = watched.events()
    assert (event.state, event.remote_request_id) == (TransferState.DECLINED, "d-r0")
    assert watched.worker.xfer_stats.data == {"num_kv_expired_reqs": [1]}


def test_a_full_local_hit_sends_a_notice_and_reads_nothing() -> None:
    watched = WatchedWorker()
    watched.worker.reads = 0
    watched.read()
    assert states(watched) == [TransferState.NOTICE_ONLY]
    assert watched.nixl.sent == [("agent", b"d-r0:1")]


def test_a_heartbeat_outside_of_a_read_is_no_notice() -> None:
    watched = WatchedWorker("kv_consumer")
    watched.nixl.send_notif("agent", notif_msg=b"HB:r1,r2")
    assert watched.events() == []


def test_a_read_that_waited_for_a_handshake_is_told_once_when_it_is_made() -> None:
    watched = WatchedWorker()
    watched.read("r1", engine="new")
    assert watched.events() == []
    watched.worker._remote_agents["new"] = {}
    watched.read("r1", engine="new")
    watched.complete(watched.nixl.made[0])
    watched.report(received={"r1"})
    assert states(watched) == [TransferState.DONE]


def test_a_request_that_comes_back_without_its_handshake_has_failed_there() -> None:
    watched = WatchedWorker()
    watched.read("r1", engine="nobody")
    watched.report(received={"r1"})
    (event,) = watched.events()
    assert (event.state, event.remote_engine_id) == (TransferState.HANDSHAKE_FAILED, "nobody")


def test_a_peer_known_to_be_gone_fails_the_read_at_once() -> None:
    watched = WatchedWorker()
    watched.worker._invalid_remote_engines["d0"] = 1.0
    watched.read()
    assert states(watched) == [TransferState.FAILED]


def test_what_waits_for_handshakes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnscope.hook.reads.LIMIT", 10)
    watched = WatchedWorker()
    for number in range(100):
        watched.read(f"r{number}", engine="nobody")
    assert sorted(watched.watch._connecting) == [f"r{number}" for number in range(90, 100)]


@pytest.mark.parametrize(
    ("role", "expiry", "direction"),
    [
        ("kv_consumer", None, Direction.HANDOFF),
        ("kv_producer", None, Direction.REVERSE_FETCH),
        ("kv_both", 12.5, Direction.REVERSE_FETCH),
        ("kv_both", None, Direction.UNKNOWN),
    ],
)
def test_the_direction_follows_the_role_and_where_there_is_none_the_handle(
    role: str, expiry: Any, direction: Direction
) -> None:
    watched = WatchedWorker(role)
    watched.read(expiry=expiry)
    watched.complete(watched.nixl.made[0])
    (event,) = watched.events()
    assert event.direction is direction


def test_missing_telemetry_leaves_the_figures_out() -> None:
    class Mute(fakes.NixlWrapper):
        def get_xfer_telemetry(self, handle: Any) -> Any:
            return None

    watched = WatchedWorker(worker=fakes.ConnectorWorker(Mute()))
    watched.read()
    watched.complete(watched.nixl.made[0])
    (event,) = watched.events()
    assert (event.state, event.bytes, event.duration_ns) == (TransferState.DONE, None, None)


def test_an_engine_that_does_not_decline_is_watched_as_well() -> None:
    worker = fakes.ConnectorWorker()
    worker.xfer_stats.data.clear()
    watched = WatchedWorker(worker=worker)
    watched.read()
    watched.complete(watched.nixl.made[0])
    assert states(watched) == [TransferState.DONE]
    assert watched.guard.errors == 0
