"""Wrong KV that several requests of one turn left in D's cache, or found there."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.poison import EDITED, SYSTEM, flat, other, poisoned
from tests.assembly.run import Run
from tests.assembly.talk import Talk
from tests.builders import MS, P, Pair, read, request
from turnscope.model import Event
from turnscope.semconv import Direction, Leg, TransferState


def at_d(pair: Pair, n: str, at_ms: int, *, prompt: int, local: int, lasts_ms: int = 100) -> Event:
    """Another request to D for turn ``n``, as further samples of one prompt are, with a local hit there."""
    leg = request(
        f"x{n}-{at_ms}",
        leg=Leg.DECODE,
        prompt=prompt,
        handle_in=pair.p_handle(n, prompt),
        local_hit_tokens=local,
        external_tokens=prompt - local - 1,
        added_mono_ns=at_ms * MS,
        scheduled_mono_ns=at_ms * MS,
    )
    return pair.d.say(leg, at_ms + lasts_ms)


def test_a_turn_is_not_suspected_for_what_another_sample_of_it_filed_once_that_is_refuted() -> None:
    pair = Pair(msgspec.structs.replace(P, load_failure_policy="recompute"))
    sample = at_d(pair, "2", 6000, prompt=len(EDITED), local=1200)
    run = Run().feed([*flat(poisoned(pair)), sample]).wait()
    assert run.turns()["p2"].suspicions == ["kv_mismatch"]
    failed = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=TransferState.FAILED)
    run.feed([pair.pw.say(failed, 40_000)]).wait()
    assert run.turns()["p2"].suspicions == []


@pytest.mark.parametrize("late", [False, True], ids=["known_before", "known_after"])
def test_what_several_samples_filed_is_wrong_in_d_s_cache_from_the_first_of_them_on(late: bool) -> None:
    for at_ms, suspicions in ((5400, []), (5600, ["kv_mismatch"])):
        pair = Pair()
        events, told = poisoned(pair)
        # D ran the one that ended last first of all; of the turn's own leg it says no more than that it ended at 5.9 s.
        samples = [at_d(pair, "2", 7000, prompt=len(EDITED), local=0)]
        samples.append(at_d(pair, "2", 5500, prompt=len(EDITED), local=0, lasts_ms=3000))
        third = other(pair, "3", at_ms=9000, local=0)
        third += [at_d(pair, "3", at_ms, prompt=1300, local=1200), at_d(pair, "3", 9500, prompt=1300, local=16)]
        run = Run().feed([*events, *samples, *third, *([] if late else told)]).wait()
        if late:
            run.feed(told, at_ms=40_000).wait()
        assert run.turns()["p3"].suspicions == suspicions


def test_two_turns_whose_samples_found_each_other_s_wrong_kv_are_each_suspected_once() -> None:
    pair = Pair()
    events = pair.start()
    for name, at_ms in (("s", 5000), ("t", 5050)):
        talk = Talk(pair, name)
        events += flat(talk.turn(f"{name}1", [*SYSTEM[:-1], ord(name)], 600, first=True))
        events += flat(talk.turn(f"{name}2", EDITED, at_ms=at_ms, given=pair.handle(f"{name}1", 1599)))
        events += [at_d(pair, f"{name}2", at_ms + more, prompt=len(EDITED), local=1200) for more in (1000, 2000)]
    run = Run().feed(events).wait()
    assert [run.turns()[p].suspicions for p in ("ps2", "pt2")] == 2 * [["kv_mismatch"]]
    assert run.count("suspicions_total", "prefill-0", "kv_mismatch") == 2
