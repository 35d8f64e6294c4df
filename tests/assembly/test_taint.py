"""What one mismatch leaves behind: wrong KV in prefix caches and holds, for other turns to find."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import Talk, message, text
from tests.builders import MS, D, P, Pair, Process, read
from turnscope.assembly import taint
from turnscope.assembly.turns import hold_id
from turnscope.model import Attempt, Event, Request
from turnscope.semconv import Direction, Leg, TransferState

SYSTEM = text(1000, salt=1)
EDITED = [*SYSTEM[:300], 7, *SYSTEM[301:], *text(650, salt=2)]
"""Parts at token 300 from what the first turn left: its 1,599 fetched tokens are wrong from there on."""


def poisoned(pair: Pair) -> tuple[list[Event], list[Event]]:
    """Two turns of session ``s``: the second's prompt is not what it fetched. Events, and digests."""
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", EDITED, at_ms=5000, given=pair.handle("1", 1599))
    return [*pair.start(), *one[0], *two[0]], [*one[1], *two[1]]


def other(pair: Pair, n: str, *, at_ms: int, local: int, prompt: list[int] | None = None, **fields: Any) -> list[Event]:
    """A turn of another session that begins like the poisoned one, with a local hit."""
    prompt = prompt or [*EDITED[:1200], *text(100, salt=4)]
    events, told = Talk(pair, f"session {n}").turn(n, prompt, at_ms=at_ms, local=local, first=True, **fields)
    return [*events, *told]


def another(pair: Pair) -> Pair:
    """The same D and proxy with another P."""
    second = Pair(msgspec.structs.replace(P, id="q", generation="q-1"))
    second.p = Process("00000000000000e1", "engine", second.p.engine)
    second.pw = Process("00000000000000e2", "worker", second.pw.engine)
    second.d, second.dw, second.proxy = pair.d, pair.dw, pair.proxy
    return second


def flat(parts: tuple[list[Event], list[Event]]) -> list[Event]:
    return [*parts[0], *parts[1]]


def test_another_session_s_local_hit_on_what_a_mismatch_filed_is_suspect() -> None:
    pair = Pair()
    run = Run().feed([*flat(poisoned(pair)), *other(pair, "3", at_ms=9000, local=1200)]).wait()
    turn, source = run.turns()["p3"], run.turns()["p2"]
    assert (turn.path, turn.suspicions, turn.mismatch_evidence) == ("local_hit", ["kv_mismatch"], "inferred")
    assert turn.diverged_after == source.diverged_after
    assert turn.suspect_tokens is not None
    assert turn.diverged_after is not None
    assert turn.suspect_tokens == 1200 - turn.diverged_after
    assert run.count("suspicions_total", "prefill-0", "kv_mismatch") == 2


@pytest.mark.parametrize(
    ("prompt", "local", "at_ms"),
    [
        ([*EDITED[:256], *text(600, salt=5)], 512, 9000),
        (None, 256, 9000),
        (None, 1200, 4000),
    ],
    ids=["shares_no_wrong_part", "hits_no_wrong_part", "looked_before_it_was_filed"],
)
def test_a_local_hit_elsewhere_is_clean(prompt: list[int] | None, local: int, at_ms: int) -> None:
    pair = Pair()
    run = Run().feed([*flat(poisoned(pair)), *other(pair, "3", at_ms=at_ms, local=local, prompt=prompt)]).wait()
    assert (run.turns()["p3"].suspicions, run.turns()["p3"].path) == ([], "local_hit")


def first_wrong(pair: Pair) -> int:
    """Where the first beginning ends that only who has the wrong KV shares."""
    cache = Run().feed(flat(poisoned(pair))).wait().assembler._state.caches["p/p-1"]
    return min(filed.position for filed in itertools.chain.from_iterable(cache.spoiled.values()))


