"""A prefix cache that was emptied holds nothing wrong any more: who is scheduled later is not suspected by it."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.assembly.poison import EDITED, flat, other, poisoned
from tests.assembly.run import Run
from tests.builders import Pair
from turnscope.model import Emptied, Event


def emptied(pair: Pair, at_ms: int) -> Event:
    """P's prefix cache was."""
    return pair.p.say(Emptied(), at_ms)


def suspected(run: Run, n: str) -> bool:
    return run.turns()[f"p{n}"].suspicions == ["kv_mismatch"]


def spoiled(run: Run) -> int:
    """How many prompts' wrong KV P may still hold, as ``turnscope doctor`` is told."""
    (prefill,) = [e for e in run.assembler.status(run.now_ns).engines if e.name == "prefill-0"]
    return prefill.spoiled_prefixes


@pytest.mark.parametrize(
    ("emptied_ms", "clean"), [(4000, False), (8000, True), (9500, False)], ids=["before_it_was_filed", "after", "later"]
)
def test_a_hit_finds_what_was_filed_since_the_cache_was_emptied_last(emptied_ms: int, clean: bool) -> None:
    pair = Pair()
    third = other(pair, "3", at_ms=9000, local=1200)
    run = Run().feed([*flat(poisoned(pair)), emptied(pair, emptied_ms), *third]).wait()
    assert suspected(run, "3") is not clean
    assert suspected(run, "2"), "it fetched what is not its own"
    assert spoiled(run) == (2 if emptied_ms < 5000 else 0), "who finds it files more under the same beginning"


def test_it_may_be_spoiled_again_and_another_engine_s_is_as_it_was() -> None:
    pair = Pair()
    run = Run().feed([*flat(poisoned(pair)), pair.d.say(Emptied(), 8000), *other(pair, "3", at_ms=9000, local=1200)])
    assert suspected(run.wait(), "3")
    pair = Pair()
    first = other(pair, "3", at_ms=9000, local=1200)
    run = Run().feed([emptied(pair, 3000), *flat(poisoned(pair)), *first]).wait()
    assert suspected(run, "3")


def test_what_a_suspected_turn_filed_is_gone_with_its_suspicion() -> None:
    pair = Pair()
    events = [*flat(poisoned(pair)), *other(pair, "3", at_ms=9000, local=1200)]
    longer = [*EDITED[:1200], *range(70_000, 70_400)]
    run = Run().feed([*events, *other(pair, "4", at_ms=12_000, local=1200, prompt=longer)]).wait(100)
    assert (suspected(run, "3"), suspected(run, "4")) == (True, True)
    run.feed([emptied(pair, 8000)], at_ms=run.now_ns // 1_000_000 + 1).wait()
    assert (suspected(run, "3"), suspected(run, "4"), suspected(run, "2")) == (False, False, True)
    assert run.count("suspicions_withdrawn_total", "kv_mismatch") == 2
    assert spoiled(run) == 0


def test_whatever_comes_first_makes_no_difference() -> None:
    found = set()
    for seed in range(30):
        pair = Pair()
        events = [*flat(poisoned(pair)), emptied(pair, 8000), *other(pair, "3", at_ms=9000, local=1200)]
        events += [emptied(pair, 2000), *other(pair, "4", at_ms=7000, local=1200)]
        random.Random(seed).shuffle(events)
        run = Run().feed(events, at_ms=13_000).wait()
        found.add(tuple(suspected(run, n) for n in "234"))
    assert found == {(True, False, True)}


def test_a_cache_that_is_emptied_again_and_again_takes_no_more_room() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *(emptied(pair, 10 + n) for n in range(600))])
    (cache,) = run.assembler._state.caches.values()
    assert len(cache.emptied) == 512
    assert all(earlier < later for earlier, later in itertools.pairwise(cache.emptied))
