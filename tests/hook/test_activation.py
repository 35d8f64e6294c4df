"""The plugin in a process of vLLM: when it is there, what it leaves alone, and how often it wraps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hook import fakes
from tests.hook.conftest import FakeVllm
from tests.hook.receiver import Receiver
from turnscope.emit.settings import VARIABLES
from turnscope.hook.activation import let_ray_copy, share_generation
from turnscope.hook.plugin import load
from turnscope.model import EngineState, Request, Transfer

ROOT = Path(__file__).parents[2]


def in_a_process(code: str, **variables: str) -> str:
    """What ``code`` prints in a fresh interpreter."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TURNSCOPE_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, **variables, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_without_an_endpoint_nothing_is_imported_wrapped_or_set() -> None:
    code = """
import os, sys
from turnscope.hook.plugin import load
before, environment, path = set(sys.modules), dict(os.environ), list(sys.meta_path)
load()
print(sorted(set(sys.modules) - before), environment == dict(os.environ), path == sys.meta_path)
"""
    assert in_a_process(code) == "[] True True"


def test_loading_starts_no_thread_and_imports_neither_vllm_nor_nixl_nor_grpc() -> None:
    code = """
import sys, threading
from turnscope.hook.plugin import load
load()
heavy = ("vllm", "nixl", "grpc", "google.protobuf", "torch")
print([name for name in heavy if name in sys.modules], threading.active_count())
"""
    assert in_a_process(code, TURNSCOPE_ENDPOINT="http://127.0.0.1:4317") == "[] 1"


def test_it_has_no_metrics_in_the_engine_for_the_engine_to_remove_or_to_clash_with(tmp_path: Path) -> None:
    code = """
import sys
import turnscope.hook.activation, turnscope.emit.emitter
from turnscope.hook.plugin import load
load()
load()
print([name for name in sys.modules if name.startswith("prometheus_client")])
"""
    variables: list[dict[str, str]] = [{}, {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}]
    for shared in variables:
        assert in_a_process(code, TURNSCOPE_ENDPOINT="http://127.0.0.1:4317", **shared) == "[]"
    assert list(tmp_path.iterdir()) == []


def test_loaded_twice_it_wraps_once(hooked: FakeVllm, receiver: Receiver) -> None:
    wrapped = hooked.Scheduler.__init__, hooked.KVConnectorFactory.create_connector  # type: ignore[misc, attr-defined]
    load()
    load()
    assert (hooked.Scheduler.__init__, hooked.KVConnectorFactory.create_connector) == wrapped  # type: ignore[misc, attr-defined]
    scheduler = hooked.scheduler(fakes.vllm_config(None))
    request = fakes.Request()
    scheduler.add_request(request)
    scheduler.finish(request, fakes.RequestStatus.FINISHED_ABORTED)
    worker = hooked.worker(fakes.vllm_config("kv_consumer"))
    worker._remote_agents["p0"] = {}
    worker._read_blocks_for_req("r1", fakes.remote("p0", "p-r1"))
    worker.nixl_wrapper.get_xfer_telemetry(worker.nixl_wrapper.made[0])
    receiver.wait_for(lambda: bool(receiver.bodies(Transfer)))
    assert (len(receiver.bodies(Request)), len(receiver.bodies(Transfer))) == (1, 1)


def test_a_scheduler_and_a_worker_in_one_process_share_an_id_and_one_sequence(
    hooked: FakeVllm, receiver: Receiver
) -> None:
    hooked.worker(fakes.vllm_config("kv_consumer"))
    hooked.scheduler(fakes.vllm_config("kv_consumer"))
    receiver.wait_for(lambda: len(receiver.bodies(EngineState)) == 2)
    assert {event.emitter.kind for event in receiver.events} == {"engine", "worker"}
    assert len({event.emitter.id for event in receiver.events}) == 1
    assert len({event.seq for event in receiver.events}) == len(receiver.events)
    assert {event.engine.generation for event in receiver.events if event.engine} == {
        os.environ["TURNSCOPE_GENERATION"]
    }


