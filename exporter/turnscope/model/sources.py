"""Who sends events: a process, and the engine it belongs to; the resource attributes of every batch."""

from __future__ import annotations

import msgspec


class Emitter(msgspec.Struct, frozen=True, kw_only=True):
    """The process that sent an event; resource attributes ``turnscope.emitter.*``."""

    id: str
    """16 hex digits, random per process."""
    kind: str
    """``engine`` (scheduler process), ``worker`` or ``proxy``."""
    pid: int = 0
    host: str = ""
    clock: str = ""
    """Which monotonic clock ``mono_ns`` is of: 16 hex digits made of the kernel's boot, the same for all processes that
    share the clock, in whatever container. "" where the system does not tell: then the host's name stands for it."""
    version: str = ""
    """turnscope's version in that process."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is and how it is set; resource attributes ``turnscope.engine.*`` of every batch."""

    id: str
    """vLLM's ``engine_id`` (with its ``_dp<rank>`` suffix), or one made up where no connector is configured."""
    generation: str
    """Random hex, new at every start of the engine and shared with its workers; survives no restart."""
    role: str
    name: str | None = None
    """``TURNSCOPE_ENGINE_NAME``; else the sidecar gives a role and an ordinal."""
    model: str | None = None
    vllm_version: str | None = None
    connector: str | None = None
    block_size: int | None = None
    num_blocks: int | None = None
    block_bytes: int | None = None
    """KV bytes of one block on one rank; an estimate from the KV cache configuration."""
    bidirectional: bool | None = None
    recompute_threshold: int | None = None
    hold_ttl_ns: int | None = None
    lease_ns: int | None = None
    load_failure_policy: str | None = None
    prefix_caching: bool | None = None
    speculative: bool | None = None
    """Tokens are drafted and verified (speculative decoding)."""
    tp_size: int | None = None
    pp_size: int | None = None
    dp_rank: int | None = None
    rank: int | None = None
    """The worker's rank; None from a scheduler process."""
