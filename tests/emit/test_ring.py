"""Rings: bounded, separate, and exact about what they lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.emit.stubs import StubWatch
from turnscope.emit.ring import Rings

ALL = 1 << 20


def test_entries_come_out_in_the_order_of_their_numbers_across_kinds() -> None:
    rings, watch = Rings({"request": 4, "hold": 4}), StubWatch()
    for kind, name in (("request", "a"), ("hold", "b"), ("request", "c")):
        rings[kind].pusher(watch.request)(name)
    assert [(entry.seq, entry.payload) for entry in rings.take(ALL)] == [(1, "a"), (2, "b"), (3, "c")]


def test_a_full_ring_loses_its_oldest_entries_and_their_numbers_stay_used() -> None:
    rings, watch = Rings({"request": 3}), StubWatch()
    push = rings["request"].pusher(watch.request)
    for number in range(10):
        push(number)
    taken = rings.take(ALL)
    assert [(entry.seq, entry.payload) for entry in taken] == [(8, 7), (9, 8), (10, 9)]
    assert (len(taken), rings.queued, rings.dropped) == (3, 0, 7)


def test_a_burst_of_one_kind_cannot_push_out_another() -> None:
    rings, watch = Rings({"request": 3, "hold": 3}), StubWatch()
    rings["hold"].pusher(watch.request)("kept")
    push = rings["request"].pusher(watch.request)
    for number in range(1000):
        push(number)
    assert "kept" in [entry.payload for entry in rings.take(ALL)]


def test_a_bounded_take_leaves_the_rest_for_the_next() -> None:
    rings, watch = Rings({"request": 10}), StubWatch()
    push = rings["request"].pusher(watch.request)
    for number in range(5):
        push(number)
    assert [entry.payload for entry in rings.take(2)] == [0, 1]
    assert rings.queued == 3
    assert [entry.payload for entry in rings.take(2)] == [2, 3]
    assert rings.dropped == 0


def test_given_is_taken_plus_dropped_with_many_threads_pushing_and_one_taking() -> None:
    rings, watch = Rings({"request": 64, "hold": 64}), StubWatch()

    def run(kind: str) -> None:
        push = rings[kind].pusher(watch.request)
        for number in range(5_000):
            push(number)

    taken = []
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(run, kind) for kind in ("request", "hold", "request", "hold")]
        while not all(future.done() for future in running):
            taken += rings.take(32)
    taken += rings.take(ALL)
    assert len({entry.seq for entry in taken}) == len(taken)
    assert len(taken) + rings.dropped == 20_000
