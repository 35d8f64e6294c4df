"""What assembly hands to the outputs: facts with what they add to counters, and the present values of gauges."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from turnscope.model.facts import HoldRecord, Turn
from turnscope.model.spans import AgentSpan

Count = Callable[[str, tuple[str, ...], float], None]
"""Adds to a counter of the catalogue, or observes in a histogram: name, label values, value."""
Gauge = Callable[[str, tuple[str, ...], float], None]
"""Gives a gauge of the catalogue its present value."""


class Contribution(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One addition to a counter, or one observation of a histogram, of the catalogue."""

    metric: str
    labels: tuple[str, ...]
    """In the order the catalogue names them."""
    value: float


class Final(msgspec.Struct, kw_only=True, tag=True, gc=False):
    """An entity counted: once per key, ever. Journalled before its contributions are added."""

    key: str
    """``turn:<id>``, ``hold:<id>``, ``leg:<engine>/<generation>/<request>``, ``latch:<turn id>/<suspicion>`` ..."""
    contributions: list[Contribution]
    refused: list[str] = []
    """Why contributions that could not be were left out: for the log."""
    turn: Turn | None = None
    hold: HoldRecord | None = None


class Revision(msgspec.Struct, kw_only=True, tag=True, gc=False):
    """A newer row for the store. Adds nothing to the counters of its entity."""

    turn: Turn | None = None
    hold: HoldRecord | None = None
    span: AgentSpan | None = None


Fact = Final | Revision


class Sample(msgspec.Struct, frozen=True):
    """The present value of a gauge of the catalogue."""

    metric: str
    labels: tuple[str, ...]
    value: float
