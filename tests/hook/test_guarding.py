"""Whatever goes wrong in the hook, the engine does not notice."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.hook import fakes
from tests.hook.conftest import FakeVllm
from tests.hook.receiver import Receiver
from tests.hook.watches import WatchedScheduler, WatchedWorker
from turnscope.hook.plugin import load
from turnscope.model import EngineState, Request


class Trap:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} is broken")

    def __bool__(self) -> bool:
        raise RuntimeError("truth is broken")


def add_broken(watched: WatchedScheduler) -> None:
    request = fakes.Request()
    request.kv_transfer_params = Trap()  # type: ignore[assignment]
    watched.scheduler.requests.clear()
    watched.scheduler.add_request(request)
    assert watched.scheduler.requests == {request.request_id: request}


def free_broken(watched: WatchedScheduler) -> None:
    request = fakes.Request()
    watched.scheduler.requests.clear()
    watched.scheduler.add_request(request)
    request.kv_transfer_params = Trap()  # type: ignore[assignment]
    watched.scheduler.answer = (False, {"some": "handle"})
    assert watched.scheduler.finish(request, fakes.RequestStatus.FINISHED_ABORTED) == ({"some": "handle"}, None)


@pytest.mark.parametrize("break_it", [add_broken, free_broken])
def test_a_raising_body_in_the_scheduler_stays_inside_and_switches_off_at_the_limit(
    break_it: Callable[[WatchedScheduler], None],
) -> None:
    watched = WatchedScheduler()
    for times in range(1, 6):
        break_it(watched)
        assert watched.guard.errors == min(times, 3), "off means not even tried"
    assert not watched.guard.on
    watched.rings.take(1 << 20)
    assert watched.serve(fakes.Request("after")) == []


def notice_broken(watched: WatchedWorker) -> None:
    watched.nixl.notices = {"agent": [b"\xff:1"]}
    assert watched.nixl.get_new_notifs() == {"agent": [b"\xff:1"]}


def result_broken(watched: WatchedWorker) -> None:
    watched.worker.sent = 5
    assert watched.worker.get_transfer_results().finished_sending == 5


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


def transfer_broken(watched: WatchedWorker) -> None:
    watched.read()
    watched.nixl.get_xfer_telemetry(Unhashable())


@pytest.mark.parametrize("break_it", [notice_broken, result_broken, transfer_broken])
def test_a_raising_body_in_a_worker_stays_inside_and_switches_off_at_the_limit(
    break_it: Callable[[WatchedWorker], None],
) -> None:
    watched = WatchedWorker()
    for times in range(1, 6):
        break_it(watched)
        assert watched.guard.errors == min(times, 3)
    watched.worker.sent = set()
    watched.events()
    watched.read()
    watched.complete(watched.nixl.made[-1])
    assert watched.events() == []


def test_an_error_of_the_engine_itself_passes_and_the_next_read_is_told_apart() -> None:
    watched = WatchedWorker()
    original, watched.worker.reads = watched.worker.reads, None
    with pytest.raises(TypeError):
        watched.read("failed")
    watched.worker.reads = original
    watched.read("r2")
    watched.complete(watched.nixl.made[0])
    assert [event.request_id for event in watched.events()] == ["r2"]
    assert watched.guard.errors == 0


def test_a_hook_that_keeps_failing_says_so_to_the_sidecar_once(hooked: FakeVllm, receiver: Receiver) -> None:
    scheduler = hooked.scheduler(fakes.vllm_config(None))
    for _ in range(30):
        request = fakes.Request()
        request.kv_transfer_params = Trap()  # type: ignore[assignment]
        scheduler.requests.clear()
        scheduler.add_request(request)
    receiver.wait_for(lambda: len(receiver.bodies(EngineState)) == 2)
    time.sleep(0.5)
    started, off = receiver.bodies(EngineState)
    assert (started.state, off.state) == ("started", "switched_off")
    assert "scheduler hook: switched off after 20 errors, the last a RuntimeError" in (off.message or "")


@pytest.mark.parametrize("listening", [False, True], ids=["nobody listens", "nobody answers"])
def test_a_sidecar_that_is_not_there_delays_no_caller(
    vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch, listening: bool
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listening:
            silent.listen()
        monkeypatch.setenv("TURNSCOPE_ENDPOINT", f"grpc://127.0.0.1:{silent.getsockname()[1]}")
        load()
        scheduler = vllm.scheduler(fakes.vllm_config(None))
        spent = []
        for number in range(3000):
            request = fakes.Request(f"r{number}", prompt=10)
            began = time.thread_time()
            scheduler.add_request(request)
            scheduler.finish(request, fakes.RequestStatus.FINISHED_ABORTED)
            spent.append(time.thread_time() - began)
            if number % 100 == 0:
                time.sleep(0.01)
        spent.sort()
        assert spent[len(spent) // 2] < 0.000_2
        assert spent[-30] < 0.001


def test_what_was_queued_arrives_when_the_process_ends(hooked: FakeVllm, receiver: Receiver) -> None:
    from turnscope.emit import runtime as runtime_module

    scheduler = hooked.scheduler(fakes.vllm_config(None))
    receiver.wait_for(lambda: bool(receiver.bodies(EngineState)))
    for number in range(3):
        request = fakes.Request(f"r{number}")
        scheduler.add_request(request)
        scheduler.finish(request, fakes.RequestStatus.FINISHED_ABORTED)
    (runtime,) = runtime_module._runtimes.values()
    runtime.stop()
    receiver.wait_for(lambda: receiver.bodies(EngineState)[-1].state == "stopping")
    assert [request.request_id for request in receiver.bodies(Request)] == ["r0", "r1", "r2"]
