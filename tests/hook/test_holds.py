"""How holds and leases end on one rank."""

# The signatures are vLLM's.
# ruff: noqa: ARG002

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.hook import fakes
from tests.hook.watches import WatchedWorker
from turnscope.semconv import Direction, HoldKind


def phases(watched: WatchedWorker) -> list[tuple[str, str, int | None, int | None]]:
    return [(e.request_id, e.phase, e.readers_seen, e.readers_expected) for e in watched.events()]


def holding(role: str = "kv_consumer", *names: str, worker: Any = None) -> WatchedWorker:
    watched = WatchedWorker(role, worker=worker)
    watched.worker._reqs_to_process |= set(names)
    return watched


def test_a_hold_whose_reader_has_reported_is_released() -> None:
    watched = holding("kv_consumer", "r1")
    watched.notice("r1:1")
    watched.report(sent={"r1"})
    assert phases(watched) == [("r1", "released", 1, 1)]


def test_a_hold_with_fewer_notices_than_readers_has_expired() -> None:
    watched = holding("kv_consumer", "r1", "r2")
    watched.notice("r1:2")
    watched.report(sent={"r1", "r2"})
    assert sorted(phases(watched), key=str) == [("r1", "expired", 1, 2), ("r2", "expired", 0, None)]


def test_notices_of_several_readers_add_up_over_steps() -> None:
    watched = holding("kv_producer", "r1")
    watched.notice("r1:2")
    watched.report()
    watched.notice("r1:2")
    watched.report(sent={"r1"})
    assert phases(watched) == [("r1", "released", 2, 2)]


def test_a_notice_after_the_end_is_late_and_was_a_read_after_release() -> None:
    watched = holding("kv_consumer", "r1")
    watched.report(sent={"r1"})
    watched.worker._reqs_to_process.clear()
    watched.notice("r1:1")
    assert phases(watched) == [("r1", "expired", 0, None), ("r1", "late_notice", None, None)]


def test_a_second_reader_of_a_single_readers_hold_is_late_also_in_the_same_batch() -> None:
    """With n = 2, both of D's requests read P's blocks with one handle."""
    watched = holding("kv_producer", "r1")
    watched.notice("r1:1", "r1:1")
    watched.report(sent={"r1"})
    assert phases(watched) == [("r1", "late_notice", None, None), ("r1", "released", 1, 1)]


def test_heartbeats_of_waiting_readers_are_no_notices() -> None:
    watched = holding("kv_producer", "r1")
    watched.notice("HB:r1,r2:x")
    watched.report(sent={"r1"})
    assert phases(watched) == [("r1", "expired", 0, None)]


def test_a_request_id_with_colons_is_read_from_the_right() -> None:
    watched = holding("kv_consumer", "chat:1:a")
    watched.notice("chat:1:a:1")
    watched.report(sent={"chat:1:a"})
    assert phases(watched) == [("chat:1:a", "released", 1, 1)]


def test_an_engine_that_sends_its_tp_size_expects_its_share_of_readers() -> None:
    worker = fakes.ConnectorWorker()
    del worker.expected_consumer_notifications_by_req
    worker.world_size = 8
    watched = holding("kv_producer", "r1", worker=worker)
    watched.notice("r1:8")
    watched.report(sent={"r1"})
    assert phases(watched) == [("r1", "released", 1, 1)]


@pytest.mark.parametrize(("role", "kind"), [("kv_producer", HoldKind.LEASE), ("kv_consumer", HoldKind.HOLD)])
def test_what_p_keeps_is_a_lease_and_what_d_keeps_a_hold(role: str, kind: HoldKind) -> None:
    watched = holding(role, "r1")
    watched.report(sent={"r1"})
    assert [event.kind for event in watched.events()] == [kind]


def test_an_engine_that_is_both_tells_them_by_their_length() -> None:
    watched = WatchedWorker("kv_both")
    metadata = SimpleNamespace(scheduler_clock=1000.0, reqs_to_send={"lease": 1030.0, "hold": 1060.0})
    assert watched.worker.start_load_kv(metadata) == "started"
    watched.report(sent={"lease", "hold"})
    assert {event.request_id: event.kind for event in watched.events()} == {
        "lease": HoldKind.LEASE,
        "hold": HoldKind.HOLD,
    }


def test_a_rank_that_never_serves_says_nothing() -> None:
    worker = fakes.ConnectorWorker()
    worker.pcp_rank = 1  # type: ignore[attr-defined]
    watched = holding("kv_producer", "r1", worker=worker)
    watched.report(sent={"r1"})
    assert watched.events() == []


class OldWorker(fakes.ConnectorWorker):
    """Before 0.32: one completion call that returns two sets."""

    get_transfer_results = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "get_transfer_results":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def get_finished(self) -> tuple[set[str], set[str]]:
        self.nixl_wrapper.get_new_notifs()
        return self.sent, self.received


def test_the_older_completion_call_is_read_too() -> None:
    watched = holding("kv_consumer", "r1", worker=OldWorker())
    watched.notice("r1:1")
    watched.worker.sent = {"r1"}
    assert watched.worker.get_finished() == ({"r1"}, set())
    assert phases(watched) == [("r1", "released", 1, 1)]


class BothCallsWorker(fakes.ConnectorWorker):
    """0.32: the older call asks the newer one."""

    def get_finished(self) -> tuple[set[str], set[str]]:
        results = self.get_transfer_results()
        return results.finished_sending, results.finished_recving


def test_where_one_completion_call_asks_the_other_an_end_is_counted_once() -> None:
    watched = holding("kv_consumer", "r1", worker=BothCallsWorker())
    watched.worker.sent = {"r1"}
    watched.worker.get_finished()
    assert phases(watched) == [("r1", "expired", 0, None)]


class PushWorker(fakes.ConnectorWorker):
    """Push mode: P writes, on a thread of its own; nobody sends P a notice."""

    def __init__(self) -> None:
        super().__init__()
        self._sending_transfers: dict[str, Any] = {}

    def _xfer_blocks_for_req(self, req_id: str, meta: Any) -> None:
        self.nixl_wrapper.make_prepped_xfer("WRITE")


def test_in_push_mode_a_lease_whose_writes_are_done_is_released_and_another_has_expired() -> None:
    watched = WatchedWorker("kv_producer", worker=PushWorker())
    watched.worker._xfer_blocks_for_req("r1", fakes.remote("d0", "d-r1"))
    watched.complete(watched.nixl.made[0])
    watched.report(sent={"r1", "r2"})
    write, *ends = watched.events()
    assert (write.request_id, write.direction, write.remote_request_id) == ("r1", Direction.HANDOFF, None)
    assert {(end.request_id, end.phase) for end in ends} == {("r1", "released"), ("r2", "expired")}


def test_what_is_remembered_of_readers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnscope.hook.holds.LIMIT", 10)
    watched = holding("kv_consumer", *(f"r{number}" for number in range(100)))
    watched.notice(*(f"r{number}:2" for number in range(100)))
    assert len(watched.watch._notices) == 10
