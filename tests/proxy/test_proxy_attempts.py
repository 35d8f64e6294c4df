"""The attempts that an unchanged proxy's traffic shows, end to end over real sockets."""

from __future__ import annotations

import itertools
import secrets
import threading
import time

import httpx
import pytest

from tests.proxy.conftest import Proxy, events_of, traceparent
from turnscope.model import Attempt, Handle, Heartbeat

pytestmark = pytest.mark.timeout(300)  # starts processes

_NUMBERS = itertools.count()


def name() -> str:
    return f"conversation-{next(_NUMBERS)}-{secrets.token_hex(4)}"


@pytest.mark.parametrize("stream", [False, True])
def test_two_turns_show_the_handle_going_out_and_in(proxy: Proxy, stream: bool) -> None:
    conversation = name()
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "héllo"}]
    body = {"conversation_id": conversation, "stream": stream, "messages": messages}
    first, one = proxy.send(body)
    second, two = proxy.send({**body, "messages": [*messages, {"role": "tool", "content": "42"}]})
    assert (first.status_code, second.status_code) == (200, 200)

    (before,), (after,) = proxy.attempts(one), proxy.attempts(two)
    assert (before.outcome, before.error_stage, before.status_code, before.final, before.number) == (
        "ok",
        None,
        200,
        True,
        1,
    )
    assert (before.prefill_status, before.decode_status, before.streamed) == (200, 200, stream)
    assert (before.session_id, before.session_source) == (conversation, "body.conversation_id")
    assert before.model == "m"
    assert before.handle_given is None
    assert before.prefill is not None
    assert before.prefill.engine_id == "p0"
    assert before.prefill.request_id == proxy.decode.requests[0].body["kv_transfer_params"]["remote_request_id"]
    assert before.handle_out is not None
    assert after.handle_given == before.handle_out
    assert before.handle_out == Handle(
        engine_id="d0", request_id=before.handle_out.request_id, tokens=40, blocks=3, expiry_s=1234.5
    )
    assert (before.finish_reason, before.tool_calls) == ("stop", 0)
    assert (before.input_tokens, before.output_tokens) == (37, 3)
    assert (before.message_roles, before.message_chars, before.last_role) == (["system", "user"], [8, 5], "user")
    assert (after.message_roles[-1], after.message_chars[-1], after.last_role) == ("tool", 2, "tool")
    times = [before.prefill_start_ns, before.prefill_end_ns, before.decode_start_ns, before.first_byte_ns]
    assert None not in [*times, before.last_byte_ns]
    assert times == sorted(times)  # type: ignore[type-var]
    assert before.started_wall_ns is not None
    assert abs(before.started_wall_ns / 1e9 - time.time()) < 60
    assert before.proxy_turn_id != after.proxy_turn_id


def test_a_streamed_answer_without_a_handle_shows_none(proxy: Proxy) -> None:
    proxy.decode.handles = False
    conversation = name()
    turns = [proxy.send({"conversation_id": conversation, "stream": True})[1] for _ in range(3)]
    for trace_id in turns:
        (attempt,) = proxy.attempts(trace_id)
        assert (attempt.streamed, attempt.handle_out, attempt.handle_given, attempt.outcome) == (True, None, None, "ok")


def test_a_decode_answer_after_a_prefill_without_a_handle_belongs_to_the_same_attempt(proxy: Proxy) -> None:
    proxy.prefill.handles = False
    (attempt,) = proxy.attempts(proxy.send()[1])
    assert attempt.prefill is None
    assert (attempt.prefill_status, attempt.decode_status) == (200, 200)


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_are_counted_once_each(proxy: Proxy, stream: bool) -> None:
    proxy.decode.tool_calls = 2
    (attempt,) = proxy.attempts(proxy.send({"stream": stream})[1])
    assert (attempt.finish_reason, attempt.tool_calls) == ("tool_calls", 2)


