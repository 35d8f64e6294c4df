"""NIXL's bytes held against what the node's cards counted: windows, and what doctor says of them."""

from __future__ import annotations

import msgspec
import pytest

from live.sysfs import Sysfs
from tests.assembly.node import BYTES, READ_BYTES, Node, handoff, two_nodes
from tests.assembly.run import Run, totals
from tests.builders import MS, SECOND, D, P, Pair, Process
from tests.sysfs import Looks
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.catalog import METRICS
from turnscope.model import Fabric, Final


# --- the four situations of a field case ----------------------------------------------------------------
def test_rdma_was_expected_and_ethernet_carried_it_so_doctor_says_tcp_within_a_window(tree: Sysfs) -> None:
    tree.add_efa()
    engines = [msgspec.structs.replace(engine, nixl_backends=("UCX",)) for engine in (P, D)]
    node = Node(tree, two_nodes(Pair(*engines)))
    window = node.window(ethernet=11_000_000_000)
    assert window is not None
    assert (window.transport, window.across_bytes, window.within_bytes) == ("tcp", BYTES, 0)
    assert (window.efa_bytes, window.ethernet_bytes) == (0, 11_000_000_000 // 30 * 30)
    assert window.bytes_per_second == pytest.approx(0.3e9, rel=0.01)
    (finding,) = node.findings()
    assert (finding.check, finding.where) == ("fell_back_to_tcp", "node-a")
    for part in ("fell back to TCP", "10,737,418,240 B at 0.30 GB/s", "EFA 0 B", "Ethernet 10,999,999,980 B", "UCX"):
        assert part in finding.what
    assert "UCX on decode-0" in finding.what


def test_efa_moved_as_much_so_all_is_well(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, two_nodes(Pair()))
    window = node.window(efa=10_800_000_000, gbps=20)
    assert window is not None
    assert window.transport == "efa"
    assert node.findings() == []
    assert node.run.sample("fabric_agreement_ratio", "node-a", "efa") == pytest.approx(1.0058, abs=0.0001)


@pytest.mark.parametrize("ethernet", [0, 11_000_000_000])
def test_without_efa_devices_nothing_is_known_and_nothing_is_alarmed(tree: Sysfs, ethernet: int) -> None:
    node = Node(tree, two_nodes(Pair()))
    window = node.window(ethernet=ethernet)
    assert window is not None
    assert (window.transport, window.efa_bytes) == ("unknown", None)
    assert window.inferred_from.startswith("no EFA counters are seen on this node")
    assert node.findings() == []


def test_a_slow_read_within_the_node_that_no_card_carried_is_named(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, Pair())
    window = node.window(gbps=0.5)
    assert window is not None
    assert (window.transport, window.across_bytes, window.within_bytes) == ("local", 0, BYTES)
    (finding,) = node.findings()
    assert finding.check == "same_host_slow_read_path"
    assert "Same-host slow read path" in finding.what
    assert "at 0.50 GB/s" in finding.what


def test_a_fast_read_within_the_node_is_as_it_should_be(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, Pair())
    window = node.window(gbps=25)
    assert window is not None
    assert window.transport == "local"
    assert node.findings() == []


def test_tcp_is_over_as_soon_as_a_window_says_efa(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, two_nodes(Pair()))
    node.window(ethernet=11_000_000_000)
    assert [f.check for f in node.findings()] == ["fell_back_to_tcp"]
    node.window(efa=10_800_000_000, gbps=20)
    assert node.findings() == []
    assert node.run.count("fabric_windows_total", "node-a", "tcp") == 1
    assert node.run.count("fabric_windows_total", "node-a", "efa") == 1
    assert node.run.count("fabric_window_bytes_total", "node-a") == 2 * BYTES


# --- resets, shared cards, missing devices ----------------------------------------------------------------
def test_counters_that_began_anew_prove_no_fallback_but_may_prove_efa(tree: Sysfs) -> None:
    tree.add_efa(value=1_000_000_000_000)
    node = Node(tree, two_nodes(Pair()))
    tree.reset()
    first = node.window(ethernet=11_000_000_000)
    assert first is not None
    assert (first.transport, "began anew" in first.inferred_from) == ("unknown", True)
    tree.reset()
    tree.efa(rdma_read_bytes=10_800_000_000)
    second = node.window()
    assert second is not None
    assert second.transport == "efa"
    assert node.run.count("fabric_partial_looks_total", "node-a", "efa") == 1


def test_a_device_that_disappears_leaves_the_way_unknown(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, two_nodes(Pair()))
    first = node.window(efa=10_800_000_000)
    tree.remove()
    second = node.window(ethernet=11_000_000_000)
    assert first is not None
    assert second is not None
    assert (first.transport, second.transport, second.efa_bytes) == ("efa", "unknown", None)
    assert node.findings() == []
    assert node.run.sample("fabric_devices", "node-a", "efa") == 0
    assert ("turnscope_fabric_agreement_ratio", ("node-a", "efa")) not in {
        (s.metric, s.labels) for s in node.run.assembler.samples(node.run.now_ns)
    }


def test_a_card_that_others_use_too_is_efa_only_while_nothing_else_can_have_carried_it(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, two_nodes(Pair()))
    busy = node.window(efa=50_000_000_000)
    both = node.window(efa=50_000_000_000, ethernet=50_000_000_000)
    close = node.window(efa=10_800_000_000, ethernet=50_000_000_000)
    assert [w.transport if w else None for w in (busy, both, close)] == ["efa", "unknown", "efa"]
    assert node.run.count("fabric_surplus_bytes_total", "node-a", "efa") > 2 * 39_000_000_000
    assert node.run.count("fabric_short_bytes_total", "node-a", "ethernet") == BYTES


def test_reads_within_a_node_beside_other_efa_traffic_are_unknown(tree: Sysfs) -> None:
    tree.add_efa()
    window = Node(tree, Pair()).window(efa=50_000_000_000)
    assert window is not None
    assert window.transport == "unknown"


@pytest.mark.parametrize(("efa", "ethernet"), [(5_000_000_000, 6_000_000_000), (0, 1_000_000_000), (0, 0)])
def test_what_no_card_explains_is_unknown_and_never_guessed(tree: Sysfs, efa: int, ethernet: int) -> None:
    tree.add_efa()
    window = Node(tree, two_nodes(Pair())).window(efa=efa, ethernet=ethernet)
    assert window is not None
    assert window.transport == "unknown"


def test_a_node_that_moved_nothing_has_no_window_to_show(tree: Sysfs) -> None:
    tree.add_efa()
    node = Node(tree, two_nodes(Pair()))
    assert node.window(efa=10_000_000_000, reads=0) is None
    assert node.run.count("fabric_windows_total") == 0
    assert node.run.count("fabric_efa_bytes_total", "node-a", "rdma_read_bytes") == 10_000_000_000 // 30 * 30


# --- both ends --------------------------------------------------------------------------------------------
def test_the_node_that_is_read_from_sees_the_transfer_too_by_its_readers_wall_clock(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    run = Run().feed(pair.start())
    looks = Looks(tree, node="node-p", hosts=("host-*",))
    run.feed([looks.at(0)])
    run.feed([handoff(pair, 1, at_ms=1_500, lasted_ms=500)])
    tree.efa(rdma_read_resp_bytes=READ_BYTES)
    run.feed([looks.at(second * 1000) for second in range(2, 62, 2)]).wait(3)
    (status,) = run.assembler.status(run.now_ns).fabric
    assert [(w.transport, w.across_bytes) for w in status.windows] == [("efa", READ_BYTES)]
    assert status.engines == ["prefill-0"]


def test_a_reader_that_started_its_clock_anew_is_placed_by_wall_time(tree: Sysfs) -> None:
    """A recording that is replayed on the host it was made on: its monotonic times mean nothing here."""
    tree.add_efa()
    pair = two_nodes(Pair())
    run = Run().feed(pair.start())
    looks = Looks(tree)
    run.feed([looks.at(0)])
    old = handoff(pair, 1, at_ms=1_000, lasted_ms=100)
    run.assembler.feed(msgspec.structs.replace(old, wall_ns=old.wall_ns - 3600 * SECOND), run.now_ns)
    run.feed([looks.at(second * 1000) for second in range(2, 62, 2)]).wait(3)
    assert run.assembler.status(run.now_ns).fabric[0].windows == []


# --- one collector a node, counted once -------------------------------------------------------------------
def test_a_collector_that_began_later_takes_over_and_an_older_recording_does_not(tree: Sysfs) -> None:
    tree.add_efa()
    run = Run()
    old = Looks(tree, wall_ns=lambda mono_ns: mono_ns)
    recorded = [old.at(0), old.at(2_000)]
    live = Looks(tree)
    run.feed([live.at(10_000)])
    for event in recorded:
        run.assembler.feed(event, run.now_ns)
    tree.efa(rdma_read_bytes=5)
    run.feed([live.at(12_000)])
    restarted = Looks(tree)
    run.feed([restarted.at(13_000)])
    tree.efa(rdma_read_bytes=7)
    run.feed([restarted.at(15_000), live.at(16_000)]).wait(0)
    assert run.count("fabric_efa_bytes_total", "node-a", "rdma_read_bytes") == 12


@pytest.mark.parametrize("last_ms", [60_000, 20_000])
def test_a_window_that_was_not_judged_when_another_collector_took_over_is_counted(tree: Sysfs, last_ms: int) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    looks = Looks(tree)
    run = Run().feed([*pair.start(), looks.at(0), handoff(pair, 1, at_ms=1_000, lasted_ms=500)])
    tree.efa(rdma_read_bytes=READ_BYTES)
    run.feed([looks.at(last_ms), Looks(tree).at(last_ms + 500)]).wait()
    assert run.count("fabric_windows_total", "node-a", "efa") == 1


def test_the_same_looks_sent_again_change_nothing(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    looks = Looks(tree)
    sent = [looks.at(0), handoff(pair, 1, at_ms=1_000, lasted_ms=500)]
    for second in range(2, 62, 2):
        tree.efa(rdma_read_bytes=READ_BYTES // 30)
        sent.append(looks.at(second * 1000))
    run = Run().feed(pair.start()).feed(sent).wait(100)
    before = run.counters()
    assert before["turnscope_fabric_windows_total", "node-a", "efa"] == 1
    run.feed(sent, at_ms=run.now_ns // MS).wait(100)
    changed = {key for key, _ in run.counters().items() - before.items()}
    assert {key[0] for key in changed} == {"turnscope_events_received_total", "turnscope_events_duplicate_total"}


def test_everything_is_there_at_0_from_the_first_look(tree: Sysfs) -> None:
    tree.add_efa()
    run = Run().feed([Looks(tree).at(0)]).wait(0)
    shown = {key for key, value in run.counters().items() if key[0].startswith("turnscope_fabric") and value == 0}
    assert {("turnscope_fabric_windows_total", "node-a", t) for t in ("efa", "tcp", "local", "unknown")} <= shown
    assert ("turnscope_fabric_efa_bytes_total", "node-a", "rdma_read_bytes") in shown
    assert ("turnscope_fabric_efa_events_total", "node-a", "rx_drops") in shown
    assert ("turnscope_fabric_ethernet_bytes_total", "node-a", "tx_bytes") in shown


def test_labels_stay_few_whatever_is_sent() -> None:
    run = Run(AssemblySettings(max_nodes=3))
    names = [f"counter_{n}_bytes" for n in range(200)] + ["Robert'); DROP", "x" * 100]
    for n in range(9):
        process = Process(f"c{n}", "collector", None)
        body = Fabric(node=f"n{n}", efa_devices=1, efa_counters=names, efa_increases=[1] * len(names))
        run.feed([process.say(body, n)])
    run.wait(0)
    labels = {key[1:] for key in run.counters() if key[0].startswith("turnscope_fabric_efa")}
    assert len(labels) == 3 * 64


def test_a_damaged_look_breaks_nothing_and_counts_nothing_back() -> None:
    run, process = Run(), Process("c", "collector", None)
    run.feed([process.say(Fabric(node="n", efa_counters=["rx_bytes"], efa_increases=[0]), 0)])
    odd = [
        Fabric(node="n", interval_ns=-5 * SECOND, efa_counters=["rx_bytes"], efa_increases=[1]),
        Fabric(node="n", interval_ns=0, efa_counters=["rx_bytes"], efa_increases=[1]),
        Fabric(node="n", interval_ns=SECOND, efa_counters=["rx_bytes", "tx_bytes"], efa_increases=[-7]),
        Fabric(node="n", interval_ns=SECOND, ethernet_counters=["rx_dropped"], ethernet_increases=[7]),
    ]
    run.feed(process.say(body, 1_000 * (n + 1)) for n, body in enumerate(odd)).wait(0)
    fabric = {key: value for key, value in run.counters().items() if key[0].startswith("turnscope_fabric")}
    assert set(fabric.values()) == {0}
    assert fabric.keys() <= {key for key in fabric if key[0] in METRICS}


def test_the_collector_is_no_process_with_a_hook(tree: Sysfs) -> None:
    run = Run().feed([Looks(tree).at(0)])
    assert run.assembler.status(run.now_ns).emitters == []
    assert run.sample("emitters_alive", "collector") == 1


def test_a_replayed_journal_gives_the_same_windows_and_adds_nothing_twice(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    looks = Looks(tree)
    events = [*pair.start(), looks.at(0), *pair.turn("1")]
    for second in range(2, 130, 2):
        tree.efa(rdma_read_bytes=6_000_000)
        events += [looks.at(second * 1000), handoff(pair, 100 + second, second * 1000 + 900, 700)]
    events.sort(key=lambda e: e.mono_ns)
    whole = Run().feed(events).wait(60)
    before, saved = Run(), b""
    for number, event in enumerate(events[: len(events) * 2 // 3]):
        if number == len(events) // 3:
            before.wait(0)
            saved = before.assembler.snapshot()
        before.feed([event])
    before.wait(0)
    after = Run()
    after.assembler = Assembler(after.settings)
    after.assembler.restore(saved)
    for fact in before.facts:
        if isinstance(fact, Final):
            after.assembler.mark_counted(fact.key, before.now_ns)
    after.feed(events[len(events) // 3 :]).wait(60)
    assert totals([*before.facts, *after.facts]) == whole.counters()
    now = whole.now_ns
    assert after.assembler.status(now).fabric == whole.assembler.status(now).fabric
    assert after.assembler.status(now).fabric[0].windows
