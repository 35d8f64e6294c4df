"""What the reader answers: worked out by hand from a few rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.store.rows import NOON, SECOND, fill, hold, parquet_files, read_turns, turn, writer
from turnscope.model import Turn
from turnscope.store import StoreBroken, StoreMissing, StoreReader, whole
from turnscope.store.queries import SessionFilter
from turnscope.store.reader import Page
from turnscope.store.schema import TURNS
from turnscope.store.session_queries import SummaryFilter, SummarySort
from turnscope.store.summing import fresh

MS = 1_000_000


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[StoreReader]:
    """Sessions a (2 turns), b (1 turn) and two turns without an id."""
    fill(
        tmp_path,
        turn(1, session_id="a", prompt_tokens=100, fetched_tokens=0, computed_tokens=100, reason="first_turn",
             path="recompute", model="m1", prefill_engine="p0", ttft_ns=30 * MS, left_hold_id="h1"),
        turn(2, session_id="a", prompt_tokens=300, fetched_tokens=200, computed_tokens=100, reason="none",
             path="reverse_fetch", model="m1", prefill_engine="p1", ttft_ns=10 * MS, fetched_bytes=4096,
             suspicions=["kv_mismatch"], used_hold_id="h1", left_hold_id="h2"),
        turn(3, session_id="b", prompt_tokens=None, reason="stuck", path="unknown", status="stuck",
             started_ns=NOON + 3 * SECOND + 1, ended_ns=None, model="m2", prefill_engine="p0"),
        turn(4, session_id=None, prompt_tokens=50, reason="no_session_id", path="recompute"),
        turn(5, session_id="", prompt_tokens=60, reason="no_session_id", path="recompute"),
        hold(1, hold_id="h1", outcome="read", held_ns=7 * SECOND),
        hold(2, hold_id="h2"),
        hold(3, hold_id="elsewhere", outcome="ttl"),
        hold(4, hold_id="lease", kind="lease", outcome="lease"),
    )  # fmt: skip
    reader = StoreReader(str(tmp_path))
    yield reader
    reader.close()


def _listed(reader: StoreReader, where: SummaryFilter | None = None, **more: Any) -> Page:
    return reader.listed(where or SummaryFilter(), fresh=fresh(reader, NOON, 100)[0], **more)


def _ids(reader: StoreReader, where: SummaryFilter | None = None, **more: Any) -> list[str]:
    found: list[str] = _listed(reader, where, **more).table["session_id"].to_pylist()
    return found


def test_a_session_is_summed_from_its_turns(reader: StoreReader) -> None:
    row = reader.session("a")
    assert row is not None
    expected = {
        "session_id": "a",
        "turns": 2,
        "measured_turns": 2,
        "first_ns": NOON + SECOND,
        "last_ns": NOON + 3 * SECOND,
        "models": ["m1"],
        "prompt_tokens": 400,
        "fetched_tokens": 200,
        "computed_tokens": 200,
        "local_hit_tokens": None,
        "fetched_bytes": 4096,
        "ttft_median_ns": 10 * MS,
        "fetch_turns": 1,
        "source_tokens": None,
        "reused_tokens": None,
        "source_turns": 0,
        "suspicious_turns": 1,
        "failed_turns": 0,
        "main_reason": None,
    }
    assert {k: row[k] for k in expected} == expected
    assert all(not hasattr(v, "as_tuple") for v in row.values()), "sums are integers, not decimals"


def test_of_reasons_equally_often_in_the_way_the_first_is_named(tmp_path: Path) -> None:
    fill(tmp_path, *(turn(n, reason=reason) for n, reason in enumerate(("stuck", "other", "stuck", "other", "none"))))
    reader = StoreReader(str(tmp_path))
    assert {(reader.session("s1") or {})["main_reason"] for _ in range(5)} == {"stuck"}
    reader.close()


def test_nothing_is_in_the_way_of_a_session_whose_reasons_are_as_they_should_be(tmp_path: Path) -> None:
    fine = ("first_turn", "none", "local_hit_covers", "below_threshold", "below_threshold")
    fill(
        tmp_path,
        *(turn(n, session_id="fine", reason=reason) for n, reason in enumerate(fine)),
        *(turn(10 + n, session_id="unsure", reason=reason) for n, reason in enumerate((*fine, "unknown", "unknown"))),
        *(turn(20 + n, session_id="late", reason=r) for n, r in enumerate((*fine, "unknown", "declined_expired"))),
    )
    reader = StoreReader(str(tmp_path))
    table = _listed(reader).table
    listed = dict(zip(table["session_id"].to_pylist(), table["main_reason"].to_pylist(), strict=True))
    assert listed == {name: (reader.session(name) or {})["main_reason"] for name in listed}
    assert listed == {
        "fine": None,
        "unsure": "unknown",
        "late": "declined_expired",
    }
    reader.close()


def test_the_reused_share_is_of_turns_whose_sources_are_all_known(tmp_path: Path) -> None:
    fill(
        tmp_path,
        turn(1, prompt_tokens=100, local_hit_tokens=30, fetched_tokens=20, external_tokens=0, computed_tokens=50),
        turn(2, prompt_tokens=1000, has_attempt=True),
        turn(3, prompt_tokens=1000, local_hit_tokens=500, computed_tokens=500),
    )
    reader = StoreReader(str(tmp_path))
    row, totals = reader.session("s1"), reader.totals()
    assert row is not None
    assert (row["reused_tokens"], row["source_tokens"], row["source_turns"], row["prompt_tokens"]) == (50, 100, 1, 2100)
    assert (totals.reused_tokens, totals.source_tokens, totals.source_turns) == (50, 100, 1)
    assert (row["attempt_turns"], row["split_turns"]) == (1, 0)
    reader.close()


def test_what_no_turn_measured_is_absent_and_not_zero(reader: StoreReader) -> None:
    row = reader.session("b")
    assert row is not None
    assert (row["turns"], row["measured_turns"], row["prompt_tokens"], row["ttft_median_ns"]) == (1, 0, None, None)


def test_turns_without_a_session_id_are_no_session(reader: StoreReader) -> None:
    assert _listed(reader).total == reader.totals().sessions == 2
    (row,) = reader.unattributed().to_pylist()
    assert (row["session_id"], row["turns"], row["prompt_tokens"]) == (None, 2, 110)
    assert reader.session(None) == row
    assert reader.turns(None).total == 2


def test_an_unknown_session_is_none_and_has_no_turns(reader: StoreReader) -> None:
    assert reader.session("nobody") is None
    assert (reader.turns("nobody").total, reader.holds(["nobody"]).num_rows) == (0, 0)


def test_sessions_come_latest_first_unless_asked_otherwise(reader: StoreReader) -> None:
    assert _ids(reader) == ["b", "a"]
    assert _ids(reader, sort=SummarySort.FIRST, descending=False) == ["a", "b"]
    assert _ids(reader, sort=SummarySort.FETCHED) == ["a", "b"]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (SummaryFilter(text="A"), ["a"]),
        (SummaryFilter(text="%"), []),
        (SummaryFilter(model="m2"), ["b"]),
        (SummaryFilter(engine="p0"), ["b", "a"]),
        (SummaryFilter(path="recompute"), ["a"]),
        (SummaryFilter(reason="stuck"), ["b"]),
        (SummaryFilter(suspicion="kv_mismatch"), ["a"]),
        (SummaryFilter(suspicious=True), ["a"]),
        (SummaryFilter(failed=True), ["b"]),
        (SummaryFilter(errors=True), ["b"]),
        (SummaryFilter(longer_ns=SECOND), ["a"]),
        (SummaryFilter(since_ns=NOON + 3 * SECOND + 1), ["b"]),
        (SummaryFilter(until_ns=NOON + 3 * SECOND), ["a"]),
        (SummaryFilter(engine="p0", path="reverse_fetch"), ["a"]),
        (SummaryFilter(turn=SessionFilter(engine="p0", path="reverse_fetch")), []),
        (SummaryFilter(turn=SessionFilter(engine="p1", path="reverse_fetch")), ["a"]),
        (SummaryFilter(text="'; DROP TABLE empty_turns; --"), []),
    ],
)
def test_filters_keep_sessions_that_meet_all(reader: StoreReader, where: SummaryFilter, found: list[str]) -> None:
    page = _listed(reader, where)
    assert (page.table["session_id"].to_pylist(), page.total) == (found, len(found))


def test_a_filtered_session_still_counts_all_its_turns(reader: StoreReader) -> None:
    assert _listed(reader, SummaryFilter(engine="p1")).table["turns"].to_pylist() == [2]


def test_a_page_has_its_rows_and_the_true_total(reader: StoreReader) -> None:
    page = _listed(reader, limit=1, offset=1)
    assert (page.table["session_id"].to_pylist(), page.total) == (["a"], 2)
    turns = reader.turns("a", limit=1, offset=1)
    assert (turns.table["turn_id"].to_pylist(), turns.total) == ([f"{2:032x}"], 2)
    recent = reader.recent_turns(limit=2)
    assert ([int(t, 16) for t in recent.table["turn_id"].to_pylist()], recent.total) == ([5, 4], 5)


def test_a_turn_comes_with_the_hold_it_left(reader: StoreReader) -> None:
    first, second = reader.turns("a").table.to_pylist()
    assert (first["hold_outcome"], first["hold_held_ns"], first["hold_seen"]) == ("read", 7 * SECOND, True)
    assert (second["hold_outcome"], second["hold_held_ns"], second["hold_seen"]) == (None, None, True)
    (stuck,) = reader.turns("b").table.to_pylist()
    assert (stuck["hold_outcome"], stuck["hold_seen"]) == (None, False)


def test_the_holds_of_a_session_are_those_its_turns_left_or_were_offered(reader: StoreReader) -> None:
    held = {name: whole.read(reader, name, NOON) for name in "ab"}
    assert {name: found and found.holds["hold_id"].to_pylist() for name, found in held.items()} == {
        "a": ["h1", "h2"],
        "b": [],
    }


def test_totals_cover_the_whole_store(reader: StoreReader) -> None:
    totals = reader.totals()
    assert (totals.turns, totals.sessions, totals.unattributed_turns) == (5, 2, 2)
    assert (totals.prompt_tokens, totals.fetched_tokens, totals.local_hit_tokens) == (510, 200, None)
    assert (totals.prompt_turns, totals.ttft_turns, totals.suspicious_turns, totals.failed_turns) == (4, 2, 1, 1)


def test_counts_cover_the_whole_store(reader: StoreReader) -> None:
    counts = reader.counts()
    assert counts.by_path == {"recompute": 3, "reverse_fetch": 1, "unknown": 1}
    assert counts.by_reason == {"no_session_id": 2, "first_turn": 1, "none": 1, "stuck": 1}
    assert counts.by_suspicion == {"kv_mismatch": 1}
    assert (counts.holds, counts.leases, counts.by_hold_fate) == (3, 1, {"held": 1, "read": 1, "ttl": 1})


def test_a_revision_can_move_a_turn_into_a_session(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, session_id=None))
    fill(tmp_path, turn(1, session_id="found", revision=2))
    reader = StoreReader(str(tmp_path))
    assert (reader.turns(None).total, reader.turns("found").total, _listed(reader).total) == (0, 1, 1)
    reader.close()


def test_turns_chained_by_their_handles_are_a_session_of_their_own(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, session_id="chain-1", session_source="chained"), turn(2, session_id=None))
    reader = StoreReader(str(tmp_path))
    assert _ids(reader) == ["chain-1"]
    assert (reader.session("chain-1") or {})["session_source"] == "chained"
    assert reader.unattributed()["turns"].to_pylist() == [1]
    reader.close()


@pytest.mark.parametrize("session_id", ["<script>alert(1)</script>", "' OR 1=1 --", "\u202egnirts", "x" * 10_000, "%"])
def test_any_session_id_is_only_a_value(tmp_path: Path, session_id: str) -> None:
    fill(tmp_path, turn(1, session_id=session_id), turn(2, session_id="other"))
    reader = StoreReader(str(tmp_path))
    assert reader.turns(session_id).total == 1
    assert _ids(reader, SummaryFilter(text=session_id)) == [session_id]
    reader.close()


def test_the_version_changes_with_what_is_stored_and_only_then(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    reader, other = StoreReader(str(tmp_path)), StoreReader(str(tmp_path))
    before = reader.version()
    assert reader.version() == other.version() == before
    fill(tmp_path, turn(2))
    assert reader.version() == other.version() != before
    reader.close()
    other.close()


def test_there_is_no_store_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(
        StoreMissing, match=r"there is no turnscope store at .*: check the address, or let `turnscope serve"
    ):
        StoreReader(str(tmp_path / "nothing"))


def test_a_folder_of_other_files_is_no_store(tmp_path: Path) -> None:
    pq.write_table(TURNS.schema.empty_table(), tmp_path / "x.parquet")
    with pytest.raises(StoreMissing):
        StoreReader(str(tmp_path))


def test_files_that_no_manifest_lists_are_not_read(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    (only,) = parquet_files(tmp_path)
    copy = tmp_path / only.replace("-w1", "-w2")
    copy.write_bytes((tmp_path / only).read_bytes())
    (tmp_path / "manifests/w1.json").unlink()
    writer(tmp_path, writer_id="w3").close()
    assert read_turns(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 nonsense PAR1"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    fill(tmp_path, turn(1))
    (only,) = parquet_files(tmp_path)
    (tmp_path / only).write_bytes(content)
    reader = StoreReader(str(tmp_path))
    with pytest.raises(StoreBroken, match=r"a file of the store .* cannot be read .*-w1\.parquet"):
        reader.totals()
    reader.close()


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    reader = StoreReader(str(tmp_path))
    (only,) = parquet_files(tmp_path)
    (tmp_path / only).unlink()
    with pytest.raises(StoreBroken, match=r"-w1\.parquet"):
        reader.totals()
    reader.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", r"the manifest .*w1\.json cannot be read"),
        ('{"writer": "w1", "version": 2}', "has format 2, this turnscope reads 1"),
        (
            '{"writer": "w1", "files": [{"path": "../../etc/passwd", "table": "turns", "date": "2026-01-01", "rows": 1,'
            ' "bytes": 1, "level": 0, "created_ns": 1}]}',
            "lists a file that cannot be part of a store: '../../etc/passwd'",
        ),
    ],
)
def test_a_broken_manifest_is_named(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/w1.json").write_text(content)
    with pytest.raises(StoreBroken, match=words):
        StoreReader(str(tmp_path))


def test_files_of_an_older_turnscope_lack_columns_and_are_read_all_the_same(tmp_path: Path) -> None:
    fill(tmp_path, turn(1, prompt_tokens=7, tool_calls=3))
    (only,) = parquet_files(tmp_path)
    old = pq.read_table(tmp_path / only, partitioning=None).drop_columns(["tool_calls"])
    pq.write_table(old, tmp_path / only)
    (got,) = read_turns(tmp_path)
    assert (got["prompt_tokens"], got["tool_calls"]) == (7, None)


def test_files_of_a_newer_turnscope_have_more_columns_and_are_read_all_the_same(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    (only,) = parquet_files(tmp_path)
    new = pq.read_table(tmp_path / only, partitioning=None)
    pq.write_table(new.append_column("from_the_future", [["x"]]), tmp_path / only)
    (got,) = read_turns(tmp_path)
    assert Turn(**{k: v for k, v in got.items() if not k.startswith("hold_")}) == turn(1)
