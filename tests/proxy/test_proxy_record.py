"""Which attempts a turn has, worked out by hand on a clock that the test sets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnscope.model import Attempt
from turnscope.proxy.legs import AttemptRecord, LegRecord
from turnscope.proxy.messages import WAITING_LIMIT, Prompts
from turnscope.proxy.record import BODY_LIMIT, TurnRecord
from turnscope.proxy.requests import LegRequest, read_leg_request
from turnscope.proxy.sessions import ResponseChain

PREFILL = {"kv_transfer_params": {"do_remote_decode": True}}


class Turn:
    """A turn, its clock and what it sent."""

    def __init__(self, body: Any = None, *, path: str = "/v1/chat/completions", chain: ResponseChain | None = None):
        self.now = 1_000
        self.sent: list[Attempt] = []
        self.prompts = Prompts(lambda: None)
        self.record = TurnRecord(
            turn_id="t",
            path=path,
            headers={},
            wall_ns=5,
            clock=lambda: self.now,
            emit=lambda untold: self.sent.append(self.prompts.fill(untold, lambda: None)),
            chain=ResponseChain() if chain is None else chain,
            prompts=self.prompts,
        )
        self.record.body(json.dumps(body or {"messages": []}).encode())

    def leg(self, body: dict[str, Any]) -> tuple[AttemptRecord, LegRecord]:
        request = read_leg_request("/v1/chat/completions", json.dumps(body).encode())
        assert request is not None
        return self.record.begin_leg(request)

    def end(self, attempt: AttemptRecord, leg: LegRecord, status: int = 200, answer: Any = None, **how: bool) -> None:
        leg.responded(status, "application/json", "")
        leg.reader.feed(json.dumps(answer or {}).encode())
        leg.ended(**how)
        self.record.leg_ended(attempt)

    def prefill(self, name: str, status: int = 200) -> None:
        """A whole prefill leg, answered under ``name``."""
        self.end(*self.leg(PREFILL), status, prefilled(name))

    def decode(self, name: str | None) -> tuple[AttemptRecord, LegRecord]:
        params = {"do_remote_prefill": True, **prefilled(name)["kv_transfer_params"]} if name else None
        return self.leg({"kv_transfer_params": params} if params else {"messages": []})

    def finish(self, status: int = 200, error: BaseException | None = None) -> list[tuple[int, bool, str, str | None]]:
        self.record.response_started(status, "application/json", "")
        self.record.finish(error)
        return [(a.number, a.final, a.outcome, a.error_stage) for a in self.sent]


def prefilled(name: str) -> dict[str, Any]:
    return {"kv_transfer_params": {"remote_engine_id": "p", "remote_request_id": name}}


def test_times_are_offsets_from_the_clients_request() -> None:
    turn = Turn()
    begun_at = turn.now
    turn.now += 10
    begun = turn.leg(PREFILL)
    turn.now += 10
    turn.end(*begun, answer=prefilled("a"))
    turn.now += 10
    decode = turn.decode("a")
    turn.record.response_started(200, "text/event-stream", "")
    turn.now += 10
    turn.record.response_chunk(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n')
    turn.now += 10
    turn.record.response_chunk(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
    turn.now += 10
    turn.record.response_chunk(b"data: [DONE]\n\n")
    turn.record.response_chunk(b"")
    turn.end(*decode)
    turn.now += 10
    turn.record.finish()
    (attempt,) = turn.sent
    assert (attempt.prefill_start_ns, attempt.prefill_end_ns, attempt.decode_start_ns) == (10, 20, 30)
    assert (attempt.first_byte_ns, attempt.last_byte_ns, attempt.started_wall_ns) == (50, 60, 5)
    assert attempt.started_mono_ns == begun_at


def test_a_prefill_that_was_given_up_is_sent_when_the_next_begins() -> None:
    turn = Turn()
    turn.prefill("a", 503)
    assert turn.sent == []
    second = turn.leg(PREFILL)
    assert [(a.number, a.final, a.error_stage) for a in turn.sent] == [(1, False, "prefill")]
    turn.end(*second, answer=prefilled("b"))
    turn.end(*turn.decode("b"))
    assert turn.finish() == [(1, False, "error", "prefill"), (2, True, "ok", None)]


def test_a_decode_that_failed_and_a_new_prefill_are_two_attempts() -> None:
    turn = Turn()
    turn.prefill("a")
    turn.end(*turn.decode("a"), 503)
    turn.prefill("b")
    turn.end(*turn.decode("b"))
    assert turn.finish() == [(1, False, "error", "decode"), (2, True, "ok", None)]
    assert [a.decode_status for a in turn.sent] == [503, 200]


def test_a_decode_tried_again_alone_stays_in_its_attempt() -> None:
    turn = Turn()
    turn.prefill("a")
    turn.end(*turn.decode("a"), 503)
    turn.end(*turn.decode("a"))
    assert turn.finish() == [(1, True, "ok", None)]
    assert turn.sent[0].decode_status == 200


def test_of_two_prefills_side_by_side_the_one_that_is_decoded_is_final() -> None:
    turn = Turn()
    first, second = turn.leg(PREFILL), turn.leg(PREFILL)
    assert turn.sent == []
    turn.end(*first, answer=prefilled("a"))
    assert turn.sent == []
    decode = turn.decode("a")
    turn.end(*second, cancelled=True)
    turn.end(*decode)
    assert turn.finish() == [(2, False, "cancelled", "prefill"), (1, True, "ok", None)]
    final = turn.sent[1]
    assert final.prefill is not None
    assert final.prefill.request_id == "a"
    assert final.decode_status == 200


def test_a_prefill_that_loses_the_race_is_sent_when_it_fails() -> None:
    turn = Turn()
    first, second = turn.leg(PREFILL), turn.leg(PREFILL)
    turn.end(*first, failed=True)
    assert [(a.number, a.final, a.outcome) for a in turn.sent] == [(1, False, "error")]
    turn.end(*second, answer=prefilled("b"))
    turn.end(*turn.decode("b"))
    assert turn.finish()[-1] == (2, True, "ok", None)


def test_a_prefill_abandoned_without_a_failure_is_cancelled_by_the_proxy() -> None:
    turn = Turn()
    turn.prefill("a")
    turn.prefill("b")
    turn.end(*turn.decode("b"))
    assert turn.finish() == [(1, False, "cancelled", "proxy"), (2, True, "ok", None)]


def test_retries_on_an_aggregated_engine_are_attempts_too() -> None:
    turn = Turn()
    turn.end(*turn.decode(None), 503)
    turn.end(*turn.decode(None))
    assert turn.finish() == [(1, False, "error", "decode"), (2, True, "ok", None)]
    assert turn.sent[1].prefill_start_ns is None


def test_a_fallback_to_the_decode_engine_alone_hides_no_prefill_status() -> None:
    turn = Turn()
    turn.prefill("a", 500)
    turn.end(*turn.decode(None))
    assert turn.finish() == [(1, True, "ok", None)]
    assert (turn.sent[0].prefill_status, turn.sent[0].decode_status) == (500, 200)


def test_a_request_that_reached_no_engine_is_one_attempt_if_it_asked_for_an_answer() -> None:
    assert Turn().finish(422) == [(1, True, "error", "proxy")]
    assert Turn(path="/v1/embeddings").finish(200) == []


def test_an_application_that_raises_gives_500_and_one_that_is_cancelled_nothing() -> None:
    broken, stopped = Turn(), Turn()
    broken.record.finish(RuntimeError())
    stopped.leg(PREFILL)
    stopped.record.finish(KeyboardInterrupt())
    assert [(a.status_code, a.outcome) for a in broken.sent] == [(500, "error")]
    assert [(a.status_code, a.outcome, a.error_stage) for a in stopped.sent] == [(None, "cancelled", "prefill")]


def test_the_stage_of_a_cancellation_is_where_the_turn_was_when_the_client_left() -> None:
    turn = Turn()
    turn.prefill("a")
    decode = turn.decode("a")
    turn.record.client_left()
    turn.end(*decode, cancelled=True)
    assert turn.finish() == [(1, True, "cancelled", "decode")]


def test_leaving_after_the_end_changes_nothing() -> None:
    turn = Turn()
    turn.prefill("a")
    turn.end(*turn.decode("a"))
    turn.finish()
    turn.record.client_left()
    turn.record.finish()
    assert [(a.outcome, a.final) for a in turn.sent] == [("ok", True)]


def test_closing_an_answer_after_its_finish_reason_is_no_failure() -> None:
    turn = Turn()
    turn.prefill("a")
    answer = {"choices": [{"index": 0, "finish_reason": "stop"}]}
    turn.end(*turn.decode("a"), answer=answer, cancelled=True)
    assert turn.finish() == [(1, True, "ok", None)]


def test_an_answer_the_proxy_closed_before_its_end_is_a_cancelled_decode() -> None:
    turn = Turn()
    turn.prefill("a")
    turn.end(*turn.decode("a"), cancelled=True)
    assert turn.finish() == [(1, True, "cancelled", "decode")]


def test_a_leg_the_proxy_gave_up_and_an_error_for_the_client_is_an_error_of_that_leg() -> None:
    turn = Turn()
    turn.end(*turn.leg(PREFILL), cancelled=True)
    assert turn.finish(504) == [(1, True, "error", "prefill")]


def test_a_chain_of_responses_is_one_session_from_its_first_answer_on() -> None:
    chain = ResponseChain()
    sessions = []
    for number in range(1, 4):
        body = {"input": "x", **({"previous_response_id": f"resp_{number - 1}"} if number > 1 else {})}
        turn = Turn(body, path="/v1/responses", chain=chain)
        turn.end(*turn.decode(None), answer={"id": f"resp_{number}", "object": "response"})
        turn.finish()
        sessions.append((turn.sent[0].session_id, turn.sent[0].session_source))
    assert sessions == [
        ("resp_1", "response.id"),
        ("resp_1", "body.previous_response_id"),
        ("resp_1", "body.previous_response_id"),
    ]


def test_an_answer_that_is_not_stored_begins_no_session() -> None:
    turn = Turn({"input": "x", "store": False}, path="/v1/responses")
    turn.end(*turn.decode(None), answer={"id": "resp_1", "object": "response"})
    turn.finish()
    assert turn.sent[0].session_id is None


def test_a_body_past_the_limit_is_not_kept() -> None:
    turn = Turn()
    for _ in range(3):
        turn.record.body(b" " * (BODY_LIMIT // 2))
    assert turn.record._body == []
    turn.finish()
    assert turn.sent[0].message_roles == []


def test_the_clients_body_is_let_go_once_it_has_been_told() -> None:
    turn = Turn({"messages": [{"role": "user", "content": "x" * 1000}]})
    attempt, leg = turn.leg(PREFILL)
    assert turn.record._body == []
    assert turn.prompts.room < WAITING_LIMIT - 1000
    turn.end(attempt, leg, 500)
    turn.finish(500)
    assert turn.sent[0].message_chars == [1000]
    assert turn.prompts.room == WAITING_LIMIT


@pytest.mark.parametrize("number", [1, 5])
def test_every_attempt_of_a_turn_is_numbered_and_only_the_last_is_final(number: int) -> None:
    turn = Turn()
    for i in range(number):
        turn.prefill(f"p{i}", 200 if i == number - 1 else 502)
    turn.end(*turn.decode(f"p{number - 1}"))
    turn.finish()
    assert [(a.number, a.final) for a in turn.sent] == [(i, i == number) for i in range(1, number + 1)]
    assert {a.proxy_turn_id for a in turn.sent} == {"t"}


def test_a_leg_request_without_a_body_still_counts() -> None:
    turn = Turn()
    turn.end(*turn.record.begin_leg(LegRequest()))
    assert turn.finish() == [(1, True, "ok", None)]
