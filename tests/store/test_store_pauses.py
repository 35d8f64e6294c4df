"""How long until a turn's next turn, as SQL tells it and as the definition says."""

from __future__ import annotations

from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.store.fates import keyed, keyed_pauses

Turn = dict[str, Any]


@st.composite
def _sessions(draw: st.DrawFn) -> list[Turn]:
    """A few turns of a few sessions, or of none, that may run beside each other and continue any other."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(1, 9))):
        started = draw(st.integers(0, 40))
        turns.append(
            {
                "turn_id": f"t{number}",
                "session_id": draw(st.sampled_from(["a", "b", "", None])),
                "previous_turn_id": draw(st.none() | st.sampled_from([f"t{n}" for n in range(number + 1)])),
                # No two begin at once: of those which is first is nobody's concern.
                "started_ns": 100 * started + number,
                "ended_ns": draw(st.none() | st.integers(100 * started + number, 100 * started + 1_500)),
                "left_hold_id": draw(st.none() | st.just(f"h{number}")),
                "last_role": draw(st.sampled_from(["user", "tool"])),
            }
        )
    return turns


def _next(turn: Turn, turns: list[Turn]) -> Turn | None:
    """The one that continues it, or the first of its session that began after it had ended: the earlier of both."""
    ended = turn["started_ns"] if turn["ended_ns"] is None else turn["ended_ns"]
    found = [other for other in turns if other["previous_turn_id"] == turn["turn_id"]]
    if turn["session_id"]:
        found += [o for o in turns if o["session_id"] == turn["session_id"] and o["started_ns"] > ended]
    return min(found, key=lambda other: other["started_ns"], default=None)


def _expected(turn: Turn, turns: list[Turn]) -> tuple[str, int | None, str | None]:
    then = _next(turn, turns)
    if then is None:
        return turn["turn_id"], None, None
    ended = turn["started_ns"] if turn["ended_ns"] is None else turn["ended_ns"]
    return turn["turn_id"], max(0, then["started_ns"] - ended), then["last_role"]


@settings(deadline=None, max_examples=60)
@given(_sessions())
def test_sql_finds_the_next_turn_that_the_definition_names(turns: list[Turn]) -> None:
    connection = duckdb.connect()
    try:
        connection.execute(
            "CREATE TABLE t (turn_id VARCHAR, session_id VARCHAR, previous_turn_id VARCHAR, started_ns BIGINT, "
            "ended_ns BIGINT, left_hold_id VARCHAR, last_role VARCHAR)"
        )
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", [list(turn.values()) for turn in turns])
        found = connection.execute(
            f"SELECT t.turn_id, p.pause_ns, p.brings FROM {keyed_pauses(keyed('t', 'last_role'))} p "
            "JOIN t ON hash(t.turn_id) = p.turn_key ORDER BY t.turn_id"
        ).fetchall()
    finally:
        connection.close()
    assert found == sorted((_expected(turn, turns) for turn in turns), key=lambda row: row[0])
