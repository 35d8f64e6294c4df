"""The two logs and the statistics of a benchmark's run, each alone."""

from __future__ import annotations

import json

import pytest

from tests.decode.imports.sample import MS, NINE_NS, Request, lines, transfer_line
from turnscope.decode.imports import proxy_log, transfer_log, vllm_benchmark
from turnscope.decode.imports.proxy_log import Prefill
from turnscope.decode.imports.report import Report
from turnscope.decode.imports.transfer_log import Interval
from turnscope.model import Turn

ONE = Request("CONV_ID_0", 2, tokens=4_000, ttft_ms=120.5, prefill_ms=100, at_s=1.0)


def turns(*samples: object) -> tuple[list[Turn], Report]:
    report = Report()
    return list(vllm_benchmark.read([json.dumps(samples, indent=2).encode()], report, "on")), report


def prefills(*texts: str) -> tuple[list[Prefill], Report]:
    report = Report()
    return list(proxy_log.read(lines(texts), report)), report


def test_a_sample_is_a_turn_of_its_conversation_in_its_run() -> None:
    (turn,), _ = turns(ONE.statistics())
    assert (turn.source, turn.run, turn.session_id, turn.turn_index) == ("vllm-benchmark", "on", "on:CONV_ID_0", 2)
    assert (turn.ttft_ns, turn.duration_ns, turn.prompt_tokens) == (120_500_000, 220_500_000, 4_000)
    assert (turn.path, turn.prefill_ns, turn.local_hit_tokens) == ("unknown", None, None)


def test_its_clock_tells_no_date_so_it_stands_in_1970() -> None:
    (turn,), _ = turns(ONE.statistics())
    assert turn.started_ns == 5_001 * 10**9


def test_two_runs_and_two_turns_never_share_a_key_and_the_same_always_does() -> None:
    other = Request("CONV_ID_0", 3, tokens=1, ttft_ms=1, prefill_ms=1, at_s=2.0)
    (a, b), _ = turns(ONE.statistics(), other.statistics())
    again = vllm_benchmark.turn(vllm_benchmark._sample(json.dumps(ONE.statistics()).encode()), "off")
    assert len({a.turn_id, b.turn_id, again.turn_id}) == 3
    assert turns(ONE.statistics())[0][0].turn_id == a.turn_id


@pytest.mark.parametrize(
    "change",
    [
        {"start_time_ms": -1},
        {"start_time_ms": 1e300},
        {"latency_ms": -1.0},
        {"input_num_turns": 0},
        {"ttft_ms": "fast"},
        {"conversation_id": None},
    ],
)
def test_a_broken_sample_is_counted_and_costs_only_itself(change: dict[str, object]) -> None:
    found, report = turns({**ONE.statistics(), **change}, ONE.statistics())
    assert len(found) == 1
    assert [one.number for one in report.named] == [1]


def test_the_proxys_lines_tell_conversation_handle_and_duration() -> None:
    asked = Request("a: b]c", 2, tokens=1, ttft_ms=1, prefill_ms=100, at_s=1.0, handle=True)
    (given, missed), report = prefills(*asked.proxy_lines(), *ONE.proxy_lines())
    assert (given.conversation, given.handle, given.took_ns) == ("a: b]c", True, 100 * MS)
    assert (missed.conversation, missed.handle, missed.logged_ns) == ("CONV_ID_0", False, NINE_NS + 10**9)
    assert (report.records, report.other, report.broken) == (5, 1, 0)


def test_a_log_without_times_is_read_too() -> None:
    (found,), _ = prefills("INFO [r] conv=c: cache HIT", "INFO [r] Prefill done in 12ms")
    assert found == Prefill("c", True, 12 * MS, None)


def test_a_prefill_that_nothing_begins_is_broken() -> None:
    found, report = prefills("2026-13-99 99:99:99 [r] Prefill done in 12ms", "[r] Prefill done in x ms")
    assert found == []
    assert (report.broken, report.other) == (1, 1)


def test_prefills_that_never_end_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_log, "MAX_OPEN", 10)
    begun = [f"[{n}] conv=c: cache MISS" for n in range(100)]
    found, report = prefills(*begun, "[99] Prefill done in 1ms", "[3] Prefill done in 1ms")
    assert (len(found), report.broken) == (1, 1)


def test_an_interval_is_read_from_the_line_that_vllm_writes() -> None:
    report = Report()
    given = lines(
        ["INFO start", transfer_line(8, 31.25, 2.5), transfer_line(0, 0), "KV Transfer metrics: Num successful"]
    )
    assert list(transfer_log.read(given, report)) == [Interval(8, 31_250_000, 2_621_440)]
    assert (report.records, report.other, report.broken) == (4, 1, 1)
