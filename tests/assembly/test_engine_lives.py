"""Engines come and go, and ids are made up: what is remembered of them stays bounded."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import SECOND, D, P, Pair, Process, read
from turnscope.assembly import AssemblySettings
from turnscope.model import Event, Hold
from turnscope.semconv import Direction, HoldKind, TransferState


def starts(n: int, at_ms: int) -> Event:
    """An engine of its own, that is heard once."""
    return Process(f"{n:016x}", "engine", msgspec.structs.replace(D, id=f"made-up-{n}", generation="g")).started(at_ms)


def beats(pair: Pair, begin_ms: int, end_ms: int) -> list[Event]:
    return [process.beat(at) for at in range(begin_ms, end_ms, 60_000) for process in pair.processes]


def known(run: Run) -> set[str]:
    return {engine.engine.id for engine in run.assembler.status(run.now_ns).engines}


def test_an_engine_that_is_gone_is_forgotten_once_its_turns_are() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1"), starts(1000, 1000)])
    run.feed(beats(pair, 60_000, 3_540_000)).wait(1)
    assert known(run) == {"p", "d", "made-up-1000"}
    run.feed(beats(pair, 3_600_000, 3_800_000)).wait(1)
    assert known(run) == {"p", "d"}


def test_one_that_comes_back_afterwards_has_the_name_it_had() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")])
    run.wait(4000)
    assert known(run) == set()
    again = [process.beat(4_010_000) for process in (pair.d, pair.p)]
    run.feed(again)
    assert {e.engine.id: e.name for e in run.assembler.status(run.now_ns).engines} == {
        "p": "prefill-0",
        "d": "decode-0",
    }


@pytest.mark.parametrize("given", ["my-prefill", None])
@pytest.mark.parametrize("worker_first", [True, False])
def test_one_that_takes_another_s_place_has_its_name_whoever_speaks_first(
    given: str | None, worker_first: bool
) -> None:
    """An engine's workers start before its scheduler, and do not know where it listens."""
    old, new = (msgspec.structs.replace(P, id=n, generation=n, name=given) for n in ("p-old", "p-new"))
    place = 5600
    first = Process("00000000000000a1", "engine", msgspec.structs.replace(old, side_channel_port=place))
    worker = Process("00000000000000b1", "worker", msgspec.structs.replace(new, rank=0))
    scheduler = Process("00000000000000b2", "engine", msgspec.structs.replace(new, side_channel_port=place))
    newcomers = [worker, scheduler] if worker_first else [scheduler, worker]
    run = Run().feed([first.started(0), *(process.started(20_000) for process in newcomers)])
    engines = {engine.engine.id: engine.name for engine in run.assembler.status(run.now_ns).engines}
    assert engines["p-new"] == (given or "prefill-0")
    run.feed([Process("00000000000000c1", "engine", msgspec.structs.replace(P, id="p-third")).started(30_000)])
    engines = {engine.engine.id: engine.name for engine in run.assembler.status(run.now_ns).engines}
    assert engines["p-third"] == ("prefill-0" if given else "prefill-1"), "no name was used up"


def test_two_that_are_named_alike_at_different_places_stay_apart() -> None:
    both = [msgspec.structs.replace(P, id=f"p-{n}", name="my-prefill", side_channel_port=5600 + n) for n in range(2)]
    run = Run().feed([Process(f"{n:016x}", "engine", engine).started(n) for n, engine in enumerate(both, 1)])
    assert {e.engine.id: e.name for e in run.assembler.status(run.now_ns).engines} == {
        "p-0": "my-prefill",
        "p-1": "prefill-other",
    }


def test_a_flood_of_made_up_ids_takes_no_engine_s_place_that_lives() -> None:
    pair = Pair()
    settings = AssemblySettings(max_engines=10)
    run = Run(settings).feed([*pair.start(), *pair.turn("1")])
    run.feed([starts(n, 1000) for n in range(1000, 1100)])
    assert len(known(run)) == 10
    assert {"p", "d"} <= known(run)
    run.feed(beats(pair, 60_000, 180_000)).wait(10)
    run.feed([starts(2000, 150_000)])
    assert len(known(run)) == 10
    assert "made-up-2000" in known(run), "the one that has been gone longest made room"


def test_what_a_start_held_before_there_was_room_for_its_engine_is_not_lost_by_its_own_beginning() -> None:
    pair = Pair()
    other = Process("00000000000000e1", "engine", msgspec.structs.replace(D, id="other", generation="o-1"))
    stop = msgspec.structs.replace(other.started().body, state="stopping")
    fresh = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    early = fresh.say(Hold(request_id="n", kind=HoldKind.HOLD, phase="held", tokens=10, ttl_ns=480 * SECOND), 3000)
    run = Run(AssemblySettings(max_engines=1)).feed([other.started(1000), early, other.say(stop, 4000)])
    run.feed([pair.held("d1", 1199, 2000)], at_ms=4500).feed([fresh.beat(5000)]).wait()
    assert {name: hold.outcome for name, hold in run.holds().items()} == {"d1": "holder_lost"}


def test_failed_reads_from_holders_that_nobody_knows_are_not_remembered_for_ever() -> None:
    pair = Pair()
    run = Run().feed(pair.start())
    for n in range(50):
        remote, state = (f"nobody-{n}", "x"), TransferState.FAILED
        run.feed([pair.pw.say(read(Direction.REVERSE_FETCH, local=f"p{n}", remote=remote, state=state), 100 + n)])
    run.feed(beats(pair, 60_000, 120_000)).wait(1)
    assert run.assembler._state.engines["p"].failing == {}
