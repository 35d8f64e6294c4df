"""How late a follow-up came for its hold: against the true expiry, by a clock that can tell, or not at all."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.hosts import apart, conversation
from tests.assembly.run import Run
from tests.builders import MS, SECOND, D, P, Pair, read
from turnscope.measures.findings import findings
from turnscope.model import Event, ExporterStatus, Request, SystemStatus
from turnscope.semconv import Direction, TransferState

SHORT = msgspec.structs.replace(D, hold_ttl_ns=60 * SECOND)
PATIENT = msgspec.structs.replace(P, load_failure_policy="recompute")
LEFT_MS = 900
"""When the first turn's hold begins."""


def declined(pair: Pair, n: str, after_ms: int) -> list[Event]:
    """A follow-up that P declines to read for: it recomputes, and D's hold runs out."""
    at = LEFT_MS + after_ms
    turn = pair.turn(n, at_ms=at, prompt=1250, given=pair.handle(f"{n}0", 1199), session=n)
    body = read(Direction.REVERSE_FETCH, local=f"p{n}", remote=("d", f"d{n}0"), state=TransferState.DECLINED)
    return [*turn, pair.pw.say(body, at)]


def follow_ups(pair: Pair) -> list[Event]:
    """Five sessions, one turn each at once, and a second one after 50, 54, 56, 61 and 460 seconds."""
    events = pair.start()
    for n in "abcde":
        events += pair.turn(f"{n}0", session=n)
    for n, after in (("a", 50_000), ("b", 54_000)):
        given = pair.handle(f"{n}0", 1199)
        events += pair.turn(n, at_ms=LEFT_MS + after - 60, prompt=1250, fetched=1199, given=given, session=n)
    for n, after in (("c", 56_000), ("d", 61_000)):
        events += declined(pair, n, after)
    events += pair.turn("e", at_ms=LEFT_MS + 460_000, prompt=1250, session="e")
    for n in "cde":
        events += pair.expired(f"d{n}0", LEFT_MS + 60_000)
    return [*events, *pair.beats(470_000)]


def test_follow_ups_around_the_margin_are_fetched_declined_or_never_asked_for() -> None:
    pair = Pair(PATIENT, SHORT)
    run = Run().feed(follow_ups(pair)).wait()
    turns = run.turns()
    told = {n: (turns[f"p{n}"].path, turns[f"p{n}"].reason, turns[f"p{n}"].late_by_ns) for n in "abcde"}
    assert told == {
        "a": ("reverse_fetch", "none", -10 * SECOND),
        "b": ("reverse_fetch", "none", -6 * SECOND),
        "c": ("recompute", "declined_expired", -4 * SECOND),
        "d": ("recompute", "declined_expired", 1 * SECOND),
        "e": ("recompute", "proxy_entry_expired", None),
    }
    assert {turns[f"p{n}"].late_by_error_ns for n in "abcd"} == {0}
    assert run.count("holds_total", "decode-0", "hold", "ttl") == 3
    assert run.count("holds_total", "decode-0", "hold", "read") == 2
    assert run.count("kv_expired_total", "decode-0", "hold") == 3
    assert run.count("kv_expired_total", "prefill-0", "declined") == 2


def test_a_proxy_that_keeps_handles_as_long_as_d_keeps_blocks_is_warned_of_and_the_usual_one_is_not() -> None:
    for ttl_s, warned in ((60, True), (450, True), (454, True), (455, False), (480, False)):
        pair = Pair(d=msgspec.structs.replace(D, hold_ttl_ns=ttl_s * SECOND))
        run = Run().feed([*pair.start(), *pair.turn("1")])
        exporter = ExporterStatus(version="0", uptime_s=60.0, last_scrape_s=1.0, proxy_ttl_s=450.0)
        status = SystemStatus(assembly=run.assembler.status(run.now_ns), exporter=exporter)
        assert ("proxy_keeps_too_long" in {f.check for f in findings(status)}) is warned


