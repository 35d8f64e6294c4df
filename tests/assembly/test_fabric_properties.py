"""What holds of windows for every course of transfers and counters."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assembly.run import Run
from tests.builders import MS, SECOND, Pair, Process, read
from turnscope.assembly import AssemblySettings
from turnscope.assembly.cards import around, look, put
from turnscope.assembly.nodes import Interval, Moving, NodeState
from turnscope.model import Event, Fabric, Final
from turnscope.semconv import Direction, Transport

sizes = st.integers(0, 2**40)
QUICK = AssemblySettings(fabric_window_ns=10 * SECOND)


@st.composite
def history(draw: st.DrawFn) -> list[Event]:
    """Looks at uneven intervals with counters of any size, some missing, some begun anew; reads across them all."""
    pair, collector = Pair(), Process("c0", "collector", None)
    events = [*pair.start(), collector.say(Fabric(node="n", hosts=["host"]), 0)]
    at = 0
    for _ in range(draw(st.integers(1, 12))):
        step = draw(st.integers(1, 5_000))
        at += step
        names = draw(st.lists(st.sampled_from(["rdma_read_bytes", "rx_bytes", "tx_bytes", "rx_drops"]), unique=True))
        seen = draw(st.booleans())
        body = Fabric(
            node="n",
            hosts=draw(st.sampled_from([["host"], ["other"], []])),
            interval_ns=step * MS,
            efa_devices=len(names),
            efa_counters=names,
            efa_increases=[draw(sizes) for _ in names],
            efa_partial=draw(st.booleans()),
            ethernet_counters=["rx_bytes"] if seen else [],
            ethernet_increases=[draw(sizes)] if seen else [],
        )
        events.append(collector.say(body, at))
    for n in range(draw(st.integers(0, 12))):
        end, lasted = draw(st.integers(1, at + 3_000)), draw(st.one_of(st.none(), st.integers(-5, 9_000)))
        transfer = read(
            Direction.HANDOFF,
            local=f"d{n}",
            remote=(draw(st.sampled_from(["p", "elsewhere"])), f"p{n}"),
            bytes=draw(st.one_of(st.none(), st.integers(-1, 2**40))),
            duration_ns=None if lasted is None else lasted * MS,
            started_mono_ns=draw(st.sampled_from([None, (end - 1) * MS])),
        )
        events.append(pair.dw.say(transfer, end))
    return events


@settings(max_examples=60, deadline=None)
@given(history())
def test_no_reconciliation_is_ever_negative_and_its_parts_add_up(events: list[Event]) -> None:
    run = Run(QUICK).feed(events).wait(60)
    adds = [add for fact in run.facts if isinstance(fact, Final) for add in fact.contributions]
    assert [add for add in adds if add.value < 0] == []
    moved = sum(max(0, e.body.bytes or 0) for e in events if e.body.EVENT == "turnscope.transfer")  # type: ignore[union-attr]
    assert run.count("fabric_window_bytes_total", "n") <= moved
    (status,) = run.assembler.status(run.now_ns).fabric
    for window in status.windows:
        assert min(window.across_bytes, window.within_bytes) >= 0
        assert window.across_bytes + window.within_bytes > 0
        assert window.transport in set(Transport)
        assert window.transport != Transport.EFA or window.efa_bytes
        assert window.bytes_per_second is None or window.bytes_per_second > 0


@given(st.lists(st.integers(1, 500), min_size=1, max_size=20), st.data())
def test_a_read_is_spread_over_the_looks_to_the_byte(steps: list[int], data: st.DataObject) -> None:
    end = sum(steps)
    begin = data.draw(st.integers(0, end))
    moving = Moving(begin, data.draw(st.integers(max(1, begin), end)), data.draw(sizes), data.draw(st.booleans()))
    told_after = data.draw(st.integers(0, len(steps)))
    node = NodeState(node="n", hosts=[], emitter_id="c", last_ns=0, last_wall_ns=0, clock_ns=0, end_ns=0)
    at = 0
    for number, step in enumerate(steps):
        if number == told_after:
            put(node, moving)
        look(node, Interval(at, at + step, None, None, False), keep_ns=10_000)
        at += step
    if told_after == len(steps):
        put(node, moving)
    assert sum(part.across + part.within for part in node.intervals) == moving.bytes
    assert sum(part.transfers for part in node.intervals) == 1
    assert sum(high - low for part in node.intervals for low, high in part.busy) == moving.end_ns - moving.begin_ns
    assert node.moving == []


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 130), st.integers(0, 40))
def test_looks_are_around_a_time_only_if_they_cover_all_of_it(seen: list[bool], begin: int, lasted: int) -> None:
    """A look every ten, of which some were lost on their way."""
    node = NodeState(node="n", hosts=[], emitter_id="c", last_ns=0, last_wall_ns=0, clock_ns=0, end_ns=0)
    node.intervals = [Interval(10 * n, 10 * n + 10, None, None, False) for n, there in enumerate(seen) if there]
    end = begin + lasted
    needed = (
        range(begin // 10, max(begin, end - 1) // 10 + 1) if lasted else range((begin - 1) // 10, (begin - 1) // 10 + 1)
    )
    whole = all(0 <= n < len(seen) and seen[n] for n in needed)
    found = around(node, begin, end)
    assert (found is not None) is whole
    if found is not None:
        assert [part.begin_ns // 10 for part in found] == list(needed)
