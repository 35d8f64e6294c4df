"""Why a turn of a session was not fetched: causes that look alike are told apart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import BLOCK_BYTES, EPOCH_NS, MS, SECOND, D, Pair, read
from turnscope.assembly.settler import MAX_TURNS
from turnscope.model import Event, Turn
from turnscope.semconv import Direction, TransferState


def five_turns(pair: Pair, **fields: Any) -> list[Turn]:
    """One conversation whose history grows by 250 tokens a turn, nothing ever given to P."""
    events: list[Event] = pair.start()
    for n in range(5):
        events += pair.turn(str(n), at_ms=5000 * n, prompt=1000 + 250 * n, **fields)
    turns = Run().feed(events).wait(100).turns()
    return [turns[f"p{n}"] for n in range(5)]


def reasons(turns: list[Turn]) -> list[str]:
    return [turn.reason for turn in turns]


def test_a_streamed_answer_without_a_handle_is_d_s_fault() -> None:
    turns = five_turns(Pair(), streamed=True, handle_seen=False)
    assert [turn.path for turn in turns] == ["recompute"] * 5
    assert reasons(turns) == ["first_turn"] + ["no_handle_from_decode"] * 4
    assert all(turn.fetched_bytes is None for turn in turns)


def test_the_feature_being_off_on_d_is_another_cause() -> None:
    off = msgspec.structs.replace(D, bidirectional=False)
    turns = five_turns(Pair(d=off), handle_seen=False)
    assert reasons(turns) == ["first_turn"] + ["feature_off_decode"] * 4


def test_no_session_id_is_a_third_and_no_turn_is_called_a_first_one() -> None:
    turns = five_turns(Pair(), session=None)
    assert reasons(turns) == ["no_session_id"] * 5
    assert {turn.session_id for turn in turns} == {None}


def test_one_finding_per_decode_engine_can_be_made_of_the_answers() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", handle_seen=False), *pair.turn("2", at_ms=5000, streamed=False)]
    run = Run().feed(events).wait()
    assert run.count("answers_total", "decode-0", "yes", "no") == 1
    assert run.count("answers_total", "decode-0", "no", "yes") == 1
    (decode,) = [e for e in run.assembler.status(run.now_ns).engines if e.name == "decode-0"]
    assert (decode.streamed_answers, decode.streamed_handles) == (1, 0)
    assert (decode.plain_answers, decode.plain_handles) == (1, 1)


@pytest.mark.parametrize(
    ("after_s", "given", "declined", "path", "reason"),
    [
        (50, True, False, "reverse_fetch", "none"),
        (54, True, False, "reverse_fetch", "none"),
        (56, True, True, "unknown", "declined_expired"),
        (61, True, True, "unknown", "declined_expired"),
        (460, False, False, "recompute", "proxy_entry_expired"),
    ],
)
def test_the_expiry_boundary_has_a_margin(after_s: int, given: bool, declined: bool, path: str, reason: str) -> None:
    pair = Pair(d=msgspec.structs.replace(D, hold_ttl_ns=60 * SECOND))
    first = pair.turn("1", prompt=1000)
    at = 900 + 1000 * after_s
    handle = pair.handle("1", 1199) if given else None
    prefill = {"external_tokens": 1199, "finish_reason": "error"} if declined else None
    second = pair.turn(
        "2", at_ms=at, prompt=1250, fetched=1199 if given and not declined else 0, given=handle, prefill=prefill
    )
    if declined:
        state = TransferState.DECLINED
        second.append(pair.pw.say(read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=state), at + 50))
    expiries = pair.expired("d1", 61_000) if not given or declined else []
    run = Run().feed([*pair.start(), *first, *second, *expiries]).wait()
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason) == (path, reason)
    assert run.count("kv_expired_total", "decode-0", "hold") == len(expiries)
    assert run.count("holds_total", "decode-0", "hold", "ttl") == len(expiries)


@pytest.mark.parametrize(("pause_ms", "reason"), [(449_999, "handle_not_given"), (450_000, "proxy_entry_expired")])
def test_an_entry_has_expired_when_the_proxy_has_had_it_for_as_long_as_it_keeps_one(pause_ms: int, reason: str) -> None:
    pair = Pair()
    second = pair.turn("2", at_ms=900 + pause_ms, prompt=1250)
    run = Run().feed([*pair.start(), *pair.turn("1"), *pair.beats(450_000), *second]).wait()
    assert run.turns()["p2"].reason == reason


def test_a_handle_that_the_proxy_lost_is_not_an_expired_one() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1"), *pair.turn("2", at_ms=5000, prompt=1250)]
    assert Run().feed(events).wait().turns()["p2"].reason == "handle_not_given"


def test_after_an_abort_nothing_was_held_but_a_stop_string_is_no_abort() -> None:
    for said, outcome, reason in (("stop", "ok", "stopped_by_string"), (None, "cancelled", "previous_turn_aborted")):
        pair = Pair()
        first = pair.turn("1", decode_finish="abort", attempt={"finish_reason": said, "outcome": outcome})
        run = Run().feed([*pair.start(), *first, *pair.turn("2", at_ms=5000, prompt=1250)]).wait()
        assert run.turns()["p2"].reason == reason
        assert run.turns()["p1"].status == outcome


def test_a_sibling_took_the_handle() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    events += pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    events += pair.turn("3", at_ms=5100, prompt=1260)
    turns = Run().feed(events).wait().turns()
    assert turns["p3"].reason == "handle_taken_by_sibling"
    assert turns["p3"].previous_turn_id == turns["p1"].turn_id


def test_history_without_a_known_turn_before_is_no_first_turn() -> None:
    pair = Pair()
    turn = pair.turn("1", attempt={"message_roles": ["user", "assistant", "user"]})
    assert Run().feed([*pair.start(), *turn]).wait().turns()["p1"].reason == "unknown"


def test_without_a_proxy_turns_are_chained_by_their_handles() -> None:
    pair = Pair(proxy=False)
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    events += pair.turn("2", at_ms=1500, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    turns = Run().feed(events).wait().turns()
    one, two = turns["p1"], turns["p2"]
    assert one.session_id == two.session_id is not None
    assert (one.session_source, two.session_source) == ("chained", "chained")
    assert (one.turn_index, two.turn_index) == (1, 2)
    assert (one.reason, two.reason) == ("unknown", "none"), "what came before the chain cannot be known"
    assert (one.ttft_ns, one.duration_ns) == (None, None)


def test_a_chain_that_forms_later_revises_the_row_and_no_counter() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000)]).wait(20)
    before = run.counters()
    assert run.turns()["p1"].session_id is None
    run.feed(pair.turn("2", at_ms=30_000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))).wait()
    one = run.turns()["p1"]
    assert (one.session_source, one.reason, one.revision, one.late) == ("chained", "unknown", 2, False)
    assert run.count("turns_total", "prefill-0", "recompute", "unknown") == 1
    assert all(run.counters()[key] >= value for key, value in before.items())


def test_a_session_id_on_the_engines_request_wins_over_the_chain() -> None:
    pair = Pair(proxy=False)
    events = [*pair.start(), *pair.turn("1", prompt=1000, prefill={"session_id": "mine"})]
    turn = Run().feed(events).wait().turns()["p1"]
    assert (turn.session_id, turn.session_source) == ("mine", "engine")


def test_where_a_session_id_came_from_is_the_proxys_word_as_soon_as_it_comes() -> None:
    pair = Pair()
    first = pair.turn("1", prompt=1000, session="s", prefill={"session_id": "s"})
    *engines, attempt = first
    run = Run().feed([*pair.start(), *engines]).wait(70)
    assert run.turns()["p1"].session_source == "engine"
    assert run.feed([attempt], at_ms=80_000).wait().turns()["p1"].session_source == "body.conversation_id"


def test_the_frontends_refusal_is_a_turn_that_reached_no_engine() -> None:
    pair = Pair()
    assert pair.proxy is not None
    refused = {
        "prefill": None,
        "prefill_status": 400,
        "decode_status": None,
        "status_code": 400,
        "outcome": "error",
        "error_stage": "prefill",
        "decode_start_ns": None,
        "started_wall_ns": EPOCH_NS,
        "prefill_end_ns": 5 * MS,
    }
    attempts = [e for e in pair.turn("1", attempt=refused) if e.emitter == pair.proxy.emitter]
    run = Run().feed([*pair.start(), *attempts]).wait()
    (turn,) = run.turns().values()
    assert (turn.path, turn.reason, turn.status) == ("unknown", "rejected_by_frontend", "error")
    assert run.count("turns_total", "none", "unknown", "rejected_by_frontend") == 1
    assert run.count("prompt_tokens_total") == 0


# --- long ones --------------------------------------------------------------------------------------
LONG = MAX_TURNS + 6


def long_session(pair: Pair, session: str | None) -> list[Event]:
    """A turn each 2 s, each with the handle of the one before."""
    events = pair.start()
    for n in range(LONG):
        given = pair.handle(str(n - 1), 1000 + n) if n else None
        fetched = 999 + n if n else 0
        events += pair.turn(
            str(n), at_ms=2000 * n, prompt=1000 + n, output=2, given=given, fetched=fetched, session=session
        )
    return events


@pytest.mark.parametrize("session", ["s", None])
def test_what_comes_late_of_a_turn_that_its_session_has_forgotten_changes_nothing_that_its_place_told(
    session: str | None,
) -> None:
    pair = Pair(proxy=session is not None)
    run = Run().feed(long_session(pair, session)).wait(10)
    before = run.turns()
    again = read(Direction.HANDOFF, local="d1", remote=("p", "p1"), bytes=BLOCK_BYTES)
    run.feed([pair.dw.say(again, 200_000), pair.d.beat(200_001)]).wait(100)
    after = run.turns()
    mine, told = after.pop("p1"), before.pop("p1")
    assert mine.revision > told.revision
    changed = {f for f in mine.__struct_fields__ if getattr(mine, f) != getattr(told, f)} - {"revision", "late"}
    assert {field for field in changed if not field.startswith(("handoff_", "wasted_"))} == set()
    assert (mine.turn_index, mine.session_id) == (2, told.session_id)
    assert after == before, "no other turn moved"
    assert [after[f"p{n}"].turn_index for n in (2, LONG - 1)] == [3, LONG]


def test_one_handle_that_a_whole_batch_of_turns_was_given_ends() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("x")]
    for n in range(LONG):
        given = pair.handle("x", 1199)
        events += pair.turn(str(n), at_ms=5000 + 10 * n, prompt=1250, fetched=1199, given=given, session=None)
    run = Run().feed(events).wait(10)
    assert run.count("turns_total") == LONG + 1
    assert run.count("suspicions_total", "prefill-0", "duplicate_handle") == LONG - 1


def test_a_turn_from_before_all_that_its_session_remembers_is_no_first_turn() -> None:
    pair = Pair()
    assert pair.proxy is not None
    late = pair.turn("late", at_ms=1000, prompt=1001, attempt={"message_roles": ["user"]})
    run = Run().feed(long_session(pair, "s")).feed(late, at_ms=2000 * LONG + 1000).wait(100)
    turn = run.turns()["plate"]
    assert (turn.session_id, turn.turn_index, turn.reason) == ("s", None, "unknown")
    assert (turn.continuity_evidence, turn.new_tokens) == ("unknown", None)
    assert run.turns()[f"p{LONG - 1}"].turn_index == LONG
