"""When the background thread gives way."""

from __future__ import annotations

from turnscope.emit.pacing import BUDGET_NS, Pacer


class Work:
    """Steps of so many nanoseconds each; others take the interpreter for as long as they like."""

    def __init__(self, others_ns: int = 0) -> None:
        self.now = 0
        self.slices: list[int] = []
        self._began = 0
        self._others_ns = others_ns
        self._pace = Pacer(self._give_way, lambda: self.now)

    def _give_way(self) -> None:
        self.slices.append(self.now - self._began)
        self.now += self._others_ns
        self._began = self.now

    def steps(self, *lengths: int) -> None:
        for length in lengths:
            self.now += length
            self._pace()


def test_short_steps_share_a_slice_and_none_goes_on_past_the_budget() -> None:
    work = Work()
    work.steps(*[6_000] * 100)
    assert set(work.slices) == {18_000}
    assert len(work.slices) == 33


def test_a_long_step_ends_its_slice() -> None:
    work = Work()
    work.steps(BUDGET_NS - 1, 40_000, 1_000, BUDGET_NS)
    assert work.slices == [BUDGET_NS + 39_999, BUDGET_NS + 1_000]


def test_the_time_that_others_took_is_not_counted_as_work() -> None:
    work = Work(others_ns=5_000_000)
    work.steps(*[BUDGET_NS // 2] * 8)
    assert work.slices == [BUDGET_NS] * 4
