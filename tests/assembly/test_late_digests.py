"""Digests that come after their turn was counted, or are forgotten after it."""

from __future__ import annotations

import pytest

from tests.assembly.run import Run
from tests.assembly.talk import FAITHFUL, SYSTEM, USER, Talk, answer_of, encloses, message, text, two_turns
from tests.builders import Pair, read
from turnscope.assembly import AssemblySettings
from turnscope.marks import LONGEST, Keys
from turnscope.model import Digest, Turn
from turnscope.semconv import Direction


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


def test_a_late_digest_of_an_answer_shows_that_it_was_edited_in_the_history() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    edited = [*FAITHFUL[:1300], 7, *FAITHFUL[1301:]]
    two = talk.turn("2", edited, at_ms=5000, given=pair.handle("1", 1599))
    told = [e for e in (*one[1], *two[1]) if isinstance(e.body, Digest) and e.body.request_id != "d1"]
    (missing,) = (e for e in one[1] if e not in told)
    run = Run().feed([*pair.start(), *one[0], *two[0], *told]).wait()
    before = run.turns()["p2"]
    assert (before.suspicions, before.suspect_tokens, before.diverged_before) == ([], None, None)
    run.feed([missing], at_ms=40_000).wait()
    turn = run.turns()["p2"]
    assert (turn.suspicions, turn.mismatch_evidence, encloses(turn, 1300, within=LONGEST)) == (
        ["kv_mismatch"],
        "digests",
        True,
    )


def test_a_late_digest_under_another_key_says_that_nothing_can_be_compared() -> None:
    pair = Pair()
    one = Talk(pair).turn("1", SYSTEM, 600, first=True, keys=Keys(b"another"))
    two = Talk(pair).turn("2", FAITHFUL, at_ms=5000)
    run = Run().feed([*pair.start(), *one[0], *two[0], *two[1]]).wait()
    assert run.turns()["p2"].continuity_evidence == "unknown"
    run.feed(one[1], at_ms=40_000).wait()
    assert run.turns()["p2"].continuity_evidence == "unverifiable"


def test_a_turn_that_comes_late_in_between_takes_back_what_was_known_of_the_one_after_it() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    between = talk.turn("2", message(300, salt=8), at_ms=3000)
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    run = Run().feed([*pair.start(), *one[0], *one[1], *three[0], *three[1]]).wait()
    before = run.turns()["p3"]
    assert (before.continuity_evidence, before.previous_turn_id) == ("digests", run.turns()["p1"].turn_id)
    run.feed(between[0], at_ms=40_000).wait(100)
    turn = run.turns()["p3"]
    assert turn.previous_turn_id == run.turns()["p2"].turn_id
    assert (turn.recomputed_tokens, turn.new_tokens, turn.rewritten_tokens) == (None, None, None), (
        "nobody knows what the turn in between had computed"
    )