def test_a_retried_prefill_is_a_second_attempt_of_one_turn(proxy: Proxy) -> None:
    conversation = name()
    (warm,) = proxy.attempts(proxy.send({"conversation_id": conversation})[1])
    proxy.prefill.statuses.append(503)
    response, trace_id = proxy.send({"conversation_id": conversation})
    assert response.status_code == 200
    first, second = proxy.attempts(trace_id, 2)
    assert first.proxy_turn_id == second.proxy_turn_id
    assert [(a.number, a.final) for a in (first, second)] == [(1, False), (2, True)]
    assert (first.outcome, first.error_stage, first.prefill_status) == ("error", "prefill", 503)
    assert (first.decode_status, first.status_code, first.first_byte_ns) == (None, None, None)
    assert first.handle_given == warm.handle_out
    assert second.handle_given is None
    assert (second.outcome, second.prefill_status, second.decode_status, second.status_code) == ("ok", 200, 200, 200)


def test_a_superseded_attempt_is_sent_at_once(proxy: Proxy) -> None:
    proxy.prefill.statuses.append(503)
    proxy.decode.pause = threading.Event()
    trace_id = secrets.token_hex(16)
    answer = threading.Thread(
        target=proxy.client.post,
        args=("/v1/chat/completions",),
        kwargs={"json": {"stream": True, "messages": []}, "headers": traceparent(trace_id)},
    )
    answer.start()
    try:
        mine = lambda: [a for a in proxy.events.bodies(Attempt) if a.caller_trace_id == trace_id]  # noqa: E731
        proxy.events.wait_for(lambda: len(mine()) == 1)
        assert not mine()[0].final
    finally:
        proxy.decode.pause.set()
        answer.join()
    assert proxy.attempts(trace_id, 2)[1].final


@pytest.mark.parametrize(
    ("prefill", "decode", "client", "stage"),
    [(500, 200, 500, "prefill"), (200, 500, 500, "decode"), (400, 200, 400, "prefill")],
)
def test_an_engines_error_is_told_with_its_stage(
    proxy: Proxy, prefill: int, decode: int, client: int, stage: str
) -> None:
    proxy.prefill.statuses.append(prefill)
    proxy.decode.statuses.append(decode)
    response, trace_id = proxy.send()
    assert response.status_code == client
    (attempt,) = proxy.attempts(trace_id)
    assert (attempt.outcome, attempt.error_stage, attempt.status_code) == ("error", stage, client)
    assert attempt.prefill_status == prefill
    assert attempt.first_byte_ns is None
    assert attempt.finish_reason is None


def test_an_error_of_the_proxy_itself_reached_no_engine(proxy: Proxy) -> None:
    response, trace_id = proxy.send({"proxy_fails": True})
    assert response.status_code == 500
    (attempt,) = proxy.attempts(trace_id)
    assert (attempt.outcome, attempt.error_stage, attempt.status_code) == ("error", "proxy", 500)
    assert (attempt.prefill, attempt.prefill_status, attempt.decode_status) == (None, None, None)


def test_an_engine_that_refuses_a_streamed_answer_is_a_decode_error(proxy: Proxy) -> None:
    proxy.decode.statuses.append(503)
    with pytest.raises(httpx.RemoteProtocolError):
        proxy.send({"stream": True}, x_session_id="refused")
    proxy.events.wait_for(lambda: any(a.session_id == "refused" for a in proxy.events.bodies(Attempt)))
    attempt = next(a for a in proxy.events.bodies(Attempt) if a.session_id == "refused")
    assert (attempt.outcome, attempt.error_stage, attempt.decode_status) == ("error", "decode", 503)


def test_an_engine_that_dies_in_mid_answer_is_a_decode_error(proxy: Proxy) -> None:
    proxy.decode.break_after = 2
    conversation = name()
    with pytest.raises(httpx.RemoteProtocolError):
        proxy.send({"stream": True, "conversation_id": conversation})
    proxy.events.wait_for(lambda: any(a.session_id == conversation for a in proxy.events.bodies(Attempt)))
    attempt = next(a for a in proxy.events.bodies(Attempt) if a.session_id == conversation)
    assert (attempt.outcome, attempt.error_stage, attempt.status_code) == ("error", "decode", 200)
    assert attempt.first_byte_ns is not None
    assert attempt.handle_out is None


