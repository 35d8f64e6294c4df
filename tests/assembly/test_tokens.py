"""What the engine reported, and what really became of the prompt's tokens."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import BLOCK_BYTES, MS, P, Pair, read, request
from turnscope.assembly.tokens import Split, reported, split
from turnscope.model import Engine, Event, Turn
from turnscope.semconv import Direction, Leg, TransferState

RECOMPUTE = msgspec.structs.replace(P, load_failure_policy="recompute")


def parts(turn: Turn) -> tuple[int | None, ...]:
    return turn.local_hit_tokens, turn.fetched_tokens, turn.external_tokens, turn.computed_tokens


def second_turn(*, engine: Engine = P, states: tuple[TransferState, ...] = (), **fields: Any) -> Run:
    """Two turns of one session; the second is given the first's handle of 1,199 tokens."""
    pair = Pair(engine)
    events: list[Event] = [*pair.start(), *pair.turn("1", prompt=1000, output=200)]
    events += pair.turn("2", at_ms=5000, given=pair.handle("1", 1199), **{"prompt": 1250, **fields})
    for state in states:
        events.append(pair.pw.say(read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=state), 5100))
    return Run().feed(events).wait()


def test_one_token_is_computed_for_the_logits_and_bytes_are_whole_blocks() -> None:
    turn = second_turn(fetched=1199).turns()["p2"]
    assert parts(turn) == (0, 1199, 0, 51)
    assert turn.fetched_bytes == 75 * BLOCK_BYTES == 157_286_400


def test_with_a_local_hit_only_the_rest_is_fetched() -> None:
    turn = second_turn(local=512, fetched=687).turns()["p2"]
    assert (turn.path, turn.reason) == ("mixed", "none")
    assert parts(turn) == (512, 687, 0, 51)
    assert turn.fetched_bytes == 43 * BLOCK_BYTES == 90_177_536


def test_draft_slots_add_a_block_but_no_tokens() -> None:
    pair = Pair()
    draft = msgspec.structs.replace(pair.handle("1", 1199), blocks=76)
    second = pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=draft)
    turn = Run().feed([*pair.start(), *pair.turn("1"), *second]).wait().turns()["p2"]
    assert (turn.offered_tokens, turn.fetched_tokens) == (1199, 1199)


@pytest.mark.parametrize(
    ("local", "fetched", "threshold", "path", "reason"),
    [
        (1136, 0, 64, "local_hit", "below_threshold"),
        (1135, 64, 64, "mixed", "none"),
        (1135, 0, 64, "local_hit", "other"),
        (1199, 0, 64, "local_hit", "local_hit_covers"),
        (1198, 1, 0, "mixed", "none"),
    ],
)
def test_a_remainder_below_the_threshold_is_recomputed_on_purpose(
    local: int, fetched: int, threshold: int, path: str, reason: str
) -> None:
    engine = msgspec.structs.replace(P, recompute_threshold=threshold)
    states = () if fetched else (TransferState.NOTICE_ONLY,)
    run = second_turn(engine=engine, local=local, fetched=fetched, states=states)
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason, turn.threshold_tokens) == (path, reason, threshold)
    assert sum(part or 0 for part in parts(turn)) == 1250
    assert turn.remainder_tokens == 1199 - local
    assert turn.fetch_reads == (1 if fetched else None), "one fetch however many chunks the rest is computed in"


def test_a_remainder_that_was_not_worth_it_is_released_by_notice_and_not_by_its_deadline() -> None:
    pair = Pair()
    notice = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.NOTICE_ONLY)
    second = pair.turn("2", at_ms=5000, prompt=1250, local=1136, given=pair.handle("1", 1199))
    events = [*pair.start(), *pair.turn("1"), *second, pair.pw.say(notice, 5100), *pair.released("d1", 5100)]
    run = Run().feed(events).wait()
    assert (run.turns()["p2"].reason, run.holds()["d1"].outcome) == ("below_threshold", "notified")
    assert run.count("suspicions_total") == 0


def test_a_failed_load_that_was_recomputed_fetched_nothing_but_the_engines_own_count_stays() -> None:
    run = second_turn(engine=RECOMPUTE, prefill={"external_tokens": 1199}, states=(TransferState.FAILED,))
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason, turn.status) == ("recompute", "transfer_failed", "ok")
    assert parts(turn) == (0, 0, 0, 1250)
    assert run.count("request_prompt_tokens_total", "prefill-0", "external_kv_transfer") == 1199
    assert run.count("prompt_tokens_total", "prefill-0", "fetched") == 0
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 1000 + 1250
    assert turn.suspicions == []


