"""Sample files of every kind, and the published benchmark's artefacts made of chosen figures."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from turnscope.decode.imports.report import Line, Report
from turnscope.model import AgentSpan

FOLDER = Path(__file__).parent / "samples"
MS = 1_000_000
NINE_NS = 1_791_795_600 * 10**9
"""2026-10-12 09:00 UTC, when every sample begins."""
Reader = Callable[[Iterable[Line], Report], Iterator[AgentSpan]]


def lines(texts: Iterable[str | bytes | dict[str, Any]]) -> list[Line]:
    """Lines of a file: text as it is, a dict as JSON."""
    made = [json.dumps(text) if isinstance(text, dict) else text for text in texts]
    return [Line(n, text.encode() if isinstance(text, str) else text) for n, text in enumerate(made, 1)]


def sample(name: str) -> list[Line]:
    """The lines of a sample file."""
    return lines((FOLDER / name).read_text().splitlines())


def read(reader: Reader, given: Sequence[Line]) -> tuple[list[AgentSpan], Report]:
    """What a reader makes of lines: its spans in order of their start, and the report."""
    report = Report()
    return sorted(reader(given, report), key=lambda span: (span.started_ns, span.kind)), report


def seconds(span: AgentSpan) -> tuple[float, float | None]:
    """When a span began and ended, in seconds since the sample's begin."""
    end = None if span.ended_ns is None else (span.ended_ns - NINE_NS) / 1e9
    return (span.started_ns - NINE_NS) / 1e9, end


class Request:
    """One request of a benchmark's run, as all three artefacts tell of it."""

    def __init__(
        self,
        conversation: str,
        turn: int,
        *,
        tokens: int,
        ttft_ms: float,
        prefill_ms: int,
        at_s: float,
        handle: bool = False,
        transfer_ms: float = 0.0,
    ) -> None:
        self.conversation, self.turn, self.tokens = conversation, turn, tokens
        self.ttft_ms, self.prefill_ms, self.at_s = ttft_ms, prefill_ms, at_s
        self.handle, self.transfer_ms = handle, transfer_ms

    def statistics(self) -> dict[str, Any]:
        """As the client's file has it; its clock began 5,000 s before nine."""
        return {
            "ttft_ms": self.ttft_ms,
            "tpot_ms": 7.5,
            "latency_ms": self.ttft_ms + 100.0,
            "start_time_ms": 5_000_000 + self.at_s * 1000,
            "input_num_turns": 2 * self.turn - 1,
            "input_num_tokens": self.tokens,
            "output_num_tokens": 20,
            "output_num_chunks": 19,
            "output_num_first_chunk_tokens": 1,
            "approx_cached_percent": 91.5,
            "conversation_id": self.conversation,
            "client_id": 0,
        }

    def proxy_lines(self) -> list[str]:
        """As the proxy logs it; P has the request 5 ms after the client sent it."""
        begun, done = _time(self.at_s + 0.005), _time(self.at_s + 0.005 + self.prefill_ms / 1000)
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.conversation}-{self.turn}-{self.at_s}")
        conversation = f"[{name}] conv={self.conversation}"
        asked = [f"{begun} [INFO] disagg_proxy: {conversation}: cache MISS"]
        if self.handle:
            asked = [
                f"{begun} [INFO] disagg_proxy: conv={self.conversation}: cache HIT (age=3.1s)",
                f"{begun} [INFO] disagg_proxy: {conversation}: sending D's cached blocks to P (remote_request_id=r)",
            ]
        return [*asked, f"{done} [INFO] disagg_proxy: [{name}] Prefill done in {self.prefill_ms}ms"]


def transfer_line(transfers: int, average_ms: float, average_mb: float = 2.5) -> str:
    """One interval of P's log, as vLLM 0.32 writes it."""
    return (
        "(APIServer pid=17433) INFO 10-12 09:00:10 [metrics.py:103] KV Transfer metrics: "
        f"Num successful transfers={transfers}, Avg xfer time (ms)={average_ms}, P90 xfer time (ms)=11.032, "
        f"Avg post time (ms)=1.682, P90 post time (ms)=3.945, Avg MB per transfer={average_mb}, "
        "Throughput (MB/s)=79.247, Avg number of descriptors=3.3, Num failed transfers=0, Num KV expired reqs=0, "
        "Num notifs after expiry=0"
    )


def write_run(folder: Path, requests: Sequence[Request], *, ranks: int = 1, name: str = "run") -> list[str]:
    """The three artefacts of a run; each request with a handle has an interval of its own in P's log."""
    paths = [folder / f"{name}.json", folder / f"{name}-proxy.log", folder / f"{name}-prefill.log"]
    paths[0].write_text(json.dumps([one.statistics() for one in requests], indent=2))
    paths[1].write_text("INFO: started\n" + "\n".join(line for one in requests for line in one.proxy_lines()) + "\n")
    engine = [transfer_line(ranks, one.transfer_ms) for one in requests if one.handle]
    paths[2].write_text("\n".join(["INFO 10-12 09:00:00 [api_server.py:1] vLLM is starting", *engine]) + "\n")
    return [str(path) for path in paths]


def published(*, on: bool) -> list[Request]:
    """A run of three conversations from 2k to 24k tokens, with the published ends for a 32B model: 778 ms to the first
    token at the longest prompt without the feature, 460 ms with it, and transfers of 30 to 130 ms."""
    made = []
    for conversation in range(3):
        for turn in range(1, 13):
            share = (turn - 1) / 11
            handle = on and turn > 1
            ttft = 90 + (460 - 90) * share if handle else 90 + (778 - 90) * share
            made.append(
                Request(
                    f"CONV_ID_{conversation}",
                    turn,
                    tokens=2_000 * turn,
                    ttft_ms=ttft,
                    prefill_ms=round(ttft) - 20,
                    at_s=len(made) * 4.0,
                    handle=handle,
                    transfer_ms=30 + 100 * share,
                )
            )
    return made


def _time(seconds_after_nine: float) -> str:
    at = dt.datetime(2026, 10, 12, 9, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds_after_nine)
    return f"{at:%Y-%m-%d %H:%M:%S}"
