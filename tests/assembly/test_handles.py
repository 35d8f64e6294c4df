"""The life of D's handles, each step with who saw it, in whatever order the news comes."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assembly.run import Run
from tests.assembly.streams import Stream, disorder
from tests.builders import D, Pair, Process, read
from turnscope.model import Event
from turnscope.semconv import Direction, TransferState


def fetched_turn(pair: Pair) -> list[Event]:
    """A turn that leaves a handle, and one that fetches by it."""
    second = pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    return [*pair.start(), *pair.turn("1", prompt=1000), *second]


READ = [
    "issued decode",
    "issued proxy",
    "held decode",
    "given prefill",
    "given proxy",
    "read prefill",
    "released decode",
]


def test_a_handle_that_was_read_tells_its_whole_life_and_who_saw_each_step() -> None:
    assert Run().feed(fetched_turn(Pair())).wait().holds()["d1"].steps == READ


def test_without_a_proxys_hook_its_word_is_missing_and_the_rest_is_there() -> None:
    steps = Run().feed(fetched_turn(Pair(proxy=False))).wait().holds()["d1"].steps
    assert steps == [step for step in READ if "proxy" not in step]


def test_a_handle_that_no_answer_carried_was_issued_by_d_alone() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", handle_seen=False), *pair.expired("d1", 480_900)]
    steps = Run().feed([*events, *pair.beats(480_000)]).wait().holds()["d1"].steps
    assert steps == ["issued decode", "held decode", "expired decode"]


def test_what_p_made_of_a_handle_is_told_apart() -> None:
    for state, step in (
        (TransferState.NOTICE_ONLY, "notified prefill"),
        (TransferState.DECLINED, "declined prefill"),
        (TransferState.FAILED, "failed prefill"),
        (TransferState.HANDSHAKE_FAILED, "failed prefill"),
    ):
        pair = Pair()
        body = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=state)
        events = [*pair.start(), *pair.turn("1"), *pair.turn("2", at_ms=5000, given=pair.handle("1", 1199))]
        events += [pair.pw.say(body, 5100), *pair.released("d1", 5100)]
        steps = Run().feed(events).wait().holds()["d1"].steps
        assert step in steps
        assert "read prefill" not in steps


def test_a_holder_that_restarts_has_lost_the_handle_and_its_generation_tells() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    late = pair.turn("2", at_ms=30_000, prompt=1250, given=pair.handle("1", 1199))
    late = [e for e in late if e.emitter.id not in (pair.d.emitter.id, pair.dw.emitter.id)]
    failed = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    events = [*pair.start(), *pair.turn("1", prompt=1000), again.started(20_000), *late, pair.pw.say(failed, 30_050)]
    run = Run().feed(events).wait(100)
    assert run.holds()["d1"].steps[-1] == "lost sidecar"
    assert run.turns()["p2"].reason == "holder_lost"


def test_a_holder_that_restarts_after_the_turn_is_no_excuse_for_it() -> None:
    pair = Pair()
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    failed = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    second = pair.turn("2", at_ms=5000, prompt=1250, given=pair.handle("1", 1199))
    events = [*pair.start(), *pair.turn("1", prompt=1000), *second, pair.pw.say(failed, 5050), again.started(7000)]
    assert Run().feed(events).wait(100).turns()["p2"].reason == "transfer_failed"


def test_a_second_use_after_the_hold_was_counted_is_added_to_its_story() -> None:
    pair = Pair()
    run = Run().feed(fetched_turn(pair)).wait(20)
    third = pair.turn("3", at_ms=60_000, prompt=1300, fetched=1199, given=pair.handle("1", 1199))
    run.feed([*third, *pair.late_notice("d1", 60_100)]).wait(20)
    hold = run.holds()["d1"]
    assert "read_late decode" in hold.steps
    assert hold.revision > 1
    assert run.count("holds_total", "decode-0", "hold") == 1


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_order_of_the_news_and_what_comes_twice_make_no_difference(data: st.DataObject) -> None:
    shuffled = data.draw(disorder(Stream(fetched_turn(Pair()))))
    assert Run().feed(shuffled, at_ms=6000).wait(100).holds()["d1"].steps == READ


def test_a_lease_has_no_handle_of_d_and_no_story() -> None:
    holds = Run().feed(fetched_turn(Pair())).wait().holds()
    assert [holds[name].steps for name in ("p1", "p2")] == [[], []]


def test_handles_are_forgotten_with_their_turns() -> None:
    pair = Pair(proxy=False)
    events = [*fetched_turn(pair), *pair.expired("d2", 480_900)]
    run = Run().feed([*events, *pair.beats(9 * 3600 * 1000, 100_000)]).wait(1)
    assert run.assembler._state.handles == {}
