"""Whether a prompt continues what D holds for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import FAITHFUL, SYSTEM, USER, Talk, answer_of, encloses, message, text, two_turns
from tests.builders import Pair
from turnscope.marks import LONGEST, Keys
from turnscope.model import Digest, Event, Turn


def parts(turn: Turn) -> tuple[int | None, ...]:
    return turn.local_hit_tokens, turn.fetched_tokens, turn.computed_tokens, turn.recomputed_tokens, turn.new_tokens


# --- what P fetched is of other text ------------------------------------------------------------------
def test_a_faithful_continuation_raises_nothing_and_computes_only_what_is_new() -> None:
    run = two_turns(FAITHFUL)
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason, turn.suspicions) == ("reverse_fetch", "none", [])
    assert parts(turn) == (0, 1599, 51, 0, 51)
    assert (turn.suspect_tokens, turn.rewritten_tokens, turn.mismatch_evidence) == (0, 0, None)
    assert (turn.diverged_after, turn.diverged_before, turn.continuity_evidence) == (None, None, "digests")
    assert run.count("suspicions_total") == 0
    assert run.count("avoidable_recompute_tokens_total") == 0


def test_reasoning_stripped_from_the_history_is_a_mismatch_where_it_stood() -> None:
    run = two_turns([*SYSTEM, *answer_of()[400:], *USER])
    turn = run.turns()["p2"]
    assert (turn.path, turn.suspicions, turn.mismatch_evidence) == ("reverse_fetch", ["kv_mismatch"], "digests")
    assert encloses(turn, 1000, within=LONGEST)
    assert turn.diverged_after is not None
    assert (turn.fetched_tokens, turn.suspect_tokens) == (1250, 1250 - turn.diverged_after)
    assert run.count("suspicions_total", "prefill-0", "kv_mismatch") == 1
    assert run.count("suspect_tokens_total", "prefill-0") == turn.suspect_tokens
    assert run.count("prompt_tokens_total", "prefill-0", "fetched") == 1250


def test_a_history_compacted_to_a_summary_is_a_mismatch() -> None:
    system, history = message(100, salt=3), [token for n in range(10) for token in message(290, salt=300 + n)]
    turn = two_turns([*system, *message(200, salt=4)], first=[*system, *history]).turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence) == (["kv_mismatch"], "digests")
    assert encloses(turn, 100, within=LONGEST)


def test_an_edited_system_prompt_of_the_same_length_is_a_mismatch_although_no_length_tells() -> None:
    edited = [*SYSTEM[:20], 7, *SYSTEM[21:], *answer_of(), *USER]
    turn = two_turns(edited).turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence) == (["kv_mismatch"], "digests")
    assert encloses(turn, 20, within=LONGEST)
    assert turn.suspect_tokens is not None
    assert turn.suspect_tokens > 1599 - 20 - 1


def test_an_answer_shortened_in_the_history_is_a_mismatch_in_its_last_tokens() -> None:
    turn = two_turns([*SYSTEM, *answer_of()[:580], *message(400, salt=5)]).turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence) == (["kv_mismatch"], "digests")
    assert encloses(turn, 1580, within=16)
    assert turn.suspect_tokens is not None
    assert 19 <= turn.suspect_tokens <= 19 + 16


def test_two_conversations_under_one_session_id_are_told_apart() -> None:
    pair = Pair()
    talk = Talk(pair)
    other = message(900, salt=6)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", other, 200, at_ms=3000, given=pair.handle("1", 1599), first=True)
    events = [*pair.start(), *one[0], *one[1], *two[0], *two[1]]
    turn = Run().feed(events).wait().turns()["p2"]
    assert (turn.suspicions, turn.diverged_after, turn.suspect_tokens) == (["kv_mismatch"], 0, 900)


def test_what_p_had_itself_is_not_suspect_with_what_it_fetched() -> None:
    edited = [*SYSTEM[:500], 7, *SYSTEM[501:], *answer_of(), *USER]
    turn = two_turns(edited, local=1200).turns()["p2"]
    assert (turn.path, turn.local_hit_tokens, turn.fetched_tokens) == ("mixed", 1200, 399)
    assert (turn.suspicions, turn.suspect_tokens) == (["kv_mismatch"], 399)


def test_what_the_handle_promised_beyond_what_d_had_is_unknown_and_not_equal() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", FAITHFUL, at_ms=5000, given=pair.handle("1", 1600))
    turn = Run().feed([*pair.start(), *one[0], *one[1], *two[0], *two[1]]).wait().turns()["p2"]
    assert (turn.fetched_tokens, turn.suspicions, turn.suspect_tokens) == (1600, [], None)


def test_a_prompt_that_repeats_a_part_of_what_is_held_is_no_mismatch() -> None:
    run = two_turns(SYSTEM)
    turn = run.turns()["p2"]
    assert (turn.fetched_tokens, turn.offered_tokens, turn.suspicions) == (1000, 1599, [])
    assert turn.suspect_tokens == 0


def test_a_prompt_that_ends_before_the_next_mark_is_suspect_past_the_last_that_agrees() -> None:
    turn = two_turns([*SYSTEM, *text(5, salt=7)]).turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence) == (["kv_mismatch"], "lengths")
    assert turn.diverged_before is None
    assert turn.diverged_after is not None
    assert 1005 - 256 < turn.diverged_after <= 1000
    assert turn.suspect_tokens == 1005 - turn.diverged_after


def test_p_s_prompt_and_d_s_answer_together_tell_where_a_prompt_parts() -> None:
    turn = two_turns([*FAITHFUL[:1003], 7, *FAITHFUL[1004:]]).turns()["p2"]
    assert turn.diverged_after == 999, "P's prompt of the turn before ends there, and D has no mark so near"
    assert turn.diverged_before is not None
    assert 1003 < turn.diverged_before <= 999 + LONGEST, "and P knows nothing of what comes after it"
    assert turn.suspicions == ["kv_mismatch"]


def test_what_d_holds_of_other_text_than_p_computed_is_a_mismatch_although_p_s_prompt_agrees() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", FAITHFUL, at_ms=5000, given=pair.handle("1", 1599))
    told = pair.digests("1", SYSTEM, answer_of(), 1400, legs="p")
    told += pair.digests("1", [*SYSTEM[:300], 7, *SYSTEM[301:]], answer_of(), 1400, legs="d")
    turn = Run().feed([*pair.start(), *one[0], *two[0], *told, *two[1]]).wait().turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence, encloses(turn, 300, within=LONGEST)) == (
        ["kv_mismatch"],
        "digests",
        True,
    )


# --- without digests ----------------------------------------------------------------------------------
def test_without_digests_only_lengths_speak_and_say_so() -> None:
    turn = two_turns([*SYSTEM, *answer_of()[400:], *USER], digests=False).turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence, turn.continuity_evidence) == (
        ["kv_mismatch"],
        "lengths",
        "lengths",
    )
    assert (turn.prompt_tokens, turn.offered_tokens, turn.suspect_tokens) == (1250, 1599, 1250)
    assert (turn.diverged_before, turn.recomputed_tokens, turn.new_tokens) == (None, None, None)


def test_lengths_do_not_see_an_edit_and_do_not_call_it_equal() -> None:
    run = two_turns([*SYSTEM[:20], 7, *SYSTEM[21:], *answer_of(), *USER], digests=False)
    turn = run.turns()["p2"]
    assert (turn.suspicions, turn.continuity_evidence, turn.suspect_tokens) == ([], "lengths", None)
    assert run.count("turns_continuity_total", "prefill-0", "lengths") == 1


def replaced(run_of: list[Event], request_id: str, **changes: Any) -> list[Event]:
    """The same events, one digest of them changed."""
    out = []
    for event in run_of:
        if isinstance(event.body, Digest) and event.body.request_id == request_id:
            event = msgspec.structs.replace(event, body=msgspec.structs.replace(event.body, **changes))
        out.append(event)
    return out


@pytest.mark.parametrize("request_id", ["p2", "d1"])
@pytest.mark.parametrize("why", ["prompt_embeds", "too_long", "dropped"])
def test_what_cannot_be_verified_is_never_taken_for_equal(request_id: str, why: str) -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", FAITHFUL, at_ms=5000, given=pair.handle("1", 1599))
    events = replaced(
        [*one[0], *one[1], *two[0], *two[1]], request_id, unverifiable=why, marks=b"", chunks=b"", key_id=""
    )
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p2"]
    assert turn.continuity_evidence == "unverifiable"
    assert (turn.recomputed_tokens, turn.new_tokens, turn.rewritten_tokens) == (None, None, None)
    assert (turn.computed_tokens, turn.suspicions, turn.local_miss) == (51, [], "unknown")


def test_digests_under_another_key_do_not_compare() -> None:
    run = two_turns(FAITHFUL, keys=Keys(b"another"))
    turn = run.turns()["p2"]
    assert (turn.continuity_evidence, turn.suspicions, turn.suspect_tokens) == ("unverifiable", [], None)
    assert (turn.recomputed_tokens, turn.new_tokens) == (None, None)
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 51


def test_a_prompt_that_cannot_be_verified_says_so_whatever_is_known_of_the_turn_before() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", FAITHFUL, at_ms=5000)
    told = replaced(two[1], "p2", unverifiable="dropped", marks=b"", chunks=b"", key_id="")
    turn = Run().feed([*pair.start(), *one[0], *two[0], *told]).wait().turns()["p2"]
    assert turn.continuity_evidence == "unverifiable"


def test_what_an_unseen_d_answered_is_not_known_and_so_not_what_is_new() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True, handle_seen=False)
    two = talk.turn("2", FAITHFUL, at_ms=5000)
    events = [*pair.start(), *one[0], *one[1], *two[0], *two[1]]
    turn = Run().feed(e for e in events if e.emitter not in (pair.d.emitter, pair.dw.emitter)).wait(100).turns()["p2"]
    assert (turn.continuity_evidence, turn.recomputed_tokens, turn.new_tokens) == ("unknown", None, None)


def test_only_the_answer_s_digest_tells_what_is_new_beyond_the_last_prompt() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", [*SYSTEM[:20], 7, *SYSTEM[21:], *USER], at_ms=5000, given=pair.handle("1", 1599))
    known = [e for e in (*one[1], *two[1]) if isinstance(e.body, Digest) and e.body.request_id != "d1"]
    turn = Run().feed([*pair.start(), *one[0], *two[0], *known]).wait().turns()["p2"]
    assert (turn.recomputed_tokens, turn.new_tokens, turn.continuity_evidence) == (None, None, "lengths")
    assert (turn.suspicions, turn.mismatch_evidence) == (["kv_mismatch"], "digests")


def test_a_handle_that_does_not_say_how_long_it_is_is_no_evidence_of_lengths() -> None:
    pair = Pair()
    one = Talk(pair).turn("1", SYSTEM, 600, first=True)
    two = pair.turn("2", at_ms=5000, prompt=1650, fetched=1599, given=pair.handle("1"))
    turn = Run().feed([*pair.start(), *one[0], *two]).wait().turns()["p2"]
    assert (turn.path, turn.continuity_evidence, turn.suspicions) == ("reverse_fetch", "unknown", [])
