"""How much memory ``turnscope serve`` takes while 100,000 spans of agents arrive, and how fast it takes them in.

Batches as SDKs send them, in JSON with a kilobyte of content a span, one after the other: as one trace, larger than
what is remembered of spans, and as a thousand sessions of a hundred.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from tests.cli.served import Served, served

SPANS: Final = 100_000
BATCH: Final = 512
SETTLED_S: Final = 30.0
"""After the last span: by then it is stored, summed up and in a checkpoint."""
TARGET_MB: Final = 300
_BEGIN_NS: Final = 1_796_040_000_000_000_000


def batches(spans: int, a_session: int) -> Iterator[bytes]:
    """So many spans, of which each ``a_session`` are a trace and a session: a tree of model calls and tools."""
    for first in range(0, spans, BATCH):
        made = [_span(number, a_session) for number in range(first, min(spans, first + BATCH))]
        resource = {"attributes": [_text("service.name", "desk")]}
        yield json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": made}]}]}).encode()


def _span(number: int, a_session: int) -> dict[str, Any]:
    session, place = divmod(number, a_session)
    operation = "chat" if number % 2 else "execute_tool"
    span: dict[str, Any] = {
        "traceId": f"{session + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": operation,
        "startTimeUnixNano": str(_BEGIN_NS + number * 10_000_000),
        "endTimeUnixNano": str(_BEGIN_NS + number * 10_000_000 + 5_000_000),
        "attributes": [
            _text("gen_ai.operation.name", operation),
            _text("gen_ai.request.model", "m"),
            _text("gen_ai.input.messages", "x" * 1000),
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "1000"}},
        ],
    }
    if place:
        span["parentSpanId"] = f"{number - place + (place - 1) // 10 + 1:016x}"
    else:
        span["attributes"].append(_text("gen_ai.conversation.id", f"s{session}"))
    return span


def _text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def rows(spans: int = SPANS) -> list[dict[str, Any]]:
    """For ``make bench``."""
    return [*_rows("one trace", spans, spans), *_rows("sessions of 100", spans, 100)]


def _rows(name: str, spans: int, a_session: int) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="turnscope-bench-") as folder,
        served(Path(folder), "--checkpoint-seconds", "20") as sidecar,
        httpx.Client(trust_env=False, headers={"Content-Type": "application/json"}, timeout=60) as client,
    ):
        began = time.monotonic()
        for body in batches(spans, a_session):
            client.post(f"http://127.0.0.1:{sidecar.otlp_http}/v1/traces", content=body).raise_for_status()
        while sidecar.status().exporter.lag_bytes:
            time.sleep(0.1)
        seconds = time.monotonic() - began
        time.sleep(SETTLED_S)
        memory = _most_mb(sidecar)
    what = f"serve: {spans:,} spans, {name}"
    return [
        _row(f"{what}, resident memory at most", round(memory), "MB", f"<= {TARGET_MB}", memory <= TARGET_MB),
        _row(f"{what}, assembled", round(spans / seconds), "spans/s", None, None),
    ]


def _most_mb(sidecar: Served) -> float:
    assert sidecar.process is not None
    status = Path(f"/proc/{sidecar.process.pid}/status").read_text()
    (kb,) = re.findall(r"VmHWM:\s+(\d+)", status)
    return int(kb) / 1024


def _row(name: str, value: float, unit: str, target: str | None, ok: bool | None) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "target": target, "ok": ok, "n": 1, "spread": None}


if __name__ == "__main__":
    for one in rows(int(sys.argv[1]) if sys.argv[1:] else SPANS):
        print(one)
