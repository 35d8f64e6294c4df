"""``turnscope demo``: the sidecar fed with a recorded real run, and the explorer on what it made of it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import typer
from pydantic_settings import SettingsConfigDict
from rich.console import Console
from rich.panel import Panel

from turnscope import shipped
from turnscope.cli import arguments, demo_check, explore, replay, typed
from turnscope.cli.errors import Sorry
from turnscope.cli.ports import first_free
from turnscope.cli.session_store import FRESH, opened
from turnscope.cli.sidecar import Sidecar
from turnscope.cli.trace_counter import TraceCounter
from turnscope.config import Settings
from turnscope.model import plural
from turnscope.shipped import DEMO_VARIABLE, STORE_VARIABLE
from turnscope.store import summing
from turnscope.store.session_queries import SummaryFilter

ABOUT: Final = (
    "They were recorded from real engines with a small model, and replayed: not yours, and no picture of a large model."
)
"""What the explorer says of what it shows."""
ASSEMBLE_S: Final = 120.0
SETTLE_S: Final = 150.0
"""Turns whose facts are not all in the recording are counted after a minute."""
QUIET_S: Final = 2.5
"""The status is a second old at most."""
GRACE_S: Final = 8.0
"""By then every complete turn is counted and stored."""
EXPLORER_S: Final = 120.0


class _Settings(Settings):
    """Of another prefix: the demo must not write into a store that the environment names for a real sidecar."""

    model_config = SettingsConfigDict(env_prefix="TURNSCOPE_DEMO_")


@contextlib.contextmanager
def sidecar(folder: Path, *, export_otlp: str | None = None) -> Iterator[Sidecar]:
    """A sidecar of its own, with everything it keeps in ``folder``, on the usual ports where they are free."""
    settings: dict[str, Any] = {
        "otlp_grpc": f"127.0.0.1:{first_free(4317)}",
        "otlp_http": f"127.0.0.1:{first_free(4318)}",
        "http": f"127.0.0.1:{first_free(9464)}",
        "data_dir": folder,
        "export_otlp": export_otlp,
        # Rows are in the store, and so on the page, after a second and not after a minute.
        "checkpoint_seconds": 1,
        # What this machine's cards count has nothing to do with the recorded one's.
        "fabric_seconds": 0,
    }
    running = Sidecar(_Settings(**settings))
    running.start()
    try:
        yield running
    finally:
        running.close()


def feed(running: Sidecar, recordings: list[Path], say: Callable[[str], None]) -> None:
    """Replay ``recordings``."""
    for path in recordings:
        replay.check(path)
    for path in recordings:
        sent = replay.send(path, f"127.0.0.1:{running.otlp_port}", speed=0)
        say(f"replayed {path}: {plural(sent.events, 'event')}")


def settle(running: Sidecar, say: Callable[[str], None], *, patience_s: float) -> int:
    """Wait until all that was sent is assembled, then at most ``patience_s`` for every turn to be counted.

    Returns how many are not. Raises ``Sorry`` when the sidecar does not get through it.
    """
    deadline = time.monotonic() + ASSEMBLE_S
    while (status := running.status()).exporter.lag_bytes or not status.assembly.emitters:
        if time.monotonic() > deadline:
            raise Sorry(
                f"the recording is not assembled after {ASSEMBLE_S:.0f} s: this machine is too busy, or look above"
            )
        time.sleep(0.25)
    started = time.monotonic()
    quiet_since: float | None = None
    told = False
    while (now := time.monotonic()) < started + patience_s:
        open_turns = running.status().assembly.open_turns
        quiet_since = None if open_turns else (quiet_since or now)
        if quiet_since is not None and now - quiet_since > QUIET_S:
            return 0
        if open_turns and now > started + GRACE_S and not told:
            waiting = plural(open_turns, "turn is", "turns are")
            say(f"{waiting} incomplete (a client left, a load failed) and counted after a minute")
            told = True
        time.sleep(0.25)
    return running.status().assembly.open_turns


def compare(recordings: list[Path], folder: Path, say: Callable[[str], None]) -> list[demo_check.Line]:
    """Replay ``recordings`` and hold what came out of every output against the counters beside them."""
    counters = demo_check.counters_of(recordings)
    with TraceCounter() as counter:
        with sidecar(folder, export_otlp=counter.endpoint) as running:
            feed(running, recordings, say)
            open_turns = settle(running, say, patience_s=SETTLE_S)
            if open_turns:
                raise Sorry(
                    f"{plural(open_turns, 'turn was', 'turns were')} not counted within {SETTLE_S:.0f} s: run "
                    "'turnscope demo' and look"
                )
            page = httpx.get(f"http://127.0.0.1:{running.http_port}/metrics", timeout=10, trust_env=False)
            page.raise_for_status()
        # The sidecar has ended: every trace is sent and every row stored.
        return demo_check.compare(counters, page.text, counter.traces, demo_check.page(str(folder / "store")))


@contextlib.contextmanager
def explorer(store: str, folder: Path) -> Iterator[str]:
    """The explorer on ``store`` in a process of its own; gives its address once it answers."""
    port = first_free(8501)
    explore.check(store, port)
    log = folder / "explorer.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            explore.command(port),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, STORE_VARIABLE: store, DEMO_VARIABLE: ABOUT},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + EXPLORER_S
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(address, timeout=2, trust_env=False).status_code == 200:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text(errors="replace").strip().splitlines()
                raise Sorry(f"the explorer did not start: {lines[-1] if lines else 'it said nothing'}")
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def commands(turnscope: str, sidecar: str, store: str) -> list[str]:
    """What to type next, ``turnscope`` as it is typed here; every line works when it is pasted."""
    shown = [f"  {turnscope} show {session}" for session in _a_session(store)]
    return [
        "",
        "In another shell, from this folder:",
        "",
        f"  export TURNSCOPE_STORE={store}",
        f"  {turnscope} sessions",
        *shown,
        f"  {turnscope} doctor --address {sidecar}",
        "",
        "TURNSCOPE_STORE says whose sessions are meant, as --store would. Ctrl-C ends the demo and removes that store.",
    ]


def _a_session(store: str) -> list[str]:
    """The id of the newest session, if there is one."""
    with opened(store) as reader:
        newer, _ = summing.fresh(reader, time.time_ns(), FRESH)
        found, _ = reader.summaries(SummaryFilter(), limit=1, fresh=newer)
    return [shlex.quote(one.session_id) for one in found]


def _find(recordings: list[str] | None) -> list[Path]:
    if recordings:
        return [arguments.file("FILE", recording) for recording in recordings]
    return shipped.recordings()


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def demo(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Recordings to show instead of the one that comes with turnscope."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare metrics, traces and pages with the engines' own counters, and exit."),
    ] = False,
) -> None:
    """Show a recorded run of real engines: a sidecar fed with it, its metrics, and the explorer with its sessions.

    Prints the addresses to look at; Ctrl-C ends everything and removes what it wrote. Needs neither vLLM nor a GPU.

    With --check: compare what turnscope made of it with the counters that the engines themselves had, stored beside the
    recording; exit code 0 when all is equal, 1 when something differs.
    """
    signal.signal(signal.SIGTERM, _stop)  # as Ctrl-C: everything that was started is ended
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    found = _find(recordings)
    with tempfile.TemporaryDirectory(prefix="turnscope-demo-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        if check:
            lines = compare(found, folder, console.print)
            console.print(demo_check.table(lines))
            wrong = sum(not line.equal for line in lines)
            console.print(f"{plural(len(lines), 'comparison')}, {wrong} different")
            raise typer.Exit(1 if wrong else 0)
        running = stack.enter_context(sidecar(folder))
        feed(running, found, console.print)
        # What is complete can be looked at now.
        settle(running, console.print, patience_s=GRACE_S + QUIET_S)
        address = stack.enter_context(explorer(str(folder / "store"), folder))
        metrics = f"http://127.0.0.1:{running.http_port}"
        where = f"explorer   {address}\nmetrics    {metrics}/metrics"
        console.print(Panel(where, title="turnscope demo", expand=False))
        # Without a frame, and unbroken: they are to be pasted.
        for line in commands(typed.turnscope(), metrics, str(folder / "store")):
            console.print(line, soft_wrap=True, markup=False)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
