"""How long a person waits for a page of the explorer, in a real browser, with 200,000 turns in the store.

The worst case of everyday use: every visit begins with an empty browser cache, and since the one before the store has
got something new, so that no remembered answer helps.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from playwright.sync_api import Browser

from tests.app.serving import PATIENCE_MS, chromium, explorer, until_useful
from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, hold, turn, writer
from turnscope.model import HoldRecord, Turn
from turnscope.store import StoreReader

SESSIONS: Final = 50_000
TURNS: Final = 4
DAYS: Final = 7
VISITS: Final = 9
QUESTIONS: Final = 15
TARGET_S: Final = 3.0
ROWS: Final = 1_000
"""The app's ``data.LIMIT``."""
NOTICED_S: Final = 6.0
"""Longer than the app goes without looking for something new (``data.FRESH_SECONDS``)."""
_REASONS: Final = ("none", "none", "none", "below_threshold", "no_handle_from_decode", "declined_expired", "unknown")


def conversations(count: int, rng: random.Random) -> Iterator[tuple[Turn, HoldRecord]]:
    """``TURNS`` turns each, begun at even distances over ``DAYS``, each turn with the hold it left."""
    number = itertools.count(1)
    for session in range(count):
        at = NOON + session * (DAYS * 24 * HOUR // count)
        left = None
        for index in range(1, TURNS + 1):
            n = next(number)
            fetched = 1_000 * (index - 1) if rng.random() < 0.7 else 0
            prompt = 1_000 * index + rng.randrange(500)
            ended = at + 2 * SECOND + rng.randrange(3 * SECOND)
            outcome = "ttl" if index == TURNS else rng.choice(("read", "read", "notified", "ttl"))
            yield (
                turn(
                    n,
                    session_id=f"agent-{session:06d}",
                    turn_index=index,
                    started_ns=at,
                    ended_ns=ended,
                    model=f"model-{session % 3}",
                    prefill_engine=f"prefill-{session % 4}",
                    decode_engine=f"decode-{session % 4}",
                    path="reverse_fetch" if fetched else "recompute",
                    reason="first_turn" if index == 1 else rng.choice(_REASONS),
                    status="error" if rng.random() < 0.01 else "ok",
                    suspicions=["kv_mismatch"] if rng.random() < 0.005 else [],
                    prompt_tokens=prompt,
                    local_hit_tokens=0,
                    fetched_tokens=fetched,
                    external_tokens=0,
                    computed_tokens=prompt - fetched,
                    output_tokens=rng.randrange(20, 900),
                    fetched_bytes=fetched * 1024 or None,
                    fetch_ns=rng.randrange(200_000_000) if fetched else None,
                    prefill_ns=rng.randrange(2_000_000_000),
                    ttft_ns=rng.randrange(2_000_000_000),
                    used_hold_id=left if fetched else None,
                    left_hold_id=f"{n:032x}",
                    has_prefill=True,
                    has_decode=True,
                    has_attempt=True,
                ),
                hold(
                    n,
                    session_id=f"agent-{session:06d}",
                    tokens=prompt,
                    started_ns=ended,
                    ended_ns=ended + 480 * SECOND,
                    held_ns=480 * SECOND,
                    ttl_ns=480 * SECOND,
                    outcome=outcome,
                ),
            )
            left = f"{n:032x}"
            at = ended + rng.randrange(60 * SECOND)


def build(folder: Path, sessions: int = SESSIONS) -> str:
    """A store as a sidecar would have it after ``DAYS``, flushed and compacted as time went on; its address."""
    clock = Clock()
    out = writer(folder, clock)
    for number, (one, left) in enumerate(conversations(sessions, random.Random(7))):
        out.add_turn(one)
        out.add_hold(left)
        if number % 500 == 0:
            clock.ns = max(clock.ns, one.started_ns)
            out.maintain()
    out.close()
    return str(folder)


def visits(browser: Browser, address: str, store: str, paths: Iterator[str]) -> list[float]:
    """Seconds until useful of ``VISITS`` pages, each by a visitor of its own after one more turn has been stored."""
    times = []
    for number, path in enumerate(itertools.islice(paths, VISITS)):
        fill(store, turn(10**9 + number, session_id="meanwhile"))
        time.sleep(NOTICED_S)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        times.append(until_useful(page, address + path))
        context.close()
    return times


def answers(url: str) -> list[float]:
    """Seconds that the store takes to answer all that the sessions page asks."""
    reader = StoreReader(url)
    times = []
    try:
        for _ in range(QUESTIONS):
            began = time.monotonic()
            reader.totals()
            reader.choices()
            reader.sessions(limit=ROWS)
            times.append(time.monotonic() - began)
    finally:
        reader.close()
    return times


def row(name: str, times: list[float], target_s: float | None) -> dict[str, Any]:
    """The median, and whether it is below the target."""
    value = median(times)
    return {
        "name": f"explorer, {SESSIONS * TURNS:,} turns: {name}",
        "value": round(value, 3),
        "unit": "s",
        "target": None if target_s is None else f"< {target_s:g}",
        "ok": None if target_s is None else value < target_s,
        "n": len(times),
        "spread": f"{min(times):.2f}-{max(times):.2f}",
    }


def rows() -> list[dict[str, Any]]:
    """For ``make bench``."""
    with tempfile.TemporaryDirectory(prefix="turnscope-bench-") as name:
        url = build(Path(name))
        asked = answers(url)
        some = (f"/session?id=agent-{number:06d}" for number in itertools.count(100, 997))
        with chromium() as browser, explorer(url) as address:
            listed = visits(browser, address, url, itertools.repeat("/"))
            opened = visits(browser, address, url, some)
        return [
            row("sessions page, until its table is drawn", listed, TARGET_S),
            row("one session, until its table is drawn", opened, TARGET_S),
            row("what the sessions page asks the store", asked, None),
        ]


if __name__ == "__main__":
    for one in rows():
        print(one)
