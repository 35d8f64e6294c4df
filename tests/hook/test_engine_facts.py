"""Reading vLLM's configuration objects."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.hook import fakes
from turnscope.hook.engine_facts import children, engine_facts, group_bytes
from turnscope.model import Engine

SECOND = 1_000_000_000


def facts(config: Any, connector: Any = None, **changes: Any) -> Engine:
    settings = {"generation": "01", "name": None} | changes
    return engine_facts(config, fakes.kv_cache_config(), connector, **settings)


def scheduler_side(**attributes: Any) -> Any:
    connector = fakes.NixlConnector(None, fakes.SCHEDULER, None)
    connector.connector_scheduler = SimpleNamespace(**attributes)  # type: ignore[assignment]
    return connector


def test_the_running_connectors_own_settings_are_taken_before_the_configuration() -> None:
    connector = scheduler_side(
        _kv_lease_duration=45,
        kv_recompute_threshold=128,
        decoder_kv_blocks_ttl=90,
        is_bidirectional_kv_xfer_enabled=False,
    )
    engine = facts(fakes.vllm_config(decoder_kv_blocks_ttl=7), connector)
    assert (engine.lease_ns, engine.hold_ttl_ns) == (45 * SECOND, 90 * SECOND)
    assert (engine.recompute_threshold, engine.bidirectional) == (128, False)


def test_scheduler_and_worker_of_one_engine_see_the_same_settings() -> None:
    config = fakes.vllm_config(kv_lease_duration=30, kv_recompute_threshold=64)
    by_scheduler = facts(config, fakes.NixlConnector(None, fakes.SCHEDULER, None))
    by_worker = facts(config, fakes.NixlConnector(None, fakes.WORKER, None))
    assert by_scheduler == by_worker
    assert by_worker.hold_ttl_ns == 60 * SECOND


def test_an_engine_with_one_timeout_for_p_and_d_uses_it_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm.envs", SimpleNamespace(VLLM_NIXL_ABORT_REQUEST_TIMEOUT=480))
    engine = facts(fakes.vllm_config(), scheduler_side())
    assert (engine.hold_ttl_ns, engine.lease_ns) == (480 * SECOND, 480 * SECOND)


def test_another_connector_has_a_name_and_none_of_nixls_settings() -> None:
    engine = facts(fakes.vllm_config(), fakes.MultiConnector([]))
    assert engine.connector == "MultiConnector"
    assert (engine.bidirectional, engine.recompute_threshold, engine.hold_ttl_ns) == (None, None, None)


def test_nixl_inside_a_composite_is_read_with_its_own_settings() -> None:
    config = fakes.vllm_config()
    config.kv_transfer_config.kv_connector_extra_config = {
        "connectors": [
            {"kv_connector": "OffloadingConnector", "kv_connector_extra_config": {}},
            {"kv_connector": "NixlConnector", "kv_connector_extra_config": {"decoder_kv_blocks_ttl": 33}},
        ]
    }
    composite = fakes.MultiConnector([SimpleNamespace(), fakes.NixlConnector(None, fakes.WORKER, None)])
    engine = facts(config, composite)
    assert engine.hold_ttl_ns == 33 * SECOND
    assert engine.connector == "MultiConnector"
    assert len(children(composite)) == 3


def test_a_data_parallel_rank_is_in_id_and_name() -> None:
    config = fakes.vllm_config(engine_id="p0_dp3")
    config.parallel_config.data_parallel_size, config.parallel_config.data_parallel_rank = 4, 3
    engine = facts(config, name="prefill")
    assert (engine.id, engine.dp_rank, engine.name) == ("p0_dp3", 3, "prefill_dp3")
    without = fakes.vllm_config(None)
    without.parallel_config = config.parallel_config
    assert facts(without).id == "engine-01_dp3"


@pytest.mark.parametrize(("index", "rank"), [(0, 0), (1, 1)])
def test_independent_data_parallel_ranks_are_known_by_their_index(index: int, rank: int) -> None:
    """vLLM sets their size to 1 and their rank to 0."""
    config = fakes.vllm_config(engine_id=f"p0_dp{index}")
    config.parallel_config.data_parallel_index = index
    assert facts(config).dp_rank == rank
    assert facts(fakes.vllm_config()).dp_rank is None


def test_a_spec_that_unites_layers_is_not_multiplied_by_them() -> None:
    united = SimpleNamespace(
        kv_cache_spec=SimpleNamespace(page_size_bytes=1000, kv_cache_specs={"a": 1, "b": 1}), layer_names=["a", "b"]
    )
    plain = SimpleNamespace(kv_cache_spec=SimpleNamespace(page_size_bytes=1000), layer_names=["a", "b", "c"])
    assert group_bytes(SimpleNamespace(kv_cache_groups=[united, plain])) == [1000, 3000]
    assert group_bytes(SimpleNamespace(kv_cache_groups=[united, plain], transfer_groups=[plain])) == [3000]
    assert group_bytes(None) == []


def test_a_configuration_of_another_shape_gives_less_and_does_not_raise() -> None:
    engine = engine_facts(SimpleNamespace(), None, None, generation="01", name=None)
    assert (engine.id, engine.role, engine.block_bytes, engine.model) == ("engine-01", "aggregated", None, None)
    named = SimpleNamespace(model_config=SimpleNamespace(model="a/b", served_model_name=["x", "y"]))
    assert engine_facts(named, None, None, generation="01", name=None).model == "x"


def test_speculative_decoding_is_on_off_or_not_told() -> None:
    config = fakes.vllm_config()
    assert facts(config).speculative is None
    for value, expected in ((None, False), (SimpleNamespace(method="eagle"), True)):
        config.speculative_config = value
        assert facts(config).speculative is expected
