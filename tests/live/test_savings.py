"""What reuse spared against what was predicted: whose times are compared, and what is judged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from live import savings
from live.conversations import user_message
from live.driver import TurnTruth
from live.savings import AGAIN, LEARNING, OFF, ON, TRIALS, TURNS, Saving
from tests.live.test_verdict import truth
from tests.measures.session_rows import MS, turn
from turnscope.model import Ceiling, Turn


def saving(seen_ms: int, low_ms: int = 50, high_ms: int = 150, **ceiling: Any) -> Saving:
    interval = {"fetched_low_ns": low_ms * MS, "fetched_ns": 100 * MS, "fetched_high_ns": high_ms * MS}
    found = Ceiling(**{**interval, "judged_turns": TURNS, **ceiling})
    return Saving(1, 500 * MS, 520 * MS, 510 * MS - seen_ms * MS, found)


def test_every_session_is_held_three_times_with_the_same_words_and_its_own_begin() -> None:
    (held,) = savings.sessions(7)
    assert Counter(c.name.partition("-")[0] for c in held) == dict.fromkeys((OFF, AGAIN, ON), LEARNING + TRIALS)
    for at in range(0, len(held), 3):
        said = [user_message(c, 1)["content"] for c in held[at : at + 3]]
        assert len(set(said)) == 3
        assert len({text.partition(": ")[2] for text in said}) == 1
        assert {c.handle_in_stream for c in held[at : at + 3] if c.name.startswith(ON)} == {True}
    assert savings.sessions(7) == savings.sessions(7) != savings.sessions(8)
    assert len({tuple(c.name.partition("-")[0] for c in held[at : at + 3]) for at in range(0, len(held), 3)}) > 2


def told(name: str, took_ms: int) -> list[TurnTruth]:
    return [
        msgspec.structs.replace(truth(n), conversation=name, session_id=name, total_ns=took_ms * MS)
        for n in range(1, TURNS + 1)
    ]


def recomputed(name: str) -> list[Turn]:
    known: dict[str, Any] = {
        "session_id": name,
        "recomputed_tokens": 1000,
        "recompute_ns": 60 * MS,
        "recompute_low_ns": 40 * MS,
        "recompute_high_ns": 80 * MS,
        "refetch_ns": 10 * MS,
        "refetch_low_ns": 5 * MS,
        "refetch_high_ns": 20 * MS,
        "refetch_basis": "measured",
    }
    return [turn(f"{name}-{n}", 1000 * n, 1000 * n + 200, ttft=150, **known) for n in range(TURNS)]


def test_the_sum_of_its_turns_is_compared_with_what_its_first_run_without_reuse_was_predicted_of() -> None:
    last = LEARNING
    done = [*told(f"off-{last}", 200), *told(f"on-{last}", 150), *told(f"again-{last}", 210)]
    done += [*told("off-0", 900), *told("on-0", 1), *told("again-0", 900), *told("plain-1", 5)]
    assert savings.predicted(done) == ["off-0", f"off-{last}"]
    (found,) = savings.trials(done, {f"off-{last}": (recomputed(f"off-{last}"), [])})
    assert (found.number, found.off_ns, found.on_ns) == (last, TURNS * 200 * MS, TURNS * 150 * MS)
    assert found.seen_ns == TURNS * 55 * MS
    assert found.bounds == (TURNS * 20 * MS, TURNS * 75 * MS)
    assert savings.inside(found)


def test_a_session_of_which_nothing_is_stored_has_no_prediction() -> None:
    done = [*told("off-5", 200), *told("on-5", 200), *told("again-5", 200)]
    (found,) = savings.trials(done, {})
    assert (found.bounds, found.seen_ns) == ((0, 0), 0)
    assert not savings.inside(found)


@pytest.mark.parametrize(("wrong", "complained"), [(0, False), (2, False), (3, True)])
def test_nine_in_ten_must_lie_inside(wrong: int, complained: bool) -> None:
    found = [saving(100)] * (20 - wrong) + [saving(200)] * wrong
    assert bool(savings.judge(found)) == complained
    assert f"{20 - wrong} of 20 inside" in savings.table(found)
    assert savings.table(found).count("NO") == wrong


@pytest.mark.parametrize("seen", [49, 151, -10])
def test_less_or_more_than_predicted_is_not_inside(seen: int) -> None:
    assert not savings.inside(saving(seen))


def test_a_session_with_turns_that_could_not_be_judged_is_not_inside() -> None:
    assert not savings.inside(saving(100, unjudged_turns=1, judged_turns=TURNS - 1))
    assert not savings.inside(saving(100, judged_turns=TURNS - 1))
    assert savings.judge([]) == []