def test_a_declined_read_that_failed_the_turn_leaves_the_split_unmeasured() -> None:
    run = second_turn(
        prefill={"external_tokens": 1199, "finish_reason": "error"},
        states=(TransferState.DECLINED,),
        attempt={"outcome": "error", "error_stage": "prefill", "status_code": 500, "decode_start_ns": None},
    )
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason, turn.status, turn.stage) == ("unknown", "declined_expired", "error", "prefill")
    assert parts(turn) == (None, None, None, None)
    assert run.count("kv_expired_total", "prefill-0", "declined") == 1
    assert run.count("turns_ended_total", "prefill-0", "error") == 1


def test_hit_then_failed_load_counts_as_computed_whatever_was_tried() -> None:
    leg = request("p", prompt=1200, local_hit_tokens=500, external_tokens=420)
    failed = read(Direction.REVERSE_FETCH, local="p", remote=("d", "d1"), state=TransferState.FAILED)
    assert split(leg, [failed], has_handle=True) == Split(1200, 500, 0, 0, 700)


def test_the_external_store_is_not_a_reverse_fetch() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1", prefill={"external_tokens": 420, "computed_tokens": 580})]).wait()
    assert run.turns()["p1"].path == "external_hit"
    notice = [read(Direction.REVERSE_FETCH, local="p", remote=("d", "d1"), state=TransferState.NOTICE_ONLY)]
    assert split(request("p", external_tokens=420), notice, has_handle=True).external == 420


@pytest.mark.parametrize(
    ("prompt", "local", "external", "computed", "expected"),
    [
        (17_050, -7680, 8448, 16_282, (0, 8448, 8602)),
        (1000, -1, 0, 1000, (0, 0, 1000)),
        (1000, 0, 2048, 0, (0, 1000, 0)),
        (1000, 600, 600, -200, (400, 600, 0)),
    ],
)
def test_impossible_numbers_are_clamped_and_counted(
    prompt: int, local: int, external: int, computed: int, expected: tuple[int, int, int]
) -> None:
    pair = Pair()
    leg = request(
        "p1", prompt=prompt, local_hit_tokens=local, external_tokens=external, computed_tokens=computed, preemptions=1
    )
    run = Run().feed([*pair.start(), pair.p.say(leg, 400)]).wait(100)
    numbers = reported(leg)
    assert numbers is not None
    assert (numbers.local, numbers.external, numbers.computed) == expected
    assert run.count("inconsistent_input_total", "prefill-0") == 1
    assert run.count("request_prompt_tokens_total") == prompt
    assert min(run.counters().values()) >= 0
    turn = run.turns()["p1"]
    assert turn.preemptions == 1
    assert (turn.reported_local_tokens, turn.reported_external_tokens, turn.reported_computed_tokens) == (
        local,
        external,
        computed,
    )


def test_a_request_that_was_never_scheduled_has_no_split() -> None:
    leg = request("p1", computed_tokens=None)
    leg.local_hit_tokens = leg.external_tokens = None
    assert split(leg, [], has_handle=True) == Split(1000)


def test_what_d_found_is_the_handoff_and_never_reuse() -> None:
    pair = Pair()
    turn = Run().feed([*pair.start(), *pair.turn("1", prompt=812)]).wait().turns()["p1"]
    assert (turn.path, turn.handoff_tokens) == ("recompute", 811)
    assert parts(turn) == (0, 0, 0, 812)


def test_statistics_that_the_engine_never_sent_are_not_counted_as_its_own() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), pair.p.say(request("p1", stats_sent=False), 400)]).wait(100)
    assert run.count("request_prompt_tokens_total") == 0
    assert run.count("requests_total", "prefill-0", "prefill", "length") == 1


def test_ranks_make_one_transfer_as_long_as_the_slowest() -> None:
    pair = Pair()
    events = [*pair.start(), pair.p.say(request("p1", prompt=1024), 400)]
    for duration in (10, 10, 10, 12):
        body = read(Direction.HANDOFF, local="d1", remote=("p", "p1"), bytes=33_554_432, duration_ns=duration * MS)
        events.append(pair.dw.say(body, 450))
    events.append(pair.d.say(request("d1", leg=Leg.DECODE, handle_in=pair.p_handle("1", 1024)), 900))
    turn = Run().feed(events).wait(100).turns()["p1"]
    assert (turn.handoff_bytes, turn.handoff_ns, turn.handoff_reads) == (134_217_728, 12 * MS, 4)
