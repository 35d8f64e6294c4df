"""A node whose cards are looked at while a pair moves KV over them."""

from __future__ import annotations

import msgspec

from live.sysfs import Sysfs
from tests.assembly.run import Run
from tests.builders import MS, Pair, Process, read
from tests.sysfs import Looks
from turnscope.assembly import AssemblySettings
from turnscope.measures.finding import Finding
from turnscope.measures.findings import findings
from turnscope.model import Event, ExporterStatus, FabricStatus, FabricWindow, SystemStatus
from turnscope.semconv import Direction

READ_BYTES = 134_217_728
READS = 80
BYTES = READS * READ_BYTES
LOOK_MS = 2_000
WINDOW_MS = 60_000


def on(process: Process, host: str) -> None:
    process.emitter = msgspec.structs.replace(process.emitter, host=host)


def two_nodes(pair: Pair) -> Pair:
    """P on a node of its own."""
    on(pair.p, "host-p")
    on(pair.pw, "host-p")
    return pair


def handoff(pair: Pair, n: int, at_ms: float, lasted_ms: float, size: int = READ_BYTES) -> Event:
    """D reads from P until ``at_ms``."""
    body = read(
        Direction.HANDOFF,
        local=f"d{n}",
        remote=("p", f"p{n}"),
        bytes=size,
        started_mono_ns=int((at_ms - lasted_ms) * MS),
        duration_ns=int(lasted_ms * MS),
    )
    return pair.dw.say(body, int(at_ms))


class Node:
    """One window of traffic at a time, looked at every two seconds."""

    def __init__(self, tree: Sysfs, pair: Pair, settings: AssemblySettings | None = None) -> None:
        self.tree, self.pair = tree, pair
        self.looks = Looks(tree)
        self.run = Run(settings)
        self.run.feed(pair.start())
        self.run.feed([self.looks.at(0)])
        self.now_ms, self.reads = 0, 0

    def window(self, *, efa: int = 0, ethernet: int = 0, gbps: float = 0.3, reads: int = READS) -> FabricWindow | None:
        """``reads`` one after the other, while cards count so much in all; the window as shown afterwards."""
        steps = WINDOW_MS // LOOK_MS
        lasted_ms = READ_BYTES / gbps / 1e6
        ends_ms = [self.now_ms + n * WINDOW_MS / reads for n in range(1, reads + 1)]
        for _ in range(steps):
            end_ms = self.now_ms + LOOK_MS
            for at_ms in [at for at in ends_ms if self.now_ms < at <= end_ms]:
                self.reads += 1
                self.run.feed([handoff(self.pair, self.reads, at_ms, lasted_ms)])
            if self.tree.infiniband.joinpath("rdmap16s27").exists():
                self.tree.efa(rdma_read_bytes=efa // steps, rx_bytes=efa // steps)
            self.tree.ethernet(rx_bytes=ethernet // steps)
            self.now_ms = end_ms
            self.run.feed([self.looks.at(end_ms)])
        self.run.wait(3)
        shown = self.status().windows
        return shown[-1] if shown else None

    def status(self) -> FabricStatus:
        (status,) = self.run.assembler.status(self.run.now_ns).fabric
        return status

    def findings(self) -> list[Finding]:
        """Of the transfers' way; engines' hooks are not what these tests are about."""
        exporter = ExporterStatus(version="0", uptime_s=1.0, last_scrape_s=1.0)
        status = SystemStatus(assembly=self.run.assembler.status(self.run.now_ns), exporter=exporter)
        return [f for f in findings(status) if f.check in ("fell_back_to_tcp", "same_host_slow_read_path")]
