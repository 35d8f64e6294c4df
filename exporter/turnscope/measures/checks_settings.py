"""Do the engines' settings fit each other?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from turnscope.catalog import SHARED_NAMES
from turnscope.measures.finding import Finding, Severity
from turnscope.model import SECOND_NS, EngineStatus, SystemStatus, plural
from turnscope.semconv import Reason, Role

DECLINE_MARGIN_NS: Final = 5 * SECOND_NS
"""P declines a read that would begin later than this before the hold's end."""
ENOUGH: Final = 10
"""Turns before a share is judged."""

_EXTRA = '--kv-transfer-config {..., "kv_connector_extra_config": {"bidirectional_kv_xfer": true}}'


def _side(status: SystemStatus, role: Role) -> list[EngineStatus]:
    return [e for e in status.assembly.engines if e.engine.role in (role, Role.BOTH)]


def _differs(status: SystemStatus, value: Callable[[EngineStatus], Any]) -> str:
    """``""`` when all P and D engines agree (unknown agrees with everything), else each value and who has it."""
    holders: dict[Any, list[str]] = {}
    for engine in status.assembly.engines:
        if engine.engine.role != Role.AGGREGATED and value(engine) is not None:
            holders.setdefault(value(engine), []).append(engine.name)
    if len(holders) < 2:
        return ""
    return "; ".join(f"{found} on {', '.join(names)}" for found, names in sorted(holders.items(), key=str))


def no_connector(status: SystemStatus) -> Iterator[Finding]:
    """An engine without KV transfer beside engines with it, or a connector that turnscope does not measure."""
    disaggregated = any(e.engine.connector for e in status.assembly.engines)
    for engine in status.assembly.engines:
        connector = engine.engine.connector
        if connector is None and disaggregated:
            yield Finding(
                severity=Severity.WARNING,
                check="no_connector",
                where=engine.name,
                what="It runs without a KV connector while others have one: it neither hands over nor fetches.",
                fix="Start it with --kv-transfer-config if it belongs to the prefill/decode pair.",
            )
        elif connector is not None and not connector.startswith(("Nixl", "Multi")):
            yield Finding(
                severity=Severity.NOTE,
                check="no_connector",
                where=engine.name,
                what=f"Its connector is {connector}: tokens are counted, bytes and times of transfers are not "
                "measured.",
                fix="Transfers are measured for NixlConnector, alone or inside a MultiConnector.",
            )


def bidirectional_off(status: SystemStatus) -> Iterator[Finding]:
    """The feature is on for one side only, or for none."""
    prefill = [e for e in _side(status, Role.PREFILL) if e.engine.bidirectional is not None]
    decode = [e for e in _side(status, Role.DECODE) if e.engine.bidirectional is not None]
    if not prefill or not decode:
        return
    if not any(e.engine.bidirectional for e in prefill + decode):
        yield Finding(
            severity=Severity.NOTE,
            check="bidirectional_off",
            where="all engines",
            what="Bidirectional KV transfer is off: no turn can fetch back what an earlier one left on D.",
            fix=f"To use it, start P and D with {_EXTRA}.",
        )
        return
    for engine in prefill:
        if not engine.engine.bidirectional:
            yield Finding(
                severity=Severity.ERROR,
                check="bidirectional_off",
                where=engine.name,
                what="Bidirectional KV transfer is off here and on at D: a turn that brings D's handle hangs for ever, "
                "and the engine's own gauges show nothing running or waiting.",
                fix=f"Start it with {_EXTRA}, or switch the feature off on D.",
            )
    for engine in decode:
        if not engine.engine.bidirectional:
            yield Finding(
                severity=Severity.WARNING,
                check="bidirectional_off",
                where=engine.name,
                what="Bidirectional KV transfer is off here and on at P: this engine holds nothing, so the next turn "
                "recomputes.",
                fix=f"Start it with {_EXTRA}.",
            )


def names_shared(status: SystemStatus) -> Iterator[Finding]:
    """Engines that have no name of their own in the metrics."""
    taken = {engine.name for engine in status.assembly.engines}
    for name in sorted(taken & SHARED_NAMES):
        given = [e.engine.name for e in status.assembly.engines if e.name == name]
        twice = sorted({asked for asked in given if asked in taken})
        yield Finding(
            severity=Severity.WARNING,
            check="names_shared",
            where=name,
            what=f"{plural(len(given), 'engine has', 'engines have')} no name of their own in the metrics: all of them "
            f"are counted together as {name}.",
            fix=f"{', '.join(twice)} is the name of another engine that runs: give each engine a TURNSCOPE_ENGINE_NAME "
            "of its own, or none."
            if twice
            else "More engines are there than names: raise --max-engine-names.",
        )


