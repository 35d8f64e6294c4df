"""What the journal holds: decoded events and spans, hence only what the allowlists let in, and what was counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from turnscope.journal import frames
from turnscope.model import AgentSpan, AnyBody, Contribution, Emitter, Engine, Event


class Entry(msgspec.Struct, array_like=True):
    """One event; ``source`` is an index into its batch's sources."""

    source: int
    seq: int
    wall_ns: int
    mono_ns: int
    body: AnyBody


class Batch(msgspec.Struct, array_like=True, tag="b"):
    """What one request brought. ``arrival_ns`` is journal time (``clock.py``), ``wall_ns`` Unix time of arrival."""

    arrival_ns: int
    wall_ns: int
    sources: list[tuple[Emitter, Engine | None]]
    entries: list[Entry]

    def events(self, names: Mapping[str, str]) -> Iterator[Event]:
        """The events in the order received; ``names`` gives names to engines by id."""
        sources = [(emitter, _named(engine, names)) for emitter, engine in self.sources]
        for entry in self.entries:
            emitter, engine = sources[entry.source]
            yield Event(
                emitter=emitter,
                engine=engine,
                seq=entry.seq,
                wall_ns=entry.wall_ns,
                mono_ns=entry.mono_ns,
                body=entry.body,
            )


def _named(engine: Engine | None, names: Mapping[str, str]) -> Engine | None:
    name = names.get(engine.id) if engine else None
    return msgspec.structs.replace(engine, name=name) if engine and name else engine


class Counted(msgspec.Struct, array_like=True, tag="c"):
    """Entities finalised at ``now_ns``: never to be counted again."""

    now_ns: int
    finals: list[tuple[str, list[Contribution]]]


class Spans(msgspec.Struct, array_like=True, tag="s"):
    """Spans of agents that one request brought, as their sender told them. Times as of a ``Batch``."""

    arrival_ns: int
    wall_ns: int
    spans: list[AgentSpan]


Record = Batch | Counted | Spans
BEGINS: Final = re.compile(rb"[\x90-\x9f]\xa1[bcs]")
"""How a record's payload begins: an array whose first element is its tag."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Record)


def batch(events: list[Event], *, arrival_ns: int, wall_ns: int) -> Batch:
    """``events`` as one record; each emitter and engine is written once."""
    sources: list[tuple[Emitter, Engine | None]] = []
    indexes: dict[tuple[Emitter, Engine | None], int] = {}
    entries = []
    for event in events:
        source = (event.emitter, event.engine)
        index = indexes.get(source)
        if index is None:
            index = indexes[source] = len(sources)
            sources.append(source)
        entries.append(Entry(index, event.seq, event.wall_ns, event.mono_ns, event.body))
    return Batch(arrival_ns, wall_ns, sources, entries)


def encode(record: Record) -> bytes:
    """The payload of one frame."""
    return _ENCODER.encode(record)


def decode(payload: bytes) -> Record | None:
    """The record in one frame; None for what this version cannot read."""
    try:
        return _DECODER.decode(payload)
    except msgspec.MsgspecError:
        return None


def read(fd: int, offset: int, end: int) -> Iterator[tuple[Record | None, int]]:
    """Each record from ``offset`` up to ``end``, with the offset after it; None for a stretch that cannot be read."""
    found: Iterator[tuple[Record | None, int]] = frames.read(fd, offset, end, decode, BEGINS)
    return found
