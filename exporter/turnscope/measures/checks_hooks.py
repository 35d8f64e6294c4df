"""Is each hook there, and is everything it says heard?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.measures.processes import place, present
from turnscope.measures.recorded import CLOCK_S, recorded
from turnscope.model import INSTALL_HOOK, EmitterStatus, SystemStatus, plural
from turnscope.semconv import Role

HEARTBEAT_S: Final = 5.0
"""Hooks' default, where none was measured yet."""
SILENT_BEATS: Final = 3


def _engine_lines(status: SystemStatus) -> str:
    return (
        f"In the engine's environment: {INSTALL_HOOK}; then start it with "
        f"TURNSCOPE_ENDPOINT=grpc://{status.exporter.otlp_address} vllm serve ... (this sidecar's address, as the "
        "engine's host reaches it). One line in the engine's log says that the hook is active."
    )


def _proxy_lines(status: SystemStatus) -> str:
    return (
        f"In the proxy's environment: {INSTALL_HOOK}; then start it with "
        f"TURNSCOPE_ENDPOINT=grpc://{status.exporter.otlp_address} turnscope run proxy.py ... (this sidecar's "
        "address, as the proxy's host reaches it)."
    )


def _live(status: SystemStatus) -> Iterator[EmitterStatus]:
    """Of them those that are not known from a recording."""
    past = recorded(status)
    return (source for source in present(status) if source.emitter.id not in past)


def no_engine(status: SystemStatus) -> Iterator[Finding]:
    """No engine has ever said anything. Where spans of agents are all that comes, that may be meant so: their models
    may be somebody else's."""
    if not any(s.emitter.kind != "proxy" for s in status.assembly.emitters):
        spans_alone = status.exporter.spans > 0 and not status.assembly.emitters
        yield Finding(
            severity=Severity.NOTE if spans_alone else Severity.ERROR,
            check="no_engine",
            where="engines",
            what="Spans of agents come, and no hook of an engine or a proxy: of model calls nothing is known but what "
            "the spans tell."
            if spans_alone
            else "No engine hook has been heard: nothing is known of prefill, decode, transfers or holds.",
            fix=_engine_lines(status),
        )


def no_proxy(status: SystemStatus) -> Iterator[Finding]:
    """Engines talk, the proxy does not."""
    kinds = {s.emitter.kind for s in status.assembly.emitters}
    if kinds - {"proxy"} and "proxy" not in kinds:
        yield Finding(
            severity=Severity.WARNING,
            check="no_proxy",
            where="proxy",
            what="No proxy hook has been heard: TTFT, sessions of clients that send no X-Session-ID, retries, finish "
            "reasons and whether streamed answers carry handles are unknown.",
            fix=_proxy_lines(status),
        )


def one_side_missing(status: SystemStatus) -> Iterator[Finding]:
    """A prefill engine without any decode engine, or the other way round."""
    roles = {str(engine.engine.role) for engine in status.assembly.engines}
    if Role.BOTH in roles:
        return
    for here, missing in ((Role.PREFILL, Role.DECODE), (Role.DECODE, Role.PREFILL)):
        if here in roles and missing not in roles:
            yield Finding(
                severity=Severity.ERROR,
                check="one_side_missing",
                where=f"{missing} engines",
                what=f"A {here} engine is heard, but no {missing} engine: turns stay without that leg.",
                fix=_engine_lines(status),
            )


def switched_off(status: SystemStatus) -> Iterator[Finding]:
    """A hook that switched itself off, or was."""
    for source in present(status):
        if source.state == "switched_off":
            yield Finding(
                severity=Severity.ERROR,
                check="switched_off",
                where=place(source),
                what=f"The hook is switched off: {source.message or 'it gave no cause'}.",
                fix="Remove the file that TURNSCOPE_OFF_FILE names if it was meant to be on; after errors of its own "
                "the hook stays off until the process restarts: report the message.",
            )


