"""What the catalogue says of a metric."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from turnscope.semconv import Role


class Kind(StrEnum):
    """Prometheus metric types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Label(msgspec.Struct, frozen=True):
    """One label of a metric."""

    name: str
    values: tuple[str, ...] | None = None
    """Its closed vocabulary; None for ``engine`` (names bounded by the engine registry), ``node`` and its ``counter``
    (bounded by assembly) and free text of ``info``."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric family."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    owner: str = "exporter"
    """Who counts it: ``turn shard, hold shard, settler, leg, transfer, emitters, fabric`` or ``exporter``."""
    roles: tuple[Role, ...] = tuple(Role)
    """Engines of these roles export it: which names its known label sets are made of."""
    needs_transfers: bool = False
    """Only of engines whose transfers are measured: of others it is absent, never 0."""
    diagnostic: bool = False
    """Meant for the debugging of turnscope itself: no panel or alert needs it."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels' names in the order in which a ``Contribution`` gives their values."""
        return tuple(label.name for label in self.labels)