def test_children_of_a_composite_are_watched_and_other_connectors_left_alone(
    hooked: FakeVllm, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    nixl = fakes.NixlConnector(None, fakes.WORKER, None)
    other = SimpleNamespace(connector_worker=SimpleNamespace())
    composite = fakes.MultiConnector([other, fakes.MultiConnector([nixl])])
    monkeypatch.setattr(fakes, "NixlConnector", lambda *_args: composite)
    hooked.KVConnectorFactory.create_connector(  # type: ignore[attr-defined]
        fakes.vllm_config(), fakes.WORKER, kv_cache_config=fakes.kv_cache_config()
    )
    receiver.wait_for(lambda: bool(receiver.bodies(EngineState)))
    assert receiver.bodies(EngineState)[0].wrapped == ["connector_worker", "nixl_wrapper"]
    assert vars(other.connector_worker) == {}


def test_the_schedulers_half_of_a_connector_and_connectors_without_nixl_get_no_watch(
    hooked: FakeVllm, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hooked.KVConnectorFactory.create_connector(  # type: ignore[attr-defined]
        fakes.vllm_config(), fakes.SCHEDULER, fakes.kv_cache_config()
    )
    assert type(made) is fakes.NixlConnector
    monkeypatch.setattr(fakes, "NixlConnector", lambda *_args: SimpleNamespace(connector_worker=None))
    hooked.worker(fakes.vllm_config())
    hooked.scheduler(fakes.vllm_config(None))
    receiver.wait_for(lambda: bool(receiver.bodies(EngineState)))
    assert [state.wrapped for state in receiver.bodies(EngineState)] == [["scheduler", "kv_cache_manager"]]


def test_wrong_settings_end_in_one_sentence_and_an_untouched_engine(
    vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = vllm.Scheduler.__init__  # type: ignore[misc]
    monkeypatch.setenv("TURNSCOPE_ENDPOINT", "http://127.0.0.1:4318")
    load()
    assert vllm.Scheduler.__init__ is plain  # type: ignore[misc]
    (record,) = caplog.records
    assert "OTLP/HTTP" in record.getMessage()
    assert "4317" in record.getMessage()


def test_a_worker_of_an_unknown_shape_is_left_running_and_said_to_be_unwatched(
    hooked: FakeVllm, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fakes.ConnectorWorker, "_read_blocks_for_req")
    worker = hooked.worker(fakes.vllm_config())
    assert "this worker's transfers are not watched" in caplog.text
    handle = worker.nixl_wrapper.make_prepped_xfer("READ")
    assert worker.nixl_wrapper.get_xfer_telemetry(handle).totalBytes == 786_432


def test_the_log_says_once_what_is_watched_and_where_it_goes(
    hooked: FakeVllm, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "vllm.turnscope")
    hooked.worker(fakes.vllm_config(engine_id="p0"))
    hooked.scheduler(fakes.vllm_config(engine_id="p0"))
    (record,) = [record for record in caplog.records if "watching" in record.getMessage()]
    assert record.getMessage() == (
        "turnscope: watching connector_worker and nixl_wrapper of engine p0 (prefill, NixlConnector), "
        f"sending to grpc://127.0.0.1:{receiver.port}"
    )


@pytest.mark.parametrize(
    ("inherited", "process", "kept"),
    [
        (None, "MainProcess", False),
        ("aa", "MainProcess", True),
        ("aa", "VllmWorker-1", True),
        ("aa", "EngineCore_DP1", False),
    ],
)
def test_a_generation_is_inherited_except_by_an_engine_core_which_is_a_new_one(
    inherited: str | None, process: str, kept: bool
) -> None:
    environment = {} if inherited is None else {"TURNSCOPE_GENERATION": inherited}
    share_generation(environment, process)
    assert (environment["TURNSCOPE_GENERATION"] == inherited) is kept
    assert environment["TURNSCOPE_GENERATION"]


def test_ray_is_asked_to_pass_our_variables_on_beside_those_already_listed() -> None:
    environment = {"VLLM_RAY_EXTRA_ENV_VARS_TO_COPY": "A,TURNSCOPE_ENDPOINT"}
    let_ray_copy(environment)
    let_ray_copy(environment)
    listed = environment["VLLM_RAY_EXTRA_ENV_VARS_TO_COPY"].split(",")
    assert listed[:2] == ["A", "TURNSCOPE_ENDPOINT"]
    assert set(listed[1:]) == set(VARIABLES)
    assert len(listed) == len(set(listed))


FORKED = """
import os
from turnscope.emit.runtime import runtime
from turnscope.emit.settings import Endpoint, Settings
settings = Settings(endpoint=Endpoint("127.0.0.1:1"))
here = runtime(settings)
assert runtime(settings) is here
child = os.fork()
if child:
    os.waitpid(child, 0)
there = runtime(settings)
print(there.emitter("engine").id, there.emitter("engine").pid == os.getpid(), flush=True)
"""


def test_a_forked_child_is_an_emitter_of_its_own() -> None:
    lines = [line.split() for line in in_a_process(FORKED).splitlines()]
    assert len({emitter_id for emitter_id, _ in lines}) == 2
    assert {own for _, own in lines} == {"True"}
