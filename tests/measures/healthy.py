"""A pair, its proxy and their sidecar as they should be: nothing to find."""

from __future__ import annotations

from turnscope.model import (
    AssemblyStatus,
    Emitter,
    EmitterStatus,
    Engine,
    EngineStatus,
    ExporterStatus,
    SystemStatus,
)


def _source(kind: str, pid: int, host: str, engine: str | None = None) -> EmitterStatus:
    return EmitterStatus(
        emitter=Emitter(id=f"{pid:016x}", kind=kind, pid=pid, host=host, version="0.1.0"),
        engine=engine,
        generation=f"generation of {engine}" if engine else None,
        silent_s=2.0,
        received=100,
        clock_offset_s=0.2,
    )


def _engine(name: str, role: str) -> EngineStatus:
    return EngineStatus(
        name=name,
        engine=Engine(
            id=f"id of {name}",
            generation=f"generation of {name}",
            role=role,
            vllm_version="0.32.0",
            connector="NixlConnector",
            block_size=128,
            bidirectional=True,
            recompute_threshold=64,
            hold_ttl_ns=480_000_000_000,
            prefix_caching=True,
        ),
    )


def healthy_status() -> SystemStatus:
    """Fresh at each call: tests bend it."""
    prefill, decode = _engine("prefill-0", "prefill"), _engine("decode-0", "decode")
    prefill.handles_in, prefill.reasons = 15, {"none": 15, "first_turn": 5}
    decode.handles_in, decode.handles_out, decode.handles_out_with_expiry = 20, 20, 20
    decode.streamed_answers, decode.streamed_handles = 20, 20
    return SystemStatus(
        assembly=AssemblyStatus(
            emitters=[
                _source("engine", 11, "host-p", "prefill-0"),
                _source("engine", 12, "host-d", "decode-0"),
                _source("proxy", 13, "host-x"),
            ],
            engines=[prefill, decode],
            attempts=20,
        ),
        exporter=ExporterStatus(version="0.1.0", uptime_s=3600.0, proxy_ttl_s=450.0, last_scrape_s=10.0),
    )
