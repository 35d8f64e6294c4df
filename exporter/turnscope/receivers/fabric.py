"""Looks at this node's network cards from time to time and hands in what they counted, as one event a look.

The counters are files: ``<infiniband>/<device>/ports/<n>/hw_counters/<name>`` of EFA, in bytes and pieces as the driver
names them, and ``<net>/<interface>/statistics/{rx,tx}_bytes``. What is not there, or cannot be read, is left out.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from turnscope.measures.fabric_counters import Counters, Increase, first, increase
from turnscope.model import Emitter, Event, Fabric
from turnscope.receivers.errors import Unavailable

_LOG: Final = logging.getLogger(__name__)

EFA: Final = frozenset(
    {
        "rdma_read_bytes",
        "rdma_read_resp_bytes",
        "rdma_write_bytes",
        "rdma_write_recv_bytes",
        "send_bytes",
        "recv_bytes",
        "tx_bytes",
        "rx_bytes",
    }
)
"""A port with any of these is EFA's: other RDMA cards count under other names."""
NO_COUNTER: Final = "lifespan"
"""A setting of the kernel's in the same folder."""
ETHERNET: Final = ("rx_bytes", "tx_bytes")
LOOPBACK: Final = "772"
"""``ARPHRD_LOOPBACK``."""


def efa_ports(folder: Path) -> Counters:
    """Port to its counters."""
    found = {}
    for counters in sorted(folder.glob("*/ports/*/hw_counters")):
        names = (name for name in _entries(counters) if name != NO_COUNTER)
        values = {name: _number(f"{counters}/{name}") for name in names}
        port = {name: value for name, value in values.items() if value is not None}
        if EFA & port.keys():
            found[f"{counters.parts[-4]}/{counters.parts[-2]}"] = port
    return found


def interfaces(folder: Path) -> Counters:
    """Interface to its counters: physical ones where there are any, else all; bridges and pairs would count twice."""
    found, physical = {}, set()
    for interface in _entries(folder):
        if interface == "lo" or _text(f"{folder}/{interface}/type") == LOOPBACK:
            continue
        values = {name: _number(f"{folder}/{interface}/statistics/{name}") for name in ETHERNET}
        counters = {name: value for name, value in values.items() if value is not None}
        if counters:
            found[interface] = counters
            if (folder / interface / "device").exists():
                physical.add(interface)
    return {name: counters for name, counters in found.items() if not physical or name in physical}


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed, of hundreds of files
    except OSError:
        return []


def _text(file: str) -> str | None:
    """One short file, without the layers of a text file: a node can have a thousand counters."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, 64).decode("ascii").strip()
    except (OSError, UnicodeError):
        return None
    finally:
        os.close(descriptor)


def _number(file: str) -> int | None:
    text = _text(file)
    return int(text) if text is not None and text.isdigit() else None


class Collector:
    """One collector. ``look`` may also be called by hand; ``start`` has a thread do it every ``every_s``."""

    def __init__(
        self,
        accept: Callable[[list[Event]], None],
        *,
        node: str,
        hosts: list[str],
        host: str,
        version: str,
        infiniband: Path,
        net: Path,
        every_s: float,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._accept = accept
        self._node = node
        self._hosts = hosts
        self._folders = infiniband, net
        self._every_s = every_s
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self._emitter = Emitter(id=secrets.token_hex(8), kind="collector", pid=os.getpid(), host=host, version=version)
        self._seq = 0
        self._before: tuple[int, Counters, Counters] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="turnscope-fabric", daemon=True)

    def start(self) -> None:
        """Look now and then."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception:
                _LOG.exception("the card counters could not be looked at")
            if self._stop.wait(self._every_s):
                return

    def look(self) -> None:
        """Read the counters and hand in what they counted. What is not taken in is part of the next look."""
        mono_ns, wall_ns = self._monotonic_ns(), self._wall_ns()
        efa, ethernet = efa_ports(self._folders[0]), interfaces(self._folders[1])
        if self._before is None:
            body = self._body(first(efa), first(ethernet), None)
        else:
            since_ns, old_efa, old_ethernet = self._before
            body = self._body(increase(old_efa, efa), increase(old_ethernet, ethernet), mono_ns - since_ns)
        event = Event(
            emitter=self._emitter, engine=None, seq=self._seq + 1, wall_ns=wall_ns, mono_ns=mono_ns, body=body
        )
        try:
            self._accept([event])
        except Unavailable:
            return
        self._seq += 1
        self._before = mono_ns, efa, ethernet

    def _body(self, efa: Increase, ethernet: Increase, interval_ns: int | None) -> Fabric:
        return Fabric(
            node=self._node,
            hosts=self._hosts,
            interval_ns=interval_ns,
            efa_devices=efa.devices,
            efa_counters=list(efa.counters),
            efa_increases=list(efa.counters.values()),
            efa_partial=efa.partial,
            ethernet_devices=ethernet.devices,
            ethernet_counters=list(ethernet.counters),
            ethernet_increases=list(ethernet.counters.values()),
            ethernet_partial=ethernet.partial,
        )
