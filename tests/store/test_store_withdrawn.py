"""Rows that are withdrawn: no reader sees them, nor what they take back, and compaction drops both."""

from __future__ import annotations

from pathlib import Path

from tests.store.rows import HOUR, NOON, SECOND, Clock, fill, read_turns, turn, writer
from turnscope.model import Turn
from turnscope.store import StoreReader, SummarisingWriter
from turnscope.store.manifest import decode

DAY = 24 * HOUR


def withdrawn(number: int = 1, revision: int = 2, **changes: object) -> Turn:
    return turn(number, revision=revision, withdrawn=True, part_of=f"{2:032x}", **changes)


def numbers(url: Path) -> list[int]:
    return sorted(int(row["turn_id"], 16) for row in read_turns(url))


def stored_rows(root: Path) -> int:
    return sum(f.rows for f in decode((root / "manifests/w1.json").read_bytes(), "x").files)


def test_no_question_counts_a_turn_that_is_withdrawn_whether_older_rows_were_written_or_not(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, status="stuck"), turn(2))
    fill(tmp_path, withdrawn(1), withdrawn(3))
    reader = StoreReader(str(tmp_path))
    totals, counts, session = reader.totals(), reader.counts(), reader.session("s1")
    assert (totals.turns, totals.failed_turns, sum(counts.by_path.values())) == (1, 0, 1)
    assert session is not None
    assert session["turns"] == reader.turns("s1").total == reader.sizes(["s1"])[0].turns == 1
    assert len(reader.known(["s1"])["s1"][0]) == 1
    assert numbers(tmp_path) == [2]
    reader.close()


def test_one_that_comes_back_in_a_newer_revision_is_seen_again(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    fill(tmp_path, withdrawn(1))
    fill(tmp_path, turn(1, revision=3))
    assert numbers(tmp_path) == [1]


def test_its_session_is_summed_up_without_it_and_disappears_if_it_was_all(tmp_path: Path) -> None:
    clock = Clock()
    store = SummarisingWriter(str(tmp_path), writer_id="w1", now=clock, clock_s=lambda: clock.ns / SECOND)
    for row in (turn(1), turn(2), turn(3, session_id="alone"), withdrawn(1), withdrawn(3, session_id="alone")):
        store.add_turn(row)
        for _ in range(2):
            clock.forward(61 * SECOND)
            store.maintain()
    store.close()
    reader = StoreReader(str(tmp_path))
    assert [(s.session_id, s.turns) for s in reader.summaries()[0]] == [("s1", 1)]
    assert reader.outdated() == []
    reader.close()


def test_an_hour_s_compaction_keeps_it_as_long_as_it_hides_an_older_row_and_the_day_s_drops_both(
    tmp_path: Path,
) -> None:
    clock = Clock()
    out = writer(tmp_path, clock)
    for rows in ([turn(1), turn(2)], [turn(4)], [withdrawn(1)], [turn(5)]):
        for row in rows:
            out.add_turn(row)
        out.flush()
        clock.forward(HOUR if rows == [turn(4)] else 0)
        out.maintain()
    clock.forward(HOUR)
    out.maintain()
    assert (numbers(tmp_path), stored_rows(tmp_path)) == ([2, 4, 5], 5)
    clock.forward(DAY)
    out.maintain()
    out.close()
    assert (numbers(tmp_path), stored_rows(tmp_path)) == ([2, 4, 5], 3)


def test_it_stays_while_another_date_has_an_older_row_of_it(tmp_path: Path) -> None:
    clock = Clock()
    fill(tmp_path, turn(1), clock=clock)
    clock.forward(DAY)
    fill(tmp_path, withdrawn(1, started_ns=NOON + DAY), clock=clock)
    clock.forward(DAY)
    out = writer(tmp_path, clock)
    for _ in range(2):
        clock.forward(DAY)
        for _ in range(3):
            out.maintain()
    out.close()
    assert numbers(tmp_path) == []
