"""What the sidecar's status says of processes, as rows of the store."""

from __future__ import annotations

from turnscope.model import SECOND_NS, AssemblyStatus, ProcessRecord, Skew


def processes(status: AssemblyStatus, now_ns: int) -> list[ProcessRecord]:
    """One row a process with a hook; ``now_ns`` is Unix time. Pure."""
    engines = {engine.name: engine.engine for engine in status.engines}
    out = []
    for heard in status.emitters:
        emitter, engine = heard.emitter, engines.get(heard.engine or "")
        out.append(
            ProcessRecord(
                process_id=emitter.id,
                revision=now_ns,
                kind=emitter.kind,
                started_ns=now_ns - round(heard.heard_s * SECOND_NS),
                ended_ns=now_ns - round(heard.silent_s * SECOND_NS),
                host=emitter.host,
                version=emitter.version,
                engine=heard.engine,
                role=engine.role if engine is not None else None,
                model=engine.model if engine is not None else None,
                vllm_version=engine.vllm_version if engine is not None else None,
                connector=engine.connector if engine is not None else None,
                state=heard.state,
                message=heard.message,
                replayed=emitter.replayed,
                received=heard.received,
                missing=heard.missing,
                dropped=heard.dropped,
                errors=heard.errors,
                clock_offset_ns=round(heard.clock_offset_s * SECOND_NS) if heard.clock_offset_s is not None else None,
                skews=_skews(status, emitter.host),
            )
        )
    return out


def _skews(status: AssemblyStatus, host: str) -> list[Skew]:
    found = {}
    for pair in status.clocks:
        if host in (pair.host, pair.other) and pair.host != pair.other:
            other, sign = (pair.other, 1) if pair.host == host else (pair.host, -1)
            found[other] = Skew(
                host=other, skew_ns=sign * round(pair.skew_s * SECOND_NS), error_ns=round(pair.error_s * SECOND_NS)
            )
    return [found[other] for other in sorted(found)]
