"""``turnscope demo --check``: is what turnscope says of a recording what the engines themselves counted?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table

from turnscope.cli import explore
from turnscope.cli.errors import Sorry
from turnscope.measures import reconcile
from turnscope.store import StoreError, StoreReader

ALL: Final = 1_000_000_000
"""Sessions to add up: every one."""


class Counters(msgspec.Struct, kw_only=True):
    """What is stored beside a recording: the engines' own counters, and what the client did."""

    engines: dict[str, reconcile.Values]
    turns: int
    sessions: int


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison."""

    what: str
    ours: int | None
    expected: int | None
    source: str
    """Where the expected number is from."""

    @property
    def equal(self) -> bool:
        """Both sides have it and agree."""
        return self.ours == self.expected and self.ours is not None


def counters_of(recordings: Iterable[Path]) -> Counters:
    """The counters beside the recordings, added up. Raises ``Sorry``."""
    total = Counters(engines={}, turns=0, sessions=0)
    for recording in recordings:
        path = recording.with_suffix(".counters.json")
        try:
            one = msgspec.json.decode(path.read_bytes(), type=Counters)
        except OSError as error:
            raise Sorry(
                f"{path} cannot be read ({error.strerror}): --check needs the engines' counters beside the recording"
            ) from None
        except msgspec.MsgspecError as error:
            raise Sorry(f"{path} does not hold engine counters ({error}): record the run again") from None
        total.turns += one.turns
        total.sessions += one.sessions
        for engine, values in one.engines.items():
            sums = total.engines.setdefault(engine, {})
            for name, value in values.items():
                sums[name] = sums.get(name, 0) + value
    return total


def metric_sum(page: str, name: str, **labels: str) -> int | None:
    """The sum of a metric's samples with these labels; None when the page has none."""
    values = [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return round(sum(values)) if values else None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What the explorer's sessions page shows, added up over its table."""

    turns: int
    sessions: int
    fetched_tokens: int
    local_hit_tokens: int
    computed_tokens: int
    fetched_bytes: int


def page(store: str) -> Page:
    """What the sessions page's tables show of ``store``, its sessions and the turns without one. Raises ``Sorry``."""
    explore.app_path()
    # Imported on demand: pandas takes a second, and belongs to the ``app`` extra.
    from turnscope_app import frames

    try:
        reader = StoreReader(store)
        try:
            sessions, loose = reader.listed(limit=ALL), reader.unattributed()
        finally:
            reader.close()
    except StoreError as error:
        raise Sorry(f"the sessions page shows no table: {error}") from None
    shown = [frames.sessions(table) for table in (sessions.table, loose) if table.num_rows]
    if not shown:
        raise Sorry("the sessions page shows no table: the store has no turns")

    def total(column: str) -> int:
        return sum(int(table[column].sum()) for table in shown)

    return Page(
        turns=total("turns"),
        sessions=sessions.total,
        fetched_tokens=total("fetched_tokens"),
        local_hit_tokens=total("local_hit_tokens"),
        computed_tokens=total("computed_tokens"),
        fetched_bytes=total("fetched_bytes"),
    )


def compare(counters: Counters, metrics: str, traces: int, page: Page) -> list[Line]:
    """Metrics against the engines, and traces and the explorer's figures against metrics and client."""
    lines = [
        Line(what=f"{row.engine}: {row.quantity}", ours=row.ours, expected=row.theirs, source="engine")
        for row in reconcile.compare(reconcile.ours(metrics), counters.engines)
    ]
    turns = metric_sum(metrics, "turnscope_turns_total")

    def tokens(source: str) -> int | None:
        return metric_sum(metrics, "turnscope_prompt_tokens_total", source=source)

    computed = [n for n in map(tokens, ("computed", "recomputed", "new")) if n is not None]
    return [
        *lines,
        Line(what="metrics: turns", ours=turns, expected=counters.turns, source="client"),
        Line(what="traces", ours=traces, expected=counters.turns, source="client"),
        Line(what="page: turns", ours=page.turns, expected=counters.turns, source="client"),
        Line(what="page: sessions", ours=page.sessions, expected=counters.sessions, source="client"),
        Line(what="page: tokens fetched", ours=page.fetched_tokens, expected=tokens("fetched"), source="metrics"),
        Line(what="page: tokens hit on P", ours=page.local_hit_tokens, expected=tokens("local_hit"), source="metrics"),
        Line(what="page: tokens computed", ours=page.computed_tokens, expected=sum(computed), source="metrics"),
        Line(
            what="page: bytes fetched",
            ours=page.fetched_bytes,
            expected=metric_sum(metrics, "turnscope_transfer_bytes_total", direction="reverse_fetch"),
            source="metrics",
        ),
    ]


def table(lines: list[Line]) -> Table:
    """The comparison as people read it."""
    out = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for head in ("what", "turnscope", "expected", "from", ""):
        out.add_column(head, justify="right" if head in ("turnscope", "expected") else "left", overflow="fold")
    for line in lines:
        numbers = (f"{n:,}" if n is not None else "-" for n in (line.ours, line.expected))
        out.add_row(line.what, *numbers, line.source, "[green]equal[/]" if line.equal else "[red]DIFFERENT[/]")
    return out
