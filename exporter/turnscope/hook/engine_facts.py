"""vLLM's configuration objects to ``model.Engine``: read with care, each fact by what is there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from turnscope.model import SECOND_NS, Engine
from turnscope.semconv import Role

_ROLES: Final = {"kv_producer": Role.PREFILL, "kv_consumer": Role.DECODE, "kv_both": Role.BOTH}
_DEFAULTS: Final = {"kv_recompute_threshold": 64, "decoder_kv_blocks_ttl": 480, "kv_lease_duration": 30}
"""vLLM's own, where its connector has the setting and the user left it out."""


def engine_facts(
    vllm_config: Any,
    kv_cache_config: Any,
    connector: Any,
    *,
    generation: str,
    name: str | None,
    rank: int | None = None,
) -> Engine:
    """The engine as this process sees it. ``connector`` may be None, or a composite; what cannot be read is None."""
    transfer = getattr(vllm_config, "kv_transfer_config", None)
    cache = getattr(vllm_config, "cache_config", None)
    parallel = getattr(vllm_config, "parallel_config", None)
    engine_id = getattr(transfer, "engine_id", None)
    dp_rank = _dp_rank(parallel, engine_id or "")
    suffix = "" if dp_rank is None else f"_dp{dp_rank}"
    nixl = find_nixl(connector)
    extra = nixl_settings(transfer) if nixl is not None else {}
    side = nixl_side(nixl)
    sizes = group_bytes(kv_cache_config)
    return Engine(
        id=engine_id or f"engine-{generation}{suffix}",
        generation=generation,
        role=_ROLES.get(getattr(transfer, "kv_role", None) or "", Role.AGGREGATED),
        name=f"{name}{suffix}" if name else None,
        model=_model_name(getattr(vllm_config, "model_config", None)),
        vllm_version=getattr(sys.modules.get("vllm"), "__version__", None),
        connector=None if connector is None else type(connector).__name__,
        connectors=tuple(type(child).__name__ for child in children(connector)[1:] if not inner(child)),
        nixl_backends=_backends(extra, side) if nixl is not None else (),
        block_size=_int(getattr(cache, "block_size", None)),
        num_blocks=_int(getattr(kv_cache_config, "num_blocks", None)),
        block_bytes=max(sizes, default=None),
        bidirectional=_bidirectional(extra, side) if nixl is not None else None,
        recompute_threshold=_number(extra, "kv_recompute_threshold", side, "kv_recompute_threshold"),
        hold_ttl_ns=_nanoseconds(hold_ttl_s(extra, side)),
        lease_ns=_nanoseconds(lease_s(extra, side)),
        load_failure_policy=getattr(transfer, "kv_load_failure_policy", None),
        prefix_caching=getattr(cache, "enable_prefix_caching", None),
        side_channel_port=_int(getattr(side, "side_channel_port", None)),
        speculative=_speculative(vllm_config),
        tp_size=_int(getattr(parallel, "tensor_parallel_size", None)),
        pp_size=_int(getattr(parallel, "pipeline_parallel_size", None)),
        kv_copies=_kv_copies(getattr(vllm_config, "model_config", None), parallel),
        dp_rank=dp_rank,
        rank=rank,
    )


def _dp_rank(parallel: Any, engine_id: str) -> int | None:
    """Which of several data-parallel engines this is; None when it is alone.

    Ranks that share no experts are made to look alone: what stays are the index and the engine id's suffix.
    """
    index = _int(getattr(parallel, "data_parallel_index", getattr(parallel, "data_parallel_rank", None)))
    together = (_int(getattr(parallel, "data_parallel_size", None)) or 1) > 1
    return index if index is not None and (together or index > 0 or engine_id.endswith(f"_dp{index}")) else None


def children(connector: Any) -> list[Any]:
    """The connector and, of a composite, all connectors in it."""
    if connector is None:
        return []
    return [connector, *(found for child in inner(connector) for found in children(child))]


def inner(connector: Any) -> list[Any]:
    """A composite's own connectors; of others, and of what cannot be looked into, none."""
    try:
        return list(getattr(connector, "_connectors", None) or ())
    except Exception:
        return []


def find_nixl(connector: Any) -> Any:
    """The NIXL connector in ``connector``, or None."""
    return next((c for c in children(connector) if type(c).__name__.startswith("Nixl")), None)


