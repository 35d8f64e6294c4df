"""A scripted agent on the pair: model calls, tools, work of its own and a user's pause, told to the sidecar by an
ordinary OpenTelemetry SDK, and timed by the agent's own clock.

One session has two tasks. Between them they have a single tool, two parallel ones, a retrieval, a model call that is
given up and asked again, and a subagent. What takes how long is random, by the seed.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import msgspec
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import inject
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, Tracer

from live.conversations import text
from live.engines import MODEL_NAME, LiveError
from live.leaks import CANARY, HEADER
from turnscope.semconv import Part

SERVICE: Final = "scripted-agent"
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"about": {"enum": ["the weather in town"]}},
            "required": ["about"],
            "additionalProperties": False,
        },
    },
}
ANSWER_TOKENS: Final = 24
TOOL_TOKENS: Final = 120
"""Enough for a call of ``TOOL``, which this model's vocabulary spells nearly by letter."""
GIVE_UP_AFTER: Final = 4
"""Pieces of an answer after which a call is given up."""


class Session(msgspec.Struct, kw_only=True):
    """What one scripted session came to, by the agent's own clock."""

    session_id: str
    configuration: str
    """Of the pair."""
    seed: int
    started_ns: int
    ended_ns: int = 0
    parts: Counter[Part] = msgspec.field(default_factory=Counter)
    """Nanoseconds; where things run at once, of what is waited for."""
    between_calls_ns: int = 0
    """From an answer that asked for tools to the request that brought their results: tools, and work around them."""
    model_calls: int = 0
    given_up: int = 0
    """Of those, left in mid-answer."""
    tools: int = 0
    tasks: int = 0

    @property
    def wall_ns(self) -> int:
        """From its begin to its end."""
        return self.ended_ns - self.started_ns

    @property
    def conversations(self) -> tuple[str, str]:
        """Ids that its turns have at the engines: its own, and its subagent's."""
        return self.session_id, helper(self.session_id)


def helper(session_id: str) -> str:
    """The conversation of a session's subagent."""
    return f"{session_id}-helper"


