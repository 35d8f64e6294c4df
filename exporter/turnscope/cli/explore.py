"""``turnscope explore``: the pages in a browser."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.cli.options import load
from turnscope.cli.ports import cannot_listen
from turnscope.model import shown
from turnscope.store import StoreError, StoreReader

HOST = "127.0.0.1"
STORE_VARIABLE = "TURNSCOPE_EXPLORE_STORE"
"""How the app is told which store to show."""
TRACE_LINK_VARIABLE = "TURNSCOPE_EXPLORE_TRACE_LINK"
"""How the app is told where a turn's trace is to be seen."""
DEMO_VARIABLE = "TURNSCOPE_EXPLORE_DEMO"
"""How the app is told that its data are a demonstration's: what they are, in a sentence."""


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

    Reads what 'turnscope serve' stores, also while it runs. It needs the 'app' extra: pip install 'turnscope[app]'.
    """
    url = load({}).store_url if store is None else arguments.text("--store", store)
    number = arguments.port("--port", port)
    linked = {} if trace_link is None else {TRACE_LINK_VARIABLE: _template("--trace-link", trace_link)}
    check(url, number)
    print(f"Explorer of {url}: http://{HOST}:{number} (stop with Ctrl-C)", flush=True)  # noqa: T201
    # In place of this process, so that whoever stops it stops the server.
    os.execve(sys.executable, command(number), {**os.environ, STORE_VARIABLE: url, **linked})


def _template(name: str, value: str) -> str:
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
        raise Sorry("the explorer is not installed in this environment: pip install 'turnscope[app]'")
    return Path(found.submodule_search_locations[0]) / "main.py"


def command(port: int) -> list[str]:
    """The command that serves the app on ``port``: loopback, no browser opened, nothing sent to Streamlit's makers."""
    options = {
        "server.address": HOST,
        "server.port": port,
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": HOST,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "type",
        "logger.hideWelcomeMessage": "true",
        "theme.light.primaryColor": "#0b8f82",
        "theme.dark.primaryColor": "#1fb5a3",
    }
    known = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "turnscope_app.serve", "run", str(app_path()), *known]
