"""Rows of processes: at once what is new, now and then what was only heard again."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from turnscope.measures.heard import processes
from turnscope.model import AssemblyStatus, ClockStatus, Emitter, EmitterStatus, Engine, EngineStatus, Skew
from turnscope.outputs.roll import CHANGED_NS, HEARD_NS, Roll

NOW = 1_796_040_000_000_000_000
SECOND = 1_000_000_000


def _status(**changes: Any) -> AssemblyStatus:
    """One prefill engine, first heard 10 s ago and last 1 s ago."""
    values: dict[str, Any] = {"heard_s": 10.0, "silent_s": 1.0, "engine": "prefill-0", "received": 1}
    emitter = Emitter(id="e1", kind="engine", host="gpu-1", version="0.1.0")
    engine = Engine(id="p", generation="g", role="prefill", model="m", vllm_version="0.32.0", connector="NixlConnector")
    return AssemblyStatus(
        emitters=[EmitterStatus(emitter=emitter, **{**values, **changes})],
        engines=[EngineStatus(name="prefill-0", engine=engine)],
    )


def test_a_row_says_who_the_process_is_and_when_it_was_heard() -> None:
    (row,) = processes(_status(missing=3, dropped=2, errors=1, clock_offset_s=0.25), NOW)
    assert (row.process_id, row.kind, row.engine, row.role, row.model) == ("e1", "engine", "prefill-0", "prefill", "m")
    assert (row.version, row.vllm_version, row.connector, row.host) == ("0.1.0", "0.32.0", "NixlConnector", "gpu-1")
    assert (row.started_ns, row.ended_ns, row.revision) == (NOW - 10 * SECOND, NOW - SECOND, NOW)
    assert (row.received, row.missing, row.dropped, row.errors) == (1, 3, 2, 1)
    assert row.clock_offset_ns == SECOND // 4


def test_clocks_are_told_from_the_side_of_the_process() -> None:
    status = _status()
    status.clocks = [
        ClockStatus(host="gpu-1", other="gpu-2", skew_s=0.5, error_s=0.1, seen=4),
        ClockStatus(host="edge", other="gpu-1", skew_s=2.0, error_s=0.2, seen=4),
        ClockStatus(host="edge", other="gpu-2", skew_s=9.0, error_s=0.2, seen=4),
    ]
    (row,) = processes(status, NOW)
    assert row.skews == [
        Skew(host="edge", skew_ns=-2 * SECOND, error_ns=SECOND // 5),
        Skew(host="gpu-2", skew_ns=SECOND // 2, error_ns=SECOND // 10),
    ]


def test_a_new_process_is_told_at_once_and_a_silent_one_never_again() -> None:
    roll = Roll()
    assert [row.process_id for row in roll.due(_status(), NOW)] == ["e1"]
    assert roll.due(_status(silent_s=900.0), NOW + 10 * HEARD_NS) == []
    assert roll.due(_status(silent_s=900.0), NOW + 20 * HEARD_NS, last=True) == []


@pytest.mark.parametrize(
    ("changes", "wait_ns"),
    [
        ({"received": 2}, HEARD_NS),
        ({"received": 2, "dropped": 1}, CHANGED_NS),
        ({"received": 2, "missing": 1}, CHANGED_NS),
        ({"received": 2, "state": "stopping"}, 0),
    ],
)
def test_a_row_is_due_the_sooner_the_more_it_says(changes: dict[str, Any], wait_ns: int) -> None:
    roll = Roll()
    roll.due(_status(heard_s=900.0), NOW)
    if wait_ns:
        assert roll.due(_status(**changes), NOW + wait_ns - 1) == []
    (row,) = roll.due(_status(heard_s=900.5, **changes), NOW + wait_ns)
    assert row.started_ns == NOW - 900 * SECOND, "the begin of a process does not move"


def _told(roll: Roll, second: float, received: int, **changes: Any) -> list[int]:
    """What the row says that is written ``second`` seconds after the process was first heard, if one is."""
    status = _status(heard_s=second, received=received, **changes)
    return [row.received for row in roll.due(status, NOW + round(second * SECOND))]


def test_a_recording_that_comes_within_seconds_is_told_in_full_seconds_later() -> None:
    roll = Roll()
    assert _told(roll, 1, 174) == [174]
    assert [_told(roll, second, 190) for second in (2, 5.9, 6, 7, 300, 900)] == [[], [], [190], [], [], []]


def test_a_process_that_goes_on_talking_is_told_ever_less_often() -> None:
    roll = Roll()
    seconds = [second for second in range(1_500) if _told(roll, second, second + 1)]
    assert seconds == [0, 5, 10, 20, 40, 80, 160, 320, 620, 920, 1_220]


def test_of_one_that_loses_events_no_minute_goes_by_without_a_row() -> None:
    roll = Roll()
    seconds = [second for second in range(400) if _told(roll, second, second + 1, missing=second)]
    assert max(b - a for a, b in itertools.pairwise(seconds)) * SECOND == CHANGED_NS


def test_what_was_heard_last_is_told_at_the_end() -> None:
    roll = Roll()
    roll.due(_status(), NOW)
    assert [row.received for row in roll.due(_status(received=7), NOW + 1, last=True)] == [7]


def test_what_is_forgotten_by_the_status_is_told_anew_when_it_comes_back() -> None:
    roll = Roll()
    roll.due(_status(), NOW)
    assert roll.due(AssemblyStatus(), NOW + 1) == []
    assert len(roll.due(_status(), NOW + 2)) == 1
