"""What became of the blocks that D kept after each turn, against what the client did next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from live.driver import TurnTruth
from live.verdict import FETCHED, LATE, LITTLE_LEFT, Row


def judge(
    truth: Iterable[TurnTruth],
    rows: Sequence[Row],
    waited_for: Collection[str],
    lost: Collection[tuple[str, int]] = (),
) -> list[str]:
    """One sentence for each hold whose end is told wrongly. ``truth`` in the order in which turns ended;
    ``waited_for``: configurations that were watched until D held nothing more; ``lost``: configurations whose D ended
    with all that it held, and when (wall clock, ns)."""
    by_caller: defaultdict[str, list[Row]] = defaultdict(list)
    users: defaultdict[str, list[tuple[TurnTruth, Row]]] = defaultdict(list)
    told: list[tuple[TurnTruth, Row]] = []
    for row in rows:
        by_caller[str(row["caller_trace_id"])].append(row)
    for turn in truth:
        found = by_caller[turn.traceparent.split("-")[1]]
        if len(found) == 1:
            told.append((turn, found[0]))
            if found[0]["used_hold_id"]:
                users[found[0]["used_hold_id"]].append(told[-1])
    out = []
    for turn, row in told:
        where = f"{turn.configuration} {turn.conversation} turn {turn.turn}"
        if (row["left_hold_id"] is not None) != (turn.outcome == "ok" and turn.holds):
            out.append(f"{where}: the client saw {turn.outcome}, and the hold it left is {row['left_hold_id']}")
        elif row["left_hold_id"] is not None:
            gone = any(name == turn.configuration and at_ns > turn.started_wall_ns for name, at_ns in lost)
            unread = "holder_lost" if gone else "ttl" if turn.configuration in waited_for else None
            wanted = _end(users[row["left_hold_id"]], unread)
            if row["hold_outcome"] != wanted:
                out.append(f"{where}: its hold ended as {row['hold_outcome']}, expected {wanted}")
    return out


def _end(users: Sequence[tuple[TurnTruth, Row]], unread: str | None) -> str | None:
    """Of a hold, by the first turn that was given it; ``unread``: of one that nobody was, or that gave up."""
    if not users:
        return unread
    turn, row = users[0]
    if row["reason"] == "holder_lost":
        return "holder_lost"
    if turn.act in LATE or row["reason"] == "declined_expired":
        return "ttl"
    if row["reason"] in LITTLE_LEFT:
        return "notified"
    return "read" if row["path"] in FETCHED else unread
