"""What digests cost: nanoseconds a token and slices in the background, and what is added on the engine's thread.

In the thread's own CPU time, pauses not counted. The prompt's ids are objects of their own that nobody has touched just
before, as the engine leaves them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import median
from time import thread_time_ns

import msgspec

from bench.hook_cost import Row, row, scheduler_subjects, scheduler_watch, timed
from bench.slices import sliced
from turnscope.emit.ring import Rings
from turnscope.emit.secret import Secret
from turnscope.hook.digests import Digests, Ended
from turnscope.hook.identity import DigestFacts
from turnscope.model import Digest
from turnscope.semconv import Leg

TOKENS = 100_000
SHORT = 2_000
HELD = 90_000
RUNS = 60
ROUNDS = 150


def ids(count: int) -> list[int]:
    """A few ids are frequent and most are rare, as in a language with 150,000 of them."""
    rng = random.Random(7)
    drawn = [int(rng.paretovariate(0.7) * 20) % 150_000 for _ in range(count)]
    return msgspec.msgpack.decode(msgspec.msgpack.encode(drawn), type=list[int])


class Hashing:
    """The background's half, with a prompt to hash."""

    def __init__(self, tokens: int) -> None:
        self.made: list[Digest] = []
        self._digests = Digests(Secret("a secret for benchmarks"), DigestFacts("shape", (151_645,), True))
        self._digests.push = self.made.append
        self._ids = ids(tokens)

    def run(self, pause: Callable[[], None]) -> None:
        """One digest of the prompt."""
        tokens = len(self._ids)
        ended = Ended("r", Leg.PREFILL, tokens, 1, tokens * HELD // TOKENS)
        self._digests.add(ended, (0, self._ids, tokens, True, None, None, ()))
        self._digests.work(pause)


def rows() -> list[Row]:
    """The table's lines; a few seconds of work."""
    return [*_background(), _added()]


def _background() -> list[Row]:
    long, short = Hashing(TOKENS), Hashing(SHORT)
    costs = [_cpu_ns(long) / TOKENS for _ in range(RUNS)]
    requests = [_cpu_ns(short) / 1e3 for _ in range(RUNS)]
    with sliced() as slices:
        for _ in range(2 * RUNS):
            slices.run(lambda: long.run(slices.pause))
    (sent,) = {len(digest.marks) + len(digest.chunks) for digest in long.made}
    return [
        row(f"digests: a token of a prompt of {TOKENS:,}, in the background", median(costs), "ns", 30.0, costs),
        row(f"digests: a whole prompt of {SHORT:,} tokens, in the background", median(requests), "us", None, requests),
        *slices.rows(f"digests: {TOKENS:,} tokens in the background"),
        row(f"digests: bytes sent for {TOKENS:,} tokens, a token", sent / TOKENS, "By", None, [sent / TOKENS] * 2),
    ]


def _cpu_ns(hashing: Hashing) -> int:
    started = thread_time_ns()
    hashing.run(lambda: None)
    return thread_time_ns() - started


def _added() -> Row:
    """A request event with digests less one without, in turns."""
    rings = Rings()
    with_them, digests = scheduler_watch(rings)
    without, _ = scheduler_watch(rings, digesting=False)
    one, other = scheduler_subjects(with_them)[0], scheduler_subjects(without)[0]
    costs = []
    for _ in range(ROUNDS):
        with_cost, without_cost = (timed(s.hooked) - timed(s.plain) for s in (one, other))
        costs.append(with_cost - without_cost)
        for entry in rings.take(1 << 20):
            entry.build(entry.payload)
        digests.forget()
    return row("digests: added to a request event on the engine's thread", median(costs), "us", None, costs)


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(rows())).decode())
