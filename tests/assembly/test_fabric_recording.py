"""The recorded real pair's bytes on a node's cards: each transport comes out rightly, the pair itself never efa."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from live.sysfs import Sysfs
from tests.assembly.run import Run
from tests.builders import MS, SECOND
from tests.sysfs import Looks
from turnscope.assembly import AssemblySettings
from turnscope.decode import codec, jsonlines
from turnscope.model import Event, Fabric, Transfer
from turnscope.semconv import TransferState, Transport

RECORDING = Path(__file__).parents[2] / "recordings" / "pair.jsonl"
LOOK_MS = 1_000
SETTINGS = AssemblySettings(fabric_window_ns=10 * SECOND)
Count = Callable[[Sysfs, int], None]
"""Has the tree's cards count so many bytes more that NIXL moved."""


def recorded() -> list[Event]:
    """What the hooks told, in the order of their times; all processes ran on one host, whose own cards are left out."""
    events = []
    for line in RECORDING.read_bytes().splitlines():
        events += codec.decode(jsonlines.read(line)).events
    return sorted((e for e in events if not isinstance(e.body, Fabric)), key=lambda e: e.mono_ns)


def apart(events: list[Event]) -> list[Event]:
    """The same run, had P's processes been on a node of their own."""
    return [
        msgspec.structs.replace(e, emitter=msgspec.structs.replace(e.emitter, host="vm-p"))
        if e.engine is not None and e.engine.role == "prefill"
        else e
        for e in events
    ]


def moved_until(transfers: list[Event], now_ns: int) -> int:
    """NIXL's bytes up to a time, each transfer's spread evenly over its duration."""
    total = 0
    for event in transfers:
        body = event.body
        assert isinstance(body, Transfer)
        begin, lasted = body.started_mono_ns or 0, body.duration_ns or 1
        total += (body.bytes or 0) * min(max(0, now_ns - begin), lasted) // lasted
    return total


def drive(tree: Sysfs, events: list[Event], count: Count) -> Run:
    """Feed the run while the tree's cards count what it moved, and look at them every second."""
    transfers = [e for e in events if isinstance(e.body, Transfer) and e.body.state is TransferState.DONE]
    offset = events[0].wall_ns - events[0].mono_ns
    looks = Looks(tree, node="vm", hosts=("vm",), wall_ns=lambda mono_ns: mono_ns + offset)
    begin_ms, end_ms = events[0].mono_ns // MS - 1_000, events[-1].mono_ns // MS + 70_000
    run, done, moved = Run(SETTINGS), 0, 0
    for at_ms in range(begin_ms, end_ms, LOOK_MS):
        now = at_ms * MS
        upto = next((n for n, e in enumerate(events[done:], done) if e.mono_ns > now), len(events))
        run.feed(events[done:upto])
        done = upto
        moved, before = moved_until(transfers, now), moved
        if moved > before:
            count(tree, moved - before)
        run.feed([looks.at(at_ms)])
    return run.wait(70)


def both_ends_on_efa(tree: Sysfs, size: int) -> None:
    tree.efa(rdma_read_bytes=size, rdma_read_resp_bytes=size, tx_bytes=size * 101 // 100, rx_bytes=size * 101 // 100)


def one_end_on_efa(tree: Sysfs, size: int) -> None:
    tree.efa(rdma_read_bytes=size, rx_bytes=size * 101 // 100)


def one_end_on_shared_efa(tree: Sysfs, size: int) -> None:
    tree.efa(rdma_read_bytes=3 * size, rx_bytes=3 * size)


def on_ethernet(tree: Sysfs, size: int) -> None:
    tree.ethernet(rx_bytes=size * 103 // 100, tx_bytes=size // 100)


def on_no_card(tree: Sysfs, size: int) -> None:
    tree.ethernet(rx_bytes=size // 50)


@pytest.mark.parametrize(
    ("transport", "two_nodes", "efa", "count"),
    [
        (Transport.EFA, False, True, both_ends_on_efa),
        (Transport.EFA, True, True, one_end_on_efa),
        (Transport.EFA, True, True, one_end_on_shared_efa),
        (Transport.TCP, True, True, on_ethernet),
        (Transport.LOCAL, False, True, on_no_card),
        (Transport.UNKNOWN, False, False, on_no_card),
        (Transport.UNKNOWN, True, False, on_ethernet),
        (Transport.UNKNOWN, True, True, on_no_card),
    ],
)
def test_the_recorded_bytes_on_one_kind_of_card_are_that_transport_in_every_window_and_in_turns(
    tmp_path: Path, transport: Transport, two_nodes: bool, efa: bool, count: Count
) -> None:
    tree = Sysfs(tmp_path)
    tree.add_ethernet()
    if efa:
        tree.add_efa()
    events = apart(recorded()) if two_nodes else recorded()
    run = drive(tree, events, count)
    windows = {t: run.count("fabric_windows_total", "vm", t) for t in Transport}
    assert windows[transport] >= 4
    # A fallback is not told from a window with a single small transfer.
    too_little = {Transport.UNKNOWN} if transport is Transport.TCP else set()
    assert {t for t, n in windows.items() if n} <= {transport} | too_little
    moved = sum(e.body.bytes or 0 for e in events if isinstance(e.body, Transfer))
    assert 0.97 * moved <= run.count("fabric_window_bytes_total", "vm", transport) <= moved
    turns = Counter(turn.transport for turn in run.turns().values() if turn.handoff_reads or turn.fetch_reads)
    assert turns[transport] > 0
    assert turns.keys() <= {transport, Transport.UNKNOWN}
    shared = [t for t in run.turns().values() if "upper bound" in str(t.transport_inferred_from)]
    assert bool(shared) is (transport in (Transport.EFA, Transport.TCP))


def test_the_pair_as_it_ran_is_never_efa(tmp_path: Path) -> None:
    """On one host, over the loopback, with no EFA card to be seen."""
    tree = Sysfs(tmp_path)
    tree.add_ethernet("lo", physical=False, kind="772")
    run = drive(tree, recorded(), lambda tree, size: tree.ethernet("lo", rx_bytes=size, tx_bytes=size))
    assert run.count("fabric_windows_total", "vm", Transport.EFA) == 0
    assert run.count("fabric_windows_total", "vm", Transport.UNKNOWN) > 0
    assert {turn.transport for turn in run.turns().values()} <= {Transport.UNKNOWN, None}


def test_the_recorded_bytes_through_resets_and_a_device_that_comes_and_goes_never_prove_a_fallback(
    tmp_path: Path,
) -> None:
    tree = Sysfs(tmp_path)
    tree.add_ethernet()
    tree.add_efa(value=10**12)
    state = {"calls": 0}

    def count(tree: Sysfs, size: int) -> None:
        state["calls"] += 1
        on_ethernet(tree, size)
        if state["calls"] % 7 == 0:
            tree.remove()
            return
        if state["calls"] % 7 == 1 and state["calls"] > 1:
            tree.add_efa()
        elif state["calls"] % 5 == 1:
            tree.reset()
        one_end_on_efa(tree, size)

    run = drive(tree, apart(recorded()), count)
    assert run.count("fabric_windows_total", "vm", Transport.TCP) == 0
    assert run.count("fabric_partial_looks_total", "vm", "efa") > 5
    assert {turn.transport for turn in run.turns().values()} <= {Transport.EFA, Transport.UNKNOWN, None}
    counted = run.count("fabric_efa_bytes_total", "vm", "rdma_read_bytes")
    assert 0 < counted <= moved_until([e for e in recorded() if isinstance(e.body, Transfer)], 10**6 * SECOND)
