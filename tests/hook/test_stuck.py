"""Requests that their engine will never run, and those that take no step, as the scheduler's hook tells of them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from tests.hook import fakes
from tests.hook.watches import WatchedScheduler
from turnscope.model import Handle, Stuck
from turnscope.semconv import StuckCause, turn_key


class Parking(WatchedScheduler):
    """A watched scheduler whose NIXL connector is set in one way, inside a composite one if told so."""

    def __init__(self, *, composite: bool = False, **settings: bool) -> None:
        self.nixl = fakes.NixlConnector(None, fakes.SCHEDULER, None)
        self.nixl.connector_scheduler = fakes.ConnectorScheduler(**settings)
        super().__init__(connector=fakes.MultiConnector([self.nixl]) if composite else self.nixl)

    def admit(self, request: fakes.Request) -> list[Any]:
        """Admit it as the scheduler does; what is said at once."""
        assert self.nixl.connector_scheduler is not None
        self.nixl.connector_scheduler.admit(request)
        return self.events()


def given() -> fakes.Request:
    """A prefill request with D's handle of 1,199 tokens."""
    return fakes.Request("r2", prompt=1250, params=fakes.handle("d0", "d-r1"))


@pytest.mark.parametrize("composite", [False, True])
def test_a_prefill_engine_without_the_feature_or_with_a_host_buffer_parks_every_request_with_a_handle(
    composite: bool,
) -> None:
    for settings, cause in (
        ({"bidirectional": False}, StuckCause.BIDIRECTIONAL_OFF),
        ({"host_buffer": True}, StuckCause.HOST_BUFFER),
        ({"bidirectional": False, "host_buffer": True}, StuckCause.BIDIRECTIONAL_OFF),
    ):
        (said,) = Parking(composite=composite, **settings).admit(given())
        assert isinstance(said, Stuck)
        assert (said.request_id, said.cause, said.promised_tokens) == ("r2", cause, 1199)
        assert said.handle == Handle(engine_id="d0", request_id="d-r1", tokens=1199, blocks=10, expiry_s=1234.5)


def test_a_second_lookup_parks_it_after_preemption_and_after_a_failed_load() -> None:
    for preemptions, cause in ((1, StuckCause.PREEMPTED), (0, StuckCause.LOAD_FAILED)):
        watched, request = Parking(), given()
        assert watched.admit(request) == []
        request.num_preemptions = preemptions
        (said,) = watched.admit(request)
        assert said.cause is cause


def test_a_load_that_is_not_queued_for_a_cause_we_do_not_know_is_still_said_to_be_stuck() -> None:
    watched, request = Parking(), given()
    side = watched.nixl.connector_scheduler
    assert side is not None
    side.update_state_after_alloc(request, None, 100)
    side._reqs_need_recv.clear()
    assert request.kv_transfer_params is not None
    del request.kv_transfer_params["_remote_blocks_processed"]
    side.is_bidirectional_kv_xfer_enabled = False
    side.update_state_after_alloc(request, None, 100)
    assert [said.cause for said in watched.events()] == [StuckCause.UNKNOWN]


@pytest.mark.parametrize(
    ("request_", "settings"),
    [
        (fakes.Request("first", params={"do_remote_decode": True}), {"bidirectional": False}),
        (fakes.Request("plain"), {"bidirectional": False}),
        (fakes.Request("small", params=fakes.handle("d0", "d", remote_num_tokens=63)), {"bidirectional": False}),
        (fakes.Request("d", params=fakes.handle("p0", "p", do_remote_prefill=True, do_remote_decode=False)), {}),
        (given(), {}),
    ],
)
def test_what_is_promised_and_queued_or_not_promised_is_not_stuck(
    request_: fakes.Request, settings: dict[str, bool]
) -> None:
    assert Parking(**settings).admit(request_) == []


def test_a_hook_that_is_off_or_fails_lets_the_engine_do_what_it_does() -> None:
    watched, request = Parking(bidirectional=False), given()
    watched.guard.on = False
    assert watched.admit(request) == []
    watched.guard.on = True
    del request.num_preemptions
    assert watched.admit(request) == []
    assert watched.guard.errors == 1


def test_an_engine_that_keeps_no_list_of_reads_is_left_alone() -> None:
    class Other:
        def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None: ...

    connector = fakes.NixlConnector(None, fakes.SCHEDULER, None)
    connector.connector_scheduler = other = Other()  # type: ignore[assignment]
    watched = WatchedScheduler(connector=connector)
    assert watched.watch.wrapped == ["scheduler", "kv_cache_manager"]
    assert "update_state_after_alloc" not in vars(other)


def idle(watched: WatchedScheduler) -> dict[str, str]:
    return dict(watched.watch.idle_requests(lambda: None))


def test_a_request_is_idle_when_it_computed_nothing_since_the_heartbeat_before() -> None:
    watched, slow, quick = WatchedScheduler(), fakes.Request("slow"), fakes.Request("quick")
    for request in (slow, quick):
        watched.scheduler.add_request(request)
    assert idle(watched) == {}, "seen for the first time"
    quick.num_computed_tokens += 1
    assert idle(watched) == {"slow": turn_key("p0", "slow").hex()}
    slow.num_computed_tokens += 1
    assert idle(watched).keys() == {"quick"}
    watched.scheduler.finish(quick, fakes.RequestStatus.FINISHED_ABORTED)
    assert idle(watched).keys() == {"slow"}


def test_an_idle_request_on_d_is_told_under_the_turn_of_the_prefill_it_came_from() -> None:
    watched = WatchedScheduler("kv_consumer")
    params = fakes.handle("p0", "p-r1", do_remote_prefill=True, do_remote_decode=False)
    request = fakes.Request("d-r1", params=params)
    watched.scheduler.add_request(request)
    params["do_remote_prefill"] = False
    assert idle(watched) == {}
    assert idle(watched) == {"d-r1": turn_key("p0", "p-r1").hex()}


def test_a_thousand_waiting_requests_are_looked_at_in_slices() -> None:
    watched, pauses = WatchedScheduler(), []
    for number in range(1000):
        watched.scheduler.add_request(fakes.Request(str(number), prompt=1))
    for _ in range(2):
        found = list(watched.watch.idle_requests(lambda: pauses.append(None)))
    assert len(found) == 1000
    assert len(pauses) == 2 * (1000 // 32 + 3) + 1000 // 2


def test_only_as_many_turns_are_named_as_are_asked_for() -> None:
    watched, pauses = WatchedScheduler(), []
    for number in range(100):
        watched.scheduler.add_request(fakes.Request(str(number), prompt=1))
    idle(watched)
    found = islice(watched.watch.idle_requests(lambda: pauses.append(None)), 10)
    assert [request_id for request_id, _ in found] == [str(number) for number in range(10)]
    assert len(pauses) == 3 + 3 + 4, "of looking at all, around it, and of naming eight"
