"""``make live``: a real pair, driven and watched; our counts against the engines' own, exactly."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import msgspec

from live import leaks, router_setup, savings, setup, unknown
from live.engines import LiveError
from live.fronts import Front
from live.plans import BY_NAME, PLANS, Plan
from live.prometheus import running_prometheus
from live.result import Result, turns
from live.runner import MODEL, Runner
from live.sidecar import running_sidecar
from live.sink import trace_file
from turnscope.measures import reconcile

FOLDER = setup.ROOT / "build" / "live"


def run(
    plans: Sequence[Plan],
    *,
    folder: Path = FOLDER,
    record: Path | None = None,
    export_otlp: str | None = None,
    proxy_hook: bool = True,
    say: Callable[[str], None] = print,
) -> Result:
    """From set-up to the comparison. Raises ``LiveError`` or ``setup.SetupError``; leaves nothing running."""
    python = setup.set_up()
    if any(phase.front is Front.ROUTER for plan in plans for phase in plan.phases):
        _set_up_router()
    _make_model(python)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    result = Result(folder)
    traces = contextlib.nullcontext(export_otlp) if export_otlp else trace_file(folder / "traces.jsonl")
    with running_prometheus(folder / "prometheus") as prometheus:
        with (
            traces as backend,
            running_sidecar(folder, record=record or folder / "events.jsonl", export_otlp=backend) as sidecar,
        ):
            result.begin_s = prometheus.scrape_sidecar(sidecar.url)
            say(f"sidecar: {sidecar.url}/metrics, log {sidecar.log}")
            Runner(sidecar, prometheus, result, python, proxy_hook=proxy_hook, say=say).do(plans)
            result.ours = sidecar.counts()
            result.over_efa = sidecar.windows("efa")
            for page in ("metrics", "status"):
                (folder / page).write_text(sidecar.page(f"/{page}"))
            result.end_s = prometheus.settled()
        stored = turns(result.store)
        result.ask(prometheus, stored)
    result.leaks = leaks.found(folder, result.needles)
    (folder / "truth.json").write_bytes(msgspec.json.format(msgspec.json.encode(result.truth)))
    result.judge(stored)
    return result


def _set_up_router() -> None:
    try:
        router_setup.set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        raise LiveError(f"{router_setup.ROUTER} could not be set up in {router_setup.FOLDER}: {error}") from None


def _make_model(python: Path) -> None:
    command = [str(python), str(Path(__file__).parent / "model.py"), str(MODEL)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LiveError(f"The model could not be made in {MODEL}: {done.stderr.strip().splitlines()[-1]}")


def _save_counters(result: Result, recording: Path) -> Path:
    """What the recording has to come to, beside it."""
    beside = recording.with_suffix(".counters.json")
    content = {
        "engines": result.engines,
        # The completion that warms an engine up is nobody's turn: no proxy has it.
        "turns": len(result.truth),
        "sessions": len({turn.session_id for turn in result.truth if turn.session_id}),
    }
    beside.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    return beside


def main(arguments: list[str] | None = None) -> int:
    """0: all equal and right; 1: something is not; 2: it could not be run, with one sentence."""
    plans = {plan.config.name: plan for plan in (*PLANS, *BY_NAME)}
    names = ",".join(plan.config.name for plan in PLANS)
    parser = argparse.ArgumentParser(prog="python -m live", description=(__doc__ or "").strip())
    others = ", ".join(plan.config.name for plan in BY_NAME)
    which = f"which, separated by commas; only if they are named: {others} (default: %(default)s)"
    parser.add_argument("--configurations", default=names, help=which)
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the events and, beside them, the counters")
    parser.add_argument(
        "--export-otlp", metavar="URL", help="a trace backend for the turns, e.g. http://127.0.0.1:4317"
    )
    parser.add_argument("--no-proxy-hook", action="store_true", help="leave the proxy alone: engine hooks only")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    try:
        chosen = [plans[name] for name in options.configurations.split(",")]
    except KeyError as error:
        parser.error(f"--configurations: there is no {error}, only {', '.join(plans)}")
    if options.record and options.record.exists():
        options.record.unlink()
    try:
        result = run(
            chosen, record=options.record, export_otlp=options.export_otlp, proxy_hook=not options.no_proxy_hook
        )
    except (LiveError, setup.SetupError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped, and everything that was started with it", file=sys.stderr)
        return 130
    print(reconcile.table(result.rows))
    print(_summary(result))
    if options.record:
        print(f"recorded in {options.record}, the engines' counters in {_save_counters(result, options.record)}")
    print(f"what was done is in {result.folder / 'truth.json'}; to look at it:")
    print(f"  turnscope explore --store {result.store}")
    for leak in result.leaks:
        print(f"  {leak}: something of a prompt has left the process that served it")
    return 1 if reconcile.differences(result.rows) or result.verdict.problems or result.leaks else 0


def _summary(result: Result) -> str:
    verdict, foreign = result.verdict, sum(turn.front is not Front.HOOKED for turn in result.truth)
    lines = [f"  {problem}" for problem in verdict.problems]
    lines += [f"{verdict.judged} turns judged, {foreign} of them behind proxies without a hook"]
    lines += [f"where both hooks told, {unknown.total(result.stored_unknown.values())}"]
    if result.trials:
        lines += [f"{len(result.trials)} trials with network cards, seen with both engines on their node and with one"]
    if result.saved:
        lines += ["what reuse spared, in ms, against what was predicted without it:", savings.table(result.saved)]
    lines += [f"{len(verdict.problems)} things not as they were done"]
    if verdict.too_slow:
        lines += [f"{verdict.too_slow} turns came later than D holds: this machine is too slow to judge their reason"]
    return "\n".join(lines)


def _leave(number: int, _frame: FrameType | None) -> None:
    """Unwind, so that everything started is stopped."""
    sys.exit(128 + number)