def nixl_side(nixl: Any) -> Any:
    """The part of a NIXL connector that lives in this process."""
    return getattr(nixl, "connector_scheduler", None) or getattr(nixl, "connector_worker", None)


def nixl_settings(transfer: Any) -> Mapping[str, Any]:
    """``kv_connector_extra_config`` as NIXL reads it: a composite's child has its own."""
    extra: Mapping[str, Any] = getattr(transfer, "kv_connector_extra_config", None) or {}
    for child in extra.get("connectors") or ():
        if str(child.get("kv_connector", "")).startswith("Nixl"):
            return child.get("kv_connector_extra_config") or {}
    return extra


def group_bytes(kv_cache_config: Any) -> list[int]:
    """KV bytes of one block on one rank, per transferred group. An estimate: pages can be padded.

    A spec that unites several kinds of layers already sums them.
    """
    groups = getattr(kv_cache_config, "transfer_groups", None)
    if groups is None:
        groups = getattr(kv_cache_config, "kv_cache_groups", None) or ()
    sizes = []
    for group in groups:
        page = _int(getattr(group.kv_cache_spec, "page_size_bytes", None))
        if page is None:
            return []
        sizes.append(page if hasattr(group.kv_cache_spec, "kv_cache_specs") else page * len(group.layer_names))
    return sizes


def hold_ttl_s(extra: Mapping[str, Any], side: Any) -> float | None:
    """How long D holds a turn's blocks; where there is no setting of its own, the timeout shared with P."""
    if _has_leases(side):
        return _number(extra, "decoder_kv_blocks_ttl", side, "decoder_kv_blocks_ttl")
    return _shared_timeout_s(side)


def lease_s(extra: Mapping[str, Any], side: Any) -> float | None:
    """How long P's blocks wait for D, before heartbeats."""
    if _has_leases(side):
        return _number(extra, "kv_lease_duration", side, "_kv_lease_duration")
    return _shared_timeout_s(side)


def _has_leases(side: Any) -> bool:
    return hasattr(side, "_kv_lease_duration") or hasattr(side, "_lease_extension")


def _shared_timeout_s(side: Any) -> float | None:
    if side is None:
        return None
    return _int(getattr(sys.modules.get("vllm.envs"), "VLLM_NIXL_ABORT_REQUEST_TIMEOUT", None))


def _bidirectional(extra: Mapping[str, Any], side: Any) -> bool:
    for name in ("is_bidirectional_kv_xfer_enabled", "_bidirectional_kv_xfer_enabled"):
        if hasattr(side, name):
            return bool(getattr(side, name))
    return bool(extra.get("bidirectional_kv_xfer", False))


def _backends(extra: Mapping[str, Any], side: Any) -> tuple[str, ...]:
    """As the worker has them, else as set; NIXL's own default is UCX."""
    names = getattr(side, "nixl_backends", None) or extra.get("backends") or ("UCX",)
    return tuple(str(name) for name in names) if isinstance(names, list | tuple) else (str(names),)


def _kv_copies(model: Any, parallel: Any) -> int | None:
    """How many tensor-parallel ranks have the same KV; None where it differs from layer to layer, or is not known."""
    try:
        ranks = int(parallel.tensor_parallel_size)
        copies = ranks if model.use_mla else ranks // min(ranks, int(model.get_total_num_kv_heads()))
        sharing = int(getattr(parallel, "decode_context_parallel_size", 1) or 1)
    except Exception:
        return None
    if copies > 1 and getattr(model, "is_hybrid", False):
        return None
    # Context parallelism divides equal KV between ranks; which of them stay equal is then another matter.
    return copies if sharing == 1 else 1 if sharing == copies else None


def _number(extra: Mapping[str, Any], key: str, side: Any, attribute: str) -> int | None:
    if side is None:
        return None
    return _int(getattr(side, attribute, extra.get(key, _DEFAULTS[key])))


def _speculative(vllm_config: Any) -> bool | None:
    """vLLM has the attribute whether it is on or not; without a configuration nothing is known."""
    return vllm_config.speculative_config is not None if hasattr(vllm_config, "speculative_config") else None


def _model_name(model_config: Any) -> str | None:
    name = getattr(model_config, "served_model_name", None) or getattr(model_config, "model", None)
    if isinstance(name, list | tuple):
        name = name[0] if name else None
    return None if name is None else str(name)


def _int(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * SECOND_NS)
