"""Fake vLLM modules, wrapped as the plugin wraps the real ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.hook import fakes
from tests.hook.receiver import Receiver, receiving
from turnscope.emit import runtime as runtime_module
from turnscope.hook.plugin import load

SCHEDULER = "vllm.v1.core.sched.scheduler"
FACTORY = "vllm.distributed.kv_transfer.kv_connector.factory"
VARIABLES = ("ENDPOINT", "OFF_FILE", "ENGINE_NAME", "GENERATION", "HEARTBEAT_SECONDS", "DIGESTS", "DIGEST_KEY")


class FakeVllm:
    """An engine process with turnscope's plugin in it."""

    def __init__(self) -> None:
        self.Scheduler = type("Scheduler", (fakes.Scheduler,), dict(fakes.Scheduler.__dict__))
        factory = dict(fakes.KVConnectorFactory.__dict__)
        self.KVConnectorFactory = type("KVConnectorFactory", (), factory)

    def scheduler(self, config: Any, *, connector: Any = None) -> Any:
        return self.Scheduler(config, fakes.kv_cache_config(), connector)

    def worker(self, config: Any) -> Any:
        """The ``connector_worker`` of a fresh worker connector."""
        connector = self.KVConnectorFactory.create_connector(  # type: ignore[attr-defined]
            config, fakes.WORKER, fakes.kv_cache_config()
        )
        return connector.connector_worker


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeVllm]:
    """vLLM's two modules are there, no turnscope variable is set; a runtime started by the test ends with it."""
    for name in VARIABLES:
        monkeypatch.delenv(f"TURNSCOPE_{name}", raising=False)
    monkeypatch.setenv("VLLM_RAY_EXTRA_ENV_VARS_TO_COPY", "")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    engine = FakeVllm()
    scheduler, factory = ModuleType(SCHEDULER), ModuleType(FACTORY)
    scheduler.Scheduler = engine.Scheduler  # type: ignore[attr-defined]
    factory.KVConnectorFactory = engine.KVConnectorFactory  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, SCHEDULER, scheduler)
    monkeypatch.setitem(sys.modules, FACTORY, factory)
    runtimes: dict[int, runtime_module.Runtime] = {}
    monkeypatch.setattr(runtime_module, "_runtimes", runtimes)
    yield engine
    for runtime in runtimes.values():
        runtime.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def hooked(receiver: Receiver, vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch) -> FakeVllm:
    """vLLM with the plugin loaded and sending to ``receiver``."""
    monkeypatch.setenv("TURNSCOPE_ENDPOINT", f"http://127.0.0.1:{receiver.port}")
    monkeypatch.setenv("TURNSCOPE_HEARTBEAT_SECONDS", "0.3")
    load()
    return vllm