def test_an_error_event_inside_a_good_stream_is_a_decode_error(proxy: Proxy) -> None:
    proxy.decode.parts = [b'data: {"error": {"message": "m", "code": 500}}\n\n', b"data: [DONE]\n\n"]
    response, trace_id = proxy.send({"stream": True})
    assert response.status_code == 200
    (attempt,) = proxy.attempts(trace_id)
    assert (attempt.outcome, attempt.error_stage, attempt.status_code) == ("error", "decode", 200)


@pytest.mark.parametrize("strict", [True, False])
def test_a_strict_front_end_sees_the_same_body_as_without_the_hook(proxy: Proxy, strict: bool) -> None:
    proxy.prefill.strict = strict
    with_field = proxy.attempts(proxy.send({"conversation_id": "k11"})[1])[0]
    assert (with_field.prefill_status, with_field.outcome) == ((400, "error") if strict else (200, "ok"))
    without = proxy.attempts(proxy.send()[1])[0]
    assert (without.prefill_status, without.session_id, without.session_source) == (200, None, None)
    by_header = proxy.attempts(proxy.send(x_session_id="k11")[1])[0]
    assert (by_header.prefill_status, by_header.session_id) == (200, "k11")
    added = {"max_tokens", "stream", "kv_transfer_params"}
    assert set(proxy.prefill.requests[1].body) == {"model", "messages", *added}
    assert set(proxy.prefill.requests[2].body) == {"model", "messages", *added}


def abort(proxy: Proxy, body: dict[str, object], *, after_first_byte: bool) -> Attempt:
    """Leave in the middle and return what was told of it."""
    conversation = name()
    content = {"messages": [{"role": "user", "content": "x"}], "conversation_id": conversation, **body}
    with httpx.Client(trust_env=False, timeout=httpx.Timeout(10, read=10 if after_first_byte else 0.5)) as client:
        url = f"{proxy.url}/v1/chat/completions"
        if after_first_byte:
            with client.stream("POST", url, json=content) as response:
                next(response.iter_raw())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(url, json=content)
    if proxy.decode.pause is not None:
        time.sleep(0.3)
        proxy.decode.pause.set()
    proxy.events.wait_for(lambda: any(a.session_id == conversation for a in proxy.events.bodies(Attempt)))
    return next(a for a in proxy.events.bodies(Attempt) if a.session_id == conversation)


def test_a_client_that_leaves_in_mid_answer_is_a_cancelled_decode(proxy: Proxy) -> None:
    proxy.decode.pause = threading.Event()
    attempt = abort(proxy, {"stream": True}, after_first_byte=True)
    assert (attempt.outcome, attempt.error_stage, attempt.final) == ("cancelled", "decode", True)
    assert (attempt.status_code, attempt.finish_reason, attempt.handle_out) == (200, None, None)


def test_a_client_that_leaves_during_a_plain_prefill_is_noticed(proxy: Proxy) -> None:
    proxy.prefill.delay_s = 1.5
    attempt = abort(proxy, {}, after_first_byte=False)
    assert (attempt.outcome, attempt.error_stage) == ("cancelled", "prefill")


def test_a_client_that_leaves_during_a_plain_decode_is_noticed(proxy: Proxy) -> None:
    proxy.decode.delay_s = 1.5
    attempt = abort(proxy, {}, after_first_byte=False)
    assert (attempt.outcome, attempt.error_stage, attempt.prefill_status) == ("cancelled", "decode", 200)


def test_two_concurrent_requests_with_one_request_id_are_two_turns(proxy: Proxy) -> None:
    proxy.prefill.delay_s = 0.3
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(proxy.send({"stream": True}, x_request_id="1")[1]))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, two = (proxy.attempts(trace_id)[0] for trace_id in found)
    assert one.proxy_turn_id != two.proxy_turn_id
    assert one.prefill != two.prefill
    assert [r.headers["x-request-id"] for r in proxy.prefill.requests] == ["1", "1"]
    assert (one.x_request_id, two.x_request_id) == ("1", "1")


