"""A period as a whole, worked out by hand from the summaries of its sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.rows import NOON, SECOND, Clock, writer
from turnscope.model import Ceiling, Figures, Period, SessionSummary
from turnscope.store import StoreReader
from turnscope.store.overview import STEPS

MINUTE = 60 * SECOND


def summary(session_id: str, minute: int, **changes: Any) -> SessionSummary:
    """One that ended ``minute`` minutes after noon and worked for its last ten seconds, a turn each."""
    ended = NOON + minute * MINUTE
    values: dict[str, Any] = {
        "session_id": session_id,
        "started_ns": ended - 10 * SECOND,
        "ended_ns": ended,
        "wall_ns": 10 * SECOND,
        "generation_ns": 10 * SECOND,
        "turns": 10,
        "ceiling": Ceiling(),
    }
    return SessionSummary(**{**values, **changes})


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[StoreReader]:
    out = writer(tmp_path, Clock())
    for one in (
        summary("early", 1, applications=["shop 1"], sources=["proxy"]),
        summary("asked", 30, wall_ns=20 * SECOND, user_wait_ns=10 * SECOND, applications=["shop 1", "desk"], errors=1),
        summary(
            "slow",
            50,
            wall_ns=40 * SECOND,
            generation_ns=30 * SECOND,
            tool_wait_ns=10 * SECOND,
            spans=3,
            tools=2,
            suspicious_turns=1,
            prompt_tokens=100,
            recomputed_tokens=30,
            ceiling=Ceiling(
                free_ns=9,
                fetched_ns=6,
                fetched_low_ns=4,
                fetched_high_ns=8,
                judged_turns=7,
                recomputed_tokens=20,
                transfer="assumed",
            ),
        ),
        summary("moved away", 50, turns=0),
    ):
        out.add_session(one)
    out.close()
    reader = StoreReader(str(tmp_path))
    yield reader
    reader.close()


def minutes(since: int, until: int, application: str | None = None) -> Period:
    return Period(since_ns=NOON + since * MINUTE, until_ns=NOON + until * MINUTE, application=application)


def test_a_period_adds_up_the_sessions_that_ended_in_it(reader: StoreReader) -> None:
    found = reader.figures(minutes(10, 60))
    assert (found.sessions, found.turns, found.wall_ns) == (2, 20, 60 * SECOND)
    assert (found.generation_ns, found.tool_wait_ns, found.user_wait_ns) == (40 * SECOND, 10 * SECOND, 10 * SECOND)
    assert (found.spanned_sessions, found.tooled_sessions, found.proxied_sessions) == (1, 1, 0)
    assert (found.suspicious_turns, found.suspicious_sessions, found.failing_sessions) == (1, 1, 1)
    assert (found.prompt_tokens, found.recomputed_tokens, found.reused_tokens) == (100, 30, None)
    assert (found.free_ns, found.fetched_ns, found.judged_turns, found.assumed) == (9, 6, 7, True)
    assert found.judged_tokens == 20
    assert found.working_median_ns == 10 * SECOND


def test_its_begin_is_of_it_and_its_end_is_not(reader: StoreReader) -> None:
    assert reader.figures(minutes(1, 30)).sessions == 1
    assert reader.figures(minutes(2, 31)).sessions == 1
    assert minutes(30, 40).before() == minutes(20, 30)


def test_a_period_without_sessions_has_nothing_and_no_zero_that_looks_measured(reader: StoreReader) -> None:
    found = reader.figures(minutes(100, 200))
    assert found == Figures()
    assert found.fetched_ns is None
    assert reader.course(minutes(100, 200)) == []
    assert reader.telling(minutes(100, 200)) == {}


def test_an_application_is_chosen_by_its_whole_name(reader: StoreReader) -> None:
    assert reader.figures(minutes(0, 60, "shop 1")).sessions == 2
    assert reader.figures(minutes(0, 60, "shop")).sessions == 0
    assert [(f.application, f.sessions) for f in reader.by_application(minutes(0, 60))] == [("shop 1", 2), ("desk", 1)]


def test_the_course_has_the_steps_in_which_sessions_ended(reader: StoreReader) -> None:
    found = reader.course(minutes(0, STEPS * 5))
    assert [(f.step, f.sessions) for f in found] == [(0, 1), (6, 1), (10, 1)]


def test_the_sessions_to_open_are_the_median_the_longest_and_the_one_in_doubt(reader: StoreReader) -> None:
    found = reader.telling(minutes(0, 60))
    assert {what: one.session_id for what, one in found.items()} == {
        "typical": "asked",
        "slow": "slow",
        "worst": "slow",
    }
    assert found["slow"].ceiling.fetched_ns == 6
    assert reader.telling(minutes(0, 10)).keys() == {"typical", "slow"}


def test_bounds_and_names_are_of_all_sessions_that_have_anything(reader: StoreReader) -> None:
    assert reader.bounds() == (3, NOON + MINUTE, NOON + 50 * MINUTE)
    assert reader.names() == {"applications": ["shop 1", "desk"]}


def test_summaries_that_are_newer_than_the_stores_count_and_replace_theirs(reader: StoreReader) -> None:
    fresh = [summary("new", 40), summary("early", 1, revision=2, turns=11)]
    assert reader.bounds(fresh)[0] == 4
    assert reader.figures(minutes(0, 60), fresh).turns == 41


def test_absurd_times_are_no_error(tmp_path: Path) -> None:
    out = writer(tmp_path)
    for number in range(3):
        out.add_session(summary(f"absurd {number}", 1, started_ns=-(2**63), ended_ns=2**63 - 2, wall_ns=2**63 - 1))
    out.close()
    reader = StoreReader(str(tmp_path))
    everything = Period(since_ns=-(2**63), until_ns=2**63 - 1)
    assert reader.figures(everything).wall_ns == 2**63 - 1
    assert [f.sessions for f in reader.course(everything)] == [3]
    reader.close()