def block_sizes_differ(status: SystemStatus) -> Iterator[Finding]:
    """Blocks of different sizes are read piece by piece, or not at all."""
    difference = _differs(status, lambda e: e.engine.block_size)
    if difference:
        yield Finding(
            severity=Severity.WARNING,
            check="block_sizes_differ",
            where="engines",
            what=f"Block sizes differ: {difference}.",
            fix="Give all engines one --block-size: with different ones transfers are slower, or are refused.",
        )


def vllm_versions_differ(status: SystemStatus) -> Iterator[Finding]:
    """The transfer protocol is not promised between versions."""
    difference = _differs(status, lambda e: e.engine.vllm_version)
    if difference:
        yield Finding(
            severity=Severity.WARNING,
            check="vllm_versions_differ",
            where="engines",
            what=f"vLLM's versions differ: {difference}.",
            fix="Run one version on all engines: handles and handshakes may differ between versions.",
        )


def threshold_odd(status: SystemStatus) -> Iterator[Finding]:
    """A threshold that fetches single tokens, or that most turns stay under."""
    for engine in _side(status, Role.PREFILL):
        threshold = engine.engine.recompute_threshold
        below = engine.reasons.get(Reason.BELOW_THRESHOLD, 0)
        if threshold == 0:
            yield Finding(
                severity=Severity.NOTE,
                check="threshold_odd",
                where=engine.name,
                what="kv_recompute_threshold is 0: it waits for a transfer even for a single token.",
                fix="A value near the default of 64 recomputes what is cheaper to recompute.",
            )
        elif threshold and engine.handles_in >= ENOUGH and 2 * below > engine.handles_in:
            yield Finding(
                severity=Severity.WARNING,
                check="threshold_odd",
                where=engine.name,
                what=f"{below} of {plural(engine.handles_in, 'turn')} with a handle stayed under "
                f"kv_recompute_threshold {threshold} and recomputed on purpose.",
                fix="Lower the threshold if fetching that much is faster than computing it; if P's own cache covers "
                "most of each turn, this is as it should be.",
            )


def prefix_caching_off(status: SystemStatus) -> Iterator[Finding]:
    """P keeps nothing itself: the published benchmark's setting, not a production one."""
    for engine in _side(status, Role.PREFILL):
        if engine.engine.prefix_caching is False:
            yield Finding(
                severity=Severity.NOTE,
                check="prefix_caching_off",
                where=engine.name,
                what="Prefix caching is off on P: every turn without a fetch computes its whole prompt.",
                fix="Remove --no-enable-prefix-caching unless it emulates misses for a measurement.",
            )


def hold_shorter_than_margin(status: SystemStatus) -> Iterator[Finding]:
    """P's safety margin eats the whole hold."""
    for engine in _side(status, Role.DECODE):
        ttl = engine.engine.hold_ttl_ns
        if ttl is not None and ttl <= DECLINE_MARGIN_NS:
            yield Finding(
                severity=Severity.ERROR,
                check="hold_shorter_than_margin",
                where=engine.name,
                what=f"decoder_kv_blocks_ttl is {ttl / 1e9:g} s, and P declines within 5 s of a hold's end: it "
                "declines always.",
                fix="Set decoder_kv_blocks_ttl to the longest usual pause between turns, plus 5 s; the default is 480 "
                "s.",
            )


def proxy_keeps_too_long(status: SystemStatus) -> Iterator[Finding]:
    """The proxy gives handles of holds that have ended."""
    kept = status.exporter.proxy_ttl_s
    for engine in _side(status, Role.DECODE):
        ttl = engine.engine.hold_ttl_ns
        if kept is None or ttl is None:
            continue
        at_most_ns = ttl - DECLINE_MARGIN_NS
        if 0 < at_most_ns < kept * SECOND_NS:
            yield Finding(
                severity=Severity.WARNING,
                check="proxy_keeps_too_long",
                where=engine.name,
                what=f"Blocks are held for {ttl / 1e9:g} s, and this sidecar takes it that the proxy gives a handle "
                f"for up to {kept:g} s: P declines what comes within 5 s of the hold's end, or later.",
                fix=f"Let the proxy keep handles for at most {at_most_ns / SECOND_NS:g} s; if it does, tell the "
                "sidecar with --proxy-ttl-seconds.",
            )
