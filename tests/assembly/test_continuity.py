"""Whether a prompt continues what D holds for it, and what of it had been computed before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import Talk, message, text
from tests.builders import KEYS, D, P, Pair, read
from turnscope import marks
from turnscope.assembly import AssemblySettings
from turnscope.assembly.continuity import HISTORY
from turnscope.marks import LONGEST, Keys
from turnscope.model import Digest, Engine, Event, Turn
from turnscope.semconv import Direction, Leg

SYSTEM = message(1000, salt=1)
USER = message(50, salt=2)


def two_turns(
    second: list[int],
    *,
    first: list[int] = SYSTEM,
    answer: int = 600,
    handle: bool = True,
    local: int = 0,
    digests: bool = True,
    pair: Pair | None = None,
    keys: Keys = KEYS,
    **fields: Any,
) -> Run:
    """A first turn of 1,000 tokens answered with 600, and then ``second``, given the first's handle of 1,599."""
    pair = pair or Pair()
    talk = Talk(pair)
    events, more = talk.turn("1", first, answer, first=True)
    given = pair.handle("1", len(first) + answer - 1) if handle else None
    later, more_later = talk.turn("2", second, at_ms=5000, given=given, local=local, keys=keys, **fields)
    told = [*more, *more_later] if digests else []
    return Run().feed([*pair.start(), *events, *later, *told]).wait()


def answer_of(size: int = 600) -> list[int]:
    talk = Talk(Pair())
    talk.turn("1", SYSTEM, size)
    return talk.answers["1"]


FAITHFUL = [*SYSTEM, *answer_of(), *USER]


def parts(turn: Turn) -> tuple[int | None, ...]:
    return turn.local_hit_tokens, turn.fetched_tokens, turn.computed_tokens, turn.recomputed_tokens, turn.new_tokens


def encloses(turn: Turn, position: int, *, within: int) -> bool:
    """Whether the bounds of the divergence are about ``position``, and no farther apart than ``within``."""
    low, high = turn.diverged_after, turn.diverged_before
    return low is not None and high is not None and low <= position < high and high - low <= within


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


# --- recomputed, new, rewritten -----------------------------------------------------------------------
def test_a_first_turn_is_all_new() -> None:
    run = two_turns(FAITHFUL)
    first = run.turns()["p1"]
    assert (first.continuity_evidence, parts(first)) == ("first_turn", (0, 0, 1000, 0, 1000))
    assert run.count("prompt_tokens_total", "prefill-0", "new") == 1000 + 51
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 0
    assert run.count("turns_continuity_total", "prefill-0", "first_turn") == 1
    assert run.count("turns_continuity_total", "prefill-0", "digests") == 1


def test_a_first_turn_that_turnscope_sees_but_that_brings_answers_along_is_not_split() -> None:
    pair = Pair()
    events, told = Talk(pair).turn("1", SYSTEM)
    turn = Run().feed([*pair.start(), *events, *told]).wait().turns()["p1"]
    assert (turn.continuity_evidence, turn.recomputed_tokens, turn.new_tokens) == ("unknown", None, None)


def test_what_was_computed_twice_for_want_of_a_handle_is_avoidable_and_has_its_reason() -> None:
    run = two_turns(FAITHFUL, handle=False, attempt={"message_roles": ["user", "assistant", "user"]})
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason) == ("recompute", "handle_not_given")
    assert turn.recomputed_tokens is not None
    assert turn.new_tokens is not None
    assert 1599 - 16 < turn.recomputed_tokens <= 1599
    assert turn.recomputed_tokens + turn.new_tokens == turn.computed_tokens == 1650
    avoidable = run.count("avoidable_recompute_tokens_total", "prefill-0", "handle_not_given")
    assert avoidable == run.count("prompt_tokens_total", "prefill-0", "recomputed") == turn.recomputed_tokens
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 0


