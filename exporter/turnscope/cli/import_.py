"""``turnscope import KIND FILE...``: put what other tools wrote down into the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from turnscope.cli import arguments, reading
from turnscope.cli.errors import Sorry
from turnscope.cli.inherit import inherited
from turnscope.cli.options import load
from turnscope.decode.imports import claude_code, codex, dynamo, otlp, published, vllm_benchmark
from turnscope.decode.imports import proxy_log as proxies
from turnscope.decode.imports import transfer_log as transfers
from turnscope.decode.imports.kinds import KINDS, RUNS, looks_like
from turnscope.decode.imports.report import Line, Report
from turnscope.model import AgentSpan, Turn, shown
from turnscope.store import StoreError, StoreWriter

BATCH: Final = 10_000
"""Rows in one file of the store, and in memory at most."""
LOOK: Final = 100
"""Lines of a file that are looked at to see of what kind it is."""
MOST_TURNS: Final = 500_000
"""Of a run whose three files are joined, which takes all of it in memory."""
_OF_LINES: Final[dict[str, Callable[[Iterable[Line], Report], Iterator[AgentSpan]]]] = {
    claude_code.NAME: claude_code.read,
    codex.NAME: codex.read,
    dynamo.NAME: dynamo.read,
}
Row = AgentSpan | Turn
T = TypeVar("T")


class Outcome(msgspec.Struct):
    """What came of one file, or of the files that are one run."""

    file: str
    rows: dict[str, int]
    """How many of each kind: ``turn``, or a span's kind."""
    report: Report


def import_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"What the files are: {', '.join(KINDS)}.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="The files; gzipped ones too. Of published-benchmark the three of one run."
        ),
    ],
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="The store to put it into, also while 'turnscope serve' writes there. [as turnscope serve] "
            "(env: TURNSCOPE_STORE)",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What to call a benchmark's run. [the name of the file with its statistics]"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was imported as JSON.")] = False,
) -> None:
    """Import sessions and benchmark runs that other tools wrote down into the store.

    Prompts, answers and what tools were given or said are not taken. What a file does not tell stays unknown:
    docs/importers.md says what each kind gives. Importing a file again adds nothing twice. Broken lines are counted,
    named by their numbers and left out.

    Exit code 0: all was imported. 1: some lines were left out. 2: nothing was imported.
    """
    if kind not in KINDS:
        raise Sorry(f"KIND: there is no kind {shown(kind)}: choose from {', '.join(KINDS)}")
    if run is not None and kind not in RUNS:
        raise Sorry(f"--run: {kind} has no runs: leave it out")
    paths = [arguments.file("FILE", name) for name in files]
    url = load({}).store_url if store is None else arguments.text("--store", store)
    name = None if run is None else arguments.text("--run", run)
    jobs = _run_of_three(paths, name) if kind == published.NAME else [_one(kind, path, name) for path in paths]
    outcomes = store_all(url, kind, jobs, quiet=json)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode({"kind": kind, "store": url, "files": outcomes}), indent=1))
    else:
        _show(outcomes, url)
    raise typer.Exit(1 if any(outcome.report.broken for outcome in outcomes) else 0)


class Job(msgspec.Struct):
    """One file, or the files of one run, that are known to be of the right kind."""

    label: str
    bytes: int
    rows: Callable[[Report, reading.Told], Iterator[Row]]


def store_all(url: str, kind: str, jobs: list[Job], *, quiet: bool) -> list[Outcome]:
    """Put the rows of every job into the store at ``url``. Raises ``Sorry`` where it cannot be written: what was stored
    before stays, and importing again completes it."""
    outcomes = []
    try:
        writer = StoreWriter(url, writer_id=f"import-{kind}", now=time.time_ns)
        try:
            with _progress(quiet) as progress:
                for job in jobs:
                    task = progress.add_task(job.label, total=job.bytes)
                    outcomes.append(_store(writer, job, partial(_advance, progress, task)))
        finally:
            writer.close()
    except StoreError as error:
        raise Sorry(str(error)) from None
    return outcomes