@asynccontextmanager
async def instrumented(endpoint: str) -> AsyncIterator[Tracer]:
    """A tracer whose spans go to ``endpoint`` (OTLP over gRPC); all of them have when it ends."""
    resource = Resource.create({"service.name": SERVICE, "service.version": "1.0"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    try:
        yield provider.get_tracer(__name__)
    finally:
        await asyncio.to_thread(provider.shutdown)


async def sessions(configuration: str, url: str, endpoint: str, seeds: range, *, at_once: int) -> list[Session]:
    """Hold one session for each seed through the proxy at ``url`` of the pair ``configuration``."""
    turn = asyncio.Semaphore(at_once)
    async with httpx.AsyncClient(base_url=url, timeout=180) as client, instrumented(endpoint) as tracer:

        async def one(seed: int) -> Session:
            async with turn:
                return await Script(configuration, seed, client, tracer).run()

        return list(await asyncio.gather(*(one(seed) for seed in seeds)))


class Script:
    """One session while it is held."""

    def __init__(self, configuration: str, seed: int, client: httpx.AsyncClient, tracer: Tracer) -> None:
        self._rng = random.Random(seed)
        self._client = client
        self._tracer = tracer
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": f"{CANARY} {text(f'agent {seed}', 120)}"}]
        self._seen = Session(
            session_id=f"agent-{seed}-{self._rng.getrandbits(24):06x}",
            configuration=configuration,
            seed=seed,
            started_ns=0,
        )
        self._at = 0

    async def run(self) -> Session:
        """Both tasks, with the user's pause between them."""
        self._seen.started_ns = self._at = time.time_ns()
        await self._task("first", [self._tool, self._parallel, self._subagent])
        await self._pass(Part.USER_WAIT, 0.3, 1.2)
        await self._task("second", [self._retrieval], again=True)
        self._seen.ended_ns = self._at
        return self._seen

    async def _task(self, name: str, steps: list[Any], *, again: bool = False) -> None:
        with self._span("invoke_agent scripted", "invoke_agent", **{"gen_ai.agent.name": "scripted"}):
            self._messages.append({"role": "user", "content": text(f"{self._seen.session_id} {name}", 60)})
            await self._work()
            for step in self._rng.sample(steps, len(steps)):
                asked = await self._call(tool=True)
                if not asked["asked"]:
                    raise LiveError("The model was to call a tool, and did not.")
                asked_at = self._at
                await self._work()
                await step()
                await self._work()
                self._answer(asked)
                self._seen.between_calls_ns += self._at - asked_at
            if again:
                await self._call(give_up=True)
            said = await self._call()
            self._messages.append({"role": "assistant", "content": said["content"]})
            await self._work()
        self._seen.tasks += 1
        self._mark(Part.APPLICATION_WORK)

    # --- the steps --------------------------------------------------------------------------------------
    async def _tool(self) -> None:
        await self._run_tool("look_up", 0.1, 0.6)
        self._mark(Part.TOOL_WAIT)

    async def _parallel(self) -> None:
        await asyncio.gather(self._run_tool("look_up", 0.1, 0.5), self._run_tool("read_file", 0.2, 0.8))
        self._mark(Part.TOOL_WAIT)

    async def _retrieval(self) -> None:
        with self._span("retrieval", "retrieval"):
            await asyncio.sleep(self._rng.uniform(0.1, 0.4))
        self._mark(Part.TOOL_WAIT)
        self._seen.tools += 1

    async def _subagent(self) -> None:
        """A model call of its own, in a conversation of its own with the engines: it shares no history."""
        with self._span("invoke_agent helper", "invoke_agent", **{"gen_ai.agent.name": "helper"}):
            await self._work()
            mine = self._messages
            self._messages = [{"role": "user", "content": text(f"{self._seen.session_id} helper", 80)}]
            await self._call(conversation=helper(self._seen.session_id))
            self._messages = mine
            await self._work()
        self._mark(Part.APPLICATION_WORK)

    async def _run_tool(self, name: str, low: float, high: float) -> None:
        attributes = {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": json.dumps({"of": CANARY})}
        with self._span(f"execute_tool {name}", "execute_tool", **attributes):
            await asyncio.sleep(self._rng.uniform(low, high))
        self._seen.tools += 1

    async def _work(self) -> None:
        await self._pass(Part.APPLICATION_WORK, 0.02, 0.25)

    async def _pass(self, part: Part, low: float, high: float) -> None:
        await asyncio.sleep(self._rng.uniform(low, high))
        self._mark(part)

    # --- a model call -----------------------------------------------------------------------------------
    async def _call(
        self, *, tool: bool = False, give_up: bool = False, conversation: str | None = None
    ) -> dict[str, Any]:
        """Ask the model; ``tool``: for a call of a tool; ``give_up``: and leave in mid-answer. Returns its message."""
        body: dict[str, Any] = {
            "model": MODEL_NAME,
            "messages": self._messages,
            "max_tokens": TOOL_TOKENS if tool else ANSWER_TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "vllm_xargs": {"live_stream_handle": 1},
            "conversation_id": conversation or self._seen.session_id,
        }
        if tool:
            body |= {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look_up"}}}
        self._mark(Part.APPLICATION_WORK)
        self._seen.model_calls += 1
        self._seen.given_up += give_up
        with self._span("chat", "chat", **{"gen_ai.request.model": MODEL_NAME}) as span:
            # As instrumentations do that were told to capture content.
            span.set_attribute("gen_ai.input.messages", json.dumps(self._messages))
            headers = dict(HEADER)
            inject(headers)
            started = time.monotonic_ns()
            said = await self._stream(body, headers, give_up=give_up)
            if said["first_ns"] is not None:
                span.set_attribute("gen_ai.response.time_to_first_chunk", (said["first_ns"] - started) / 1e9)
            if give_up:
                span.set_status(Status(StatusCode.ERROR))
        self._mark(Part.GENERATION)
        return said

    async def _stream(self, body: dict[str, Any], headers: dict[str, str], *, give_up: bool) -> dict[str, Any]:
        said: dict[str, Any] = {"content": "", "asked": False, "first_ns": None}
        pieces = 0
        async with self._client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
            if answer.status_code != 200:
                raise LiveError(f"A turn was answered with {answer.status_code}: {(await answer.aread())[:200]!r}")
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                delta = chunk["choices"][0]["delta"] if chunk.get("choices") else {}
                if not delta.get("tool_calls") and not delta.get("content"):
                    continue
                if said["first_ns"] is None:
                    said["first_ns"] = time.monotonic_ns()
                    self._mark(Part.INPUT_PROCESSING)
                said["content"] += delta.get("content") or ""
                said["asked"] = said["asked"] or bool(delta.get("tool_calls"))
                pieces += 1
                if give_up and pieces >= GIVE_UP_AFTER:
                    break
        return said

    def _answer(self, asked: dict[str, Any]) -> None:
        """Put the call of the tool, and what it gave, into the history."""
        arguments = json.dumps({"n": len(self._messages)})
        call = {
            "id": f"call_{len(self._messages)}",
            "type": "function",
            "function": {"name": "look_up", "arguments": arguments},
        }
        self._messages.append({"role": "assistant", "content": asked["content"] or None, "tool_calls": [call]})
        result = f"{CANARY} {text(f'{self._seen.session_id} result {len(self._messages)}', 30)}"
        self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    # --- its clock --------------------------------------------------------------------------------------
    def _mark(self, part: Part) -> None:
        """What was from the last mark until now is ``part``."""
        now = time.time_ns()
        self._seen.parts[part] += now - self._at
        self._at = now

    def _span(self, name: str, operation: str, **attributes: str) -> Any:
        known = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": self._seen.session_id}
        return self._tracer.start_as_current_span(name, attributes={**known, **attributes})
