"""Events a second through assembly: feed, tick and take, for finished conversations of a pair."""

from __future__ import annotations

import time
from collections import Counter

from tests.builders import Pair
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.model import Event

CONVERSATIONS = 250
TURNS = 4
RUNS = 5
TARGET = 20_000


def traffic(conversations: int = CONVERSATIONS) -> list[Event]:
    """Four turns each, all but the first fetched, twenty conversations at a time."""
    pair = Pair()
    events = pair.start()
    for n in range(conversations):
        given = None
        for turn in range(TURNS):
            name, prompt = f"{n}-{turn}", 1000 + 250 * turn
            fetched = min(given.tokens or 0, prompt) if given is not None else 0
            at = (n // 20) * 10_000 + n % 20 + 2000 * turn
            events += pair.turn(name, at_ms=at, prompt=prompt, fetched=fetched, given=given, session=f"s{n}")
            given = pair.handle(name, prompt + 199)
    events.sort(key=lambda e: e.mono_ns)
    last: Counter[str] = Counter()
    for event in events:
        last[event.emitter.id] += 1
        event.seq = last[event.emitter.id]
    return events


def events_per_second(events: list[Event]) -> float:
    """Of one run, by processor time; facts are taken every 64 events as the sidecar's batches do."""
    assembler = Assembler(AssemblySettings())
    start = time.process_time()
    for number, event in enumerate(events):
        assembler.feed(event, event.mono_ns)
        if number % 64 == 0:
            assembler.tick(event.mono_ns)
            assembler.take()
    assembler.tick(events[-1].mono_ns + 10**11)
    return len(events) / (time.process_time() - start)


def rows() -> list[dict[str, object]]:
    """For ``make bench``."""
    events = traffic()
    speeds = sorted(events_per_second(events) for _ in range(RUNS))
    return [
        {
            "name": "assembly: events through feed, tick and take",
            "value": round(speeds[RUNS // 2]),
            "unit": "events/s",
            "target": f"> {TARGET:,}",
            "ok": speeds[RUNS // 2] > TARGET,
            "n": len(events) * RUNS,
            "spread": f"{speeds[0]:,.0f}-{speeds[-1]:,.0f}",
        }
    ]


if __name__ == "__main__":
    for row in rows():
        print(row)
