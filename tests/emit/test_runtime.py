"""A process's runtime: nothing before the first watch, one thread after it, nothing after its end."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable

import pytest

from tests.emit.stubs import StubWatch
from tests.hook.receiver import receiving
from turnscope.emit import runtime as runtime_module
from turnscope.emit.clock import clock_id
from turnscope.emit.runtime import Runtime, runtime
from turnscope.emit.settings import Endpoint, Settings
from turnscope.model import EngineState

NOWHERE = Settings(endpoint=Endpoint("127.0.0.1:1"))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "turnscope"]


def soon(condition: Callable[[], bool]) -> bool:
    """Whether ``condition()`` holds before long: a busy machine may take its time."""
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_it_has_no_thread_until_something_is_watched_and_one_for_all_that_is() -> None:
    found = Runtime(NOWHERE)
    assert soon(lambda: threads() == [])
    found.add(StubWatch())
    found.add(StubWatch())
    assert threads() == ["turnscope"]
    found.stop()
    found.stop()
    assert soon(lambda: threads() == [])


def test_stopping_sends_what_is_queued() -> None:
    with receiving() as receiver:
        found = Runtime(Settings(endpoint=Endpoint(f"127.0.0.1:{receiver.port}")))
        found.add(StubWatch())
        found.stop()
        assert soon(lambda: [s.state for s in receiver.bodies(EngineState)] == ["started", "stopping"])


def test_a_process_has_one_runtime_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    # The real one is this process's: what is begun here must not be what later tests send through.
    monkeypatch.setattr(runtime_module, "_runtimes", {})
    first = runtime(NOWHERE)
    first.add(StubWatch())
    assert runtime(NOWHERE) is first
    first.stop()
    second = runtime(NOWHERE)
    assert second is not first
    assert second.emitter("engine").id != first.emitter("engine").id
    assert second.emitter("worker").clock == first.emitter("engine").clock == clock_id()


def test_another_process_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Runtime(NOWHERE)
    found.add(StubWatch())
    monkeypatch.setattr(found, "pid", os.getpid() + 1)
    found.stop()
    assert threads() == ["turnscope"]
    monkeypatch.undo()
    found.stop()
    assert soon(lambda: threads() == [])


def test_without_what_it_needs_to_send_it_says_so_once_and_switches_its_hooks_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "turnscope.emit.emitter", None)
    watch, found = StubWatch(), Runtime(NOWHERE, logging.getLogger("turnscope.test"))
    found.add(watch)
    found.stop()
    assert soon(lambda: not watch.guard.on)
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "it cannot send" in record.getMessage()
