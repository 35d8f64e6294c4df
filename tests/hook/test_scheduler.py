"""What the scheduler's hook says about requests, holds and the handles they used."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import msgspec
import pytest

from tests.hook import fakes
from tests.hook.watches import WatchedScheduler
from turnscope.decode import codec
from turnscope.model import Body, Emitter, Event, Hold, HoldUse, Request
from turnscope.semconv import HoldKind, Leg

ABORTED = fakes.RequestStatus.FINISHED_ABORTED
FIRST_TURN = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None}


def of(kind: type[Any], events: list[Body]) -> Any:
    (found,) = [event for event in events if type(event) is kind]
    return found


@pytest.mark.parametrize(
    ("params", "leg"),
    [
        (None, Leg.WHOLE),
        ({}, Leg.WHOLE),
        (dict(FIRST_TURN), Leg.PREFILL),
        (fakes.handle("d0", "r0"), Leg.PREFILL),
        (fakes.handle("p0", "r0", do_remote_prefill=True, do_remote_decode=False), Leg.DECODE),
    ],
)
def test_a_requests_leg_is_what_came_in_not_what_the_connector_made_of_it(params: Any, leg: Leg) -> None:
    sent = of(Request, WatchedScheduler().serve(fakes.Request(params=params)))
    assert sent.leg is leg


def test_a_first_turn_carries_no_handle_and_uses_no_hold() -> None:
    events = WatchedScheduler().serve(fakes.Request(params=dict(FIRST_TURN)))
    assert [type(event) for event in events] == [Request]
    assert of(Request, events).handle_in is None


def test_an_engine_without_a_connector_reports_its_requests_alone() -> None:
    watched = WatchedScheduler(None)
    (sent,) = watched.serve(fakes.Request(prompt=100), local=64)
    assert isinstance(sent, Request)
    assert (sent.leg, sent.local_hit_tokens, sent.computed_tokens, sent.external_tokens) == (Leg.WHOLE, 64, 36, 0)
    assert watched.watch.engine.id == "engine-01"
    assert watched.watch.engine.role == "aggregated"


def test_d_holds_for_the_next_turn_and_p_leases_until_d_has_read() -> None:
    on_d = WatchedScheduler("kv_consumer").serve(fakes.Request(), answer=(True, fakes.handle("d0", "r1")))
    on_p = WatchedScheduler("kv_producer").serve(
        fakes.Request(), answer=(True, fakes.handle("p0", "r1", do_remote_decode=False, do_remote_prefill=True))
    )
    hold, lease = of(Hold, on_d), of(Hold, on_p)
    assert (hold.kind, hold.ttl_ns, hold.tokens, hold.blocks) == (HoldKind.HOLD, 60_000_000_000, 1199, 10)
    assert (lease.kind, lease.ttl_ns) == (HoldKind.LEASE, 30_000_000_000)


def test_a_handle_without_blocks_is_no_hold() -> None:
    """Preempted in its last step, P hands over an empty list and frees at once."""
    empty = fakes.handle("p0", "r1", remote_block_ids=([],), remote_num_tokens=0)
    events = WatchedScheduler().serve(fakes.Request(), answer=(False, empty))
    assert [type(event) for event in events] == [Request]
    assert of(Request, events).handle_out.blocks == 0


def test_a_hold_is_sized_group_by_group_over_all_ranks() -> None:
    blocks = ([1] * 10, [1] * 3)
    events = WatchedScheduler("kv_consumer", groups=2).serve(
        fakes.Request(), answer=(True, fakes.handle("d0", "r1", remote_block_ids=blocks))
    )
    assert of(Hold, events).bytes == (10 + 3) * 131_072 * 2


@pytest.mark.parametrize(
    ("changes", "processed"),
    [({}, True), ({"remote_host": ...}, False)],
)
def test_a_used_handle_counts_as_taken_up_only_when_the_connector_could_reach_its_holder(
    changes: dict[str, Any], processed: bool
) -> None:
    params = fakes.handle("d0", "d-r0")
    for name in changes:
        del params[name]
    use = of(HoldUse, WatchedScheduler().serve(fakes.Request(params=params), external=1199))
    assert use.processed is processed
    assert (use.handle.engine_id, use.handle.tokens, use.input_tokens) == ("d0", 1199, 1250)


@pytest.mark.parametrize(
    "changes",
    [
        {"remote_engine_id": None},
        {"remote_request_id": ""},
        {"remote_block_ids": [[1], 2, "x"], "remote_num_tokens": "many", "remote_blocks_expiry_time": []},
        {"remote_block_ids": {"a": 1}, "remote_request_id": 5},
        {"remote_request_id": "lone \ud800 surrogate"},
        {"remote_num_tokens": 2**62, "remote_blocks_expiry_time": 10**400},
        {"remote_num_tokens": True, "remote_blocks_expiry_time": float("nan")},
    ],
)
def test_whatever_a_client_puts_into_a_handle_raises_nowhere(changes: dict[str, Any]) -> None:
    watched = WatchedScheduler()
    events = watched.serve(fakes.Request(params=fakes.handle("d0", "d-r0", **changes)))
    assert of(Request, events).leg is Leg.PREFILL
    assert watched.guard.errors == 0
    for seq, event in enumerate(events, 1):
        msgspec.json.encode(event)
        whole = Event(emitter=Emitter(id="e", kind="engine"), engine=None, seq=seq, wall_ns=1, mono_ns=1, body=event)
        assert codec.decode(codec.encode([whole], observed_ns=1)).rejected == []


def test_what_another_connector_returns_is_no_hold() -> None:
    events = WatchedScheduler().serve(fakes.Request(), answer=(True, {"first_token": 7}))
    assert [type(event) for event in events] == [Request]


def test_an_aborted_request_is_sent_with_what_it_had_and_leaves_no_hold() -> None:
    watched = WatchedScheduler("kv_consumer")
    events = watched.serve(fakes.Request(), status=ABORTED)
    assert [type(event) for event in events] == [Request]
    assert of(Request, events).finish_reason == "abort"
    assert of(Request, events).stats_sent, "the first token had gone out"


def test_a_request_aborted_before_it_was_scheduled_has_no_token_sources() -> None:
    watched, request = WatchedScheduler(), fakes.Request()
    watched.scheduler.add_request(request)
    watched.scheduler.finish(request, ABORTED)
    sent = of(Request, watched.events())
    assert (sent.computed_tokens, sent.local_hit_tokens, sent.external_tokens) == (None, None, None)
    assert (sent.stats_sent, sent.scheduled_mono_ns, sent.input_tokens) == (False, None, 1250)


def test_a_failed_load_keeps_its_figures_and_says_that_the_engine_did_not_count_them() -> None:
    watched, request = WatchedScheduler(), fakes.Request(params=fakes.handle("d0", "d-r0"))
    watched.scheduler.add_request(request)
    watched.scheduler.schedule(request, external=1199)
    watched.scheduler.finish(request, fakes.RequestStatus.FINISHED_ERROR)
    sent = of(Request, watched.events())
    assert (sent.finish_reason, sent.external_tokens, sent.stats_sent) == ("error", 1199, False)


def test_a_phantom_that_only_frees_a_remote_hold_is_no_request() -> None:
    watched, phantom = WatchedScheduler(), fakes.Request(abort_immediately=True)
    watched.scheduler.add_request(phantom)
    watched.scheduler.finish(phantom, ABORTED)
    assert watched.events() == []
    assert watched.watch.open_requests() == []


def test_the_next_input_of_a_streaming_request_is_not_a_new_request() -> None:
    watched, first = WatchedScheduler(), fakes.Request("r1", session_id="first")
    watched.scheduler.add_request(first)
    watched.scheduler.add_request(fakes.Request("r1", session_id="second"))
    watched.scheduler.schedule(first)
    watched.scheduler.output(first)
    watched.scheduler.finish(first, fakes.RequestStatus.FINISHED_STOPPED)
    sent = of(Request, watched.events())
    assert (sent.session_id, sent.computed_tokens) == ("first", 1250)


def test_open_requests_are_listed_oldest_first_until_they_end() -> None:
    watched, requests = WatchedScheduler(), [fakes.Request(f"r{n}") for n in range(3)]
    for request in requests:
        watched.scheduler.add_request(request)
    watched.scheduler.finish(requests[1], ABORTED)
    assert watched.watch.open_requests() == ["r0", "r2"]


@pytest.mark.parametrize(
    ("prompt", "local", "external", "reported"),
    [
        (17_050, -7_680, 8_448, (16_282, -7_680, 8_448)),
        (1_200, -1, 0, (1_201, -1, 0)),
        (1_200, None, 0, (1_200, None, 0)),
        (1_200, 0, math.nan, (math.nan, 0, None)),
        (math.nan, 0, 0, (0, 0, 0)),
    ],
)
def test_strange_statistics_are_passed_on_as_reported_or_left_out_and_never_raise(
    prompt: Any, local: Any, external: Any, reported: tuple[Any, ...]
) -> None:
    watched, request = WatchedScheduler(), fakes.Request()
    request.num_prompt_tokens = prompt
    sent = of(Request, watched.serve(request, local=local, external=external))
    expected = tuple(None if isinstance(n, float) else n for n in reported)
    assert (sent.computed_tokens, sent.local_hit_tokens, sent.external_tokens) == expected
    assert watched.guard.errors == 0


def test_preemptions_and_a_request_that_skips_the_cache_are_told() -> None:
    request = fakes.Request()
    request.num_preemptions, request.skip_reading_prefix_cache = 2, True
    sent = of(Request, WatchedScheduler().serve(request))
    assert (sent.preemptions, sent.skip_cache) == (2, True)


class OldRequest(fakes.Request):
    """Before 0.28: no session id, no phantoms, no stored flag for the cache."""

    def __init__(self) -> None:
        super().__init__("r1", params=dict(FIRST_TURN))
        del self.session_id, self.abort_immediately, self.skip_reading_prefix_cache


class OldScheduler(fakes.Scheduler):
    """Up to 0.24: frees before it takes the statistics, and returns the handle alone."""

    def _free_request(self, request: fakes.Request) -> Any:  # type: ignore[override]
        return super()._free_request(request)[0]


def test_an_older_engine_is_read_by_what_it_has() -> None:
    old = OldScheduler(fakes.vllm_config(), fakes.kv_cache_config())
    watched, request = WatchedScheduler(scheduler=old), OldRequest()
    old.add_request(request)
    old.schedule(request)
    request._output_token_ids += [1]
    old.answer = (True, fakes.handle("p0", "r1", do_remote_decode=False, do_remote_prefill=True))
    old.finish(request, fakes.RequestStatus.FINISHED_LENGTH_CAPPED)
    old.output(request)
    events = watched.events()
    sent = of(Request, events)
    assert (sent.session_id, sent.skip_cache, sent.stats_sent) == (None, False, True)
    assert of(Hold, events).kind is HoldKind.LEASE


def test_what_waits_in_a_ring_keeps_no_prompt_alive() -> None:
    watched, request = WatchedScheduler(), fakes.Request()
    gone = weakref.ref(request)
    watched.scheduler.add_request(request)
    watched.scheduler.finish(request, ABORTED)
    del request
    gc.collect()
    assert gone() is None
    assert watched.rings.queued == 1


def test_ids_of_any_length_and_without_a_trace_pass() -> None:
    request = fakes.Request("x" * 1_000_000, session_id="")
    request.trace_headers = None  # type: ignore[assignment]
    sent = of(Request, WatchedScheduler().serve(request))
    assert (len(sent.request_id), sent.session_id, sent.traceparent) == (1_000_000, None, None)
