"""What is kept of digests: as much as there is room for, and no longer than it can be asked for."""

from __future__ import annotations

from tests.assembly.run import Run
from tests.assembly.talk import Talk, text
from tests.builders import Pair
from turnscope.assembly import AssemblySettings
from turnscope.model import Event

ROOM = 10_000


def conversation(pair: Pair, turns: int, *, session: str = "s") -> list[Event]:
    """Faithful turns without a handle, each 100 tokens of a user's and 200 of an answer longer."""
    talk, prompt, events = Talk(pair, session), text(1000), list[Event]()
    for n in range(turns):
        name = f"{session}{n}"
        one, told = talk.turn(name, prompt, at_ms=5000 * n, first=n == 0)
        events += [*one, *told]
        prompt = [*prompt, *talk.answers[name], *text(100, salt=n)]
    return events


def test_beyond_their_room_the_oldest_go_and_what_they_would_have_told_is_unknown() -> None:
    pair = Pair()
    run = Run(AssemblySettings(digest_bytes=ROOM)).feed([*pair.start(), *conversation(pair, 4)])
    state = run.assembler._state
    assert len(state.digests) == 8
    run.feed(pair.digests("big", text(40_000), text(100), 60_000))
    assert 0 < state.digest_bytes <= ROOM
    assert state.digest_bytes == sum(len(t.digest.marks) + len(t.digest.chunks) + 500 for t in state.digests.values())
    run.feed(Talk(pair).turn("z", text(5000), at_ms=61_000)[0]).wait()
    assert run.turns()["pz"].continuity_evidence == "unknown"


def test_a_digest_sent_again_is_kept_once() -> None:
    pair = Pair()
    told = pair.digests("1", text(1000), text(100), 1000)
    run = Run().feed(pair.start()).feed(told).feed(told)
    size = run.assembler._state.digest_bytes
    run.feed(pair.digests("1", text(1000), text(100), 2000))
    assert (run.assembler._state.digest_bytes, len(run.assembler._state.digests)) == (size, 2)


def test_digests_and_those_who_wait_for_them_are_forgotten_with_their_sessions_and_turns() -> None:
    pair = Pair()
    events = [*conversation(pair, 2, session="known")]
    unheard, _ = Talk(pair, "unheard").turn("x", text(900), at_ms=20_000)
    run = Run().feed([*pair.start(), *events, *unheard]).wait()
    state = run.assembler._state
    assert state.digests
    assert state.awaited
    run.feed(pair.beats(5 * 3600 * 1000, 60_000)).wait()
    assert (state.digests, state.digest_bytes, state.awaited) == ({}, 0, {})


def test_a_digest_older_than_memory_is_a_late_fact_and_not_kept() -> None:
    pair = Pair()
    old = pair.digests("1", text(1000), text(100), 1000)
    run = Run().feed([*pair.start(), *pair.beats(2 * 3600 * 1000, 60_000)])
    run.feed(old, at_ms=2 * 3600 * 1000).wait()
    assert (run.assembler._state.digests, run.count("late_facts_total", "turn")) == ({}, 2)


def test_digests_are_in_a_snapshot_so_that_a_restart_goes_on_comparing() -> None:
    pair = Pair()
    events = sorted([*pair.start(), *conversation(pair, 3)], key=lambda e: e.mono_ns)
    whole = Run().feed(events).wait()
    for cut in range(0, len(events), 4):
        run = Run().feed(events[:cut]).wait(0)
        saved = run.assembler.snapshot()
        run.assembler = type(run.assembler)(run.settings)
        run.assembler.restore(saved)
        assert run.feed(events[cut:]).wait().turns() == whole.turns()
    assert {turn.continuity_evidence for turn in whole.turns().values()} == {"first_turn", "digests"}
