"""Hold the conversations through the proxy, as a client would, and write down what was done and seen."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from typing import Any

import httpx
import msgspec

from live.conversations import SYSTEM, TURNS, Act, Conversation, answer_tokens, conversations, user_message
from live.engines import MODEL_NAME, LiveError

LEAVE_AFTER_CHUNKS = 8
TURN_SECONDS = 180


class TurnTruth(msgspec.Struct, kw_only=True):
    """One turn as the client did and saw it."""

    configuration: str
    conversation: str
    session_id: str | None
    turn: int
    act: str
    reasons: tuple[str, ...]
    streamed: bool
    handle_in_stream: bool
    traceparent: str
    status: int
    """HTTP status; a stream that carries an error still has 200."""
    outcome: str
    """``ok, error, left``."""
    started_wall_ns: int
    ttft_ns: int | None
    """Until the first piece of text; for an answer in one piece, until it came."""
    total_ns: int
    prompt_tokens: int | None
    """As the answer's usage says; None where there was none."""
    output_tokens: int | None
    message: str = ""


async def drive(
    configuration: str, proxy_url: str, *, hold_ttl_s: float, say: Callable[[str], None]
) -> list[TurnTruth]:
    """Hold every conversation; the order of the result is the order in which turns ended."""
    truth: list[TurnTruth] = []
    async with httpx.AsyncClient(base_url=proxy_url, timeout=TURN_SECONDS) as client:

        async def group(members: tuple[Conversation, ...]) -> None:
            for conversation in members:
                await _hold(conversation, configuration, client, hold_ttl_s, truth, say)

        await asyncio.gather(*(group(members) for members in conversations()))
    return truth


async def _hold(
    conversation: Conversation,
    configuration: str,
    client: httpx.AsyncClient,
    hold_ttl_s: float,
    truth: list[TurnTruth],
    say: Callable[[str], None],
) -> None:
    messages: list[dict[str, str]] = [] if conversation.short else [SYSTEM]
    session_id = f"{conversation.name}-{configuration}-{secrets.token_hex(3)}" if conversation.with_id else None
    for turn in range(1, TURNS + 1):
        act = conversation.act(turn)
        if act is Act.WAIT_PAST_TTL:
            await asyncio.sleep(hold_ttl_s + 2)
        if act is Act.LOSE_HANDLE:
            answer = await client.delete(f"/conversations/{session_id}")
            if not answer.json()["forgotten"]:
                raise LiveError(f"The proxy had no handle of {session_id} to lose: streamed answers carry none?")
        messages.append(user_message(conversation, turn))
        seen, said = await _ask(conversation, configuration, session_id, turn, messages, client)
        truth.append(seen)
        say(_line(seen))
        # A client resends what it has got; of a failed turn it has nothing, and asks again.
        if seen.outcome == "error":
            messages.pop()
        else:
            messages.append({"role": "assistant", "content": said})


async def _ask(
    conversation: Conversation,
    configuration: str,
    session_id: str | None,
    turn: int,
    messages: list[dict[str, str]],
    client: httpx.AsyncClient,
) -> tuple[TurnTruth, str]:
    act = conversation.act(turn)
    body: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": messages,
        "max_tokens": answer_tokens(conversation, turn),
        "temperature": 0,
        "stream": conversation.streamed,
    }
    if conversation.streamed:
        body["stream_options"] = {"include_usage": True}
    if conversation.handle_in_stream:
        body["vllm_xargs"] = {"live_stream_handle": 1}
    if session_id:
        body["conversation_id"] = session_id
    seen = TurnTruth(
        configuration=configuration,
        conversation=conversation.name,
        session_id=session_id,
        turn=turn,
        act=str(act),
        reasons=conversation.reasons[turn - 1],
        streamed=conversation.streamed,
        handle_in_stream=conversation.handle_in_stream,
        traceparent=f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
        status=0,
        outcome="ok",
        started_wall_ns=time.time_ns(),
        ttft_ns=None,
        total_ns=0,
        prompt_tokens=None,
        output_tokens=None,
    )
    started = time.monotonic_ns()
    said: list[str] = []
    request = client.build_request("POST", "/v1/chat/completions", json=body, headers={"traceparent": seen.traceparent})
    answer = await client.send(request, stream=True)
    try:
        seen.status = answer.status_code
        if answer.status_code != 200 or not conversation.streamed:
            _take_whole(seen, said, await answer.aread(), time.monotonic_ns() - started)
        else:
            await _take_stream(seen, said, answer, started, leave=act is Act.LEAVE)
    finally:
        await answer.aclose()
    seen.total_ns = time.monotonic_ns() - started
    return seen, "".join(said)


def _take_whole(seen: TurnTruth, said: list[str], content: bytes, after_ns: int) -> None:
    if seen.status != 200:
        seen.outcome, seen.message = "error", content.decode("utf-8", "replace")[:200]
        return
    answer = json.loads(content)
    seen.ttft_ns = after_ns
    said.append(answer["choices"][0]["message"]["content"])
    seen.prompt_tokens, seen.output_tokens = answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]


async def _take_stream(seen: TurnTruth, said: list[str], answer: httpx.Response, started: int, *, leave: bool) -> None:
    async for line in answer.aiter_lines():
        if not line.startswith("data: {"):
            continue
        chunk = json.loads(line.removeprefix("data: "))
        if "error" in chunk:
            seen.outcome, seen.message = "error", json.dumps(chunk["error"])[:200]
            return
        if chunk.get("usage"):
            seen.prompt_tokens = chunk["usage"]["prompt_tokens"]
            seen.output_tokens = chunk["usage"]["completion_tokens"]
        piece = chunk["choices"][0]["delta"].get("content") if chunk["choices"] else None
        if piece:
            if seen.ttft_ns is None:
                seen.ttft_ns = time.monotonic_ns() - started
            said.append(piece)
        if leave and len(said) >= LEAVE_AFTER_CHUNKS:
            seen.outcome = "left"
            return


def _line(seen: TurnTruth) -> str:
    ttft = "-" if seen.ttft_ns is None else f"{seen.ttft_ns / 1e6:.0f} ms"
    prompt = "?" if seen.prompt_tokens is None else seen.prompt_tokens
    return (
        f"  {seen.conversation:<12} turn {seen.turn}: {seen.outcome:<5} {seen.status}  prompt {prompt}, TTFT {ttft}, "
        f"{seen.total_ns / 1e6:.0f} ms in all{f'  ({seen.message[:90]})' if seen.message else ''}"
    )
