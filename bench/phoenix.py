"""How long a person waits for 500 sessions here and in Arize Phoenix, which was fed the same: one run, one browser.

Round by round, each visit with an empty browser cache, after both have got something new.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.sync_api import Browser

from bench import as_traces
from bench.explorer import NOTICED_S
from tests.app.serving import PATIENCE_MS, USEFUL, chromium, explorer, until_useful
from tests.outputs import phoenix_setup
from tests.store.huge import TURNS_EACH, build
from tests.store.rows import HOUR, NOON, SECOND, fill, turn
from turnscope.store import StoreReader

SESSIONS: Final = 500
ROUNDS: Final = 7
OPENED: Final = "agent-000321"
APART_NS: Final = 600 * SECOND
"""Sessions follow each other so far apart, the newest an hour ago: Phoenix shows the last days at first."""
AT_ONCE: Final = 500
FED_S: Final = 600.0
LISTED: Final = "table tbody td"
"""The list's first row in Phoenix, and the first answer of a session."""
TOLD: Final = "[data-testid=session-turn-details] :text('Answer 1')"


class Phoenix:
    """A running one, asked by its own API."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._client = httpx.Client(base_url=self.url, trust_env=False, timeout=60)

    def feed(self, store: str) -> None:
        """The sessions of ``store``; returns once all of their spans are there."""
        reader = StoreReader(store)
        names = [f"agent-{number:06d}" for number in range(SESSIONS)]
        known = reader.known(names)
        reader.close()
        newest = time.time_ns() - HOUR
        spans = []
        for place, name in enumerate(reversed(names)):
            turns, tools = known[name]
            begin = min(each.started_ns for each in turns)
            spans += as_traces.spans(name, turns, tools, newest - place * APART_NS - begin)
        for at in range(0, len(spans), AT_ONCE):
            self.post(spans[at : at + AT_ONCE])
        deadline = time.monotonic() + FED_S
        while (count := self._project()["recordCount"]) < len(spans):
            if time.monotonic() > deadline:
                raise TimeoutError(f"Phoenix has {count} of {len(spans)} spans")
            time.sleep(1)

    def post(self, spans: list[Any]) -> None:
        """Some more."""
        answer = self._client.post(
            "/v1/traces", content=as_traces.request(spans), headers={"content-type": "application/x-protobuf"}
        )
        answer.raise_for_status()

    def pages(self) -> tuple[str, str]:
        """The addresses of its list of sessions and of one of them."""
        project = self._project()["id"]
        found = self._client.get(f"/v1/sessions/{OPENED}").raise_for_status().json()["data"]["id"]
        return f"/projects/{project}/sessions", f"/projects/{project}/sessions/{found}"

    def _project(self) -> dict[str, Any]:
        query = "{projects {edges {node {id name recordCount}}}}"
        answer = self._client.post("/graphql", json={"query": query}).raise_for_status().json()
        return next(edge["node"] for edge in answer["data"]["projects"]["edges"] if edge["node"]["name"] == "default")


def visit(browser: Browser, url: str, useful: Callable[[Any, str], float]) -> float:
    """Seconds until useful, for a visitor of its own."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    try:
        return useful(page, url)
    finally:
        page.context.close()


def _here(page: Any, url: str) -> float:
    return until_useful(page, url, USEFUL)


def _there(useful: str) -> Callable[[Any, str], float]:
    def until(page: Any, url: str) -> float:
        began = time.monotonic()
        page.goto(url)
        page.locator(useful).first.wait_for()
        return time.monotonic() - began

    return until


def measured(folder: Path) -> dict[str, list[tuple[float, float]]]:
    """By page: seconds here and in Phoenix, a pair a round."""
    (folder / "store").mkdir()
    (folder / "phoenix").mkdir()
    store = build(folder / "store", SESSIONS)
    shutil.copy(phoenix_setup.DATABASE, folder / "phoenix" / "phoenix.db")
    found: dict[str, list[tuple[float, float]]] = {"list of sessions": [], "one session": []}
    with phoenix_setup.serving(folder / "phoenix") as (port, _), explorer(store) as address, chromium() as browser:
        phoenix = Phoenix(port)
        phoenix.feed(store)
        listed, told = phoenix.pages()
        for place in range(ROUNDS):
            more = turn(10**6 + place, session_id=f"meanwhile-{place}", started_ns=NOON, ended_ns=NOON + SECOND)
            fill(store, more)
            phoenix.post(list(as_traces.spans(f"meanwhile-{place}", [more], [], time.time_ns() - NOON)))
            time.sleep(NOTICED_S)
            for name, ours, theirs, useful in (
                ("list of sessions", "/sessions", listed, LISTED),
                ("one session", f"/session?id={OPENED}", told, TOLD),
            ):
                asked = [(address + ours, _here), (phoenix.url + theirs, _there(useful))]
                times = {url: visit(browser, url, until) for url, until in asked[:: 1 if place % 2 else -1]}
                found[name].append((times[asked[0][0]], times[asked[1][0]]))
    return found


def rows() -> list[dict[str, Any]]:
    """For ``make bench``: medians of each, and of the rounds' ratios."""
    phoenix_setup.set_up()
    with tempfile.TemporaryDirectory(prefix="turnscope-bench-") as name:
        found = measured(Path(name))
    out = []
    for page, pairs in found.items():
        for who, values, unit in (
            ("turnscope", [ours for ours, _ in pairs], "s"),
            (phoenix_setup.PHOENIX, [theirs for _, theirs in pairs], "s"),
            ("turnscope / Phoenix", [ours / theirs for ours, theirs in pairs], "ratio"),
        ):
            out.append(
                {
                    "name": f"{SESSIONS} sessions of {TURNS_EACH} turns, {page}: {who} (median)",
                    "value": round(statistics.median(values), 3),
                    "unit": unit,
                    "target": None,
                    "ok": None,
                    "n": len(values),
                    "spread": f"{min(values):.2f}-{max(values):.2f}",
                }
            )
    return out


if __name__ == "__main__":
    for one in rows():
        print(one)
