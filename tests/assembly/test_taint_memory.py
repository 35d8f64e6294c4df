"""Wrong KV that becomes known late, is refuted, or is forgotten: what the turns that found it say then."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.poison import EDITED, SYSTEM, flat, other, poisoned
from tests.assembly.run import Run
from tests.assembly.talk import Talk, message, text
from tests.builders import MS, D, P, Pair, Process, read
from turnscope.assembly import taint
from turnscope.assembly.turns import hold_id
from turnscope.model import Request
from turnscope.semconv import Direction, Leg, TransferState


def test_a_hit_that_was_counted_before_the_mismatch_was_known_is_found_when_it_is() -> None:
    pair = Pair()
    events, told = poisoned(pair)
    third = other(pair, "3", at_ms=9000, local=1200)
    run = Run().feed([*events, *third]).wait()
    assert (run.turns()["p2"].suspicions, run.turns()["p3"].suspicions) == ([], [])
    run.feed(told, at_ms=40_000).wait()
    turn = run.turns()["p3"]
    assert (turn.revision, turn.suspicions, turn.mismatch_evidence) == (2, ["kv_mismatch"], "inferred")
    assert run.count("suspicions_total", "prefill-0", "kv_mismatch") == 2


def test_what_a_refuted_mismatch_had_tainted_is_cleared_with_it() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"))
    events = [*flat(poisoned(pair)), *other(pair, "3", at_ms=9000, local=1200)]
    answer = message(200, salt=100 + ord("2"))
    four = Talk(pair).turn("4", [*EDITED, *answer, *text(60)], at_ms=13_000, given=pair.handle("2", 1850))
    run = Run().feed([*events, *flat(four)]).wait()
    assert [run.turns()[p].suspicions for p in ("p2", "p3", "p4")] == 3 * [["kv_mismatch"]]
    failed = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    run.feed([pair.pw.say(failed, 40_000)]).wait()
    assert [run.turns()[p].suspicions for p in ("p2", "p3", "p4")] == [[], [], []]
    assert run.count("suspicions_withdrawn_total", "kv_mismatch") == 3


def test_what_was_inferred_stays_when_its_source_is_forgotten() -> None:
    pair = Pair()
    run = Run().feed([*flat(poisoned(pair)), *other(pair, "3", at_ms=9000, local=1200)]).wait()
    again = Process("00000000000000a9", "engine", msgspec.structs.replace(P, generation="p-2"))
    run.feed([again.started(60_000), *pair.beats(180_000)]).wait(120)
    assert "p/p-1" not in run.assembler._state.caches
    late = read(Direction.HANDOFF, local="d3", remote=("p", "p3"), bytes=1)
    run.feed([pair.dw.say(late, 320_000)]).wait()
    turn = run.turns()["p3"]
    assert (turn.revision, turn.suspicions, turn.mismatch_evidence) == (2, ["kv_mismatch"], "inferred")


def test_what_another_source_tells_stays_known_although_the_first_was_refuted() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"))
    events = flat(poisoned(pair))
    talk = Talk(pair, "t")
    events += flat(talk.turn("t1", SYSTEM, 600, first=True))
    events += flat(talk.turn("t2", EDITED, at_ms=6000, given=pair.handle("t1", 1599)))
    run = Run().feed([*events, *other(pair, "3", at_ms=9000, local=1200)]).wait()
    failed = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    run.feed([pair.pw.say(failed, 40_000)]).wait()
    assert [run.turns()[p].suspicions for p in ("p2", "pt2", "p3")] == [[], ["kv_mismatch"], ["kv_mismatch"]]
    again = Process("00000000000000a9", "engine", msgspec.structs.replace(P, generation="p-2"))
    run.feed([again.started(60_000), *pair.beats(180_000)]).wait(120)
    assert "p/p-1" not in run.assembler._state.caches
    run.feed([pair.dw.say(read(Direction.HANDOFF, local="d3", remote=("p", "p3"), bytes=1), 320_000)]).wait()
    assert run.turns()["p3"].suspicions == ["kv_mismatch"]


def test_what_was_inferred_of_d_s_own_hit_stays_when_d_has_started_anew() -> None:
    pair = Pair()
    events = other(pair, "3", at_ms=9000, local=0)
    for event in events:
        if isinstance(event.body, Request) and event.body.leg is Leg.DECODE:
            event.body.local_hit_tokens, event.body.external_tokens = 1200, 99
    run = Run().feed([*flat(poisoned(pair)), *events]).wait()
    again = Process("00000000000000b9", "engine", msgspec.structs.replace(D, generation="d-2"))
    run.feed([again.started(60_000), *pair.beats(180_000)]).wait(120)
    assert "d/d-1" not in run.assembler._state.caches
    run.feed([pair.pw.say(read(Direction.REVERSE_FETCH, local="p3", remote=("d", "d9")), 320_000)]).wait()
    turn = run.turns()["p3"]
    assert (turn.revision, turn.suspicions, turn.suspect_tokens) == (2, ["kv_mismatch"], 0)


def test_what_was_inferred_of_a_hold_stays_when_the_turn_that_left_it_is_forgotten() -> None:
    pair = Pair()
    answer = message(200, salt=100 + ord("2"))
    given = pair.handle("2", len(EDITED) + 199)
    three = Talk(pair).turn("3", [*EDITED, *answer, *text(60, salt=6)], at_ms=1_800_000, given=given)
    run = Run().feed([*flat(poisoned(pair)), *flat(three), *pair.beats(3_720_000)]).wait(1)
    assert hold_id(given) not in run.assembler._state.wrong_holds
    late = read(Direction.HANDOFF, local="d3", remote=("p", "p3"), bytes=1)
    run.feed([pair.dw.say(late, 3_730_000)]).wait()
    turn = run.turns()["p3"]
    assert (turn.revision, turn.suspicions, turn.mismatch_evidence) == (2, ["kv_mismatch"], "inferred")


def test_a_hold_that_was_read_before_its_mismatch_was_known_is_wrong_when_it_is() -> None:
    pair = Pair()
    events, told = poisoned(pair)
    prompt = [*EDITED, *message(200, salt=100 + ord("2")), *text(60, salt=6)]
    three = Talk(pair).turn("3", prompt, at_ms=9000, given=pair.handle("2", len(EDITED) + 199))
    run = Run().feed([*events, *flat(three)]).wait()
    assert run.turns()["p3"].suspicions == []
    run.feed(told, at_ms=40_000).wait()
    turn = run.turns()["p3"]
    assert (turn.suspicions, turn.mismatch_evidence) == (["kv_mismatch"], "inferred")
    assert turn.suspect_tokens


def test_what_a_refuted_mismatch_had_tainted_in_d_s_cache_is_cleared_with_it() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"))
    third = other(pair, "3", at_ms=9000, local=0, decode={"local_hit_tokens": 1200, "external_tokens": 99})
    run = Run().feed([*flat(poisoned(pair)), *third]).wait()
    assert run.turns()["p3"].suspicions == ["kv_mismatch"]
    failed = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    run.feed([pair.pw.say(failed, 40_000)]).wait()
    assert [run.turns()[p].suspicions for p in ("p2", "p3")] == [[], []]


def test_turns_without_a_local_hit_do_not_push_out_those_that_are_to_be_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(taint, "MAX_HITS", 1)
    pair = Pair()
    events, told = poisoned(pair)
    later = [e for n in range(4, 7) for e in other(pair, str(n), at_ms=4000 + 2000 * n, local=0)]
    run = Run().feed([*events, *other(pair, "3", at_ms=9000, local=1200), *later]).wait()
    run.feed(told, at_ms=40_000).wait()
    assert run.turns()["p3"].suspicions == ["kv_mismatch"]


def test_what_is_remembered_of_a_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taint, "MAX_MARKS", 12)
    monkeypatch.setattr(taint, "MAX_HITS", 5)
    pair = Pair()
    run = Run().feed(pair.start())
    for n in range(1, 21):
        talk = Talk(pair, f"session {n}")
        system, at = text(1000, salt=1000 + n), 20_000 * n
        one = talk.turn(f"{n}a", system, 600, at_ms=at, first=True)
        edited = [*system[:300], 7, *system[301:], *text(650, salt=n)]
        two = talk.turn(f"{n}b", edited, at_ms=at + 5000, given=pair.handle(f"{n}a", 1599))
        run.feed([*flat(one), *flat(two), *other(pair, f"{n}c", at_ms=at + 9000, local=1200)])
    run.wait()
    assert run.count("suspicions_total", "prefill-0", "kv_mismatch") == 20
    assert [len(c.spoiled) for c in run.assembler._state.caches.values()] == [12, 12]
    assert max(len(c.hits) for c in run.assembler._state.caches.values()) == 5


def test_caches_of_starts_that_are_gone_and_holds_of_turns_that_are_forgotten_go() -> None:
    pair = Pair()
    run = Run().feed([*flat(poisoned(pair)), *other(pair, "3", at_ms=9000, local=1200)]).wait()
    state = run.assembler._state
    assert {"p/p-1", "d/d-1"} == set(state.caches)
    assert state.wrong_holds
    engine = msgspec.structs.replace(D, generation="d-2")
    run.feed([Process("00000000000000b9", "engine", engine).started(60_000)])
    run.feed(pair.beats(9_000_000, 30_000)).wait(1)
    run.assembler.tick(run.now_ns + 61_000 * MS)
    state = run.assembler._state
    assert set(state.caches) == {"p/p-1"}
    assert state.wrong_holds == {}
