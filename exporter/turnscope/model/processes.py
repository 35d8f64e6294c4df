"""Processes with a hook, as the sidecar last heard them: what data are made of, kept beside them."""

from __future__ import annotations

import msgspec


class Skew(msgspec.Struct, frozen=True, kw_only=True):
    """How far the wall clock of another host is ahead of the process's, as requests that enclose each other tell."""

    host: str
    skew_ns: int
    error_ns: int
    """Either way."""


class ProcessRecord(msgspec.Struct, kw_only=True):
    """One process with a hook, as stored: a row of the ``processes`` table. Its identity is the emitter's id."""

    process_id: str
    revision: int
    """Unix nanoseconds of when it was written: the newest is the truth."""
    kind: str
    """``engine`` (scheduler process), ``worker`` or ``proxy``."""
    started_ns: int
    """When it was first heard."""
    ended_ns: int
    """When it was last heard."""
    host: str = ""
    version: str = ""
    """turnscope's in that process: the hook's."""
    engine: str | None = None
    """The engine's bounded name; None of a proxy. Likewise what the engine is, below."""
    role: str | None = None
    model: str | None = None
    vllm_version: str | None = None
    connector: str | None = None
    state: str = "started"
    """``started, stopping, switched_off``."""
    message: str | None = None
    replayed: bool = False
    """It is a recording's."""
    received: int = 0
    """Events; as the three below."""
    missing: int = 0
    """That never came: lost on the way."""
    dropped: int = 0
    """In the process itself, as it last said."""
    errors: int = 0
    """Of the hook, as it last said."""
    clock_offset_ns: int | None = None
    """Least (arrival at the sidecar - time of the event): the delay of the way, plus how far its clock is behind."""
    skews: list[Skew] = []
