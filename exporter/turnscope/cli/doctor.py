"""``turnscope doctor``: is everything there and heard, and do the settings fit each other?"""

from __future__ import annotations

import re
from typing import Annotated, Final

import httpx
import msgspec
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from turnscope.cli.arguments import http_address
from turnscope.cli.errors import Sorry
from turnscope.cli.terminal import Terminal
from turnscope.measures.finding import Finding, Severity
from turnscope.measures.findings import findings
from turnscope.measures.recorded import recorded
from turnscope.model import EngineStatus, SystemStatus, plural, shown

DEFAULT_ADDRESS: Final = "http://127.0.0.1:9464"
MAX_ENGINES: Final = 40
_INDENT: Final = (0, 0, 0, 8)
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}


def ask(address: str, *, timeout_s: float = 5.0) -> SystemStatus:
    """The status of the sidecar at ``address``; raises ``Sorry`` when there is none."""
    url = f"{http_address('--address', address)}/status"
    try:
        answer = httpx.get(url, timeout=timeout_s, trust_env=False)
    except httpx.InvalidURL:
        raise Sorry(f"--address: {shown(address)} is not an address: write it like {DEFAULT_ADDRESS}") from None
    except httpx.HTTPError as error:
        why = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        raise Sorry(
            f"no sidecar answers at {url} ({why}): start one with 'turnscope serve', or name its address with --address"
        ) from None
    if answer.status_code != 200:
        raise Sorry(
            f"{url} answered with status {answer.status_code}: is that the metrics port of a turnscope sidecar?"
        )
    try:
        return msgspec.json.decode(answer.content, type=SystemStatus)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Sorry(
            f"{url} answered with something else than a status ({error}): is that a turnscope sidecar of this version?"
        ) from None


def _settings(engine: EngineStatus) -> str:
    e = engine.engine
    onoff = {True: "on", False: "off", None: "unknown"}
    parts = [
        str(e.role),
        f"vLLM {e.vllm_version or 'of an unknown version'}",
        e.connector or "no connector",
        f"bidirectional {onoff[e.bidirectional]}",
        f"holds for {e.hold_ttl_ns / 1e9:g} s" if e.hold_ttl_ns is not None else "",
        f"threshold {e.recompute_threshold}" if e.recompute_threshold is not None else "",
        f"block {e.block_size}" if e.block_size is not None else "",
        f"prefix caching {onoff[e.prefix_caching]}",
    ]
    return ", ".join(filter(None, parts))


def _show_engines(engines: list[EngineStatus], console: Console) -> None:
    for engine in engines[:MAX_ENGINES]:
        # Names are for copying: whole, and on one line however narrow the window is.
        console.print(Text(engine.name, "bold"), soft_wrap=True)
        console.print(Padding(_settings(engine), _INDENT), highlight=False)
    if len(engines) > MAX_ENGINES:
        console.print(f"... and {len(engines) - MAX_ENGINES} more: --json lists them all.", highlight=False)


def _together(found: list[Finding]) -> list[tuple[Finding, list[str]]]:
    """What is the same in several places is said once."""
    places: dict[Finding, list[str]] = {}
    for finding in found:
        places.setdefault(msgspec.structs.replace(finding, where=""), []).append(finding.where)
    return list(places.items())


def _where(places: list[str], engines: list[EngineStatus]) -> str:
    if len(places) == 1:
        return places[0]
    noun = "engines" if {engine.name for engine in engines} >= set(places) else "places"
    more = f" and {len(places) - MAX_ENGINES} more" if len(places) > MAX_ENGINES else ""
    return f"each of {len(places)} {noun}: {', '.join(places[:MAX_ENGINES])}{more}"


def show(status: SystemStatus, found: list[Finding], console: Console) -> None:
    """What is heard, then each finding with its fix, then one line that sums up."""
    past = recorded(status)
    heard = [s for s in status.assembly.emitters if s.state != "stopping" or s.emitter.id in past]
    proxies = sum(s.emitter.kind == "proxy" for s in heard)
    console.print(
        f"Heard: {plural(len(status.assembly.engines), 'engine')} in "
        f"{plural(len(heard) - proxies, 'process', 'processes')}, "
        f"{plural(proxies, 'proxy process', 'proxy processes')}, "
        f"{plural(status.assembly.attempts, 'client request')}, "
        f"{plural(status.exporter.spans, 'span')} of agents.",
        highlight=False,
    )
    _show_engines(status.assembly.engines, console)
    for node in status.assembly.fabric:
        last = node.windows[-1] if node.windows else None
        console.print(
            f"Cards of {node.node}: {plural(node.efa_devices, 'EFA port')}, "
            f"{plural(node.ethernet_devices, 'Ethernet interface')}; transfers: "
            + (f"{last.transport} ({last.inferred_from})." if last else "none seen yet."),
            highlight=False,
        )
    said = _together(found)
    for finding, places in said:
        console.print()
        line = Text.assemble(
            (f"{finding.severity.value.upper():<8}", _STYLES[finding.severity]),
            (_where(places, status.assembly.engines), "bold"),
            "  ",
            finding.what,
        )
        console.print(line)
        console.print(Padding(Text.assemble(("fix: ", "bold green"), finding.fix), _INDENT))
    console.print()
    counts = {severity: sum(f.severity is severity for f, _ in said) for severity in Severity}
    named = ", ".join(plural(n, severity) for severity, n in counts.items() if n)
    console.print(f"{named or 'Nothing found: all is as it should be'}.", highlight=False)


def doctor(
    address: Annotated[
        str, typer.Option(metavar="URL", help="Where the sidecar serves /metrics: its --http.")
    ] = DEFAULT_ADDRESS,
    as_json: Annotated[bool, typer.Option("--json", help="Print findings and status as JSON.")] = False,
) -> None:
    """Ask a running sidecar what it hears, and say what is wrong with the set-up and how to mend it.

    Looks at hooks, settings, handles, session ids and the sidecar itself; the worst finding comes first, each with its
    fix. Exit code 0: fine, or notes only. 1: there are errors or warnings. 2: no sidecar answers.
    """
    status = ask(address)
    found = findings(status)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode({"findings": found, "status": status}), indent=1))
    else:
        show(status, found, Terminal(highlight=True))
    raise typer.Exit(1 if any(f.severity is not Severity.NOTE for f in found) else 0)
