"""How a turn ended, by the proxy's word and by the engines'."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.builders import MS, Pair, read, request
from turnscope.model import Attempt, Request
from turnscope.semconv import Direction, Leg, TransferState


@pytest.mark.parametrize(
    ("attempt", "status", "stage"),
    [
        ({"status_code": 399}, "ok", None),
        ({"status_code": 400}, "error", "decode"),
        ({"status_code": None}, "ok", None),
        ({"finish_reason": "error"}, "error", "decode"),
        ({"outcome": "error"}, "error", "decode"),
        ({"outcome": "error", "decode_start_ns": None}, "error", "prefill"),
        ({"outcome": "error", "decode_start_ns": None, "prefill_start_ns": None}, "error", "proxy"),
        ({"outcome": "cancelled", "error_stage": "prefill"}, "cancelled", "prefill"),
    ],
)
def test_an_answer_is_good_by_its_status_and_its_finish_reason_and_fails_where_it_had_come_to(
    attempt: dict[str, Any], status: str, stage: str | None
) -> None:
    pair = Pair()
    turn = Run().feed([*pair.start(), *pair.turn("1", attempt=attempt)]).wait().turns()["p1"]
    assert (turn.status, turn.stage) == (status, stage)


def test_a_failed_handover_to_an_earlier_request_is_not_where_a_later_one_failed() -> None:
    for local, stage in (("dA", "decode"), ("d1", "handoff")):
        pair = Pair()
        failed = {"outcome": "error", "error_stage": "decode"}
        body = read(Direction.HANDOFF, local=local, remote=("p", "p1"), state=TransferState.FAILED)
        events = [*pair.start(), *pair.turn("1", decode_finish="error", attempt=failed), pair.dw.say(body, 440)]
        assert Run().feed(events).wait().turns()["p1"].stage == stage


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stopped_by_string"), ("tool_calls", "stopped_by_string"), ("length", "no_handle_from_decode")],
)
def test_what_d_calls_aborted_is_a_stop_string_if_the_proxy_saw_the_answer_end_by_itself(
    finish: str, reason: str
) -> None:
    pair = Pair()
    first = pair.turn("1", decode_finish="abort", attempt={"finish_reason": finish})
    turns = Run().feed([*pair.start(), *first, *pair.turn("2", at_ms=5000, prompt=1250)]).wait().turns()
    assert (turns["p1"].status, turns["p2"].reason) == ("ok", reason)


@pytest.mark.parametrize(
    ("decode", "reads", "attempt", "status", "stage"),
    [
        ({"finish_reason": "abort"}, None, {"outcome": "cancelled"}, "cancelled", "decode"),
        ({"finish_reason": "error"}, TransferState.FAILED, {"outcome": "error"}, "error", "handoff"),
        ({"finish_reason": "error"}, TransferState.HANDSHAKE_FAILED, {"outcome": "ok"}, "error", "handoff"),
        ({"finish_reason": "error"}, None, {"outcome": "ok"}, "error", "decode"),
        ({"finish_reason": "stop"}, None, {"outcome": "error", "error_stage": "decode"}, "error", "decode"),
    ],
)
def test_what_failed_or_was_broken_off_at_d_has_its_stage_with_and_without_a_proxy(
    decode: dict[str, Any], reads: TransferState | None, attempt: dict[str, Any], status: str, stage: str
) -> None:
    for proxy in (True, False):
        pair = Pair(proxy=proxy)
        events = [*pair.start(), *pair.turn("1", attempt=attempt)]
        events = [
            msgspec.structs.replace(e, body=msgspec.structs.replace(e.body, **decode))
            if isinstance(e.body, Request) and e.body.leg is Leg.DECODE
            else e
            for e in events
        ]
        if reads is not None:
            body = read(Direction.HANDOFF, local="d1", remote=("p", "p1"), state=reads)
            events = [e for e in events if e.emitter != pair.dw.emitter] + [pair.dw.started(), pair.dw.say(body, 450)]
        turn = Run().feed(events).wait(100).turns()["p1"]
        if proxy or decode["finish_reason"] != "stop":
            assert (turn.status, turn.stage) == (status, stage)
        times = [
            turn.prefill_ns,
            turn.prefill_queue_ns,
            turn.decode_ns,
            turn.handoff_ns,
            turn.ttft_ns,
            turn.duration_ns,
        ]
        assert all(at is None or at > 0 for at in times)


def test_times_that_a_turn_did_not_live_to_have_are_absent_and_none_is_negative() -> None:
    pair = Pair()
    assert pair.proxy is not None
    refused = Attempt(proxy_turn_id="t1", prefill_status=400, status_code=400, outcome="error", error_stage="prefill")
    backwards = request("p9", added_mono_ns=900 * MS, scheduled_mono_ns=800 * MS)
    run = Run().feed([*pair.start(), pair.proxy.say(refused, 10), pair.p.say(backwards, 400)]).wait(100)
    rows = run.turns()
    (rejected,) = [row for row in rows.values() if row.reason == "rejected_by_frontend"]
    assert (rejected.stage, rejected.ttft_ns, rejected.duration_ns, rejected.prefill_ns) == (
        "prefill",
        None,
        None,
        None,
    )
    assert (rows["p9"].prefill_ns, rows["p9"].prefill_queue_ns) == (None, None)
    assert run.count("prefill_seconds") == 0
