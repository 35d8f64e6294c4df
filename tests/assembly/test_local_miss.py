"""Why P did not find in its own cache what the session had computed before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import Talk, text
from tests.builders import P, Pair, Process
from turnscope.assembly.local_miss import TABLE, Lookup, local_miss
from turnscope.model import Engine
from turnscope.semconv import LocalMiss

CACHING = msgspec.structs.replace(P, prefix_caching=True)
SYSTEM = text(1000, salt=1)

SOME: dict[str, Any] = {"prompt": 1650, "local": 512, "before": 1599, "block": 16, "caching": True}
CASES: list[tuple[LocalMiss, dict[str, Any]]] = [
    (LocalMiss.UNKNOWN, {**SOME, "local": None}),
    (LocalMiss.NONE, {**SOME, "local": 1584, "here": 1000}),
    (LocalMiss.NONE, {**SOME, "local": 0, "before": 0}),
    (LocalMiss.NONE, {**SOME, "local": 0, "before": 15}),
    (LocalMiss.NONE, {**SOME, "prompt": 1600, "before": 1600, "local": 1584}),
    (LocalMiss.CACHING_OFF, {**SOME, "caching": False, "here": 1000}),
    (LocalMiss.CACHING_OFF, {**SOME, "caching": False, "before": None}),
    (LocalMiss.UNKNOWN, {**SOME, "before": None}),
    (LocalMiss.UNKNOWN, {**SOME, "block": None}),
    (LocalMiss.EVICTED, {**SOME, "here": 1000}),
    (LocalMiss.EVICTED, {**SOME, "here": 528, "elsewhere": 1000, "caching": None}),
    (LocalMiss.OTHER_WORKER, {**SOME, "here": 512, "elsewhere": 1000}),
    (LocalMiss.NEVER_HERE, {**SOME, "here": 512}),
    (LocalMiss.NEVER_HERE, {**SOME, "here": 527, "elsewhere": 500}),
]


@pytest.mark.parametrize(("expected", "known"), CASES)
def test_what_is_known_has_its_cause(expected: LocalMiss, known: dict[str, Any]) -> None:
    assert local_miss(Lookup(**known)) is expected


def test_every_row_of_the_table_is_the_first_match_of_some_case_and_every_cause_has_one() -> None:
    first = {next((n for n, row in enumerate(TABLE) if row.when(Lookup(**k))), None) for _, k in CASES}
    assert [row.cause for n, row in enumerate(TABLE) if n not in first] == []
    assert {row.cause for row in TABLE} | {LocalMiss.NEVER_HERE} == set(LocalMiss)


def second_turn(second: Pair, *, local: int, digests: bool = True, handle: bool = True, **fields: Any) -> Run:
    """A first turn on one P, and a faithful second one on ``second``'s."""
    pair = Pair(CACHING)
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    second.d, second.dw, second.proxy = pair.d, pair.dw, pair.proxy
    if second.p.engine == pair.p.engine:
        second = pair
    prompt = [*SYSTEM, *talk.answers["1"], *text(51, salt=2)]
    given = pair.handle("1", 1599) if handle else None
    two = Talk(second).turn("2", prompt, at_ms=5000, given=given, local=local, **fields)
    return Run().feed([*pair.start(), *one[0], *two[0], *((*one[1], *two[1]) if digests else ())]).wait()


def on(engine: Engine) -> Pair:
    pair = Pair(engine)
    pair.p = Process("00000000000000e1", "engine", engine)
    pair.pw = Process("00000000000000e2", "worker", msgspec.structs.replace(engine, rank=0))
    return pair


@pytest.mark.parametrize(
    ("engine", "local", "expected"),
    [
        (CACHING, 992, "never_here"),
        (CACHING, 976, "evicted"),
        (msgspec.structs.replace(CACHING, id="q", generation="q-1"), 0, "other_worker"),
        (msgspec.structs.replace(CACHING, generation="p-2"), 0, "other_worker"),
        (msgspec.structs.replace(CACHING, id="q", generation="q-1", prefix_caching=False), 0, "caching_off"),
        (msgspec.structs.replace(CACHING, id="q", generation="q-1", block_size=None), 0, "unknown"),
    ],
    ids=["the_answer_was_only_on_d", "evicted", "another_p", "the_same_p_restarted", "caching_off", "block_unknown"],
)
def test_a_faithful_turn_on_a_pair_misses_for_its_cause(engine: Engine, local: int, expected: str) -> None:
    run = second_turn(on(engine), local=local)
    assert run.turns()["p2"].local_miss == expected
    assert run.count("local_misses_total", run.turns()["p2"].prefill_engine or "", expected) == 1


def test_what_a_p_had_computed_before_the_session_went_elsewhere_and_came_back_was_evicted_there() -> None:
    pair, elsewhere = Pair(CACHING), on(msgspec.structs.replace(CACHING, id="q", generation="q-1"))
    elsewhere.d, elsewhere.dw, elsewhere.proxy = pair.d, pair.dw, pair.proxy
    one = Talk(pair).turn("1", SYSTEM, 600, first=True)
    prompt = [*SYSTEM, *text(600, salt=2)]
    there = Talk(elsewhere)
    two = there.turn("2", prompt, at_ms=5000)
    three = Talk(pair).turn("3", [*prompt, *there.answers["2"], *text(100, salt=3)], at_ms=10_000)
    run = Run().feed([*pair.start(), *(e for turn in (one, two, three) for part in turn for e in part)]).wait()
    assert [run.turns()[name].local_miss for name in ("p2", "p3")] == ["other_worker", "evicted"]


def test_a_first_turn_misses_nothing() -> None:
    run = second_turn(on(CACHING), local=992)
    assert run.turns()["p1"].local_miss == "none"
    assert run.count("local_misses_total", "prefill-0", "none") == 1


def test_a_request_that_skips_the_cache_is_no_eviction() -> None:
    run = second_turn(on(CACHING), local=0, handle=False, prefill={"skip_cache": True})
    assert run.turns()["p2"].local_miss == "caching_off"


def test_without_digests_nobody_knows_what_was_there() -> None:
    assert second_turn(on(CACHING), local=0, digests=False).turns()["p2"].local_miss == "unknown"
