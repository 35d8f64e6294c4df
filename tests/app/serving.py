"""The explorer's server and a real browser, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from turnscope.cli import explore
from turnscope.shipped import STORE_VARIABLE

CHROMIUM: Final = Path("/usr/bin/chromium")
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS: Final = 120_000
_START_S: Final = 90.0


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. Raises FileNotFoundError, which says how to get it, when it is not there."""
    if not CHROMIUM.exists():
        raise FileNotFoundError(
            f"{CHROMIUM} is missing: apt-get install --no-install-recommends chromium fonts-dejavu-core"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@contextlib.contextmanager
def explorer(store: str | Path, origins: Sequence[str] = ()) -> Iterator[str]:
    """The address of an explorer of ``store``, a process of its own that answers."""
    with running(store, origins) as (address, _):
        yield address


@contextlib.contextmanager
def running(store: str | Path, origins: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """The same, with the id of its process."""
    with socket.create_server((explore.HOST, 0)) as probe:
        port = probe.getsockname()[1]
    explore.check(str(store), port)
    process = subprocess.Popen(explore.command(port, origins), env={**os.environ, STORE_VARIABLE: str(store)})
    try:
        address = f"http://{explore.HOST}:{port}"
        _await_answer(process, address)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_answer(process: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            if process.poll() is not None:
                raise RuntimeError("the explorer ended by itself") from None
            if time.monotonic() > deadline:
                raise TimeoutError(f"the explorer did not answer within {_START_S:.0f} s") from None
            time.sleep(0.2)


USEFUL: Final = "[data-testid=stDataFrame] canvas, [data-testid=stTable] table"
ANSWER: Final = ".st-key-home_answer p"


def until_useful(page: Page, url: str, useful: str = USEFUL) -> float:
    """Seconds from asking for ``url`` until its heading and its first table, or what else is useful, are drawn."""
    began = time.monotonic()
    page.goto(url)
    page.locator("h1").first.wait_for()
    page.locator(useful).first.wait_for()
    return time.monotonic() - began
