"""A trial finds the time between two looks, though status pages are old when they are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from live.looks import CLOSE_S, LOOK_S, ROOM_S, Looks
from turnscope.model import FabricStatus, FabricWindow

REFRESH_S = 1.0
WAIT_FOR_READS_S = 2.0


class World:
    """Sidecars that look every ``LOOK_S`` from their first time on, with pages that are made once a second."""

    def __init__(self, **first: float) -> None:
        self.now = 100.0
        self.first = first
        self.looks = Looks(
            {view: self._page(view) for view in first}, clock=lambda: self.now, sleep=lambda s: self._pass(s)
        )

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def last(self, view: str, at: float) -> float:
        return at - (at - self.first[view]) % LOOK_S

    def _page(self, view: str) -> Callable[[], list[FabricStatus]]:
        def page() -> list[FabricStatus]:
            made = self.now - (self.now - 0.3) % REFRESH_S
            closed = self.last(view, made - WAIT_FOR_READS_S)
            window = FabricWindow(
                transport="efa",
                inferred_from=f"{closed:.1f}",
                ended_s=made - closed,
                seconds=LOOK_S,
                transfers=1,
                across_bytes=1,
                within_bytes=0,
            )
            silent_s = made - self.last(view, made)
            return [FabricStatus(node="n", silent_s=silent_s, efa_devices=1, ethernet_devices=1, windows=[window])]

        return page


@pytest.mark.parametrize("apart_s", [0.0, 0.7, 1.5, 2.9, 3.0, 3.1, 4.4, 5.9])
def test_there_is_always_a_time_with_no_look_in_it_and_it_begins_after_one_of_each(apart_s: float) -> None:
    world = World(one=3.0, other=3.0 + apart_s)
    for pause_s in (0.0, 0.5, 0.9, 1.3, 2.2, 3.1, 4.7):
        world.now += pause_s
        begun = world.now
        upcoming = world.looks.wait()
        assert upcoming is not None
        assert upcoming - world.now > ROOM_S
        for view in world.first:
            assert begun < world.last(view, world.now) == pytest.approx(world.last(view, upcoming))
            assert world.last(view, upcoming) + LOOK_S >= upcoming + CLOSE_S - 0.2
        world.now = upcoming


def test_the_window_that_a_trial_lies_in_is_found_and_no_other() -> None:
    world = World(one=3.0)
    assert world.looks.wait() is not None
    look, since = world.last("one", world.now), world.now + 1
    world.now = since
    world.looks.watch(3 * LOOK_S)
    said = world.looks.window("one", since)
    assert said is not None
    assert said.because == f"{look + LOOK_S:.1f}"
    assert world.looks.window("one", since + 10 * LOOK_S) is None


def test_a_sidecar_that_never_looks_leaves_no_time() -> None:
    looks = World(one=3.0)
    silent = Looks({"one": looks._page("one"), "other": list}, clock=lambda: looks.now, sleep=lambda s: looks._pass(s))
    assert silent.wait() is None
