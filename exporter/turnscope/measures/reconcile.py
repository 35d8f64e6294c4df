"""Our counters, made of hook events alone, against the engines' own: per engine, quantity by quantity, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families

Values = dict[str, int]
"""Quantity (see ``QUANTITIES``) to value, of one engine."""


class Samples(msgspec.Struct, frozen=True):
    """Which samples of a page add up to a quantity: those of this name, with one of ``values`` in ``label``."""

    name: str
    label: str | None = None
    values: tuple[str, ...] = ()

    def has(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether this sample is one of them."""
        return name == self.name and (self.label is None or labels.get(self.label) in self.values)

    def selector(self, **where: str) -> str:
        """The same in PromQL, with these labels besides."""
        chosen = [f'{label}="{value}"' for label, value in {"__name__": self.name, **where}.items()]
        if self.label is not None:
            chosen.append(f'{self.label}=~"{"|".join(self.values)}"')
        return f"{{{', '.join(chosen)}}}"


class Quantity(msgspec.Struct, frozen=True):
    """Something that both sides count."""

    name: str
    ours: Samples
    theirs: Samples


QUANTITIES: Final = (
    *(
        Quantity(
            f"prompt tokens, {source}",
            Samples("turnscope_request_prompt_tokens_total", "source", (source,)),
            Samples("vllm:prompt_tokens_by_source_total", "source", (source,)),
        )
        for source in ("local_compute", "local_cache_hit", "external_kv_transfer")
    ),
    Quantity(
        "transfers",
        Samples("turnscope_transfer_reads_total", "state", ("done",)),
        Samples("vllm:nixl_bytes_transferred_count"),
    ),
    Quantity(
        "transfer bytes",
        Samples("turnscope_transfer_bytes_total"),
        Samples("vllm:nixl_bytes_transferred_sum"),
    ),
    Quantity(
        "failed transfers",
        Samples("turnscope_transfer_reads_total", "state", ("failed", "handshake_failed")),
        Samples("vllm:nixl_num_failed_transfers_total"),
    ),
    Quantity(
        "expiries",
        Samples("turnscope_kv_expired_total"),
        Samples("vllm:nixl_num_kv_expired_reqs_total"),
    ),
    Quantity(
        "notices after expiry",
        Samples("turnscope_late_notices_total"),
        Samples("vllm:nixl_num_notifications_after_expiry_total"),
    ),
)
"""What is compared, in the table's order."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table. ``None``: that side does not have it at all."""

    engine: str
    quantity: str
    ours: int | None
    theirs: int | None

    @property
    def difference(self) -> int | None:
        """Ours less theirs; 0 where neither has it, None where only one has."""
        if self.ours == self.theirs:
            return 0
        return None if self.ours is None or self.theirs is None else self.ours - self.theirs


def theirs(page: str) -> Values:
    """What one engine counted, from its ``/metrics``; over all of its data-parallel ranks."""
    found: Values = {}
    for name, _, value in _read(page, {q.name: q.theirs for q in QUANTITIES}):
        found[name] = found.get(name, 0) + value
    return found


def ours(page: str) -> dict[str, Values]:
    """What turnscope counted, from the sidecar's ``/metrics``, by engine."""
    found: dict[str, Values] = {}
    for name, engine, value in _read(page, {q.name: q.ours for q in QUANTITIES}):
        values = found.setdefault(engine, {})
        values[name] = values.get(name, 0) + value
    return found


def compare(ours: Mapping[str, Values], theirs: Mapping[str, Values]) -> list[Row]:
    """A row for each engine and quantity that either side has."""
    return [
        Row(engine=engine, quantity=q.name, ours=mine.get(q.name), theirs=its.get(q.name))
        for engine in sorted(ours.keys() | theirs.keys())
        for mine, its in [(ours.get(engine, {}), theirs.get(engine, {}))]
        for q in QUANTITIES
        if q.name in mine or q.name in its
    ]


def differences(rows: Iterable[Row]) -> list[Row]:
    """The rows that are not equal."""
    return [row for row in rows if row.difference != 0]


def table(rows: Iterable[Row]) -> str:
    """The rows for a person: each engine named once, numbers to the right, differences marked, and one line in sum."""
    rows = list(rows)
    lines = [f"{'engine':<14}{'quantity':<38}{'turnscope':>14}{'engine says':>14}{'difference':>12}"]
    for before, row in zip([None, *rows], rows, strict=False):
        mark = "" if row.difference == 0 else "  <--"
        name = row.engine if before is None or before.engine != row.engine else ""
        lines.append(
            f"{name:<14}{row.quantity:<38}{_text(row.ours):>14}{_text(row.theirs):>14}"
            f"{_text(row.difference, sign=True):>12}{mark}"
        )
    wrong = len(differences(rows))
    lines.append(f"{len(rows)} quantities of {len({row.engine for row in rows})} engines, {wrong} differences")
    return "\n".join(lines)


def _read(page: str, wanted: Mapping[str, Samples]) -> Iterator[tuple[str, str, int]]:
    """(quantity, label ``engine``, value) of each sample that is part of a quantity."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            for name, samples in wanted.items():
                if samples.has(sample.name, sample.labels):
                    yield name, sample.labels.get("engine", ""), round(sample.value)


def _text(value: int | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+,}" if sign and value else f"{value:,}"