@pytest.mark.parametrize(
    ("reason", "session", "d"),
    [
        ("no_handle_from_decode", "s", D),
        ("feature_off_decode", "s", msgspec.structs.replace(D, bidirectional=False)),
        ("no_session_id", None, D),
    ],
)
def test_what_streamed_answers_without_a_handle_made_later_turns_compute_again_is_counted_by_its_cause(
    reason: str, session: str | None, d: Engine
) -> None:
    pair = Pair(d=d)
    talk, prompt, events, reusable = Talk(pair, session), SYSTEM, pair.start(), 0
    for n in range(5):
        turn = talk.turn(str(n), prompt, at_ms=5000 * n, first=n == 0, handle_seen=False)
        events += [*turn[0], *turn[1]]
        held = [*prompt, *talk.answers[str(n)]]
        reusable += len(held) - 1 if n < 4 else 0
        prompt = [*held, *text(50, salt=n)]
    run = Run().feed(events).wait()
    assert [turn.reason for turn in run.turns().values()].count(reason) == (4 if session else 5)
    avoidable = run.count("avoidable_recompute_tokens_total", "prefill-0", reason)
    assert run.count("avoidable_recompute_tokens_total") == avoidable
    if session is None:
        assert avoidable == 0, "which turns belong together is not known, nor what was computed before"
    else:
        assert reusable - 4 * 16 < avoidable <= reusable
    assert run.count("transfer_bytes_total", "prefill-0", "reverse_fetch") == 0


def test_a_prefix_edited_early_makes_the_rest_new_and_rewritten() -> None:
    edited = [*SYSTEM[:20], 7, 8, *SYSTEM[21:], *answer_of(), *USER]
    run = two_turns(edited, handle=False)
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason) == ("recompute", "prefix_diverged")
    assert encloses(turn, 20, within=LONGEST)
    assert turn.rewritten_tokens is not None
    assert turn.new_tokens is not None
    assert 800 < turn.rewritten_tokens <= 1650 - 20 < turn.new_tokens + 20
    assert run.count("rewritten_tokens_total", "prefill-0") == turn.rewritten_tokens
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens <= 20


def test_where_enough_agrees_before_the_prompt_parts_the_missing_handle_is_the_reason() -> None:
    turn = two_turns([*SYSTEM, *USER, *answer_of()], handle=False).turns()["p2"]
    assert (turn.reason, encloses(turn, 1000, within=LONGEST)) == ("handle_not_given", True)


def test_fetched_text_that_was_moved_is_suspect_and_not_rewritten_since_it_was_not_computed() -> None:
    turn = two_turns([*SYSTEM[:20], 7, 8, *SYSTEM[21:], *answer_of(), *USER]).turns()["p2"]
    assert turn.suspicions == ["kv_mismatch"]
    assert (turn.new_tokens, turn.rewritten_tokens) == (52, 1)


def test_a_failed_turn_in_between_left_nothing_and_is_passed_over() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    failed = pair.turn(
        "2",
        at_ms=3000,
        prompt=1650,
        prefill={"finish_reason": "error", "computed_tokens": None, "local_hit_tokens": None, "external_tokens": None},
        attempt={"outcome": "error", "error_stage": "prefill", "decode_start_ns": None, "handle_out": None},
    )
    failed = [e for e in failed if e.emitter not in (pair.d.emitter, pair.dw.emitter)]
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    turn = Run().feed([*pair.start(), *one[0], *one[1], *failed, *three[0], *three[1]]).wait().turns()["p3"]
    assert turn.continuity_evidence == "digests"
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens > 1599 - 16


def test_a_return_to_an_older_branch_finds_what_that_branch_had_computed() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    compacted = talk.turn("2", message(300, salt=8), at_ms=3000)
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    events = [e for turn in (one, compacted, three) for part in turn for e in part]
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p3"]
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens > 1599 - 16
    assert (turn.diverged_after, turn.reason) == (0, "prefix_diverged")


@pytest.mark.parametrize(("between", "found"), [(HISTORY - 1, True), (HISTORY, False)])
def test_a_prompt_is_compared_with_so_many_turns_before_it_and_no_more(between: int, found: bool) -> None:
    pair = Pair()
    talk = Talk(pair)
    turns = [talk.turn("1", SYSTEM, 600, first=True)]
    turns += [talk.turn(f"x{n}", message(300, salt=20 + n), at_ms=3000 * (n + 1)) for n in range(between)]
    turns.append(talk.turn("3", FAITHFUL, at_ms=40_000))
    run = Run().feed([*pair.start(), *(e for turn in turns for part in turn for e in part)]).wait()
    assert ((run.turns()["p3"].recomputed_tokens or 0) > 1599 - 16) is found


