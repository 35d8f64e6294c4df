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

from live.conversations import (
    OTHER_SYSTEM,
    SYSTEM,
    TOOLS,
    Act,
    Conversation,
    Groups,
    Tells,
    answer_tokens,
    user_message,
)
from live.engines import MODEL_NAME, LiveError, PairConfig
from live.fronts import SESSION_HEADER, Front
from live.leaks import HEADER

LEAVE_AFTER_CHUNKS = 8
TURN_SECONDS = 180


class TurnTruth(msgspec.Struct, kw_only=True):
    """One turn as the client did and saw it."""

    configuration: str
    hold_ttl_s: float
    """How long D holds there."""
    holds: bool = True
    """Whether D holds anything for the next turn."""
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
    """``ok, error, left``; ``unanswered``: not a byte came, and the client gave up."""
    started_wall_ns: int
    ttft_ns: int | None
    """Until the first piece of text; for an answer in one piece, until it came."""
    total_ns: int
    prompt_tokens: int | None
    """As the answer's usage says; None where there was none."""
    output_tokens: int | None
    suspicions: tuple[str, ...] = ()
    """What turnscope must suspect."""
    perhaps: tuple[str, ...] = ()
    """What it may suspect as well."""
    message: str = ""
    front: Front = Front.HOOKED
    """The proxy that it went through."""
    tells: Tells = Tells.PROXY
    """To whom the client named the conversation."""
    answer_id: str | None = None
    """As the answer says, whoever gave it."""


async def drive(
    groups: Groups, config: PairConfig, front: Front, proxy_url: str, *, patience_s: float, say: Callable[[str], None]
) -> list[TurnTruth]:
    """Hold every conversation; the order of the result is the order in which turns ended."""
    truth: list[TurnTruth] = []
    async with httpx.AsyncClient(base_url=proxy_url, timeout=patience_s) as client:

        async def group(members: tuple[Conversation, ...]) -> None:
            for conversation in members:
                talk = Talk(conversation, config, front, client, say)
                for _ in range(conversation.turns):
                    truth.append(await talk.turn())

        await asyncio.gather(*(group(members) for members in groups))
    return truth


class Talk:
    """One conversation while it is held."""

    def __init__(
        self,
        conversation: Conversation,
        config: PairConfig,
        front: Front,
        client: httpx.AsyncClient,
        say: Callable[[str], None],
    ) -> None:
        self.conversation = conversation
        self.session_id = f"{conversation.name}-{config.name}-{secrets.token_hex(3)}" if conversation.with_id else None
        self.config = config
        """How D is set now."""
        self._front = front
        self._client = client
        self._say = say
        self._turn = 0
        self._messages: list[dict[str, str]] = [] if conversation.short else [SYSTEM]

    async def turn(self) -> TurnTruth:
        """The next turn, with whatever is to be done to it."""
        self._turn += 1
        await self._prepare(self.conversation.act(self._turn))
        self._messages.append(user_message(self.conversation, self._turn))
        seen, said = await _ask(self._begun(), self.conversation, self._messages, self._client)
        self._say(_line(seen))
        # A client resends what it has got; where it got nothing, it asks again.
        if not said:
            self._messages.pop()
        else:
            self._messages.append({"role": "assistant", "content": said})
        return seen

    async def _prepare(self, act: Act) -> None:
        path = f"/conversations/{self.session_id}"
        if act is Act.LATE_WITHOUT_EXPIRY:
            await self._tell("DELETE", f"{path}/expiry")
        if act in (Act.WAIT_PAST_TTL, Act.LATE_WITHOUT_EXPIRY):
            await asyncio.sleep(self.config.hold_ttl_s + 2)
        if act is Act.LOSE_HANDLE:
            await self._tell("DELETE", path)
        if act is Act.GIVE_AGAIN:
            await self._tell("POST", f"{path}/again?times=2")
        if act is Act.REPLACE_SYSTEM:
            self._messages[0] = OTHER_SYSTEM
        if act is Act.SHORTEN_ANSWER:
            last = self._messages[-1]
            self._messages[-1] = {**last, "content": last["content"][: len(last["content"]) // 2]}

    def _begun(self) -> TurnTruth:
        """The turn, nothing of it seen yet."""
        conversation, turn = self.conversation, self._turn
        return TurnTruth(
            configuration=self.config.name,
            hold_ttl_s=self.config.hold_ttl_s,
            holds=self.config.bidirectional,
            conversation=conversation.name,
            session_id=self.session_id,
            turn=turn,
            act=str(conversation.act(turn)),
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
            suspicions=conversation.suspicions.get(turn, ()),
            perhaps=conversation.perhaps.get(turn, ()),
            front=self._front,
            tells=conversation.tells,
        )

    async def _tell(self, method: str, path: str) -> None:
        answer = await self._client.request(method, path)
        if not answer.json()["done"]:
            raise LiveError(f"The proxy had no handle of {self.session_id} for {path}: streamed answers carry none?")


async def _ask(
    seen: TurnTruth, conversation: Conversation, messages: list[dict[str, str]], client: httpx.AsyncClient
) -> tuple[TurnTruth, str]:
    body: dict[str, Any] = {
        "model": MODEL_NAME,
        "messages": messages,
        "max_tokens": answer_tokens(conversation, seen.turn),
        "temperature": 0,
        "stream": conversation.streamed,
    }
    headers = {"traceparent": seen.traceparent, **HEADER}
    if conversation.streamed:
        body["stream_options"] = {"include_usage": True}
    if conversation.handle_in_stream:
        body["vllm_xargs"] = {"live_stream_handle": 1}
    if conversation.tools:
        body["tools"], body["tool_choice"] = TOOLS, "none"
    if seen.session_id:
        body["conversation_id"] = seen.session_id
        if conversation.tells is Tells.BODY:
            body["session_id"] = seen.session_id
        if conversation.tells is Tells.HEADER:
            headers[SESSION_HEADER] = seen.session_id
    started = time.monotonic_ns()
    said: list[str] = []
    request = client.build_request("POST", "/v1/chat/completions", json=body, headers=headers)
    try:
        answer = await client.send(request, stream=True)
    except httpx.ReadTimeout:
        seen.outcome = "unanswered"
        seen.total_ns = time.monotonic_ns() - started
        return seen, ""
    try:
        seen.status = answer.status_code
        if answer.status_code != 200 or not conversation.streamed:
            _take_whole(seen, said, await answer.aread(), time.monotonic_ns() - started)
        else:
            await _take_stream(seen, said, answer, started, leave=seen.act == Act.LEAVE)
    finally:
        await answer.aclose()
    seen.total_ns = time.monotonic_ns() - started
    return seen, "".join(said)


def _take_whole(seen: TurnTruth, said: list[str], content: bytes, after_ns: int) -> None:
    if seen.status != 200:
        seen.outcome, seen.message = "error", content.decode("utf-8", "replace")[:200]
        return
    answer = json.loads(content)
    seen.ttft_ns, seen.answer_id = after_ns, answer["id"]
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
        seen.answer_id = chunk.get("id", seen.answer_id)
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
        f"  {seen.conversation:<19} turn {seen.turn}: {seen.outcome:<5} {seen.status}  prompt {prompt}, TTFT {ttft}, "
        f"{seen.total_ns / 1e6:.0f} ms in all{f'  ({seen.message[:90]})' if seen.message else ''}"
    )
