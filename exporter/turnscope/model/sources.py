"""Who sends events: a process, and the engine it belongs to; the resource attributes of every batch."""

from __future__ import annotations

import msgspec


class Emitter(msgspec.Struct, frozen=True, kw_only=True):
    """The process that sent an event; resource attributes ``turnscope.emitter.*``."""

    id: str
    """16 hex digits, random per process."""
    kind: str
    """``engine`` (scheduler process), ``worker`` or ``proxy``; ``collector`` is the sidecar's own."""
    pid: int = 0
    host: str = ""
    clock: str = ""
    """Which monotonic clock ``mono_ns`` is of: 16 hex digits made of the kernel's boot, the same for all processes that
    share the clock, in whatever container. "" where the system does not tell: then the host's name stands for it."""
    version: str = ""
    """turnscope's version in that process."""
    replayed: bool = False
    """Set by ``turnscope replay``: what comes is a recording of that process, which says nothing of it now."""


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
    connectors: tuple[str, ...] = ()
    """Of a composite connector, its children's kinds, in its order."""
    nixl_backends: tuple[str, ...] = ()
    """What NIXL was told to transfer with, e.g. ``UCX``, ``LIBFABRIC``; empty where no NIXL connector is."""
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
    side_channel_port: int | None = None
    """Where NIXL's handshakes are answered: an engine that comes back there under another id has replaced this one."""
    speculative: bool | None = None
    """Tokens are drafted and verified (speculative decoding)."""
    tp_size: int | None = None
    pp_size: int | None = None
    kv_copies: int | None = None
    """How many of its tensor-parallel ranks have the same KV and each read the whole of it: ``tp_size`` with MLA."""
    dp_rank: int | None = None
    rank: int | None = None
    """The worker's rank; None from a scheduler process."""

    @property
    def transfers_measured(self) -> bool | None:
        """Whether its hook sees bytes and times of transfers: NIXL's, alone or in a composite; None: not known."""
        if self.connector is None or (self.connector.startswith("Multi") and not self.connectors):
            return None
        return any(name.startswith("Nixl") for name in (self.connector, *self.connectors))