@pytest.mark.parametrize(("missing", "known"), [("d1", False), ("none", True)])
def test_a_branch_that_cannot_be_compared_leaves_open_what_it_had_computed(missing: str, known: bool) -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    compacted = talk.turn("2", message(300, salt=8), at_ms=3000)
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    told = [e for turn in (one, compacted, three) for e in turn[1]]
    told = [e for e in told if not (isinstance(e.body, Digest) and e.body.request_id == missing)]
    turn = Run().feed([*pair.start(), *one[0], *compacted[0], *three[0], *told]).wait().turns()["p3"]
    assert (turn.new_tokens is not None, turn.continuity_evidence == "digests") == (known, known)
    assert turn.diverged_after == 0


def test_a_turn_that_cannot_be_compared_does_not_matter_before_one_that_the_prompt_continues() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", FAITHFUL, at_ms=3000)
    three = talk.turn("3", [*FAITHFUL, *talk.answers["2"], *USER], at_ms=6000)
    told = [e for e in (*one[1], *two[1], *three[1]) if isinstance(e.body, Digest) and e.body.request_id != "d1"]
    turn = Run().feed([*pair.start(), *one[0], *two[0], *three[0], *told]).wait().turns()["p3"]
    assert turn.continuity_evidence == "digests"
    assert turn.new_tokens is not None


def test_on_an_aggregated_engine_the_answer_counts_as_seen_and_not_as_prompt() -> None:
    whole = msgspec.structs.replace(P, role="aggregated", bidirectional=None, connector=None, prefix_caching=True)
    pair = Pair(whole)
    answers = [message(200, salt=9), message(200, salt=10)]
    prompts = [SYSTEM, [*SYSTEM, *answers[0], *USER]]
    events: list[Event] = pair.start()
    for n, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        events += _whole(pair, str(n), prompt, answer, at_ms=3000 * n, local=n * 992)
    turn = Run().feed(events).wait(100).turns()["p1"]
    assert (turn.path, turn.computed_tokens) == ("local_hit", 258)
    assert turn.recomputed_tokens is not None
    assert turn.new_tokens is not None
    assert 0 < turn.recomputed_tokens <= 207
    assert turn.recomputed_tokens + turn.new_tokens == 258


def _whole(pair: Pair, n: str, prompt: list[int], answer: list[int], *, at_ms: int, local: int) -> list[Event]:
    assert pair.proxy is not None
    keep = (pair.p.emitter, pair.proxy.emitter)
    leg = {"leg": Leg.WHOLE, "handle_out": None, "finish_reason": "stop", "output_tokens": len(answer)}
    roles = ["user"] if n == "0" else ["user", "assistant", "user"]
    turn = pair.turn(
        n,
        at_ms=at_ms,
        prompt=len(prompt),
        local=local,
        prefill=leg,
        attempt={"message_roles": roles, "handle_out": None},
    )
    told = marks.digest(
        [*prompt, *answer[:-1]], KEYS, request_id=f"p{n}", leg=Leg.WHOLE, input_tokens=len(prompt), anchor_tokens=None
    )
    return [*(e for e in turn if e.emitter in keep), pair.p.say(told, at_ms + 1000)]


# --- when digests come --------------------------------------------------------------------------------
def test_a_digest_within_the_grace_is_in_the_first_row() -> None:
    pair = Pair()
    events, told = Talk(pair).turn("1", SYSTEM, first=True)
    later, more = Talk(pair).turn("2", [*SYSTEM, *USER], at_ms=5000)
    run = Run().feed([*pair.start(), *events, *told, *later])
    run.feed(more, at_ms=10_800).wait()
    turn = run.turns()["p2"]
    assert (turn.revision, turn.late, turn.continuity_evidence) == (1, False, "digests")
    assert run.count("late_facts_total") == 0