@pytest.mark.parametrize("late", [False, True], ids=["known_before", "known_after"])
def test_a_hit_finds_what_is_wrong_from_the_first_whole_beginning_on_that_it_reaches(late: bool) -> None:
    place = first_wrong(Pair())
    for local, suspicions in ((place, ["kv_mismatch"]), (place - 1, [])):
        pair = Pair()
        events, told = poisoned(pair)
        third = other(pair, "3", at_ms=9000, local=local)
        run = Run().feed([*events, *third, *([] if late else told)]).wait()
        if late:
            run.feed(told, at_ms=40_000).wait()
        assert run.turns()["p3"].suspicions == suspicions


@pytest.mark.parametrize(
    ("scheduled_ms", "suspicions"), [(5009, []), (5010, []), (5011, ["kv_mismatch"])], ids=["before", "with", "after"]
)
def test_a_request_looks_into_the_cache_when_it_is_scheduled_and_not_when_it_ends(
    scheduled_ms: int, suspicions: list[str]
) -> None:
    for at_ms in (4900, 5005):
        pair = Pair()
        third = other(pair, "3", at_ms=at_ms, local=1200, prefill={"scheduled_mono_ns": scheduled_ms * MS})
        turn = Run().feed([*flat(poisoned(pair)), *third]).wait().turns()["p3"]
        assert turn.suspicions == suspicions


def test_who_shares_only_what_both_texts_have_in_common_finds_it_clean() -> None:
    pair = Pair()
    system = [*message(200, salt=1), *text(800, salt=7)]
    edited = [*system[:300], 7, *system[301:], *text(650, salt=2)]
    talk = Talk(pair)
    one = talk.turn("1", system, 600, first=True)
    two = talk.turn("2", edited, at_ms=5000, given=pair.handle("1", 1599))
    third = other(pair, "3", at_ms=9000, local=512, prompt=[*edited[:260], *text(600, salt=5)])
    run = Run().feed([*pair.start(), *flat(one), *flat(two), *third]).wait()
    assert (run.turns()["p2"].suspicions, run.turns()["p3"].suspicions) == (["kv_mismatch"], [])


@pytest.mark.parametrize("first", ["s", "t"])
def test_what_two_filed_wrongly_under_one_beginning_is_in_the_cache_as_the_first_had_it(first: str) -> None:
    pair = Pair()
    prompt = [*message(1500, salt=3), *text(350, salt=6)]
    sessions = {"s": 1300, "t": 1340}
    events = pair.start()
    for name, parts in sessions.items():
        at_ms = 5000 if name == first else 6000
        held = [*prompt[:parts], 7, *prompt[parts + 1 : 1400]]
        talk = Talk(pair, name)
        events += flat(talk.turn(f"{name}1", held, first=True))
        events += flat(talk.turn(f"{name}2", prompt, at_ms=at_ms, given=pair.handle(f"{name}1", 1599)))
    third = other(pair, "3", at_ms=9000, local=1650, prompt=[*prompt[:1700], *text(1000, salt=4)])
    turns = Run().feed([*events, *third]).wait().turns()
    assert turns["ps2"].diverged_after != turns["pt2"].diverged_after
    assert turns["p3"].diverged_after == turns[f"p{first}2"].diverged_after


def test_a_restart_of_the_engine_clears_its_cache() -> None:
    pair = Pair()
    events = flat(poisoned(pair))
    again = Pair(msgspec.structs.replace(P, generation="p-2"))
    again.p = Process("00000000000000a9", "engine", again.p.engine)
    again.d, again.dw, again.proxy = pair.d, pair.dw, pair.proxy
    events += [again.p.started(8000), *other(again, "3", at_ms=9000, local=1200)]
    assert Run().feed(events).wait().turns()["p3"].suspicions == []


