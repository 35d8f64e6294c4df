"""What watching costs a real pair: throughput, TTFT and processor time with the hooks on, and with vLLM's own traces,
over neither; and of the processor time, what threads take that only the hooks need.

Of the hooks it is one and the same pair, in which a file switches them off and on: two pairs that are set alike differ
by more than the hooks cost, and go on to differ for as long as they live. vLLM's traces cannot be switched, so that
there two pairs are up at the same time, and the difference is theirs as well; the one that waits for its turn takes a
few percent of a core (``live_gentle_wait``). A block is one run of each, in random order, close together, so that slow
drift of the machine divides out; the interval comes from the blocks.

What receives events and spans only acknowledges them, as a sidecar elsewhere would: two cores are not enough for both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import httpx

from bench.stats import Ratio, ratio
from live import setup
from live.conversations import text
from live.engines import MODEL_NAME, LiveError, Pair, PairConfig, running_pair
from live.fronts import Front, RunningFront, running_front
from live.processor_time import between, taken_ns
from live.sink import sink

HOOK_BLOCKS = 30
TRACE_BLOCKS = 12
CONVERSATIONS = 6
"""At the same time; each has ``TURNS`` turns, one after the other."""
TURNS = 6
OUTPUT_TOKENS = 40
FOLDER = setup.ROOT / "build" / "bench-pair"
MODEL = setup.ROOT / "build" / "pair-model"
TARGET = 0.99
OWN = 0.25
"""A thread that takes less than this part of its time while hooks are off is their own."""
SEEN_S = 2.0
"""Processes look for the file once a second."""
PLAIN = PairConfig("plain", 0, prefix_caching=True)

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run of the work."""

    tokens_per_s: float
    ttft_s: float
    """Mean over its turns."""
    taken_ns: dict[int, int]
    """The processor time that engines and proxy took for it, by thread."""

    @property
    def processor_ns(self) -> int:
        """Of all threads."""
        return sum(self.taken_ns.values())


@dataclass(frozen=True)
class Contender:
    """One pair behind its proxy, in the state in which it is to be measured."""

    pair: Pair
    front: RunningFront
    prepare: Callable[[], None] = lambda: None
    """Brings it into that state."""

    def taken_ns(self) -> dict[int, int]:
        """The processor time of all its processes so far, by thread."""
        return taken_ns([*(engine.process.pid for engine in self.pair.engines), self.front.pid])


@dataclass(frozen=True)
class Switch:
    """The file that switches hooks off at run time."""

    path: Path

    def off(self) -> None:
        """Switch them off, and wait until every process has seen it."""
        self.path.touch()
        time.sleep(SEEN_S)

    def on(self) -> None:
        """Switch them on, and wait until every process has seen it."""
        self.path.unlink(missing_ok=True)
        time.sleep(SEEN_S)


def _say(line: str) -> None:
    print(line, flush=True)


def rows(say: Callable[[str], None] = _say) -> list[Row]:
    """The ratios of hook over off, and of vLLM's own traces over off."""
    python = setup.set_up()
    subprocess.run([str(python), str(setup.ROOT / "live" / "model.py"), str(MODEL)], check=True)
    with sink() as endpoint:
        return _hooks(endpoint, python, say) + _traces(endpoint, python, say)


def _hooks(endpoint: str, python: Path, say: Callable[[str], None]) -> list[Row]:
    switch = Switch(FOLDER / "off")
    switch.path.parent.mkdir(parents=True, exist_ok=True)
    switch.path.unlink(missing_ok=True)
    hook = {"TURNSCOPE_ENDPOINT": endpoint, "TURNSCOPE_OFF_FILE": str(switch.path)}
    with contextlib.ExitStack() as stack:
        pair = _started(stack, replace(PLAIN, name="turnscope", environment=hook), python, hook, say)
        off, on = replace(pair, prepare=switch.off), replace(pair, prepare=switch.on)
        runs = _runs("turnscope", off, on, HOOK_BLOCKS, say)
    return _compared("turnscope", runs, TARGET) + _by_thread(runs, pair.front.pid)


def _traces(endpoint: str, python: Path, say: Callable[[str], None]) -> list[Row]:
    traced = replace(PLAIN, name="vLLM's traces", arguments=("--otlp-traces-endpoint", endpoint))
    with contextlib.ExitStack() as stack:
        off, on = (_started(stack, config, python, {}, say) for config in (PLAIN, traced))
        return _compared(traced.name, _runs(traced.name, off, on, TRACE_BLOCKS, say), None)


def _started(
    stack: contextlib.ExitStack, config: PairConfig, python: Path, hook: dict[str, str], say: Callable[[str], None]
) -> Contender:
    say(f"{config.name}: starting P and D")
    logs = FOLDER / config.name
    pair = stack.enter_context(running_pair(config, python=python, model=MODEL, logs=logs))
    return Contender(pair, stack.enter_context(running_front(Front.HOOKED, pair, logs / "proxy.log", hook=hook)))


