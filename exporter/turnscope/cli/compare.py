"""``turnscope compare RUN_A RUN_B``: two imported runs of a benchmark, by prompt length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.cli.options import load
from turnscope.cli.terminal import Terminal
from turnscope.measures.runs import Bucket, RunTurn, Side, side_by_side
from turnscope.model import shown
from turnscope.store import StoreError, StoreMissing, StoreReader


def compare(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A run's name, as 'turnscope import' was given it.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="The run to hold beside it.")],
    store: Annotated[
        str | None,
        typer.Option(metavar="FOLDER|URL", help="The store they are in. [as turnscope serve] (env: TURNSCOPE_STORE)"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print both views as JSON, in nanoseconds.")] = False,
) -> None:
    """Hold two imported runs of a benchmark side by side, by prompt length.

    Two views: the time to the first token, and what a prefill was spent on: reading back what D had kept (transfer),
    and the rest (compute: with it the queue and the way to P). Medians of the first, means of the second, so that its
    parts add up. It tells nothing of whole tasks: a faster first token need not be a faster task.
    """
    names = arguments.text("RUN_A", run_a), arguments.text("RUN_B", run_b)
    url = load({}).store_url if store is None else arguments.text("--store", store)
    a, b = read(url, names)
    buckets = side_by_side(a, b)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(as_json(names, buckets)), indent=1))
    else:
        show(Terminal(), names, buckets)


def read(url: str, names: Sequence[str]) -> list[list[RunTurn]]:
    """The turns of each run. Raises ``Sorry`` if there is no such store or run."""
    try:
        reader = StoreReader(url)
        try:
            found = [msgspec.convert(reader.run_turns(name).to_pylist(), list[RunTurn]) for name in names]
            known = reader.runs()
        finally:
            reader.close()
    except StoreMissing:
        raise Sorry(
            f"there is no turnscope store at {url}: put both runs there with 'turnscope import KIND FILE... --run "
            "NAME', or name the store they are in with --store"
        ) from None
    except StoreError as error:
        raise Sorry(str(error)) from None
    for name, turns in zip(names, found, strict=True):
        if not turns:
            there = ", ".join(shown(run) for run in known[:10]) or "none"
            raise Sorry(f"the store {url} has no run {shown(name)}: it has {there}; 'turnscope import' brings one")
    return found


def as_json(names: Sequence[str], buckets: Sequence[Bucket]) -> dict[str, Any]:
    """For scripts."""
    rows = [{**msgspec.to_builtins(bucket), "ttft_b_over_a": bucket.ratio} for bucket in buckets]
    return {"a": names[0], "b": names[1], "by_prompt_tokens": rows}


def show(console: Console, names: Sequence[str], buckets: Sequence[Bucket]) -> None:
    """For people."""
    a, b = names
    first = _table(
        "prompt from", *(f"{name}: {what}" for name in names for what in ("turns", "ms", "p90")), f"{b} / {a}"
    )
    spent = _table("prompt from", *(f"{name}: {what}" for name in names for what in ("prefill", "compute", "transfer")))
    for bucket in buckets:
        length, sides = f"{bucket.from_tokens:,}", (bucket.a, bucket.b)
        ratio = f"{bucket.ratio:.2f}" if bucket.ratio is not None else "-"
        parts = [_ms(ns) for side in sides for ns in (side.prefill_ns, side.compute_ns, side.transfer_ns)]
        first.add_row(length, *(cell for side in sides for cell in _first(side)), ratio)
        spent.add_row(length, *parts)
    console.print("Time to first token: median in ms, by tokens of the prompt", style="bold")
    console.print(first)
    console.print()
    console.print("Prefill: mean in ms, of it transfer and the rest", style="bold")
    console.print(spent)
    console.print("\n-: not measured, or not of every turn of the row", style="dim")


def _table(*heads: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _first(side: Side) -> tuple[str, str, str]:
    return f"{side.ttft_turns:,}", _ms(side.ttft_ns), _ms(side.ttft_p90_ns)


def _ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e6:,.0f}"
