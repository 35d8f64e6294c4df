"""What fetches were worth: signed, unknown until the engine is known, and nothing for tokens that may be wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import Talk, message
from tests.builders import MS, SECOND, D, P, Pair, Process, read
from turnscope.assembly import counts
from turnscope.assembly.gain import suspect_tokens
from turnscope.assembly.rate import ENOUGH
from turnscope.model import Event, Turn
from turnscope.semconv import Direction, TransferState

TOKEN_MS = 0.25
"""What a token costs the engine of these tests; a step costs 50 ms besides."""


def learnt(pair: Pair, count: int = 30) -> list[Event]:
    """Turns of many sessions that computed 400 to 2,140 tokens each, ten seconds apart."""
    events = pair.start()
    for n in range(count):
        prompt = 400 + 60 * n
        events += computing(pair, f"c{n}", at_ms=10_000 * n, prompt=prompt, session=f"c{n}")
    return events


def computing(pair: Pair, n: str, *, at_ms: int, prompt: int, fetched: int = 0, **more: Any) -> list[Event]:
    """A turn whose P leg takes as long as what it computes."""
    ms = int(50 + TOKEN_MS * (prompt - fetched))
    began = {"scheduled_mono_ns": (at_ms + 400 - ms) * MS, "added_mono_ns": (at_ms + 390 - ms) * MS}
    return pair.turn(n, at_ms=at_ms, prompt=prompt, fetched=fetched, prefill=began, **more)


def fetching(pair: Pair, *, took_ms: int = 40, count: int = 30, fetched: int = 1199) -> list[Event]:
    """One session whose second turn fetches 1,199 tokens, which would have cost 300 ms."""
    at = 10_000 * count
    events = [*learnt(pair, count), *pair.turn("1", at_ms=at, prompt=1000)]
    second = computing(pair, "2", at_ms=at + 5000, prompt=1250, fetched=fetched, given=pair.handle("1", 1199))
    for event in second:
        if getattr(event.body, "direction", None) is Direction.REVERSE_FETCH:
            event.body.duration_ns = took_ms * MS  # type: ignore[union-attr]
    return [*events, *second, *pair.beats(at + 5000)]


def test_a_fetch_gains_the_compute_it_spared_less_its_own_time() -> None:
    run = Run().feed(fetching(Pair())).wait()
    turn = run.turns()["p2"]
    assert turn.net_gain_ns == pytest.approx((1199 * TOKEN_MS - 40) * MS, rel=0.02)
    assert turn.net_gain_low_ns is not None
    assert turn.net_gain_high_ns is not None
    assert turn.net_gain_low_ns <= turn.net_gain_ns <= turn.net_gain_high_ns
    assert run.count("fetch_gain_seconds_total", "prefill-0") == pytest.approx(turn.net_gain_ns / SECOND)
    assert run.count("fetch_loss_seconds_total") == 0
    assert run.count("fetches_total", "prefill-0", "gained") == run.count("fetches_total") == 1


def test_a_fetch_that_took_longer_than_computing_lost_time() -> None:
    run = Run().feed(fetching(Pair(), took_ms=2000)).wait()
    turn = run.turns()["p2"]
    assert turn.net_gain_ns == pytest.approx((1199 * TOKEN_MS - 2000) * MS, rel=0.02)
    assert run.count("fetch_loss_seconds_total", "prefill-0") == pytest.approx(2 - 1199 * TOKEN_MS / 1000, rel=0.02)
    assert run.count("fetch_gain_seconds_total") == 0
    assert run.count("fetches_total", "prefill-0", "lost") == 1


def test_a_fetch_about_as_fast_as_computing_is_undecided() -> None:
    pair = Pair()
    events = fetching(pair, took_ms=300)
    for n, event in enumerate(e for e in events if getattr(e.body, "scheduled_mono_ns", None)):
        event.body.scheduled_mono_ns += (n % 5 - 2) * 8 * MS  # type: ignore[union-attr]
    assert Run().feed(events).wait().count("fetches_total", "prefill-0", "undecided") == 1


def test_the_gain_is_unknown_until_the_engine_was_measured_often_enough() -> None:
    run = Run().feed(fetching(Pair(), count=ENOUGH - 3)).wait()
    turn = run.turns()["p2"]
    assert (turn.net_gain_ns, turn.net_gain_low_ns, turn.net_gain_high_ns) == (None, None, None)
    assert run.count("fetches_total", "prefill-0", "unknown") == 1
    assert run.count("fetch_gain_seconds_total") == run.count("fetch_loss_seconds_total") == 0
    engine = next(e for e in run.assembler.status(run.now_ns).engines if e.name == "prefill-0")
    assert engine.prefill_measurements == ENOUGH - 1


def test_a_rate_is_forgotten_when_its_engine_starts_anew() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(P, generation="p-2"))
    events = fetching(pair)
    run = Run().feed(events).wait().feed([again.started(400_000)])
    engine = next(e for e in run.assembler.status(run.now_ns).engines if e.name == "prefill-0")
    assert engine.prefill_measurements == 0


def test_what_was_counted_stays_by_the_rate_of_its_time_and_later_facts_are_reckoned_by_it() -> None:
    pair = Pair()
    run = Run().feed(fetching(pair)).wait()
    before = run.turns()["p2"]
    slower = [computing(pair, f"x{n}", at_ms=400_000 + 9000 * n, prompt=3000, session=f"x{n}") for n in range(30)]
    for event in (e for turn in slower for e in turn if getattr(e.body, "scheduled_mono_ns", None)):
        event.body.scheduled_mono_ns -= 2000 * MS  # type: ignore[union-attr]
    late = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), bytes=1, duration_ns=50 * MS)
    run.feed([e for turn in slower for e in turn]).wait().feed([pair.pw.say(late, 700_000)]).wait()
    after = run.turns()["p2"]
    assert (before.net_gain_ns or 0) - (after.net_gain_ns or 0) == 10 * MS
    assert (after.revision, run.count("fetches_total", "prefill-0", "gained")) == (2, 1)


def test_tokens_under_suspicion_spare_nothing_and_their_time_is_lost() -> None:
    pair = Pair()
    events = learnt(pair)
    events += pair.turn("1", at_ms=300_000, prompt=1000, output=600)
    events += pair.turn("2", at_ms=305_000, prompt=1250, fetched=1250, given=pair.handle("1", 1599))
    run = Run().feed([*events, *pair.beats(305_000)]).wait()
    turn = run.turns()["p2"]
    assert (turn.suspicions, turn.net_gain_ns) == (["kv_mismatch"], -40 * MS)
    assert run.count("fetch_gain_seconds_total") == 0
    assert run.count("fetch_loss_seconds_total", "prefill-0") == 0.04


def talking(pair: Pair, cut: int) -> list[Event]:
    """Two turns of one session on an engine that is known; the second's prompt leaves out the first ``cut`` tokens of
    the answer, and both are told by digests."""
    talk, system = Talk(pair), message(1000, salt=1)
    first, told = talk.turn("1", system, 600, at_ms=300_000, first=True)
    prompt = [*system, *talk.answers["1"][cut:], *message(50, salt=2)]
    second, more = talk.turn("2", prompt, at_ms=305_000, given=pair.handle("1", 1599))
    return [*learnt(pair), *first, *second, *told, *more, *pair.beats(305_000)]


def test_the_tokens_before_a_divergence_that_digests_found_still_spare_compute() -> None:
    run = Run().feed(talking(Pair(), cut=400)).wait()
    turn = run.turns()["p2"]
    assert (turn.suspicions, turn.fetched_tokens) == (["kv_mismatch"], 1250)
    good = 1250 - (turn.suspect_tokens or 0)
    assert 700 <= good <= 1000
    assert turn.net_gain_ns == pytest.approx((good * TOKEN_MS - 40) * MS, rel=0.02)


def test_what_was_read_after_release_spares_nothing_though_digests_find_no_other_text() -> None:
    pair = Pair()
    events = [*talking(pair, cut=0), *pair.expired("d1", 304_000), *pair.late_notice("d1", 305_110)]
    turn = Run().feed(events).wait().turns()["p2"]
    assert (turn.suspicions, turn.suspect_tokens, turn.net_gain_ns) == (["read_after_release"], 0, -40 * MS)


def test_without_a_count_a_suspicion_is_of_all_that_was_fetched() -> None:
    row = Turn(turn_id="t", started_ns=0, fetched_tokens=1000, suspicions=["kv_mismatch"], suspect_tokens=300)
    assert suspect_tokens(row) == 300
    assert suspect_tokens(msgspec.structs.replace(row, suspect_tokens=None)) == 1000
    assert suspect_tokens(Turn(turn_id="t", started_ns=0, fetched_tokens=1000)) == 0


@pytest.mark.parametrize(
    ("gain", "low", "high", "worth"),
    [
        (1, 1, 1, "gained"),
        (0, 0, 0, "undecided"),
        (-1, -1, -1, "lost"),
        (5, 0, 9, "undecided"),
        (-5, -9, 0, "undecided"),
    ],
)
def test_a_fetch_gained_or_lost_only_if_the_whole_interval_says_so_and_nothing_is_counted_for_0(
    gain: int, low: int, high: int, worth: str
) -> None:
    row = Turn(turn_id="t", started_ns=0, fetched_tokens=1)
    row = msgspec.structs.replace(row, net_gain_ns=gain, net_gain_low_ns=low, net_gain_high_ns=high)
    counted = {(add.metric, *add.labels): add.value for add in counts._fetch("p", row)}
    seconds = {"gain": max(0, gain) / SECOND, "loss": max(0, -gain) / SECOND}
    expected = {(f"turnscope_fetch_{way}_seconds_total", "p"): value for way, value in seconds.items() if value}
    assert counted == {("turnscope_fetches_total", "p", worth): 1, **expected}


def test_a_fetch_that_failed_is_a_loss_of_its_time() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"))
    events = [*pair.start(), *pair.turn("1"), *pair.turn("2", at_ms=5000, prompt=1250, given=pair.handle("1", 1199))]
    failed = read(
        Direction.REVERSE_FETCH,
        local="p2",
        remote=("d", "d1"),
        state=TransferState.FAILED,
        started_mono_ns=5060 * MS,
    )
    run = Run().feed([*events, pair.pw.say(failed, 5310)]).wait()
    turn = run.turns()["p2"]
    assert (turn.path, turn.net_gain_ns, turn.net_gain_high_ns) == ("recompute", -250 * MS, -250 * MS)
    assert run.count("fetch_loss_seconds_total", "prefill-0") == 0.25


def test_a_turn_that_fetched_nothing_has_no_gain() -> None:
    pair = Pair()
    run = Run().feed(learnt(pair)).wait()
    assert {turn.net_gain_ns for turn in run.turns().values()} == {None}
    assert run.count("fetches_total") == 0


def test_two_ranks_that_read_side_by_side_cost_the_slower_one_s_time() -> None:
    pair = Pair(d=msgspec.structs.replace(D, tp_size=1))
    other = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), duration_ns=70 * MS)
    events = fetching(pair)
    run = Run().feed([*events, pair.pw.say(other, 305_110)]).wait()
    assert run.turns()["p2"].net_gain_ns == pytest.approx((1199 * TOKEN_MS - 70) * MS, rel=0.02)
