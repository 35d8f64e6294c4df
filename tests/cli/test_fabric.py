"""The sidecar looks at its node's cards: settings, metrics, status and doctor, with real time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from live.sysfs import Sysfs
from tests.builders import MS, Pair, Process, read
from turnscope.cli.errors import Sorry
from turnscope.cli.options import load
from turnscope.cli.sidecar import Sidecar
from turnscope.measures.findings import findings
from turnscope.model import Event, FabricStatus
from turnscope.semconv import Direction

WAIT_S = 60.0
READ_BYTES = 50_000_000


def sidecar(tmp_path: Path, tree: Sysfs, **given: Any) -> Sidecar:
    settings = {
        "http": "127.0.0.1:0",
        "otlp_grpc": "127.0.0.1:0",
        "otlp_http": "127.0.0.1:0",
        "data_dir": tmp_path / "data",
    }
    fabric = {
        "infiniband_dir": tree.infiniband,
        "net_dir": tree.net,
        "node": "node-a",
        "node_hosts": "decode-*,other",
        "fabric_seconds": 0.05,
        "fabric_window_seconds": 1,
    }
    return Sidecar(load({**settings, **fabric, **given}))


def now(event: Event) -> Event:
    """Sent just now, by this host's clocks."""
    return msgspec.structs.replace(event, wall_ns=time.time_ns(), mono_ns=time.monotonic_ns())


def put_on(process: Process, host: str) -> None:
    process.emitter = msgspec.structs.replace(process.emitter, host=host)


def node(running: Sidecar) -> FabricStatus | None:
    return next(iter(running.status().assembly.fabric), None)


def page(running: Sidecar) -> str:
    return httpx.get(f"http://127.0.0.1:{running.http_port}/metrics", trust_env=False, timeout=30).text


def test_a_fallback_to_tcp_on_this_node_is_in_status_metrics_and_findings(tmp_path: Path) -> None:
    tree = Sysfs(tmp_path)
    tree.add_efa()
    tree.add_ethernet()
    pair = Pair()
    for process, host in ((pair.p, "prefill-7"), (pair.pw, "prefill-7"), (pair.d, "decode-3"), (pair.dw, "decode-3")):
        put_on(process, host)
    running = sidecar(tmp_path, tree)
    running.start()
    try:
        running._accept([now(e) for e in pair.start()])
        deadline = time.monotonic() + WAIT_S
        number = 0
        while not ((found := node(running)) and found.windows):
            assert time.monotonic() < deadline
            number += 1
            tree.ethernet(rx_bytes=READ_BYTES)
            body = read(
                Direction.HANDOFF,
                local=f"d{number}",
                remote=("p", f"p{number}"),
                bytes=READ_BYTES,
                duration_ns=10 * MS,
            )
            running._accept([now(pair.dw.say(body, 0))])
            time.sleep(0.1)
        assert (found.node, found.efa_devices, found.ethernet_devices, found.engines) == ("node-a", 1, 1, ["decode-0"])
        (window, *_) = found.windows
        assert (window.transport, window.within_bytes, window.efa_bytes) == ("tcp", 0, 0)
        assert "fell_back_to_tcp" in {f.check for f in findings(running.status())}
        text = page(running)
        assert 'turnscope_fabric_windows_total{node="node-a",transport="tcp"}' in text
        assert 'turnscope_fabric_efa_bytes_total{counter="rdma_read_bytes",node="node-a"} 0.0' in text
        assert 'turnscope_fabric_devices{card="efa",node="node-a"} 1.0' in text
    finally:
        running.close()


def test_with_no_time_between_looks_nobody_looks(tmp_path: Path) -> None:
    tree = Sysfs(tmp_path)
    tree.add_efa()
    running = sidecar(tmp_path, tree, fabric_seconds=0)
    running.start()
    running.close()
    assert running.status().assembly.fabric == []


def test_by_default_a_node_is_known_by_its_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "this-host")
    running = sidecar(tmp_path, Sysfs(tmp_path), node=None, node_hosts=[])
    running.start()
    try:
        deadline = time.monotonic() + WAIT_S
        while (found := node(running)) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert found.node == "this-host"
    finally:
        running.close()


@pytest.mark.parametrize(
    ("name", "value"), [("fabric_seconds", "-1"), ("fabric_seconds", "21"), ("fabric_window_seconds", "0")]
)
def test_times_between_looks_that_cannot_be_are_named(name: str, value: str) -> None:
    with pytest.raises(Sorry, match=f"^--{name.replace('_', '-')}: "):
        load({name: value})


def test_several_hosts_are_separated_by_commas() -> None:
    assert load({"node_hosts": "a, b-*,,c "}).node_hosts == ["a", "b-*", "c"]