@pytest.mark.parametrize("late", ["p2", "d1"])
def test_a_digest_after_it_makes_a_revision_and_a_suspicion_but_no_count(late: str) -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", [*SYSTEM[:20], 7, *SYSTEM[21:], *answer_of(), *USER], at_ms=5000, given=pair.handle("1", 1599))
    told = [e for e in (*one[1], *two[1]) if isinstance(e.body, Digest) and e.body.request_id != late]
    (missing,) = (e for e in (*one[1], *two[1]) if e not in told)
    run = Run().feed([*pair.start(), *one[0], *two[0], *told]).wait()
    before = run.turns()["p2"]
    counted = run.count("prompt_tokens_total")
    assert (before.recomputed_tokens, run.count("prompt_tokens_total", "prefill-0", "computed")) == (None, 51)
    run.feed([missing], at_ms=40_000).wait()
    turn = run.turns()["p2"]
    assert (turn.revision, turn.late, turn.suspicions) == (2, True, ["kv_mismatch"])
    assert (turn.recomputed_tokens, turn.new_tokens, turn.continuity_evidence) == (0, 51, "digests")
    assert (run.count("prompt_tokens_total"), run.count("prompt_tokens_total", "prefill-0", "computed")) == (
        counted,
        51,
    )
    assert run.count("suspicions_total", "prefill-0", "kv_mismatch") == 1
    assert run.count("late_facts_total", "turn") == 1


def test_a_late_digest_can_refute_what_lengths_had_suspected() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    again = talk.turn("2", SYSTEM, at_ms=5000, given=pair.handle("1", 1599))
    run = Run().feed([*pair.start(), *one[0], *one[1], *again[0]]).wait()
    assert (run.turns()["p2"].suspicions, run.turns()["p2"].mismatch_evidence) == (["kv_mismatch"], "lengths")
    run.feed(again[1], at_ms=40_000).wait()
    turn = run.turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence, turn.suspect_tokens) == ([], None, 0)
    assert run.count("suspicions_withdrawn_total", "kv_mismatch") == 1


@pytest.mark.parametrize(("never_came", "session"), [("none", "s"), ("d1", "s"), ("none", "another")])
def test_what_digests_told_stays_known_when_they_are_forgotten(never_came: str, session: str) -> None:
    pair = Pair()
    one = Talk(pair).turn("1", SYSTEM, 600, first=True)
    two = Talk(pair, session).turn("2", [*SYSTEM, *answer_of()[400:], *USER], at_ms=5000, given=pair.handle("1", 1599))
    run = Run(AssemblySettings(digest_bytes=4_000))
    told = [e for e in (*one[1], *two[1]) if not (isinstance(e.body, Digest) and e.body.request_id == never_came)]
    run.feed([*pair.start(), *one[0], *two[0], *told]).wait()
    before, known = run.turns()["p2"], set(run.assembler._state.digests)
    assert len(known) == len(told)
    run.feed([e for n in range(2) for e in pair.digests(f"other {n}", text(40_000), text(100), 30_000)])
    assert known.isdisjoint(run.assembler._state.digests)
    run.feed(
        [pair.dw.say(read(Direction.HANDOFF, local="d2", remote=("p", "p2"), bytes=1, duration_ns=1), 31_000)]
    ).wait()
    after = run.turns()["p2"]
    changed = {f for f in Turn.__struct_fields__ if getattr(before, f) != getattr(after, f)}
    assert changed == {"revision", "handoff_bytes", "handoff_reads", "late"}
    assert after.suspicions == ["kv_mismatch"]


def test_the_status_tells_how_many_turns_could_be_compared_and_whose_cache_is_spoiled() -> None:
    run = two_turns([*SYSTEM, *answer_of()[400:], *USER])
    status = run.assembler.status(run.now_ns)
    assert status.continuity == {"first_turn": 1, "digests": 1}
    assert {engine.name: engine.spoiled_prefixes for engine in status.engines} == {"prefill-0": 1, "decode-0": 1}
    clean = two_turns(FAITHFUL)
    assert {engine.spoiled_prefixes for engine in clean.assembler.status(clean.now_ns).engines} == {0}
