"""Events that no honest hook sends: whatever the wire lets through, with ids that meet each other."""

from __future__ import annotations

import types
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import structs

from tests.assembly.streams import Stream, traffic
from tests.builders import D, P
from turnscope.decode.codec import MAX_INT, MAX_NS, decode, encode
from turnscope.model import BODIES, Emitter, Engine, Event, Handle
from turnscope.semconv import MAX_TEXT

NAMES = ("", "p", "d", "pa0", "da0", "pa1", "da1", "0_pa0", "1_pa0", "chatcmpl-x-1-2", "ta0", "a", "s")
"""Of engines, requests, sessions and turns: those of ``traffic`` among them."""
ODD = (":", "/", "a:b", "tally:x:1", "\0", "\n", "é", "𝕊\u202e", "=+@", "other", "none", "x" * MAX_TEXT)
COUNTS = (0, 0, 1, 2, -1, 16, 1000, MAX_INT - 1, 1 - MAX_INT)
TIMES = (0, 0, 1, -1, 10**9, 10**18, MAX_NS - 1, 1 - MAX_NS)
FLOATS = (0.0, -1.0, 480.0, 1e308, float("inf"), float("-inf"), float("nan"))
BLOBS = (b"", b"\0", b"12345678", b"\xff" * 24, bytes(range(256)))


def _plain(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (arg for arg in get_args(hint) if arg is not type(None))
        return inner, True
    return hint, False


def _values(name: str, hint: Any) -> st.SearchStrategy[Any]:
    """All that the wire lets through for one field."""
    inner, optional = _plain(hint)
    if get_origin(inner) in (list, tuple):
        entries = st.lists(_values(name, get_args(inner)[0]), max_size=3)
        found: st.SearchStrategy[Any] = entries.map(tuple) if get_origin(inner) is tuple else entries
    elif inner is Handle:
        found = made(Handle)
    elif isinstance(inner, type) and issubclass(inner, StrEnum):
        found = st.sampled_from(list(inner))
    elif inner is int:
        found = st.sampled_from(TIMES if name.endswith("_ns") else COUNTS)
    elif inner is str:
        found = st.sampled_from((*NAMES, *NAMES, *ODD))
    else:
        found = {bool: st.booleans(), float: st.sampled_from(FLOATS), bytes: st.sampled_from(BLOBS)}[inner]
    return st.none() | found if optional else found


def made(struct: type[Any]) -> st.SearchStrategy[Any]:
    """One of ``struct``, every field with any value."""
    hints = get_type_hints(struct)
    return st.builds(struct, **{f.name: _values(f.name, hints[f.name]) for f in structs.fields(struct)})


WALL = st.sampled_from([ns for ns in TIMES if ns >= 0])
EMITTERS = st.sampled_from(("00000000000000a1", "00000000000000b2", "00000000000000c1", "a:b", "é/")).flatmap(
    lambda name: made(Emitter).map(lambda emitter: structs.replace(emitter, id=name))
)
ENGINES = (
    st.none()
    | made(Engine)
    | st.sampled_from((P, D)).flatmap(
        lambda engine: made(Engine).map(lambda other: structs.replace(other, id=engine.id, role=engine.role))
    )
)
EVENTS = st.builds(
    Event,
    emitter=EMITTERS,
    engine=ENGINES,
    seq=st.sampled_from((*range(1, 9), *COUNTS)),
    wall_ns=WALL,
    mono_ns=st.sampled_from(TIMES),
    body=st.sampled_from(BODIES).flatmap(made),
)


@st.composite
def damaged(draw: st.DrawFn, event: Event) -> Event:
    """``event`` with one field of it, its engine or its body replaced."""
    part = draw(st.sampled_from(("body", "body", "engine", "event")))
    held: Any = event if part == "event" else getattr(event, part)
    if held is None:
        return event
    hints = get_type_hints(type(held))
    plain = [f.name for f in structs.fields(type(held)) if f.name not in ("emitter", "engine", "body")]
    if not plain:
        return event
    name = draw(st.sampled_from(plain))
    if name == "wall_ns":
        return structs.replace(event, wall_ns=draw(WALL))
    changed = structs.replace(held, **{name: draw(_values(name, hints[name]))})
    return changed if part == "event" else structs.replace(event, **{part: changed})


@st.composite
def attacks(draw: st.DrawFn) -> Stream:
    """Traffic of which some events are damaged, with others between that nobody's hook has sent; as the sidecar reads
    it."""
    events = draw(traffic())
    for _ in range(draw(st.integers(0, 8))):
        place = draw(st.integers(0, len(events) - 1))
        events[place] = draw(damaged(events[place]))
    for _ in range(draw(st.integers(0, 8))):
        events.insert(draw(st.integers(0, len(events))), draw(EVENTS))
    return Stream(decode(encode(events, observed_ns=0)).events)
