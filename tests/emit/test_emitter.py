"""The background thread's rounds, stepped by hand."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from tests.emit.stubs import SECOND, Bench, events_of
from turnscope.emit.outbox import Batch, Outbox
from turnscope.emit.sender import Outcome
from turnscope.model import EngineState, Event, Heartbeat, Request


def requests(events: list[Event]) -> list[str]:
    return [event.body.request_id for event in events if isinstance(event.body, Request)]


def test_events_leave_in_batches_of_at_most_64_that_a_receiver_reads_whole() -> None:
    bench = Bench()
    bench.push(*(f"r{number}" for number in range(150)))
    bench.cycle()
    assert [len(events_of(body)) for body in bench.sender.bodies][:3] == [64, 64, 22]
    assert requests(bench.sender.events()) == [f"r{number}" for number in range(150)]
    assert bench.sender.events()[0].engine == bench.watch.engine


def test_what_comes_in_little_by_little_leaves_in_a_batch_a_second() -> None:
    bench = Bench()
    for number in range(12):
        bench.push(f"r{number}")
        bench.cycle(0.25)
    assert [requests(events_of(body)) for body in bench.sender.bodies] == [
        ["r0"],
        ["r1", "r2", "r3", "r4"],
        ["r5", "r6", "r7", "r8"],
    ]


def test_a_full_batch_does_not_wait() -> None:
    bench = Bench()
    bench.cycle()
    bench.push(*(f"r{number}" for number in range(64)))
    bench.cycle(0.1)
    assert len(requests(bench.sender.events())) == 64


def test_a_job_without_room_for_more_does_not_wait() -> None:
    bench = Bench()
    bench.cycle()
    bench.cycle(0.1)
    assert len(bench.job.pauses) == 1
    bench.job.pressing = True
    bench.cycle(0.1)
    assert len(bench.job.pauses) == 2


def test_what_a_job_makes_leaves_with_what_it_was_made_of() -> None:
    bench = Bench()
    bench.push("a")
    bench.job.work = lambda _pause: bench.push("digest of a")  # type: ignore[method-assign]
    bench.cycle()
    assert [requests(events_of(body)) for body in bench.sender.bodies] == [["a", "digest of a"]]


def test_a_heartbeat_does_not_wait() -> None:
    bench = Bench(heartbeat_s=0.2)
    for _ in range(20):
        bench.cycle(0.1)
    assert len([event for event in bench.sender.events() if isinstance(event.body, Heartbeat)]) == 10


def test_the_interpreter_is_offered_to_others_at_least_twice_for_each_event() -> None:
    bench = Bench()
    bench.push(*(f"r{number}" for number in range(100)))
    bench.cycle()
    assert bench.pauses >= 200


def test_a_long_list_of_open_requests_is_cut_and_encoded_with_pauses() -> None:
    bench = Bench()
    bench.watch.running = [f"r{number}" for number in range(1500)]
    bench.cycle(20)
    (beat,) = [event.body for event in bench.sender.events() if isinstance(event.body, Heartbeat)]
    assert beat.open_requests == [f"r{number}" for number in range(1024)]
    assert beat.open_more == 476
    assert bench.pauses >= 1024 // 32


def test_while_the_sidecar_is_away_events_are_kept_and_sent_once_it_is_back() -> None:
    bench = Bench()
    bench.sender.outcome = Outcome.LATER
    bench.push("a")
    bench.cycle()
    bench.push("b")
    bench.cycle()
    assert bench.sender.bodies == []
    bench.sender.outcome = Outcome.SENT
    bench.cycle(10)
    assert requests(bench.sender.events()) == ["a", "b"]
    assert bench.emitter.dropped == 0


def test_tries_become_rarer_while_the_sidecar_is_away() -> None:
    bench = Bench()
    bench.sender.outcome = Outcome.LATER
    bench.push("a")
    for _ in range(600):
        bench.cycle(0.1)
    assert 10 <= bench.sender.tries <= 20, "after 0.5, 1, 2, 4 and then every 5 seconds"


def test_memory_is_bounded_and_numbered_is_sent_plus_dropped_plus_queued() -> None:
    bench = Bench(outbox=Outbox(max_bytes=60_000), request=50)
    bench.sender.outcome = Outcome.LATER
    for turn in range(40):
        bench.push(*(f"{turn}-{number}" for number in range(80)))
        bench.cycle(0.2)
        assert bench.emitter.outbox.bytes <= 60_000
    assert bench.emitter.dropped > 40 * 30
    bench.sender.outcome = Outcome.SENT
    bench.cycle(30)
    emitter = bench.emitter
    assert emitter.outbox.queued == 0
    assert bench.given() == emitter.sent + emitter.dropped
    assert len(bench.sender.events()) == emitter.sent


def test_the_oldest_batch_goes_first_when_there_is_no_room() -> None:
    outbox = Outbox(max_bytes=10)
    for name in (b"aaaa", b"bbbb", b"cccc"):
        outbox.add(Batch(name, 2))
    first = outbox.first()
    assert first is not None
    assert (first.body, outbox.dropped, outbox.queued) == (b"bbbb", 2, 4)


def test_a_refused_batch_is_counted_and_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.sender.outcome = Outcome.REFUSED
    bench.push("a", "b")
    bench.cycle()
    bench.sender.outcome = Outcome.SENT
    bench.push("c")
    bench.cycle()
    assert requests(bench.sender.events()) == ["c"]
    assert bench.emitter.dropped == 2
    assert "refused 2 events" in caplog.text


def test_one_that_cannot_be_built_is_counted_and_the_others_arrive() -> None:
    bench = Bench()
    bench.push("a", "unbuildable", "c", "\ud800", "e")
    bench.cycle()
    assert requests(bench.sender.events()) == ["a", "c", "e"]
    assert bench.emitter.dropped == 2, "one without a body, one with text that no message can carry"
    assert bench.watch.guard.errors == 0, "what a client sent must not switch a hook off"
    bench.cycle(20)
    beat = bench.sender.events()[-1].body
    assert isinstance(beat, Heartbeat)
    assert (beat.dropped, beat.errors) == (2, 1)


def test_heartbeats_come_at_their_interval_and_carry_their_own_number() -> None:
    bench = Bench()
    for _ in range(30):
        bench.cycle(1)
    beats = [event for event in bench.sender.events() if isinstance(event.body, Heartbeat)]
    assert [event.seq for event in beats] == [
        event.body.last_seq for event in beats if isinstance(event.body, Heartbeat)
    ]
    assert len(beats) == 3


def test_the_off_file_stops_hooks_and_heartbeats_and_its_removal_starts_them(tmp_path: Path) -> None:
    switch = tmp_path / "off"
    bench = Bench(off_file=str(switch))
    bench.watch.running = ["r1"]
    bench.cycle()
    assert bench.watch.guard.on
    switch.touch()
    bench.cycle()
    assert not bench.watch.guard.on
    assert bench.watch.running == [], "their ends will not be seen"
    heard = len(bench.sender.events())
    for _ in range(30):
        bench.cycle()
    assert len(bench.sender.events()) == heard
    switch.unlink()
    bench.cycle()
    assert bench.watch.guard.on
    states = [event.body.state for event in bench.sender.events() if isinstance(event.body, EngineState)]
    assert states == ["switched_off", "started"]


def test_an_off_file_that_cannot_be_looked_for_is_said_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(off_file=str(tmp_path / ("x" * 300)))  # what a folder without permission is to all but root
    for name in "ab":
        bench.push(name)
        bench.cycle()
    assert requests(bench.sender.events()) == ["a", "b"]
    assert caplog.text.count("cannot be looked for (File name too long) and switches nothing off") == 1
    assert bench.emitter.errors == 0


def test_an_endpoint_that_refuses_everything_is_said_once_for_each_status(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.sender.outcome = Outcome.REFUSED
    for number in range(60):
        bench.sender.why = f"UNIMPLEMENTED: request {number}" if number % 2 else f"INTERNAL: request {number}"
        bench.push("a")
        bench.cycle()
    assert bench.sender.tries == 60
    assert caplog.text.count("refused 1 events (UNIMPLEMENTED: request 1)") == 1
    assert caplog.text.count("refused") == 2


def test_a_hook_that_keeps_failing_is_said_to_be_off_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.watch.running = ["its end will not be seen"]
    for _ in range(40):
        bench.watch.guard.failed(ValueError("x"))
    for _ in range(5):
        bench.cycle()
    (state,) = [event.body for event in bench.sender.events() if isinstance(event.body, EngineState)]
    assert state.state == "switched_off"
    assert state.message == "stub hook: switched off after 40 errors, the last a ValueError"
    assert caplog.text.count("switched off after") == 1
    assert not bench.watch.guard.on
    bench.cycle(20)
    beat = bench.sender.events()[-1].body
    assert isinstance(beat, Heartbeat)
    assert beat.open_requests == []


def test_closing_sends_what_is_left_and_says_goodbye() -> None:
    bench = Bench()
    bench.push("last")
    bench.emitter.close(time.monotonic_ns() + SECOND)
    events = bench.sender.events()
    assert requests(events) == ["last"]
    assert [event.body.state for event in events if isinstance(event.body, EngineState)] == ["stopping"]
    assert bench.sender.closed


def test_closing_gives_up_at_its_deadline() -> None:
    bench = Bench()
    bench.sender.outcome = Outcome.LATER
    bench.push("last")
    began = time.monotonic()
    bench.emitter.close(time.monotonic_ns() + SECOND // 5)
    assert time.monotonic() - began < 2
    assert bench.sender.closed


def test_closing_tries_once_where_the_sidecar_was_away_already() -> None:
    bench = Bench()
    bench.sender.outcome = Outcome.LATER
    bench.push("last")
    bench.cycle()
    began = time.monotonic()
    bench.emitter.close(time.monotonic_ns() + 60 * SECOND)
    assert time.monotonic() - began < 5
    assert bench.sender.tries == 2


def test_trouble_in_a_round_is_counted_and_the_next_round_runs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    bench = Bench()
    working, bench.watch.wrapped = bench.watch.wrapped, None  # type: ignore[assignment]
    for _ in range(20):
        bench.watch.guard.failed(ValueError("x"))
    bench.cycle()
    assert bench.emitter.errors == 21
    assert "it goes on" in caplog.text
    bench.watch.wrapped = working
    bench.push("a")
    bench.cycle()
    assert requests(bench.sender.events()) == ["a"]
