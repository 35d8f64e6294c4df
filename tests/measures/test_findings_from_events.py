"""Findings from what assembly makes of real events: the two agree on what each count means."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.hosts import apart, conversation
from tests.assembly.run import Run
from tests.assembly.streams import OTHER, not_handed_over
from tests.assembly.talk import text
from tests.builders import KEYS, MS, SECOND, D, P, Pair, request
from turnscope.marks import Keys
from turnscope.measures.findings import findings
from turnscope.model import Event, ExporterStatus, SystemStatus
from turnscope.semconv import Leg


def _found(run: Run, seconds: float = 1) -> dict[str, str]:
    """Check to place, ``seconds`` after the last event."""
    now_ns = run.now_ns + int(seconds * SECOND)
    run.assembler.tick(now_ns)
    exporter = ExporterStatus(version="0", uptime_s=60.0, last_scrape_s=1.0, proxy_ttl_s=450.0)
    status = SystemStatus(assembly=run.assembler.status(now_ns), exporter=exporter)
    return {f.check: f.where for f in findings(status)}


def test_a_pair_that_reuses_has_no_findings() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    run.feed(pair.turn("1"))
    run.feed(pair.turn("2", at_ms=2000, prompt=1250, fetched=1199, given=pair.handle("1", 1199)))
    assert _found(run) == {}


def test_five_streamed_turns_without_a_handle_are_one_finding_on_that_decode_engine() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    for n in range(5):
        run.feed(pair.turn(str(n), at_ms=2000 * n, prompt=1000 + 250 * n, handle_seen=False))
    assert _found(run.wait(10), 1) == {"streamed_without_handle": "decode-0"}


def test_the_feature_off_on_decode_is_another_finding() -> None:
    pair = Pair(d=msgspec.structs.replace(D, bidirectional=False, hold_ttl_ns=None))
    run = Run().feed(pair.start())
    for n in range(5):
        run.feed(pair.turn(str(n), at_ms=2000 * n, handle_seen=False))
    assert _found(run.wait(10)) == {"bidirectional_off": "decode-0"}


def test_turns_without_a_session_id_are_another() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    for n in range(5):
        run.feed(pair.turn(str(n), at_ms=2000 * n, session=None))
    assert _found(run.wait(10)) == {"no_session_ids": "clients"}


def test_engines_without_a_proxy_hook_leave_only_that_to_say() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *pair.turn("1")])
    assert _found(run) == {"no_proxy": "proxy"}


def test_a_handle_whose_expiry_was_dropped_on_its_way_is_found_on_the_prefill_engine() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")])
    given = msgspec.structs.replace(pair.handle("1", 1199), expiry_s=None)
    run.feed(pair.turn("2", at_ms=2000, prompt=1250, fetched=1199, given=given))
    assert _found(run)["expiry_dropped"] == "prefill-0"


def without_handoff(pair: Pair, n: int) -> list[Event]:
    """P prefills and hands nothing over; D computes the whole prompt; the client gets its answer."""
    prefill = request(f"p{n}", prompt=39, added_mono_ns=1000 * n * MS)
    whole = request(f"cmpl-{n}", leg=Leg.WHOLE, prompt=39, added_mono_ns=(1000 * n + 500) * MS)
    return [pair.p.say(prefill, 1000 * n + 400), pair.d.say(whole, 1000 * n + 900)]


@pytest.mark.parametrize(("requests", "found"), [(9, {}), (10, {"no_handoffs": "decode-0"})])
def test_a_decode_engine_that_computes_every_prompt_beside_a_busy_prefill_engine_is_found_after_ten_requests(
    requests: int, found: dict[str, str]
) -> None:
    pair = Pair(proxy=False)
    run = Run().feed(pair.start())
    for n in range(requests):
        run.feed(without_handoff(pair, n))
    assert {check: where for check, where in _found(run).items() if check != "no_proxy"} == found


def test_it_is_over_with_the_first_handoff_and_found_again_when_handoffs_stop() -> None:
    pair = Pair(proxy=False)
    run = Run().feed(pair.start())
    for n in range(10):
        run.feed(without_handoff(pair, n))
    run.feed(pair.turn("x", at_ms=10_000))
    assert "no_handoffs" not in _found(run, 0.1)
    for n in range(11, 21):
        run.feed(without_handoff(pair, n))
    assert _found(run)["no_handoffs"] == "decode-0"


def test_requests_sent_straight_to_decode_while_prefill_rests_are_no_finding() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([*pair.start(), *pair.turn("1")])
    for n in range(30):
        run.feed([pair.d.say(request(f"cmpl-{n}", leg=Leg.WHOLE, prompt=39), 2000 + n)])
    assert "no_handoffs" not in _found(run)


def test_a_process_with_slow_heartbeats_is_not_silent_until_it_misses_three_of_its_own() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    run.feed([process.beat(at) for at in (1_000, 21_000) for process in pair.processes])
    assert "silent" not in _found(run, 59)
    assert "silent" in _found(run, 61)


def test_lost_events_are_found_once_the_gap_is_old() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    pair.p.seq += 2
    run.feed([pair.p.beat(2_000)])
    assert "lost_events" not in _found(run)
    run.feed([process.beat(at) for at in range(5_000, 70_000, 5_000) for process in pair.processes])
    assert _found(run.wait(1))["lost_events"].startswith("prefill-0 (engine)")


def test_turns_that_d_computes_all_by_itself_are_found() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    for n in range(10):
        run.feed(not_handed_over(pair, n, at_ms=1000 * n))
    assert _found(run.wait(100))["no_handoffs"] == "decode-0"


def test_a_prefill_engine_alone_is_missing_its_other_side() -> None:
    pair = Pair(proxy=False)
    run = Run().feed([pair.p.started(0), pair.pw.started(0)])
    assert _found(run)["one_side_missing"] == "decode engines"
    assert P.role == "prefill"


def test_idle_sessions_that_fill_the_memory_are_found_and_so_is_that_they_have_gone() -> None:
    pair = Pair(d=msgspec.structs.replace(D, num_blocks=1000))
    run = Run().feed([*pair.start(), *(pair.held(f"d{n}", 2400, 1000 * n) for n in range(5))])
    assert _found(run) == {}
    run.feed([pair.held("d5", 2400, 5000)])
    assert _found(run) == {"retention_pressure": "decode-0"}
    run.feed([e for n in range(6) for e in pair.expired(f"d{n}", 6000)])
    assert _found(run) == {}


def test_hosts_whose_clocks_differ_are_found_by_the_turns_that_both_took_part_in() -> None:
    pair = Pair()
    found = _found(Run().feed_moved(conversation(pair), apart(pair)).wait(10), 1)
    assert found["clocks_apart"].startswith("hosts ")
    pair = Pair()
    assert "clocks_apart" not in _found(Run().feed(conversation(pair)).wait(10), 1)


@pytest.mark.parametrize(("d_keys", "found"), [(KEYS, None), (OTHER, "engines")])
def test_engines_that_digest_under_different_keys_are_found(d_keys: Keys, found: str | None) -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")])
    run.feed(pair.digests("1", text(1000), text(200), 1200, keys=KEYS, legs="p"))
    run.feed(pair.digests("1", text(1000), text(200), 1200, keys=d_keys, legs="d"))
    assert _found(run).get("digest_keys_differ") == found


def test_a_key_that_was_changed_on_all_engines_is_no_finding() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")])
    for at, keys in ((1200, KEYS), (1300, OTHER)):
        run.feed(pair.digests("1", text(1000), text(200), at, keys=keys))
    assert "digest_keys_differ" not in _found(run)
