"""Reads of single ranks are one logical transfer: bytes, time, and how many ranks were seen of how many there are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import MS, D, P, Pair, Process, read
from turnscope.assembly.turns import MAX_READS
from turnscope.model import Engine, Event, Transfer, Turn
from turnscope.outputs import spans
from turnscope.semconv import Direction

RANK_BYTES = 33_554_432
LATENT_BYTES = 71_958_528
"""1,024 tokens of 61 layers with a latent of 576 numbers of 2 bytes."""
TP4 = msgspec.structs.replace(D, tp_size=4, pp_size=1, kv_copies=1)


def rank_reads(
    engine: Engine, sizes: dict[int, int], lasted_ms: dict[int, float], begun_ms: dict[int, float] | None = None
) -> list[Event]:
    """One read of each rank for turn 1's handoff, each rank in a process of its own."""
    events = []
    for rank, size in sizes.items():
        worker = Process(f"w{rank}", "worker", msgspec.structs.replace(engine, rank=rank))
        fields: dict[str, Any] = {"bytes": size, "duration_ns": int(lasted_ms[rank] * MS)}
        if begun_ms is not None:
            fields["started_mono_ns"] = int(begun_ms[rank] * MS)
        body = read(Direction.HANDOFF, local="d1", remote=("p", "p1"), **fields)
        events.append(worker.say(body, 450))
    return events


def run_of(engine: Engine, reads: list[Event]) -> Run:
    pair = Pair(d=engine)
    rest = [e for e in pair.turn("1", prompt=1024) if not isinstance(e.body, Transfer)]
    return Run().feed([*pair.start(), *rest, *reads]).wait()


def handed(turn: Turn) -> tuple[int | None, ...]:
    """Bytes on the wire and as KV, transfers, reads, ranks seen and expected."""
    return (
        turn.handoff_bytes,
        turn.handoff_logical_bytes,
        turn.handoff_transfers,
        turn.handoff_reads,
        turn.handoff_ranks_seen,
        turn.handoff_ranks_expected,
    )


def test_four_ranks_are_one_transfer_that_lasts_as_long_as_the_slowest() -> None:
    run = run_of(TP4, rank_reads(TP4, dict.fromkeys(range(4), RANK_BYTES), {0: 10, 1: 10, 2: 10, 3: 12}))
    turn = run.turns()["p1"]
    assert handed(turn) == (134_217_728, 134_217_728, 1, 4, 4, 4)
    assert turn.handoff_ns == 12 * MS
    assert turn.handoff_bytes is not None
    assert turn.handoff_bytes / turn.handoff_ns == pytest.approx(11.18, abs=0.01)
    assert run.count("transfers_total", "decode-0", "handoff", "all") == 1
    assert run.count("transfer_reads_total", "decode-0", "handoff", "done") == 4
    assert run.count("transfer_bytes_total", "decode-0", "handoff") == 134_217_728
    assert run.count("transfer_wall_seconds", "decode-0", "handoff") == 0.012


def test_ranks_that_begin_one_after_the_other_last_from_the_first_begin_to_the_last_end() -> None:
    begun = {0: 400.0, 1: 401.0, 2: 402.0, 3: 405.0}
    reads = rank_reads(TP4, dict.fromkeys(range(4), RANK_BYTES), {0: 10, 1: 10, 2: 10, 3: 12}, begun)
    turn = run_of(TP4, reads).turns()["p1"]
    assert turn.handoff_ns == 17 * MS


def test_clocks_of_two_hosts_make_no_duration_so_the_longest_read_stands_for_it() -> None:
    begun = {0: 400.0, 1: 9_000_000.0}
    reads = rank_reads(TP4, dict.fromkeys(range(2), RANK_BYTES), {0: 10, 1: 12}, begun)
    far = reads[1]
    reads[1] = msgspec.structs.replace(far, emitter=msgspec.structs.replace(far.emitter, host="other"))
    assert run_of(TP4, reads).turns()["p1"].handoff_ns == 12 * MS


def test_ranks_that_each_read_the_whole_latent_move_it_once_and_put_it_on_the_wire_four_times() -> None:
    mla = msgspec.structs.replace(TP4, kv_copies=4)
    run = run_of(mla, rank_reads(mla, dict.fromkeys(range(4), LATENT_BYTES), dict.fromkeys(range(4), 10)))
    assert handed(run.turns()["p1"]) == (287_834_112, 71_958_528, 1, 4, 4, 4)
    assert run.count("transfer_logical_bytes_total", "decode-0", "handoff") == 71_958_528
    assert run.count("transfer_bytes_total", "decode-0", "handoff") == 287_834_112


def test_more_ranks_than_heads_count_each_head_once() -> None:
    """Eight ranks, four heads: neighbours have the same."""
    engine = msgspec.structs.replace(TP4, tp_size=8, kv_copies=2)
    reads = rank_reads(engine, dict.fromkeys(range(8), 100), dict.fromkeys(range(8), 1))
    assert handed(run_of(engine, reads).turns()["p1"])[:2] == (800, 400)


