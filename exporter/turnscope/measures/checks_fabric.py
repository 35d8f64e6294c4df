"""Do transfers take the way they should, and are they seen?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.measures.recorded import recorded
from turnscope.model import FabricStatus, FabricWindow, SystemStatus, plural
from turnscope.semconv import Role, Transport

SLOW_LOCAL: Final = 2e9
"""Bytes a second below which a read within a node takes a detour: copying memory is several times faster."""
ENOUGH_BYTES: Final = 100_000_000
"""Moved within a window before its speed is judged: of small reads most of the time is the engine's step."""
ENOUGH_REQUESTS: Final = 10
"""In a row."""
LOOKED_S: Final = 60.0
"""Three of the longest times between two looks."""


def _last(node: FabricStatus) -> FabricWindow | None:
    return node.windows[-1] if node.windows else None


def _backends(status: SystemStatus, node: FabricStatus) -> str:
    """NIXL's backends by the node's engines: ``UCX on prefill-0, decode-0``."""
    names: dict[str, list[str]] = {}
    for engine in status.assembly.engines:
        if engine.name in node.engines and engine.engine.nixl_backends:
            names.setdefault(", ".join(engine.engine.nixl_backends), []).append(engine.name)
    listed = "; ".join(f"{backends} on {', '.join(engines)}" for backends, engines in names.items())
    return listed or "not known"


def _speed(window: FabricWindow) -> str:
    return "" if window.bytes_per_second is None else f" at {window.bytes_per_second / 1e9:.2f} GB/s"


def _size(value: int | None) -> str:
    return "not measured" if value is None else f"{value:,} B"


def fell_back_to_tcp(status: SystemStatus) -> Iterator[Finding]:
    """The node has EFA, and its transfers went over Ethernet."""
    for node in status.assembly.fabric:
        window = _last(node)
        if window is not None and window.transport == Transport.TCP:
            yield Finding(
                severity=Severity.ERROR,
                check="fell_back_to_tcp",
                where=node.node,
                what=f"Transfers fell back to TCP: in {window.seconds:.0f} s NIXL moved "
                f"{_size(window.across_bytes + window.within_bytes)}{_speed(window)}, EFA {_size(window.efa_bytes)}, "
                f"Ethernet {_size(window.ethernet_bytes)}. NIXL's backend: {_backends(status, node)}.",
                fix="NIXL's default backend, UCX, takes TCP without a word where it cannot drive EFA: set "
                '"kv_connector_extra_config": {"backends": ["LIBFABRIC"]} on P and D, or give UCX a build with EFA\'s '
                "transport; see that the libraries the engines load and the EFA driver fit each other.",
            )


def same_host_slow_read_path(status: SystemStatus) -> Iterator[Finding]:
    """Engines of one node read from each other slower than memory is copied."""
    for node in status.assembly.fabric:
        window = _last(node)
        if window is None or window.transport != Transport.LOCAL or window.bytes_per_second is None:
            continue
        if window.bytes_per_second < SLOW_LOCAL and window.within_bytes >= ENOUGH_BYTES:
            yield Finding(
                severity=Severity.WARNING,
                check="same_host_slow_read_path",
                where=node.node,
                what=f"Same-host slow read path: engines of this node moved {_size(window.within_bytes)} between each "
                f"other{_speed(window)}, with no card in between (EFA {_size(window.efa_bytes)}, Ethernet "
                f"{_size(window.ethernet_bytes)}). NIXL's backend: {_backends(status, node)}.",
                fix="Let the engines reach each other's memory directly (UCX_TLS with cuda_ipc and shared memory; in "
                "pods a shared IPC namespace): reads lack the fast path that writes have.",
            )


def cards_not_looked_at(status: SystemStatus) -> Iterator[Finding]:
    """A collector that stopped: transports are unknown from then on. Of a recording's nobody expects another look."""
    past = recorded(status)
    for node in status.assembly.fabric:
        if node.silent_s > LOOKED_S and node.collector not in past:
            yield Finding(
                severity=Severity.WARNING,
                check="cards_not_looked_at",
                where=node.node,
                what=f"The card counters of this node were last looked at {node.silent_s:.0f} s ago: what carries "
                "transfers is unknown since.",
                fix="See the log of the sidecar on that node.",
            )


def no_handoffs(status: SystemStatus) -> Iterator[Finding]:
    """P works, D works, and nothing passes between them: answers are right, so nobody notices."""
    for engine in status.assembly.engines:
        alone, prefills = engine.without_handoff, engine.prefills_meanwhile
        if engine.engine.role == Role.DECODE and alone >= ENOUGH_REQUESTS and 2 * prefills >= alone:
            yield Finding(
                severity=Severity.ERROR,
                check="no_handoffs",
                where=engine.name,
                what=f"P/D active, 0 handoffs, D computes 100% of prompts: its last {plural(alone, 'request')} "
                f"brought nothing from P, while prefill engines ended {prefills}. Every prompt is computed twice.",
                fix="Let the proxy pass P's kv_transfer_params on to D, and see that both have a connector that hands "
                "over (kv_role kv_producer on P, kv_consumer on D).",
            )


def child_not_measured(status: SystemStatus) -> Iterator[Finding]:
    """A composite connector whose children turnscope cannot all measure."""
    for engine in status.assembly.engines:
        unseen = [name for name in engine.engine.connectors if not name.startswith("Nixl")]
        if unseen:
            yield Finding(
                severity=Severity.NOTE,
                check="child_not_measured",
                where=engine.name,
                what=f"Of its composite connector, {', '.join(unseen)} moves KV that is not measured: its tokens are "
                "counted, its bytes and times are absent.",
                fix="Nothing needs mending: bytes and times are measured for NIXL children.",
            )
