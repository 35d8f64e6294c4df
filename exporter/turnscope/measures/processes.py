"""The processes that have a hook, as findings speak of them."""

from __future__ import annotations

from collections.abc import Iterator

from turnscope.model import EmitterStatus, SystemStatus


def place(source: EmitterStatus) -> str:
    """For people: the process, and the engine that it is of."""
    rank = f" rank {source.rank}" if source.rank is not None else ""
    who = f"{source.engine} ({source.emitter.kind}{rank})" if source.engine else source.emitter.kind
    return f"{who}, process {source.emitter.pid} on {source.emitter.host or 'an unnamed host'}"


def present(status: SystemStatus) -> Iterator[EmitterStatus]:
    """The processes that should be talking: not stopped, and not replaced by a newer start of their engine."""
    newest = {engine.name: engine.engine.generation for engine in status.assembly.engines}
    for source in status.assembly.emitters:
        replaced = source.engine is not None and newest.get(source.engine) != source.generation
        if source.state != "stopping" and not replaced:
            yield source
