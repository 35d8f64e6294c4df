"""How a turn ended, by the proxy's word and by the engines'."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assembly.run import Run
from tests.builders import Pair, read
from turnscope.semconv import Direction, TransferState


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
