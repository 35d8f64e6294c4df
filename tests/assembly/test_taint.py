"""What one mismatch leaves behind: wrong KV in prefix caches and holds, for other turns to find."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tests.assembly.poison import EDITED, another, flat, other, poisoned
from tests.assembly.run import Run
from tests.assembly.talk import Talk, message, text
from tests.builders import MS, P, Pair, Process
from turnscope.model import Attempt, Request
from turnscope.semconv import Leg


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


def test_a_request_that_d_never_ran_found_nothing_in_its_cache() -> None:
    pair = Pair()
    never: dict[str, Any] = {"local_hit_tokens": None, "external_tokens": None, "computed_tokens": None}
    third = other(pair, "3", at_ms=9000, local=0, decode_finish="abort", decode={**never, "stats_sent": False})
    turn = Run().feed([*flat(poisoned(pair)), *third]).wait().turns()["p3"]
    assert (turn.suspicions, turn.finish_reason) == ([], "stop")
