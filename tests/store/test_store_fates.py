"""A hold that reached its time limit is told apart by whether, and when, a later turn of its session came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.store.rows import NOON, SECOND, fill, hold, turn
from turnscope.semconv import HoldOutcome
from turnscope.store import StoreReader
from turnscope.store.fates import Fate

TTL = 30 * SECOND


def _turn(number: int, start_s: int, end_s: int | None, **changes: Any) -> Any:
    """A turn that ran from ``start_s`` to ``end_s`` after noon and left the hold of its number."""
    ended = None if end_s is None else NOON + end_s * SECOND
    values = {"started_ns": NOON + start_s * SECOND, "ended_ns": ended, "left_hold_id": f"{number:032x}"}
    return turn(number, **{**values, **changes})


def _ttl(number: int, **changes: Any) -> Any:
    """The hold of that turn, which reached its time limit."""
    return hold(number, **{"outcome": "ttl", "ttl_ns": TTL, "held_ns": TTL, **changes})


def _seen(tmp_path: Path, *rows: Any, session_id: str | None = "s1") -> list[tuple[str | None, int | None]]:
    """``(fate, pause in seconds)`` of each turn's hold; the whole store's counts must agree."""
    fill(tmp_path, *rows)
    reader = StoreReader(str(tmp_path))
    try:
        found = reader.turns(session_id).table.to_pylist()
        fates = [row["hold_fate"] for row in found if row["hold_fate"] is not None]
        assert reader.counts().by_hold_fate == {fate: fates.count(fate) for fate in fates}
    finally:
        reader.close()
    return [(r["hold_fate"], r["hold_pause_ns"] and r["hold_pause_ns"] // SECOND) for r in found]


def test_the_last_turns_hold_is_not_continued(tmp_path: Path) -> None:
    assert _seen(tmp_path, _turn(1, 0, 5), _ttl(1)) == [("not_continued", None)]


def test_a_next_turn_after_the_time_limit_was_too_late(tmp_path: Path) -> None:
    rows = (_turn(1, 0, 5), _ttl(1), _turn(2, 36, 40, left_hold_id=None))
    assert _seen(tmp_path, *rows) == [("too_late", 31), (None, None)]


def test_a_next_turn_within_the_time_limit_did_not_ask(tmp_path: Path) -> None:
    rows = (_turn(1, 0, 5), _ttl(1), _turn(2, 35, 40, left_hold_id=None))
    assert _seen(tmp_path, *rows) == [("not_asked", 30), (None, None)]


def test_a_turn_beside_it_is_no_next_turn(tmp_path: Path) -> None:
    rows = (_turn(1, 0, 5), _ttl(1), _turn(2, 3, 9), _ttl(2))
    assert _seen(tmp_path, *rows) == [("not_continued", None), ("not_continued", None)]


def test_the_turn_that_continues_it_is_the_next_whatever_the_clocks_say(tmp_path: Path) -> None:
    rows = (_turn(1, 0, 5), _ttl(1), _turn(2, 4, 9, previous_turn_id=f"{1:032x}", left_hold_id=None))
    assert _seen(tmp_path, *rows) == [("not_asked", 0), (None, None)]


def test_a_turn_of_another_session_is_no_next_turn(tmp_path: Path) -> None:
    rows = (_turn(1, 0, 5), _ttl(1), _turn(2, 10, 12, session_id="s2", left_hold_id=None))
    assert _seen(tmp_path, *rows) == [("not_continued", None)]


@pytest.mark.parametrize("session_id", [None, ""])
def test_without_a_session_there_is_no_next_turn_to_come(tmp_path: Path, session_id: str | None) -> None:
    rows = (_turn(1, 0, 5, session_id=session_id), _ttl(1), _turn(2, 9, 12, session_id=session_id, left_hold_id=None))
    assert _seen(tmp_path, *rows, session_id=None) == [("no_session", None), (None, None)]


def test_a_turn_that_has_not_ended_is_not_its_own_next(tmp_path: Path) -> None:
    assert _seen(tmp_path, _turn(1, 0, None), _ttl(1)) == [("not_continued", None)]


def test_without_any_length_of_the_hold_it_stays_open_who_was_late(tmp_path: Path) -> None:
    rows = (_turn(1, 0, 5), _ttl(1, ttl_ns=None, held_ns=None), _turn(2, 50, 52, left_hold_id=None))
    assert _seen(tmp_path, *rows) == [("ttl", 45), (None, None)]


def test_every_other_outcome_is_its_own_fate(tmp_path: Path) -> None:
    others = [outcome for outcome in HoldOutcome if outcome is not HoldOutcome.TTL]
    rows = [r for n, o in enumerate(others) for r in (_turn(n, 10 * n, 10 * n + 5), hold(n, outcome=o))]
    last = len(others)
    rows += [_turn(last, 10 * last, 10 * last + 5), hold(last)]
    assert [fate for fate, _ in _seen(tmp_path, *rows)] == [*others, "held"]
    assert set(HoldOutcome) <= {fate.value for fate in Fate}


def test_a_hold_that_two_turns_claim_is_one_hold_and_they_are_two_turns(tmp_path: Path) -> None:
    fill(tmp_path, _turn(1, 0, 5), _turn(2, 6, 9, left_hold_id=f"{1:032x}"), _ttl(1))
    reader = StoreReader(str(tmp_path))
    assert reader.turns("s1").table.num_rows == 2
    assert reader.counts().by_hold_fate == {"not_asked": 1}
    reader.close()


def test_a_hold_whose_turn_is_not_stored_stays_ttl(tmp_path: Path) -> None:
    fill(tmp_path, turn(1), _ttl(7))
    reader = StoreReader(str(tmp_path))
    assert reader.counts().by_hold_fate == {"ttl": 1}
    reader.close()
