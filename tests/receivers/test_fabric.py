"""The collector reads what is there: a counter that is missing is absent, never 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.sysfs import EFA_NAMES, Sysfs
from tests.builders import MS
from tests.sysfs import Looks
from turnscope.decode import codec
from turnscope.model import Event, Fabric
from turnscope.receivers.errors import Unavailable
from turnscope.receivers.fabric import Collector, efa_ports, interfaces


@pytest.fixture
def tree(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def looked(event: Event) -> Fabric:
    assert isinstance(event.body, Fabric)
    return event.body


def efa(event: Event) -> dict[str, int]:
    body = looked(event)
    return dict(zip(body.efa_counters, body.efa_increases, strict=True))


def ethernet(event: Event) -> dict[str, int]:
    body = looked(event)
    return dict(zip(body.ethernet_counters, body.ethernet_increases, strict=True))


def test_the_first_look_has_nothing_to_compare_with_and_names_every_counter(tree: Sysfs) -> None:
    tree.add_efa(value=5_000_000_000)
    tree.add_ethernet(value=7)
    event = Looks(tree).at(0)
    assert looked(event).interval_ns is None
    assert efa(event) == dict.fromkeys(EFA_NAMES, 0)
    assert ethernet(event) == {"rx_bytes": 0, "tx_bytes": 0}


def test_increases_are_summed_over_devices_by_raw_name_and_their_time_is_monotonic(tree: Sysfs) -> None:
    tree.add_efa("rdmap16s27", value=100)
    tree.add_efa("rdmap32s27", value=9_000)
    looks = Looks(tree)
    looks.at(0)
    tree.efa("rdmap16s27", rdma_read_bytes=40, rx_bytes=44)
    tree.efa("rdmap32s27", rdma_read_bytes=2)
    event = looks.at(2_000)
    assert (looked(event).interval_ns, event.mono_ns, looked(event).efa_devices) == (2_000 * MS, 2_000 * MS, 2)
    assert {name: value for name, value in efa(event).items() if value} == {"rdma_read_bytes": 42, "rx_bytes": 44}
    assert not looked(event).efa_partial


@pytest.mark.parametrize("names", [("rx_bytes",), ("rdma_read_bytes", "strange_new_bytes"), EFA_NAMES])
def test_counters_of_any_driver_are_read_as_they_are_named_and_no_other_is_made_up(
    tree: Sysfs, names: tuple[str, ...]
) -> None:
    tree.add_efa(names=names)
    looks = Looks(tree)
    looks.at(0)
    assert efa(looks.at(2_000)) == dict.fromkeys(names, 0)


def test_a_node_without_devices_counts_nothing_rather_than_0(tree: Sysfs) -> None:
    looks = Looks(tree)
    looks.at(0)
    event = looks.at(2_000)
    assert (looked(event).efa_devices, efa(event), ethernet(event)) == (0, {}, {})


def test_folders_that_do_not_exist_are_a_node_without_devices(tmp_path: Path) -> None:
    assert (efa_ports(tmp_path / "no"), interfaces(tmp_path / "no")) == ({}, {})


def test_the_cards_of_other_makers_are_not_efa(tree: Sysfs) -> None:
    tree.add_efa("mlx5_0", names=("out_of_buffer", "rx_read_requests"))
    assert efa_ports(tree.infiniband) == {}


@pytest.mark.parametrize("content", ["", "N/A\n", "-1\n", "12 34", "٣", "\xff"])
def test_a_counter_that_is_no_number_is_absent(tree: Sysfs, content: str) -> None:
    tree.add_efa(names=("rdma_read_bytes", "rx_bytes"))
    file = tree.infiniband / "rdmap16s27/ports/1/hw_counters/rdma_read_bytes"
    file.write_bytes(content.encode("latin-1" if content == "\xff" else "utf-8"))
    assert efa_ports(tree.infiniband) == {"rdmap16s27/1": {"rx_bytes": 0}}


def test_a_counter_that_cannot_be_read_any_more_is_absent_and_the_sum_is_said_to_be_partial(tree: Sysfs) -> None:
    tree.add_efa(names=("rdma_read_bytes", "rx_bytes"))
    looks = Looks(tree)
    looks.at(0)
    tree.efa(rx_bytes=10)
    (tree.infiniband / "rdmap16s27/ports/1/hw_counters/rdma_read_bytes").unlink()
    event = looks.at(2_000)
    assert (efa(event), looked(event).efa_partial) == ({"rx_bytes": 10}, True)


def test_after_a_reset_what_the_counter_shows_is_a_lower_bound(tree: Sysfs) -> None:
    tree.add_efa(value=5_000, names=("rdma_read_bytes",))
    looks = Looks(tree)
    looks.at(0)
    tree.reset()
    tree.efa(rdma_read_bytes=30)
    event = looks.at(2_000)
    assert (efa(event), looked(event).efa_partial) == ({"rdma_read_bytes": 30}, True)
    tree.efa(rdma_read_bytes=12)
    event = looks.at(4_000)
    assert (efa(event), looked(event).efa_partial) == ({"rdma_read_bytes": 12}, False)


def test_a_device_that_goes_and_comes_back_adds_only_what_was_seen_of_it(tree: Sysfs) -> None:
    tree.add_efa("rdmap16s27", names=("rx_bytes",))
    tree.add_efa("rdmap32s27", value=1_000_000, names=("rx_bytes",))
    looks = Looks(tree)
    looks.at(0)
    tree.efa("rdmap16s27", rx_bytes=5)
    tree.remove("rdmap32s27")
    gone = looks.at(2_000)
    tree.add_efa("rdmap32s27", value=2_000_000, names=("rx_bytes",))
    back = looks.at(4_000)
    tree.efa("rdmap32s27", rx_bytes=7)
    after = looks.at(6_000)
    assert [efa(event)["rx_bytes"] for event in (gone, back, after)] == [5, 0, 7]
    assert [looked(event).efa_partial for event in (gone, back, after)] == [True, True, False]
    assert [looked(event).efa_devices for event in (gone, back, after)] == [1, 2, 2]


def test_of_interfaces_the_physical_ones_count_and_never_the_loopback(tree: Sysfs) -> None:
    tree.add_ethernet("lo", physical=False, kind="772")
    tree.add_ethernet("eth0")
    tree.add_ethernet("eth1")
    tree.add_ethernet("docker0", physical=False)
    assert sorted(interfaces(tree.net)) == ["eth0", "eth1"]


def test_inside_a_pod_where_no_interface_is_physical_all_but_the_loopback_count(tree: Sysfs) -> None:
    tree.add_ethernet("lo", physical=False, kind="772")
    tree.add_ethernet("eth0", physical=False)
    assert sorted(interfaces(tree.net)) == ["eth0"]


def test_what_was_not_taken_in_is_part_of_the_next_look(tree: Sysfs) -> None:
    tree.add_efa(names=("rx_bytes",))
    taken: list[Event] = []
    refuse, now_ns = False, 0

    def accept(events: list[Event]) -> None:
        if refuse:
            raise Unavailable("the disk is full")
        taken.extend(events)

    collector = Collector(
        accept,
        node="n",
        hosts=["h"],
        host="h",
        version="0",
        infiniband=tree.infiniband,
        net=tree.net,
        every_s=1,
        monotonic_ns=lambda: now_ns,
    )
    collector.look()
    tree.efa(rx_bytes=10)
    refuse, now_ns = True, 1_000
    collector.look()
    tree.efa(rx_bytes=20)
    refuse, now_ns = False, 2_000
    collector.look()
    assert [event.seq for event in taken] == [1, 2]
    assert (looked(taken[1]).interval_ns, efa(taken[1])) == (2_000, {"rx_bytes": 30})


def test_a_look_is_an_event_like_any_other_and_survives_the_wire(tree: Sysfs) -> None:
    tree.add_efa(value=3)
    tree.add_ethernet()
    looks = Looks(tree)
    looks.at(0)
    tree.efa(rdma_read_bytes=2**40)
    event = looks.at(2_000)
    assert codec.decode(codec.encode([event], observed_ns=1)).events == [event]