def _advance(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _store(writer: StoreWriter, job: Job, told: reading.Told) -> Outcome:
    report, counts = Report(), Counter[str]()
    rejected = writer.rows_rejected
    rows = job.rows(report, told)
    while batch := list(islice(rows, BATCH)):
        for row in batch:
            if isinstance(row, Turn):
                writer.add_turn(row)
                counts["turn"] += 1
            else:
                writer.add_span(row)
                # Rows of OTLP spans are made anew when their session becomes known; others come once.
                counts[str(row.kind)] += row.source != otlp.NAME or row.revision == 1
        writer.flush()
    if rejected := writer.rows_rejected - rejected:
        report.broken += rejected
        report.notes.append(f"{rejected:,} rows hold a value that the store cannot")
    return Outcome(job.label, dict(sorted(counts.items())), report)


def _one(kind: str, path: Path, run: str | None) -> Job:
    """The job of one file. Raises ``Sorry`` if it is of another kind, or of none."""
    found = kind_of(path)
    if found != kind:
        looks = f"it looks like {found}" if found else f"nothing in its first {LOOK} lines is of that kind"
        raise Sorry(f"{path} is not of kind {kind}: {looks}")

    def rows(report: Report, told: reading.Told) -> Iterator[Row]:
        if kind == vllm_benchmark.NAME:
            return vllm_benchmark.read(reading.pieces(path, report, told), report, run or run_name(path))
        if kind == otlp.NAME:
            return inherited(otlp.read(reading.lines(path, report, told), report), report)
        return _OF_LINES[kind](reading.lines(path, report, told), report)

    return Job(str(path), path.stat().st_size, rows)


def _run_of_three(paths: list[Path], run: str | None) -> list[Job]:
    """The job of a run's three files, in whatever order they are given. Raises ``Sorry`` if they are not these."""
    if len(paths) != 3:
        raise Sorry(
            f"FILE: {published.NAME} takes the three files of one run, statistics, proxy's log and P's log, "
            f"and {len(paths)} are given: {vllm_benchmark.NAME} takes the statistics alone"
        )
    statistics = [path for path in paths if kind_of(path) == vllm_benchmark.NAME]
    proxy = [path for path in paths if path not in statistics and _holds(path, proxies.MARK)]
    if len(statistics) != 1 or len(proxy) != 1:
        missing = (
            "statistics (--stats-json-output)" if len(statistics) != 1 else "a log with 'Prefill done in' (the proxy's)"
        )
        raise Sorry(f"FILE: of the three files exactly one must be {missing}")
    (engine,) = (path for path in paths if path not in (*statistics, *proxy))
    if _holds(engine, transfers.DECODE):
        raise Sorry(f"FILE: {engine} is D's log, whose transfers are handoffs: give P's")
    name = run or run_name(statistics[0])

    def rows(report: Report, told: reading.Told) -> Iterator[Row]:
        done = 0
        of_file = {path: Report() for path in (proxy[0], engine, statistics[0])}

        def more(size: int) -> None:
            told(done + size)

        prefills = _some(proxies.read(reading.lines(proxy[0], of_file[proxy[0]], more), of_file[proxy[0]]))
        done += proxy[0].stat().st_size
        intervals = _some(transfers.read(reading.lines(engine, of_file[engine], more), of_file[engine]))
        done += engine.stat().st_size
        pieces = reading.pieces(statistics[0], of_file[statistics[0]], more)
        samples = _some(vllm_benchmark.samples(pieces, of_file[statistics[0]]))
        for path, one in of_file.items():
            report.add(one, path.name)
        yield from published.join(samples, prefills, intervals, name, report)

    label = ", ".join(str(path) for path in (*statistics, *proxy, engine))
    return [Job(label, sum(path.stat().st_size for path in paths), rows)]


def _some(found: Iterator[T]) -> list[T]:
    """All that is found. Raises ``Sorry`` where that is more than can be joined."""
    kept = list(islice(found, MOST_TURNS + 1))
    if len(kept) > MOST_TURNS:
        raise Sorry(f"more than {MOST_TURNS:,} turns cannot be joined: import the statistics as {vllm_benchmark.NAME}")
    return kept


def kind_of(path: Path) -> str | None:
    """The kind that the first line with one tells; a statistics file is one array over many lines."""
    for piece in reading.pieces(path, Report(), lambda _: None):
        if piece.lstrip()[:1] == b"[":
            keys = (b'"ttft_ms"', b'"latency_ms"', b'"start_time_ms"')
            return vllm_benchmark.NAME if all(key in piece for key in keys) else None
        break
    first = islice(reading.lines(path, Report(), lambda _: None), LOOK)
    return next((found for line in first if (found := looks_like(line.text))), None)


def run_name(path: Path) -> str:
    """What a run is called that nobody named."""
    return path.name.removesuffix(".gz").removesuffix(".json")


def _holds(path: Path, mark: bytes) -> bool:
    return any(mark in line.text for line in reading.lines(path, Report(), lambda _: None))


def _progress(quiet: bool) -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )


def _show(outcomes: list[Outcome], url: str) -> None:
    for outcome in outcomes:
        report = outcome.report
        found = ", ".join(f"{n:,} {name.replace('_', ' ')}{'s' * (n != 1)}" for name, n in outcome.rows.items())
        typer.echo(f"{outcome.file}: {report.records:,} records, {found or 'nothing to store'}")
        for note in report.notes:
            typer.echo(f"  {note}")
        if report.broken:
            named = ", ".join(f"{one.number} ({one.why})" for one in report.named)
            more = f" and {report.broken - len(report.named):,} more" if report.broken > len(report.named) else ""
            typer.echo(f"  left out {report.broken:,}: {named}{more}", err=True)
    typer.echo(f"stored in {url}")
