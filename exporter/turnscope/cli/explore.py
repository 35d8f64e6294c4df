"""``turnscope explore``: the pages in a browser."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.cli.options import load
from turnscope.cli.ports import cannot_listen
from turnscope.model import INSTALL_ALL, shown
from turnscope.shipped import LABELS_VARIABLE, LINKS_VARIABLE, STORE_VARIABLE, TRACE_LINK_VARIABLE
from turnscope.store import StoreError, StoreReader

HOST = "127.0.0.1"
_SESSION = "{session}"


def explore(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="The store that 'turnscope serve' writes: a folder or s3://bucket/folder. [as turnscope serve] "
            "(env: TURNSCOPE_STORE)",
        ),
    ] = None,
    port: Annotated[
        str, typer.Option(metavar="PORT", help="Where the pages are served, on this machine only.")
    ] = "8501",
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Under which address a proxy in front of it shows these pages, e.g. https://turnscope.example. May be "
            "repeated; browsers are refused under any other.",
        ),
    ] = None,
    session_label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="APPLICATION=TEXT",
            help="How an application's sessions are called in lists, e.g. 'desk=Ticket {session}'. May be repeated.",
        ),
    ] = None,
    session_link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="APPLICATION=URL",
            help="Where an application's sessions are in its own trace tool, e.g. "
            "'desk=https://traces.example/sessions/{session}'; https only. May be repeated.",
        ),
    ] = None,
    trace_link: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where your tracing backend shows a trace, with {trace_id} where its id is to stand: each turn then "
            "links to its own, e.g. https://tempo.example/trace/{trace_id}.",
        ),
    ] = None,
) -> None:
    """Show in a browser what each session's turns recomputed, fetched back and waited for.

    Reads what 'turnscope serve' stores, also while it runs.
    """
    url = load({}).store_url if store is None else arguments.text("--store", store)
    number = arguments.port("--port", port)
    linked = {} if trace_link is None else {TRACE_LINK_VARIABLE: _trace_link("--trace-link", trace_link)}
    opted = {LABELS_VARIABLE: labels(session_label or []), LINKS_VARIABLE: session_links(session_link or [])}
    told = {name: json.dumps(templates) for name, templates in opted.items()}
    served = command(number, origins(origin or []))
    check(url, number)
    print(f"Explorer of {url}: http://{HOST}:{number} (stop with Ctrl-C)", flush=True)  # noqa: T201
    # In place of this process, so that whoever stops it stops the server.
    os.execve(sys.executable, served, {**os.environ, **told, **linked, STORE_VARIABLE: url})


def labels(given: list[str]) -> dict[str, str]:
    """Templates of labels by application. Raises ``Sorry``."""
    return dict(_template("--session-label", one) for one in given)


def session_links(given: list[str]) -> dict[str, str]:
    """Templates of addresses by application. Raises ``Sorry``."""
    app_path()
    # Imported on demand: the app is an extra.
    from turnscope_app.links import checked
    from turnscope_app.opted import https

    found = dict(_template("--session-link", one) for one in given)
    for application, template in found.items():
        if not https(template):
            raise Sorry(f"--session-link {application}={template}: it has to begin with https://")
        try:
            checked(template, _SESSION)
        except ValueError as error:
            raise Sorry(f"--session-link {application}={template}: {error}") from None
    return found


def origins(given: list[str]) -> list[str]:
    """Addresses without a path, as browsers name them. Raises ``Sorry``."""
    for one in given:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or not parts.hostname or one != f"{parts.scheme}://{parts.netloc}":
            raise Sorry(f"--origin {one}: give it as https://host or https://host:port, without a path")
    return given


def _template(option: str, given: str) -> tuple[str, str]:
    application, equals, template = given.partition("=")
    if not application or not equals or _SESSION not in template:
        raise Sorry(f"{option} {given}: give it as APPLICATION=TEMPLATE, with {_SESSION} where the session's id goes")
    return application, template


def _trace_link(name: str, value: str) -> str:
    from turnscope_app import links

    try:
        return links.checked(value)
    except ValueError as error:
        raise Sorry(
            f"{name}: {shown(value)} cannot be a link to traces: {error}; write it like "
            "https://tempo.example/trace/{trace_id}"
        ) from None


def check(url: str, port: int) -> None:
    """Raise ``Sorry`` if the app is not installed, the store cannot be read, or the port is taken."""
    app_path()
    try:
        StoreReader(url).close()
    except StoreError as error:
        raise Sorry(str(error)) from None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise cannot_listen(f"{HOST}:{port}", "--port") from None


def app_path() -> Path:
    """The app's script. Raises ``Sorry`` if the ``app`` extra is not installed."""
    found = importlib.util.find_spec("turnscope_app")
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("streamlit") is None:
        raise Sorry(f"the explorer is not installed in this environment: {INSTALL_ALL}")
    return Path(found.submodule_search_locations[0]) / "main.py"


def command(port: int, origins: Sequence[str] = ()) -> list[str]:
    """The command that serves the app on ``port``: loopback, no browser opened, nothing sent to Streamlit's makers;
    browsers may come under the loopback's names and ``origins`` alone."""
    options = {
        "server.address": HOST,
        "server.port": port,
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": HOST,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "type",
        # No page draws by naming a value: it need not be parsed for such when somebody visits it.
        "runner.magicEnabled": "false",
        "logger.hideWelcomeMessage": "true",
        "theme.light.primaryColor": "#097468",
        "theme.dark.primaryColor": "#1fb5a3",
    }
    known = [f"--{name}={value}" for name, value in options.items()]
    known += [f"--server.corsAllowedOrigins={origin}" for origin in origins]
    hosts = ("localhost", HOST, *(urlsplit(origin).hostname for origin in origins))
    known += [f"--server.allowedHosts={host}" for host in hosts]
    return [sys.executable, "-m", "turnscope_app.serve", "run", str(app_path()), *known]
