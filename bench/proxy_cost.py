"""What the proxy's hook costs: a streamed event beside the proxy's own parsing of it, and slices in the background.

One message of about 100,000 tokens is the longest thing that the background has to read, and a file's text in a tool's
answer, full of escapes, the hardest. The whole is told beside the proxy's own parsing of the same body, on its serving
thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from time import thread_time_ns
from typing import Final

from bench.hook_cost import Row, row, timed
from bench.slices import sliced
from turnscope.history.digests import Key
from turnscope.proxy.answer import AnswerReader
from turnscope.proxy.messages import tell

ROUNDS: Final = 150
RUNS: Final = 120
CHARS: Final = 400_000
"""About 100,000 tokens of English."""
MESSAGES: Final = 200
EVENT: Final = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": {"content": "word "}, "logprobs": None, "finish_reason": None}],
}


def rows() -> list[Row]:
    """The table's lines; a few seconds of work."""
    prose = "It was said again. "
    return [
        *_streamed(),
        *_told("1 message", [prose * (CHARS // len(prose))]),
        *_told("1 message of quotes and line ends", ['"said": "again"\n' * (CHARS // 16)]),
        *_told(f"{MESSAGES} messages", [prose * (CHARS // MESSAGES // len(prose))] * MESSAGES),
    ]


def _streamed() -> list[Row]:
    event = f"data: {json.dumps(EVENT)}\n\n".encode()
    reader = AnswerReader("text/event-stream")
    ours: list[float] = []
    ratios: list[float] = []
    for _ in range(ROUNDS):
        read, parsed = timed(lambda _: reader.feed(event)), timed(lambda _: json.loads(event[6:]))
        ours.append(read)
        ratios.append(read / parsed)
    return [
        row("proxy: a streamed event that is text alone", median(ours), "us", None, ours),
        row("proxy: that event over the proxy's own parsing of it", median(ratios), "ratio", 1.0, ratios),
    ]


def _told(what: str, texts: list[str]) -> list[Row]:
    """Of a body of ``CHARS`` characters in such messages."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}).encode()
    key = Key(b"a secret for benchmarks")
    parsed: list[float] = []
    with sliced() as slices:
        for _ in range(RUNS):
            slices.run(lambda: _told_once(body, key, slices.pause))
            parsed.append(_parsing_us(body))
    name = f"proxy: background, {CHARS:,} characters in {what}"
    return [
        *slices.rows(name),
        row(f"{name}: the proxy's own parsing", median(parsed), "us", None, parsed),
    ]


def _told_once(body: bytes, key: Key, pause: Callable[[], None]) -> None:
    tell(body, key, pause)


def _parsing_us(body: bytes) -> float:
    started = thread_time_ns()
    json.loads(body)
    return (thread_time_ns() - started) / 1e3
