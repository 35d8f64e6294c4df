"""Composite connectors, child by child: what cannot be measured is named, and nothing crashes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.hook import fakes
from tests.hook.conftest import FakeVllm
from tests.hook.receiver import Receiver
from tests.hook.watches import WatchedWorker
from turnscope.hook.engine_facts import engine_facts
from turnscope.hook.values import handle
from turnscope.model import Engine, EngineState, Transfer


class OffloadingConnector:
    """A child with nothing that a hook could look at."""


class MooncakeConnector:
    def __init__(self) -> None:
        self.connector_worker = SimpleNamespace()


class HostileConnector:
    """A child that raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} is not to be looked at")


def facts(connector: Any, config: Any = None) -> Engine:
    config = config or fakes.vllm_config()
    return engine_facts(config, fakes.kv_cache_config(), connector, generation="01", name=None)


def nixl() -> Any:
    return fakes.NixlConnector(None, fakes.WORKER, None)


def test_every_child_is_named_and_composites_within_are_not() -> None:
    engine = facts(fakes.MultiConnector([OffloadingConnector(), fakes.MultiConnector([nixl(), MooncakeConnector()])]))
    assert engine.connectors == ("OffloadingConnector", "NixlConnector", "MooncakeConnector")
    assert facts(nixl()).connectors == ()


@pytest.mark.parametrize(
    ("connector", "measured"),
    [
        (nixl(), True),
        (fakes.MultiConnector([OffloadingConnector(), nixl()]), True),
        (fakes.MultiConnector([OffloadingConnector(), MooncakeConnector()]), False),
        (MooncakeConnector(), False),
        (None, None),
    ],
)
def test_transfers_are_measured_where_nixl_is_one_of_the_children(connector: Any, measured: bool | None) -> None:
    assert facts(connector).transfers_measured is measured


def test_a_composite_of_an_older_hook_that_names_no_children_is_not_said_to_be_unmeasured() -> None:
    assert Engine(id="p", generation="1", role="prefill", connector="MultiConnector").transfers_measured is None


@pytest.mark.parametrize("kind", [OffloadingConnector, MooncakeConnector, HostileConnector])
def test_a_read_of_the_nixl_child_is_seen_whatever_the_other_child_is(
    hooked: FakeVllm, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    inside = nixl()
    monkeypatch.setattr(fakes, "NixlConnector", lambda *_args: fakes.MultiConnector([kind(), inside]))
    hooked.KVConnectorFactory.create_connector(  # type: ignore[attr-defined]
        fakes.vllm_config("kv_consumer"), fakes.WORKER, fakes.kv_cache_config()
    )
    worker = inside.connector_worker
    worker._remote_agents["p0"] = {}
    worker._read_blocks_for_req("r1", fakes.remote("p0", "p-r1"))
    worker.nixl_wrapper.get_xfer_telemetry(worker.nixl_wrapper.made[0])
    receiver.wait_for(lambda: bool(receiver.bodies(Transfer)))
    (sent,) = receiver.bodies(Transfer)
    assert (sent.request_id, sent.bytes) == ("r1", 786_432)
    (started,) = (event for event in receiver.events if isinstance(event.body, EngineState))
    assert started.engine is not None
    assert started.engine.connectors == (kind.__name__, "NixlConnector")


def test_a_handle_with_keys_that_nobody_knows_is_the_same_handle_and_stays_as_it_is() -> None:
    plain = fakes.handle("d0", "r0")
    strange = plain | {"compression": "zstd", "shards": [{"a": 1}], "v2": None}
    kept = {**strange}
    assert handle(strange) == handle(plain)
    assert strange == kept


def test_nixls_backends_are_those_of_the_child_that_is_nixl() -> None:
    config = fakes.vllm_config()
    config.kv_transfer_config.kv_connector_extra_config = {
        "backends": ["GDS"],
        "connectors": [
            {"kv_connector": "OffloadingConnector", "kv_connector_extra_config": {"backends": ["POSIX"]}},
            {"kv_connector": "NixlConnector", "kv_connector_extra_config": {"backends": ["LIBFABRIC", "UCX"]}},
        ],
    }
    assert facts(fakes.MultiConnector([OffloadingConnector(), nixl()]), config).nixl_backends == ("LIBFABRIC", "UCX")
    assert facts(nixl()).nixl_backends == ("UCX",)
    assert facts(MooncakeConnector(), config).nixl_backends == ()
    told = nixl()
    told.connector_worker.nixl_backends = ["LIBFABRIC"]
    assert facts(told).nixl_backends == ("LIBFABRIC",)


@pytest.mark.parametrize(
    ("model", "parallel", "copies"),
    [
        ({"use_mla": True, "heads": 1}, {"tp": 4}, 4),
        ({"use_mla": False, "heads": 8}, {"tp": 4}, 1),
        ({"use_mla": False, "heads": 4}, {"tp": 8}, 2),
        ({"use_mla": True, "heads": 1}, {"tp": 4, "dcp": 4}, 1),
        ({"use_mla": True, "heads": 1}, {"tp": 8, "dcp": 4}, None),
        ({"use_mla": True, "heads": 1, "is_hybrid": True}, {"tp": 4}, None),
        ({"use_mla": False, "heads": 8, "is_hybrid": True}, {"tp": 4}, 1),
        ({}, {"tp": 4}, None),
    ],
)
def test_how_many_ranks_have_the_same_kv(model: dict[str, Any], parallel: dict[str, Any], copies: int | None) -> None:
    config = fakes.vllm_config()
    heads = model.pop("heads", None)
    config.model_config = SimpleNamespace(**model, served_model_name="m")
    if heads is not None:
        config.model_config.get_total_num_kv_heads = lambda: heads
    config.parallel_config.tensor_parallel_size = parallel["tp"]
    config.parallel_config.decode_context_parallel_size = parallel.get("dcp", 1)
    assert facts(nixl(), config).kv_copies == copies


def test_copies_between_host_buffer_and_device_are_no_part_of_a_transfer() -> None:
    """With ``kv_buffer_device: cpu`` vLLM copies each block once more on the host; NIXL's count is the wire's."""
    watched = WatchedWorker("kv_consumer")
    worker = watched.worker
    worker.use_host_buffer, worker.copied = True, 0

    def sync_recved_kv_to_device(_req_id: str, _meta: Any) -> None:
        worker.copied += 134_217_728

    worker.sync_recved_kv_to_device = sync_recved_kv_to_device
    watched.read(engine="p0", remote="p-r0")
    worker.sync_recved_kv_to_device("r1", None)
    watched.complete(watched.nixl.made[0])
    (sent,) = watched.events()
    assert (sent.bytes, worker.copied) == (786_432, 134_217_728)
