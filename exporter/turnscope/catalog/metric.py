"""What the catalogue says of a metric."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

import msgspec

from turnscope.semconv import Role


class Kind(StrEnum):
    """Prometheus metric types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


ADDED: Final = frozenset({Kind.COUNTER, Kind.HISTOGRAM})
"""Kinds that contributions are added to; the others are given their present value."""


class Label(msgspec.Struct, frozen=True):
    """One label of a metric."""

    name: str
    values: tuple[str, ...] | None = None
    """Its closed vocabulary; None for ``engine`` and ``holder`` (names bounded by the engine registry), ``node`` and
    its ``counter`` (bounded by assembly) and free text of ``info``."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric family."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    owner: str = "exporter"
    """Who counts it: ``turn shard, hold shard, settler, sessions, leg, transfer, emitters, fabric, engine metrics,
    agent spans`` or ``exporter``."""
    roles: tuple[Role, ...] = tuple(Role)
    """Engines of these roles export it: which names its known label sets are made of."""
    sparse: bool = False
    """Of its label sets only those that occur are exported: all that can would be too many."""
    outside: bool = False
    """Counted as well where no engine is known: then ``engine`` is ``none``. All of the turn shard's are."""
    needs_transfers: bool = False
    """Only of engines whose transfers are measured: of others it is absent, never 0."""
    diagnostic: bool = False
    """Meant for the debugging of turnscope itself: no panel or alert needs it."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels' names in the order in which a ``Contribution`` gives their values."""
        return tuple(label.name for label in self.labels)

    def refusal(self, labels: tuple[str, ...], value: float) -> str | None:
        """Why ``value`` cannot be added to this counter or observed in this histogram; None when it can."""
        if self.kind not in ADDED:
            return f"{self.name} is not a counter or histogram"
        if len(labels) != len(self.labels):
            return f"{self.name} is not in the catalogue with {len(labels)} labels: it has {len(self.labels)}"
        for label, given in zip(self.labels, labels, strict=True):
            if label.values is not None and given not in label.values:
                return f"{self.name} is not in the catalogue with {label.name}={given!s}"
        if not 0 <= value < math.inf:
            shown = ", ".join(f"{name}={given}" for name, given in zip(self.label_names, labels, strict=True))
            return f"{self.name}{{{shown}}} would go back, or nowhere, by {value}"
        return None
