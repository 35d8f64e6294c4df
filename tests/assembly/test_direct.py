"""Requests sent straight to an engine of a pair are no turns, and no client's request is taken for one."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.test_attempts import whole
from tests.builders import D, P, Pair, request
from turnscope.model import Event
from turnscope.semconv import Leg

MS = 1_000_000


def warm_up(pair: Pair, at_ms: int = 0) -> list[Event]:
    """A completion sent to each engine of the pair by itself."""
    return [
        process.say(request(f"cmpl-{n}", leg=Leg.WHOLE, prompt=40, added_mono_ns=at_ms * MS), at_ms)
        for n, process in enumerate((pair.p, pair.d))
    ]


def test_a_warm_up_is_a_fragment_and_no_turn() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *warm_up(pair), *pair.turn("1", at_ms=1000)]).wait(100)
    assert run.count("turns_total") == 1
    assert run.count("fragments_total", "direct") == 2
    assert list(run.turns()) == ["p1"]
    assert run.count("requests_total") == 4
    assert run.assembler.status(run.now_ns).direct_requests == 2


def test_a_proxy_may_start_after_its_engines_were_warmed_up() -> None:
    pair = Pair()
    engines, (proxy,) = (
        [p for p in pair.processes if p is not pair.proxy],
        [p for p in pair.processes if p is pair.proxy],
    )
    run = Run().feed([*(process.started() for process in engines), *warm_up(pair)]).wait(50)
    assert run.count("fragments_total") == 0
    run.feed([proxy.started(50_010)]).wait(6)
    assert run.count("turns_total") == 0
    assert run.count("fragments_total", "direct") == 2


def test_without_a_proxy_hook_nothing_can_tell_and_it_is_a_turn() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *warm_up(pair)]).wait(100)
    assert run.count("turns_total") == 2
    assert run.count("fragments_total") == 0


def test_an_aggregated_engines_request_is_a_turn() -> None:
    pair = Pair(P, msgspec.structs.replace(D, role="aggregated"))
    run = Run().feed([*pair.start(), *warm_up(pair)]).wait(100)
    assert run.count("turns_total") == 1
    assert [turn.prefill_engine for turn in run.turns().values()] == ["aggregated-0"]


def test_a_session_id_makes_it_a_clients_turn() -> None:
    pair = Pair()
    (event, _) = warm_up(pair)
    assert event.body.EVENT == "turnscope.request"
    event.body.session_id = "s"  # type: ignore[union-attr]
    run = Run().feed([*pair.start(), event]).wait(100)
    assert run.count("turns_total") == 1


@pytest.mark.parametrize("late_ms", [0, 120_000])
def test_one_that_a_proxys_attempt_belongs_to_is_a_turn_however_late_it_comes(late_ms: int) -> None:
    pair = Pair()
    leg, attempt = whole(pair, "abc", "chatcmpl-abc-1111aaaa", 0)
    run = Run().feed([*pair.start(), leg]).wait(late_ms / 1000)
    run.feed([attempt], at_ms=run.now_ns // MS + 1).wait(200)
    assert run.count("turns_total") == 1
    (turn,) = run.turns().values()
    assert (turn.has_attempt, turn.has_prefill, turn.session_id) == (True, True, "s")
    assert run.count("fragments_total", "direct") == (1 if late_ms else 0)