def _runs(
    name: str, plain: Contender, watched: Contender, blocks: int, say: Callable[[str], None]
) -> list[tuple[Run, Run]]:
    """Without and with, by block."""
    rng = random.Random(0)
    runs: list[tuple[Run, Run]] = []
    # One block more than counted: the first warms everything up.
    for block in range(blocks + 1):
        one: dict[bool, Run] = {}
        for which in rng.sample([False, True], 2):
            # Other words each time: what one run leaves in the caches must not help the next.
            one[which] = _run(watched if which else plain, f"{name} {block} {which}")
        if block:
            runs.append((one[False], one[True]))
        say(
            f"  block {block} of {blocks}: {one[False].tokens_per_s:.0f} tokens/s plain, {one[True].tokens_per_s:.0f} "
            f"with {name}; TTFT {1e3 * one[False].ttft_s:.0f} and {1e3 * one[True].ttft_s:.0f} ms"
        )
    return runs


def _compared(name: str, runs: list[tuple[Run, Run]], target: float | None) -> list[Row]:
    rng = random.Random(0)
    throughput = ratio([(a.tokens_per_s, b.tokens_per_s) for a, b in runs], rng=rng)
    ttft = ratio([(1 / a.ttft_s, 1 / b.ttft_s) for a, b in runs], rng=rng)
    processor = ratio([(a.processor_ns, b.processor_ns) for a, b in runs], rng=rng)
    noise = _noise([a.tokens_per_s for a, _ in runs])
    return [
        _row(f"pair: throughput, {name} over off", throughput, len(runs), target, f"; off alone varies by {noise}"),
        _row(f"pair: 1/TTFT, {name} over off", ttft, len(runs), target, ""),
        _row(f"pair: processor time, {name} over off", processor, len(runs), None, ""),
    ]


def _by_thread(runs: list[tuple[Run, Run]], proxy: int) -> list[Row]:
    """Where the hooks' processor time goes: one thread varies far less than all of them together."""
    rng = random.Random(0)
    threads = {thread for _, on in runs for thread in on.taken_ns}
    off_ns, on_ns = (
        {t: sum(run.taken_ns.get(t, 0) for run in side) for t in threads} for side in zip(*runs, strict=True)
    )
    own = [t for t in threads if off_ns[t] < OWN * on_ns[t]]
    shares = ratio([(on.processor_ns, sum(on.taken_ns.get(t, 0) for t in own)) for _, on in runs], rng=rng)
    serving = ratio([(off.taken_ns[proxy], on.taken_ns[proxy]) for off, on in runs], rng=rng)
    part = fmean(on.taken_ns[proxy] / on.processor_ns for _, on in runs)
    return [
        _row(
            "pair: processor time of the hooks' own threads, of all", shares, len(runs), None, f"; {len(own)} threads"
        ),
        _row(
            "pair: processor time of the thread that serves in the proxy, hooks on over off",
            serving,
            len(runs),
            None,
            f"; it takes {part:.0%} of all",
        ),
    ]


def _noise(values: list[float]) -> str:
    low, *_, high = quantiles(values, n=10)
    return f"{100 * (high - low) / fmean(values):.0f}% (p10-p90)"


def _row(name: str, found: Ratio, n: int, target: float | None, more: str) -> Row:
    return {
        "name": name,
        "value": found.value,
        "unit": "ratio",
        "target": None if target is None else f">= {target} (low end)",
        "ok": None if target is None else found.low >= target,
        "n": n,
        "spread": f"95% interval {found.low:.3f} to {found.high:.3f}{more}",
    }


def _run(contender: Contender, seed: str) -> Run:
    """Do the work once."""
    contender.prepare()
    before = contender.taken_ns()
    tokens_per_s, ttft_s = asyncio.run(_work(contender.front.url, seed))
    return Run(tokens_per_s, ttft_s, between(before, contender.taken_ns()))


async def _work(url: str, seed: str) -> tuple[float, float]:
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        started = time.perf_counter()
        talks = [_talk(client, f"{seed} {n}") for n in range(CONVERSATIONS)]
        ttfts = [ttft for talk in await asyncio.gather(*talks) for ttft in talk]
        seconds = time.perf_counter() - started
    return CONVERSATIONS * TURNS * OUTPUT_TOKENS / seconds, fmean(ttfts)


async def _talk(client: httpx.AsyncClient, name: str) -> list[float]:
    messages: list[dict[str, str]] = []
    ttfts = []
    for turn in range(TURNS):
        words = 180 if turn == 0 else 60
        messages.append({"role": "user", "content": text(f"{name} {turn}", words)})
        said, ttft = await _turn(client, name, messages, OUTPUT_TOKENS)
        messages.append({"role": "assistant", "content": said})
        ttfts.append(ttft)
    return ttfts


async def _turn(
    client: httpx.AsyncClient, conversation: str | None, messages: list[dict[str, str]], tokens: int
) -> tuple[str, float]:
    body = {
        "model": MODEL_NAME,
        "messages": messages,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "vllm_xargs": {"live_stream_handle": 1},
        "conversation_id": conversation,
    }
    started = time.perf_counter()
    ttft = None
    said = []
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        if answer.status_code != 200:
            raise LiveError(f"A turn was answered with {answer.status_code}: {(await answer.aread())[:200]!r}")
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk:
                raise LiveError(f"A turn failed: {chunk['error']}")
            piece = chunk["choices"][0]["delta"].get("content") if chunk["choices"] else None
            if piece:
                ttft = ttft or time.perf_counter() - started
                said.append(piece)
    if ttft is None:
        raise LiveError("A turn was answered without a word.")
    return "".join(said), ttft
