"""A node's card counters as files, moved by a test or by what a real pair moves."""

from __future__ import annotations

import shutil
from pathlib import Path

EFA_NAMES = (
    "rdma_read_bytes",
    "rdma_read_wrs",
    "rdma_read_resp_bytes",
    "rdma_write_bytes",
    "rdma_write_recv_bytes",
    "send_bytes",
    "recv_bytes",
    "tx_bytes",
    "rx_bytes",
    "rx_drops",
)


class Sysfs:
    """``/sys/class/infiniband`` and ``/sys/class/net`` below one folder: links to devices, as the kernel has them."""

    def __init__(self, folder: Path) -> None:
        self.infiniband, self.net = folder / "class" / "infiniband", folder / "class" / "net"
        self._devices = folder / "devices"
        for part in (self.infiniband, self.net, self._devices):
            part.mkdir(parents=True)

    def _link(self, entry: Path) -> None:
        device = self._devices / entry.name
        device.mkdir()
        entry.symlink_to(Path("..") / ".." / "devices" / entry.name)

    def _port(self, device: str) -> Path:
        return self.infiniband / device / "ports" / "1" / "hw_counters"

    def _statistics(self, interface: str) -> Path:
        return self.net / interface / "statistics"

    def add_efa(self, device: str = "rdmap16s27", value: int = 0, names: tuple[str, ...] = EFA_NAMES) -> None:
        """One EFA device with one port."""
        self._link(self.infiniband / device)
        self._port(device).mkdir(parents=True)
        for name in names:
            (self._port(device) / name).write_text(f"{value}\n")
        (self._port(device) / "lifespan").write_text("10\n")

    def add_ethernet(self, interface: str = "eth0", value: int = 0, *, physical: bool = True, kind: str = "1") -> None:
        """One interface."""
        self._link(self.net / interface)
        self._statistics(interface).mkdir(parents=True)
        (self.net / interface / "type").write_text(f"{kind}\n")
        if physical:
            (self.net / interface / "device").mkdir()
        for name in ("rx_bytes", "tx_bytes"):
            (self._statistics(interface) / name).write_text(f"{value}\n")

    def efa(self, device: str = "rdmap16s27", **increases: int) -> None:
        """The device counts this much more."""
        for name, increase in increases.items():
            _count(self._port(device) / name, increase)

    def ethernet(self, interface: str = "eth0", **increases: int) -> None:
        """The interface counts this much more."""
        for name, increase in increases.items():
            _count(self._statistics(interface) / name, increase)

    def reset(self, device: str = "rdmap16s27") -> None:
        """The driver begins to count anew."""
        for file in self._port(device).iterdir():
            file.write_text("0\n")

    def remove(self, device: str = "rdmap16s27") -> None:
        """The device goes."""
        (self.infiniband / device).unlink()
        shutil.rmtree(self._devices / device)


def _count(file: Path, increase: int) -> None:
    file.write_text(f"{int(file.read_text()) + increase}\n")