def test_engines_get_the_headers_the_proxy_left_out(proxy: Proxy) -> None:
    _, trace_id = proxy.send({"conversation_id": "sent-on"})
    (attempt,) = proxy.attempts(trace_id)
    prefill, decode = proxy.prefill.requests[0].headers, proxy.decode.requests[0].headers
    for headers in (prefill, decode):
        assert headers["x-session-id"] == "sent-on"
        assert headers["x-request-id"] == attempt.x_request_id == attempt.proxy_turn_id
        assert headers["traceparent"].split("-")[1] == trace_id
    assert prefill["traceparent"] != decode["traceparent"]


def test_headers_the_proxy_set_itself_stay(proxy: Proxy) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    mine = {"x_keep_traceparent": parent, "x_keep_x_session_id": "own", "x_keep_x_request_id": "7"}
    _, trace_id = proxy.send({"conversation_id": "other"}, **mine)
    assert proxy.attempts(trace_id)[0].x_request_id == "7"
    for engine in (proxy.prefill, proxy.decode):
        headers = engine.requests[0].headers
        assert headers["traceparent"] == parent
        assert (headers["x-session-id"], headers["x-request-id"]) == ("own", "7")


@pytest.mark.parametrize("session", ["línea", "two\nlines", "x" * 300])
def test_a_session_id_that_is_no_header_value_breaks_nothing(proxy: Proxy, session: str) -> None:
    response, trace_id = proxy.send({"conversation_id": session})
    assert response.status_code == 200
    (attempt,) = proxy.attempts(trace_id)
    assert attempt.session_id is not None
    sent = proxy.prefill.requests[0].headers.get("x-session-id")
    assert sent == (attempt.session_id if len(session) == 300 else None)


def test_other_requests_to_the_proxy_are_no_turns(proxy: Proxy) -> None:
    before = len(proxy.events.bodies(Attempt))
    assert proxy.client.get("/health").status_code == 200
    assert proxy.client.post("/no/engine", json={}).status_code == 200
    _, trace_id = proxy.send()
    proxy.attempts(trace_id)
    assert len(proxy.events.bodies(Attempt)) == before + 1


def test_heartbeats_list_the_turns_that_run(proxy: Proxy) -> None:
    proxy.decode.pause = threading.Event()
    with httpx.stream(
        "POST", f"{proxy.url}/v1/chat/completions", json={"stream": True, "messages": []}, timeout=30, trust_env=False
    ) as response:
        pieces = response.iter_raw()
        next(pieces)
        proxy.events.wait_for(lambda: bool(proxy.events.bodies(Heartbeat)[-1].open_requests))
        proxy.decode.pause.set()
        assert list(pieces)
    proxy.events.wait_for(lambda: not proxy.events.bodies(Heartbeat)[-1].open_requests)
    kinds = {(e.emitter.kind, e.engine) for e in proxy.events.events}
    assert kinds == {("proxy", None)}


def test_no_text_of_anybody_leaves_the_proxy(proxy: Proxy) -> None:
    secret = "correct horse battery staple"
    proxy.decode.words = [secret]
    body = {"messages": [{"role": "user", "content": secret, "name": secret}], "user": secret, "stream": True}
    response, trace_id = proxy.send(body, x_user=secret, authorization=f"Bearer {secret}")
    assert secret in response.text
    proxy.attempts(trace_id)
    assert secret not in repr([e.body for e in proxy.events.events])
    proxy.spans.wait_for(lambda: len(proxy.spans.of(trace_id)) == 3)
    assert secret not in repr(proxy.spans.spans)


def test_the_stubs_stream_is_what_its_events_say(proxy: Proxy) -> None:
    response, _ = proxy.send({"stream": True})
    words = [c["delta"].get("content") or "" for e in events_of(response.content) for c in e["choices"]]
    assert "".join(words) == "Hello wörld!"