def silent(status: SystemStatus) -> Iterator[Finding]:
    """Processes that miss their heartbeats and have not said goodbye: one finding for each engine, and each proxy."""
    quiet: dict[str, list[EmitterStatus]] = {}
    for source in _live(status):
        limit = SILENT_BEATS * (source.heartbeat_s or HEARTBEAT_S)
        if source.silent_s > limit and source.state != "switched_off":
            quiet.setdefault(source.engine or source.emitter.id, []).append(source)
    for sources in quiet.values():
        more = f" Nor from {len(sources) - 1} more of its processes." if len(sources) > 1 else ""
        yield Finding(
            severity=Severity.ERROR,
            check="silent",
            where=place(sources[0]),
            what=f"Nothing heard for {min(s.silent_s for s in sources):.0f} s, more than three heartbeats.{more}",
            fix="See whether the process lives and still reaches this sidecar; the hook keeps what it can meanwhile "
            "and counts what it had to drop.",
        )


def lost_events(status: SystemStatus) -> Iterator[Finding]:
    """Events that were numbered and never arrived."""
    for source in status.assembly.emitters:
        if source.dropped or source.missing > source.dropped:
            unexplained = max(0, source.missing - source.dropped)
            cause = f"{source.dropped} dropped by the process" + (
                f", {unexplained} lost on the way" if unexplained else ""
            )
            yield Finding(
                severity=Severity.WARNING,
                check="lost_events",
                where=place(source),
                what=f"Events are missing: {cause}. Turns of that time may lack a leg.",
                fix="Dropped events mean that this sidecar could not be reached or was too slow for a while; events "
                "lost on the way point at a collector between.",
            )


def hook_errors(status: SystemStatus) -> Iterator[Finding]:
    """Exceptions inside the hook, caught and counted."""
    for source in status.assembly.emitters:
        if source.errors:
            yield Finding(
                severity=Severity.WARNING,
                check="hook_errors",
                where=place(source),
                what=f"{plural(source.errors, 'error')} inside the hook; serving was not affected, the facts of those "
                "moments are missing.",
                fix="Its log names the first one: report it with the engine's version.",
            )


def versions_differ(status: SystemStatus) -> Iterator[Finding]:
    """Hooks of more than one version of turnscope, or another than the sidecar's."""
    versions = {s.emitter.version for s in _live(status) if s.emitter.version}
    if versions - {status.exporter.version}:
        heard = ", ".join(sorted(versions))
        yield Finding(
            severity=Severity.WARNING,
            check="versions_differ",
            where="turnscope",
            what=f"This sidecar is version {status.exporter.version}, hooks are {heard}.",
            fix="Install one version everywhere: a field that one side does not know is missing without a word.",
        )


def clock_off(status: SystemStatus) -> Iterator[Finding]:
    """A host whose clock differs from the sidecar's."""
    worst: dict[str, float] = {}
    for source in _live(status):
        offset = source.clock_offset_s
        if offset is not None and abs(offset) > abs(worst.get(source.emitter.host, CLOCK_S)):
            worst[source.emitter.host] = offset
    for host, offset in worst.items():
        yield Finding(
            severity=Severity.WARNING,
            check="clock_off",
            where=f"host {host or 'without a name'}",
            what=f"Its clock is {abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} this sidecar's, or its "
            "batches take that long: times of its turns are off by as much.",
            fix="Keep the hosts' clocks in step (chrony or systemd-timesyncd).",
        )


def replayed(status: SystemStatus) -> Iterator[Finding]:
    """What is seen is a recording, or a host's clock is far off."""
    past = recorded(status)
    sources = [s for s in status.assembly.emitters if s.emitter.id in past]
    if sources:
        age = min(s.clock_offset_s or 0 for s in sources)
        yield Finding(
            severity=Severity.NOTE,
            check="replayed",
            where=", ".join(sorted({s.emitter.host or "a host without a name" for s in sources})),
            what=f"What is known of {plural(len(sources), 'process', 'processes')} there is a recording, "
            f"{age / 60:.0f} minutes old when it came: whether they are silent, their clocks and their versions are "
            "not judged.",
            fix="Nothing is to be mended if somebody replayed one; otherwise set that host's clock.",
        )