@pytest.mark.parametrize("proxy", [True, False])
def test_across_hosts_it_is_told_with_its_error_once_their_clocks_were_compared(proxy: bool) -> None:
    pair = Pair(PATIENT, SHORT, proxy=proxy)
    run = Run().feed_moved(follow_ups(pair), apart(pair)).wait(100)
    for n, late_s in (("a", -10), ("b", -6), ("c", -4), ("d", 1)):
        turn = run.turns()[f"p{n}"]
        assert turn.late_by_ns is not None
        assert turn.late_by_error_ns is not None
        assert 0 < turn.late_by_error_ns < 200 * MS
        assert abs(turn.late_by_ns - late_s * SECOND) <= turn.late_by_error_ns


def test_across_hosts_whose_clocks_were_never_compared_it_is_absent() -> None:
    pair = Pair(PATIENT, SHORT, proxy=False)
    unheard = [e for e in follow_ups(pair) if e.emitter not in (pair.pw.emitter, pair.dw.emitter)]
    turn = Run().feed_moved(unheard, apart(pair)).wait(100).turns()["pb"]
    assert (turn.reason, turn.late_by_ns, turn.late_by_error_ns) == ("none", None, None)


def test_the_handle_s_own_expiry_serves_where_the_hold_s_begin_was_not_seen() -> None:
    for expiry_s, late_ns in (
        (60.0, -5 * SECOND),
        (0.0, 55 * SECOND),
        (-1.0, None),
        (2.0**32, None),
        (None, None),
        (float("inf"), None),
        (float("nan"), None),
    ):
        pair = Pair()
        given = msgspec.structs.replace(pair.handle("1", 1199), expiry_s=expiry_s)
        events = pair.turn("2", at_ms=55_000 - 60, prompt=1250, fetched=1199, given=given)
        assert Run().feed([*pair.start(), *events]).wait().turns()["p2"].late_by_ns == late_ns


def test_of_several_ranks_the_first_that_began_to_read_tells_when_the_handle_was_used() -> None:
    pair = Pair(d=SHORT)
    given = pair.handle("1", 1199)
    second = pair.turn("2", at_ms=10_900, prompt=1250, fetched=1199, given=given)
    later = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), started_mono_ns=11_500 * MS)
    events = [*pair.start(), *pair.turn("1"), pair.pw.say(later, 11_600), *second]
    assert Run().feed(events).wait().turns()["p2"].late_by_ns == (10_960 - 60_900) * MS


def test_without_a_read_it_counts_from_when_the_request_was_scheduled_else_from_when_it_was_accepted() -> None:
    for scheduled_ms, used_ms in ((10_910, 10_910), (None, 10_900)):
        pair = Pair(d=SHORT)
        began = {"scheduled_mono_ns": scheduled_ms * MS if scheduled_ms is not None else None}
        second = pair.turn("2", at_ms=10_900, prompt=1250, given=pair.handle("1", 1199), prefill=began)
        turn = Run().feed([*pair.start(), *pair.turn("1"), *second]).wait().turns()["p2"]
        assert turn.late_by_ns == (used_ms - 60_900) * MS


def test_a_turn_that_brought_no_handle_is_late_for_nothing() -> None:
    turn = Run().feed(conversation(Pair(), 1)).wait().turns()["p0"]
    assert (turn.late_by_ns, turn.late_by_error_ns) == (None, None)


def test_a_hold_that_is_heard_of_after_its_user_was_counted_tells_how_late_that_came() -> None:
    pair = Pair()
    turn = pair.turn("2", at_ms=5000, prompt=1250, given=pair.handle("1", 1199))
    run = Run().feed([e for e in turn if isinstance(e.body, Request) and e.emitter == pair.p.emitter]).wait(100)
    assert run.turns()["p2"].late_by_ns is None
    run.feed([pair.held("d1", 1199, LEFT_MS)], at_ms=110_000).wait(4.9)
    assert run.turns()["p2"].late_by_ns is None
    assert run.wait(0.2).turns()["p2"].late_by_ns is not None
