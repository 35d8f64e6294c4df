"""Run the benchmarks, print their rows as a table and write them to ``build/bench.json``.

A benchmark is a module with ``rows() -> list of {name, value, unit, target, ok, n, spread}``: ``target`` is the
text of what was aimed at (or null), ``ok`` whether it was reached (null without a target), ``n`` how many
samples, ``spread`` their spread in words, e.g. ``"p10-p90 0.9-1.4"``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

BENCHMARKS = {
    "hook": "bench.hook_cost",
    "digests": "bench.digest_cost",
    "proxy": "bench.proxy_cost",
    "assembly": "bench.assembly_speed",
    "explorer": "bench.explorer",
    "phoenix": "bench.phoenix",
    "import": "bench.import_speed",
    "spans": "bench.span_memory",
    "pair": "live.bench_pair",
}
OUTPUT = Path("build/bench.json")


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """One line of the result."""

    name: str
    value: float
    unit: str
    target: str | None
    ok: bool | None
    n: int
    spread: str | None


class Outcome(msgspec.Struct):
    """The rows of the benchmarks that ran, and one sentence for each that did not."""

    rows: list[Row]
    failed: list[str]


def collect(benchmarks: Mapping[str, Callable[[], list[Any]]]) -> Outcome:
    """Run each benchmark; one that fails takes nothing from the others."""
    out = Outcome([], [])
    for name, rows in benchmarks.items():
        try:
            out.rows += msgspec.convert(rows(), list[Row], from_attributes=True)
        except Exception as error:  # whatever a benchmark does, the others' results count
            out.failed.append(f"{name}: {type(error).__name__}: {error}")
    return out


def table(rows: list[Row]) -> Table:
    """The rows as people read them."""
    out = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for head in ("what", "value", "unit", "target", "", "n", "spread"):
        out.add_column(head, justify="right" if head in ("value", "n") else "left")
    for row in rows:
        verdict = {True: "[green]ok[/]", False: "[red]missed[/]", None: ""}[row.ok]
        out.add_row(row.name, f"{row.value:.4g}", row.unit, row.target or "", verdict, str(row.n), row.spread or "")
    return out


def _load(module: str) -> Callable[[], list[Any]]:
    def rows() -> list[Any]:
        found: list[Any] = importlib.import_module(module).rows()
        return found

    return rows


def _leave(number: int, _: object) -> None:
    """Unwind, so that a benchmark ends what it started."""
    sys.exit(128 + number)


def main(arguments: list[str]) -> int:
    """Exit code 1 when a benchmark could not run; a missed target is said, not punished."""
    parser = argparse.ArgumentParser(prog="make bench", description="What turnscope costs, measured here and now.")
    parser.add_argument("only", nargs="*", metavar="BENCHMARK", help=f"which (all): {', '.join(BENCHMARKS)}")
    options = parser.parse_args(arguments)
    unknown = set(options.only) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: choose from {', '.join(BENCHMARKS)}")
    signal.signal(signal.SIGTERM, _leave)
    outcome = collect(
        {name: _load(module) for name, module in BENCHMARKS.items() if name in (options.only or BENCHMARKS)}
    )
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(msgspec.to_builtins(outcome.rows), indent=1) + "\n")
    # A log has no width of its own: rows that stay on one line can be searched.
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table(outcome.rows))
    for sentence in outcome.failed:
        console.print(f"[red]could not run[/] {sentence}", highlight=False)
    console.print(f"written to {OUTPUT}")
    return 1 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
