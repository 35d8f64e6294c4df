"""The three artefacts of a run are joined without a common id, or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.decode.imports.sample import MS, NINE_NS, Request, lines, published
from turnscope.decode.imports import proxy_log
from turnscope.decode.imports.published import join
from turnscope.decode.imports.report import Report
from turnscope.decode.imports.transfer_log import Interval
from turnscope.decode.imports.vllm_benchmark import samples
from turnscope.model import Turn


def joined(
    requests: Sequence[Request], intervals: Sequence[Interval], *, logged: Sequence[Request] | None = None
) -> tuple[list[Turn], Report]:
    """The turns of ``requests``, with the proxy's log of ``logged`` (else of the same)."""
    report = Report()
    asked = samples([json.dumps([one.statistics() for one in requests]).encode()], report)
    texts = [line for one in (requests if logged is None else logged) for line in one.proxy_lines()]
    found = join(asked, list(proxy_log.read(lines(texts), report)), intervals, "on", report)
    return list(found), report


def conversation(name: str, prefills: Sequence[int], *, first: int = 1, at_s: float = 0.0) -> list[Request]:
    """Turns ten seconds apart, all but the first of a conversation with a handle."""
    return [
        Request(name, turn, tokens=1000 * turn, ttft_ms=ms + 30, prefill_ms=ms, at_s=at_s + 10 * n, handle=turn > 1)
        for n, (turn, ms) in enumerate(enumerate(prefills, first))
    ]


def test_the_nth_prefill_of_a_conversation_is_its_nth_turns_however_conversations_mix() -> None:
    mixed = sorted([*conversation("a", [90, 50]), *conversation("b", [80, 40], at_s=5)], key=lambda one: one.at_s)
    turns, report = joined(mixed, [Interval(2, 7 * MS, 100)])
    assert [(t.session_id, t.turn_index, t.prefill_ns) for t in turns] == [
        ("on:a", 1, 90 * MS),
        ("on:b", 1, 80 * MS),
        ("on:a", 2, 50 * MS),
        ("on:b", 2, 40 * MS),
    ]
    assert {t.join for t in turns} == {"inferred"}
    assert report.notes == []


def test_reads_that_come_out_even_are_shared_out_in_order_with_their_intervals_average() -> None:
    turns, _ = joined(conversation("a", [90, 50, 60, 70]), [Interval(2, 10 * MS, 100), Interval(4, 40 * MS, 300)])
    assert [(t.fetch_ns, t.fetched_bytes, t.fetch_reads) for t in turns] == [
        (None, None, 0),
        (10 * MS, 200, 2),
        (40 * MS, 600, 2),
        (40 * MS, 600, 2),
    ]
    assert [t.path for t in turns] == ["unknown", *["reverse_fetch"] * 3]
    assert [t.reason for t in turns] == ["first_turn", *["unknown"] * 3]


def test_a_turn_over_the_edge_of_two_intervals_gets_the_mean_of_its_ranks() -> None:
    turns, _ = joined(conversation("a", [90, 50, 60]), [Interval(3, 10 * MS, 100), Interval(1, 40 * MS, 300)])
    assert [t.fetch_ns for t in turns] == [None, 10 * MS, 25 * MS]


def test_reads_that_do_not_come_out_even_stay_unknown_and_say_so() -> None:
    turns, report = joined(conversation("a", [90, 50, 60]), [Interval(3, 10 * MS, 100)])
    assert [(t.fetch_ns, t.fetch_reads) for t in turns] == [(None, 0), (None, None), (None, None)]
    assert [t.path for t in turns] == ["unknown"] * 3
    assert "3 reads for 2 prefills with a handle" in report.notes[0]


def test_a_log_with_the_warm_ups_first_turns_is_joined_by_the_number_of_the_turn() -> None:
    whole = conversation("a", [90, 50, 60])
    turns, report = joined(whole[1:], [Interval(2, MS, 1)], logged=whole)
    assert [t.prefill_ns for t in turns] == [50 * MS, 60 * MS]
    assert report.notes == []


def test_a_log_with_a_failed_request_is_joined_where_only_one_way_fits() -> None:
    whole = conversation("a", [90, 50, 60])
    failed = Request("a", 2, tokens=1, ttft_ms=0, prefill_ms=500, at_s=12)
    turns, _ = joined(whole, [], logged=[failed, *whole])
    assert [t.prefill_ns for t in turns] == [90 * MS, 50 * MS, 60 * MS]


def test_where_several_ways_fit_or_none_prefills_stay_unknown_and_it_says_so() -> None:
    whole = conversation("a", [50, 50, 50])
    turns, report = joined(whole, [], logged=[*whole, *whole])
    assert [t.prefill_ns for t in turns] == [None] * 3
    assert any("1 of 1 conversation could not be found in the proxy's log" in note for note in report.notes)
    slow = [Request("a", 1, tokens=1, ttft_ms=10, prefill_ms=500, at_s=0)]
    assert joined(slow, [])[0][0].prefill_ns is None


def test_the_logs_date_the_run_to_within_a_second() -> None:
    requests = published(on=True)
    turns, _ = joined(requests, [Interval(33, MS, 1)])
    for turn, request in zip(turns, requests, strict=True):
        late_s = (turn.started_ns - NINE_NS) / 1e9 - request.at_s
        assert 0 <= late_s <= 1.006


def test_a_run_that_nothing_dates_says_so() -> None:
    turns, report = joined(conversation("a", [90]), [], logged=[])
    assert turns[0].started_ns == 5_000 * 10**9
    assert any("1970" in note for note in report.notes)


def test_a_turn_from_all_three_replaces_the_same_from_the_statistics_alone() -> None:
    (turn,), _ = joined(conversation("a", [90]), [])
    assert (turn.source, turn.revision) == ("published-benchmark", 2)


def test_empty_artefacts_make_no_turn() -> None:
    turns, report = joined([], [])
    assert (turns, report.notes) == ([], [])