def test_pipeline_stages_of_an_mla_engine_each_have_their_own_layers() -> None:
    engine = msgspec.structs.replace(TP4, tp_size=2, pp_size=2, kv_copies=2)
    reads = rank_reads(engine, {0: 100, 1: 100, 2: 60, 3: 60}, dict.fromkeys(range(4), 1))
    assert handed(run_of(engine, reads).turns()["p1"]) == (320, 160, 1, 4, 4, 4)


def test_a_missing_rank_shows_three_of_four_and_partial_bytes() -> None:
    run = run_of(TP4, rank_reads(TP4, dict.fromkeys((0, 1, 3), RANK_BYTES), {0: 10, 1: 10, 3: 12}))
    assert handed(run.turns()["p1"]) == (3 * RANK_BYTES, 3 * RANK_BYTES, 1, 3, 3, 4)
    assert run.count("transfers_total", "decode-0", "handoff", "some") == 1
    assert run.count("transfers_total", "decode-0", "handoff", "all") == 0


def test_a_rank_that_comes_late_completes_the_row_and_counts_nothing_twice() -> None:
    reads = rank_reads(TP4, dict.fromkeys(range(4), RANK_BYTES), {0: 10, 1: 10, 2: 10, 3: 12})
    run = run_of(TP4, reads[:3])
    run.feed(reads[3:]).wait()
    turn = run.turns()["p1"]
    assert (handed(turn), turn.revision) == ((134_217_728, 134_217_728, 1, 4, 4, 4), 2)
    assert run.count("transfers_total") == 1


def test_a_rank_that_reads_in_pieces_is_one_rank() -> None:
    """A reader with fewer ranks than the holder reads once from each of them."""
    engine = msgspec.structs.replace(TP4, tp_size=1)
    worker = Process("w0", "worker", msgspec.structs.replace(engine, rank=0))
    reads = [
        worker.say(read(Direction.HANDOFF, local="d1", remote=("p", "p1"), bytes=RANK_BYTES, duration_ns=MS), 450)
        for _ in range(4)
    ]
    assert handed(run_of(engine, reads).turns()["p1"]) == (134_217_728, 134_217_728, 1, 4, 1, 1)


def test_where_it_is_not_known_which_ranks_have_the_same_kv_the_logical_bytes_are_not_measured() -> None:
    engine = msgspec.structs.replace(TP4, kv_copies=None)
    run = run_of(engine, rank_reads(engine, dict.fromkeys(range(4), LATENT_BYTES), dict.fromkeys(range(4), 10)))
    assert handed(run.turns()["p1"])[:2] == (287_834_112, None)
    assert run.count("transfer_logical_bytes_total") == 0


def test_an_engine_that_does_not_say_how_many_ranks_it_has_leaves_the_expected_ones_unknown() -> None:
    engine = msgspec.structs.replace(D, tp_size=None)
    run = run_of(engine, rank_reads(engine, {0: 5}, {0: 1}))
    assert run.turns()["p1"].handoff_ranks_expected is None
    assert run.count("transfers_total", "decode-0", "handoff", "unknown") == 1


def test_a_fetch_and_a_handoff_of_one_turn_are_two_transfers_of_their_readers() -> None:
    pair = Pair(msgspec.structs.replace(P, tp_size=1), msgspec.structs.replace(D, tp_size=1))
    first = pair.turn("1")
    second = pair.turn("2", at_ms=2_000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    run = Run().feed([*pair.start(), *first, *second]).wait()
    turn = run.turns()["p2"]
    assert (turn.fetch_transfers, turn.fetch_ranks_seen, turn.fetch_ranks_expected) == (1, 1, 1)
    assert run.count("transfers_total", "prefill-0", "reverse_fetch", "all") == 1
    assert run.count("transfers_total", "decode-0", "handoff", "all") == 2


def test_the_span_of_a_turn_names_wire_and_logical_bytes_and_its_ranks() -> None:
    mla = msgspec.structs.replace(TP4, kv_copies=4)
    run = run_of(mla, rank_reads(mla, dict.fromkeys(range(3), LATENT_BYTES), dict.fromkeys(range(3), 10)))
    request = spans.encode([run.turns()["p1"]], version="0")
    (root, *_) = request.resource_spans[0].scope_spans[0].spans
    found = {a.key.removeprefix("turnscope.turn."): a.value.int_value for a in root.attributes}
    assert found["handoff_bytes"] == 3 * LATENT_BYTES
    assert found["handoff_logical_bytes"] == LATENT_BYTES
    assert (found["handoff_ranks_seen"], found["handoff_ranks_expected"]) == (3, 4)


def test_a_turn_remembers_so_many_reads_and_counters_have_them_all() -> None:
    pair = Pair()
    reads = [
        pair.pw.say(read(Direction.REVERSE_FETCH, local="p1", remote=("d", f"h{n}"), bytes=1), 100)
        for n in range(MAX_READS + 10)
    ]
    run = Run().feed([*pair.start(), *reads, *pair.turn("1")]).wait(10)
    turn = run.turns()["p1"]
    assert (turn.fetch_reads or 0) + (turn.handoff_reads or 0) == MAX_READS
    assert run.count("transfer_bytes_total", "prefill-0", "reverse_fetch") == MAX_READS + 10