def test_another_p_has_a_cache_of_its_own_until_it_fetches_what_is_wrong() -> None:
    pair = Pair()
    talk = Talk(pair)
    second = another(pair)
    events, told = poisoned(pair)
    events += other(second, "3", at_ms=9000, local=1200)
    talk.answers["2"] = message(200, salt=100 + ord("2"))
    faithful = [*EDITED, *talk.answers["2"], *text(60, salt=6)]
    more = Talk(second).turn("4", faithful, at_ms=12_000, given=pair.handle("2", len(EDITED) + 199))
    events += [*flat(more), *other(second, "5", at_ms=16_000, local=1200)]
    turns = Run().feed([*events, *told]).wait().turns()
    assert turns["p3"].suspicions == []
    assert (turns["p4"].suspicions, turns["p4"].mismatch_evidence) == (["kv_mismatch"], "inferred")
    assert (turns["p5"].suspicions, turns["p5"].mismatch_evidence) == (["kv_mismatch"], "inferred")


def test_a_faithful_turn_on_a_hold_that_descends_from_a_mismatch_is_suspect_from_there_on() -> None:
    pair = Pair()
    talk = Talk(pair)
    events, told = poisoned(pair)
    answer = message(200, salt=100 + ord("2"))
    prompt = [*EDITED, *answer, *text(60, salt=6)]
    three = talk.turn("3", prompt, at_ms=9000, given=pair.handle("2", len(EDITED) + 199))
    run = Run().feed([*events, *told, *flat(three)]).wait()
    turn = run.turns()["p3"]
    assert (turn.path, turn.suspicions, turn.mismatch_evidence) == ("reverse_fetch", ["kv_mismatch"], "inferred")
    assert turn.diverged_after == run.turns()["p2"].diverged_after
    assert turn.fetched_tokens is not None
    assert turn.diverged_after is not None
    assert turn.suspect_tokens == turn.fetched_tokens - turn.diverged_after
    assert turn.continuity_evidence == "digests"


def test_d_s_own_cache_is_tainted_as_well_and_its_answer_suspect_though_p_s_tokens_are_not() -> None:
    pair = Pair()
    events = other(pair, "3", at_ms=9000, local=0)
    for event in events:
        if isinstance(event.body, Request) and event.body.leg is Leg.DECODE:
            event.body.local_hit_tokens, event.body.external_tokens = 1200, 99
    run = Run().feed([*flat(poisoned(pair)), *events, *other(pair, "4", at_ms=13_000, local=0)]).wait()
    turn = run.turns()["p3"]
    assert (turn.suspicions, turn.mismatch_evidence, turn.suspect_tokens) == (["kv_mismatch"], "inferred", 0)
    assert run.turns()["p4"].suspicions == []


def test_a_p_whose_d_alone_had_wrong_blocks_stays_clean() -> None:
    pair = Pair()
    second = another(pair)
    third = other(second, "3", at_ms=9000, local=0)
    for event in third:
        if isinstance(event.body, Request) and event.body.leg is Leg.DECODE:
            event.body.local_hit_tokens, event.body.external_tokens = 1200, 99
    run = Run().feed([*flat(poisoned(pair)), *third, *other(second, "4", at_ms=13_000, local=1200)]).wait()
    assert run.turns()["p3"].suspicions == ["kv_mismatch"]
    assert (run.turns()["p4"].path, run.turns()["p4"].suspicions) == ("local_hit", [])


def test_what_is_not_counted_yet_taints_as_well() -> None:
    pair = Pair()
    events, told = poisoned(pair)
    waiting = [e for e in events if not (isinstance(e.body, Attempt) and e.body.proxy_turn_id == "t2")]
    answer = message(200, salt=100 + ord("2"))
    prompt = [*EDITED, *answer, *text(60, salt=6)]
    three = Talk(pair).turn("3", prompt, at_ms=9000, given=pair.handle("2", len(EDITED) + 199))
    run = Run().feed([*waiting, *told, *flat(three), *other(pair, "4", at_ms=12_000, local=1200)]).wait()
    assert "p2" not in run.turns()
    for name in ("p3", "p4"):
        turn = run.turns()[name]
        assert (turn.revision, turn.suspicions, turn.mismatch_evidence) == (1, ["kv_mismatch"], "inferred")


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
