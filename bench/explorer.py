"""How long a person waits for a page of the explorer, in a real browser, with 1,000,000 turns in the store.

First paint is the worst case of everyday use: a browser whose cache is empty asks for the page, and since the visit
before the store has got something new, so that no remembered answer helps. Filters are touched, and sessions clicked in
the list, in a page that is open; no session twice, very long ones among them.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, expect

from bench.page_questions import seconds
from tests.app.serving import ANSWER, PATIENCE_MS, USEFUL, chromium, running, until_useful
from tests.store.huge import SESSIONS_MADE, TURNS_EACH, build
from tests.store.rows import fill, turn, writer
from turnscope.measures.sessions import summarise

VISITS: Final = 5
TOUCHES: Final = 20
CLICKS: Final = 20
LONG: Final = 4_000
"""Turns of each of the very long sessions."""
LONG_SESSIONS: Final = 3
TURNS: Final = SESSIONS_MADE * TURNS_EACH
PAINT_S: Final = 3.0
FILTER_S: Final = 1.0
SESSION_S: Final = 1.0
MEMORY_MB: Final = 700
NOTICED_S: Final = 6.0
"""Longer than the app goes without looking for something new (``data.FRESH_SECONDS``)."""
_ORDERS: Final = ("Most turns", "Most possibly wrong")
"""Of the list: the first rows of each are other sessions."""
_ROW: Final = 35
"""Pixels of a row of the list."""
_STORY: Final = ".st-key-session_story p"
_CHECKS: Final = ("Possibly wrong", "Not answered", "Failed tasks")
"""Each leaves another number of sessions."""
_COUNTED: Final = """before => [...document.querySelectorAll("[data-testid=stCaptionContainer], [data-testid=stAlert]")]
    .map(e => e.innerText).find(text => text !== before && /^[0-9,]+ (of|session)|No session meets/.test(text))"""
"""The sentence that says how many sessions are listed, once it is another one than before. Of an alert, the text begins
with the name of its icon."""


def visits(browser: Browser, address: str, store: str, paths: Iterator[str], useful: str = USEFUL) -> list[float]:
    """Seconds until useful of ``VISITS`` pages, each by a visitor of its own after one more turn has been stored."""
    times = []
    for path in itertools.islice(paths, VISITS):
        fill(store, turn(10**9 + time.time_ns() % 10**9, session_id="meanwhile"))
        time.sleep(NOTICED_S)
        page = _visitor(browser)
        times.append(until_useful(page, address + path, useful))
        page.context.close()
    return times


def _visitor(browser: Browser) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


def narrowed(browser: Browser, address: str) -> list[float]:
    """Seconds from touching a filter of the sessions page until the number of sessions it leaves is drawn."""
    page = _visitor(browser)
    until_useful(page, f"{address}/sessions")
    said = page.wait_for_function(_COUNTED, arg="").json_value()
    times = []
    for check in itertools.islice(itertools.cycle(_CHECKS), TOUCHES):
        # A click while the page is still being drawn may be lost with the button that it hit.
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=PATIENCE_MS)
        button = page.get_by_test_id("stButtonGroup").get_by_text(check, exact=True)
        began = time.monotonic()
        button.click()
        said = page.wait_for_function(_COUNTED, arg=said).json_value()
        times.append(time.monotonic() - began)
    page.context.close()
    return times


def opened(browser: Browser, address: str) -> list[float]:
    """Seconds from clicking a session in the list until its answer and the story of one of its turns are drawn: the
    first of the list in two orders, the longest sessions among them."""
    page = _visitor(browser)
    times = []
    for order, row in itertools.product(_ORDERS, range(CLICKS // len(_ORDERS))):
        until_useful(page, f"{address}/sessions?{urlencode({'sessions_sort': order})}")
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=PATIENCE_MS)
        table = page.locator(".st-key-sessions_table .dvn-scroller")
        table.scroll_into_view_if_needed()
        began = time.monotonic()
        table.click(position={"x": 60, "y": _ROW * (row + 1.5)})
        page.locator(_STORY).first.wait_for()
        times.append(time.monotonic() - began)
    page.context.close()
    return times


def add_long(url: str) -> None:
    """``LONG_SESSIONS`` sessions of ``LONG`` turns, summed up as a sidecar does."""
    out = writer(url, writer_id="long")
    for session in range(LONG_SESSIONS):
        name = f"long-{session}"
        some = [turn(n, turn_id=f"{session + 1:016x}{n:016x}", session_id=name) for n in range(1, LONG + 1)]
        summed = summarise(name, some, [])
        if summed is not None:
            out.add_session(summed.summary)
        for one in some:
            out.add_turn(one)
    out.close()


def resident_mb(pid: int) -> float:
    """What the process holds in memory, in megabytes (10^6 bytes)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024 / 1e6


def p95(values: list[float]) -> float:
    """The value that 95 of 100 do not pass; of few, the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-95 * len(ordered) // 100) - 1)]


def row(name: str, values: list[float], unit: str, target: float) -> dict[str, Any]:
    """The 95th percentile, and whether it is below the target."""
    value = p95(values)
    return {
        "name": f"explorer, {TURNS:,} turns: {name}",
        "value": round(value, 3),
        "unit": unit,
        "target": f"< {target:g}",
        "ok": value < target,
        "n": len(values),
        "spread": f"{min(values):.2f}-{max(values):.2f}",
    }


def rows() -> list[dict[str, Any]]:
    """For ``make bench``."""
    with tempfile.TemporaryDirectory(prefix="turnscope-bench-") as name:
        url = build(Path(name))
        add_long(url)
        some = (f"/session?id=agent-{number:06d}" for number in itertools.count(100, 997))
        with chromium() as browser, running(url) as (address, pid):
            home = visits(browser, address, url, itertools.repeat("/"), ANSWER)
            listed = visits(browser, address, url, itertools.repeat("/sessions"))
            filtered = narrowed(browser, address)
            clicked = opened(browser, address)
            linked = visits(browser, address, url, some, _STORY)
            about = visits(browser, address, url, itertools.repeat("/about"))
            memory = resident_mb(pid)
        questions = seconds(url)
        return [
            row("first paint of Home, until its answer is drawn (p95)", home, "s", PAINT_S),
            row("first paint of the list, until its sessions are drawn (p95)", listed, "s", PAINT_S),
            row("first paint of a session by its link, until a turn's story is drawn (p95)", linked, "s", PAINT_S),
            row("first paint of About, until its first table is drawn (p95)", about, "s", PAINT_S),
            row("a filter of the list, until its sessions are counted (p95)", filtered, "s", FILTER_S),
            row("a session clicked in the list, until a turn's story is drawn (p95)", clicked, "s", SESSION_S),
            row("resident memory of the server after it", [memory], "MB", MEMORY_MB),
            *(
                row(f"a filter of {page}, until the store has answered it (p95)", times, "s", FILTER_S)
                for page, times in questions.items()
            ),
        ]


if __name__ == "__main__":
    for one in rows():
        print(one)
