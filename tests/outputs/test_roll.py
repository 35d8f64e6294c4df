"""Which processes' rows are written when."""

from __future__ import annotations

from turnscope.model import AssemblyStatus, Emitter, EmitterStatus
from turnscope.outputs.roll import CHANGED_NS, HEARD_NS, Roll

S = 1_000_000_000
BEGAN = 1_000 * S


def heard(received: int, *, after_s: float, missing: int = 0, silent_s: float = 0.0) -> AssemblyStatus:
    """One process, ``after_s`` after its first event."""
    emitter = EmitterStatus(
        emitter=Emitter(id="a", kind="engine"),
        engine=None,
        state="started",
        message=None,
        heard_s=after_s,
        silent_s=silent_s,
        received=received,
        missing=missing,
    )
    return AssemblyStatus(emitters=[emitter])


def told(roll: Roll, received: int, after_s: float, *, missing: int = 0, last: bool = False) -> list[int]:
    """What the row says that is written then, if one is."""
    status = heard(received, after_s=after_s, missing=missing)
    return [process.received for process in roll.due(status, BEGAN + round(after_s * S), last=last)]


def test_a_recording_that_comes_within_seconds_is_told_in_full_seconds_later() -> None:
    roll = Roll()
    assert told(roll, 174, 1) == [174]
    assert [told(roll, 190, after) for after in (2, 5.9, 6, 7, 300, 900)] == [[], [], [190], [], [], []]


def test_a_process_that_goes_on_talking_is_told_ever_less_often() -> None:
    roll = Roll()
    times = [second for second in range(1_500) if told(roll, second + 1, second)]
    assert times == [0, 5, 10, 20, 40, 80, 160, 320, 620, 920, 1_220]
    assert HEARD_NS == 300 * S


def test_of_one_that_loses_events_a_minute_never_goes_by_without_a_row() -> None:
    roll = Roll()
    times = [second for second in range(400) if told(roll, second + 1, second, missing=second)]
    assert max(b - a for a, b in zip(times, times[1:], strict=False)) * S == CHANGED_NS


def test_at_the_end_whatever_is_new_is_told() -> None:
    roll = Roll()
    told(roll, 10, 0)
    assert told(roll, 11, 1) == []
    assert told(roll, 11, 1, last=True) == [11]
    assert told(roll, 11, 2, last=True) == []
