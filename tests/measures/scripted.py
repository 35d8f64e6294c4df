"""A scripted agent: what it does is decided first, with true times, and only then told as its instruments would.

Truth is by the agent's own clock. The proxy sees requests some milliseconds after the agent sends them, and has a clock
of its own; tools are spans of the agent; what is only the application's work nobody tells of.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

from tests.measures.session_rows import MS, T0, TRACE
from turnscope.model import AgentSpan, Turn
from turnscope.semconv import Part, SpanKind

SKEW_NS = -700 * MS
"""The agent's clock less the proxy's."""


class Scripted(NamedTuple):
    """A session as its agent lived it, and as it is told."""

    turns: list[Turn]
    spans: list[AgentSpan]
    truth: Counter[Part]
    bounds: Counter[Part]
    """With the proxy alone: the tool wait and user wait that it can tell at most, application work in them."""


class _Script:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = T0
        self.turns: list[Turn] = []
        self.spans: list[AgentSpan] = []
        self.truth: Counter[Part] = Counter()
        self.bounds: Counter[Part] = Counter()

    def ms(self, low: int, high: int) -> int:
        return self.rng.randint(low * MS, high * MS)

    def spend(self, part: Part, ns: int) -> None:
        self.truth[part] += ns
        self.now += ns

    def span(self, kind: SpanKind, start: int, end: int, parent: str | None, **more: Any) -> str:
        name = f"{len(self.spans) + 1:016x}"
        self.spans.append(
            AgentSpan(
                span_key=f"{TRACE}-{name}",
                trace_id=TRACE,
                span_id=name,
                parent_span_id=parent,
                session_id="s",
                kind=kind,
                host="agent",
                started_ns=start + SKEW_NS,
                ended_ns=end + SKEW_NS,
                **more,
            )
        )
        return name

    def call(self, parent: str, role: str, tools: int, *, agent: str | None = None, failing: bool = False) -> None:
        """A model call, with a retry by the client where the first attempt fails."""
        begin = self.now
        name = self.span(SpanKind.MODEL_CALL, begin, begin, parent)
        before = self.turns[-1].turn_id if self.turns else None
        told: dict[str, Any] = {
            "session_id": "s",
            "has_attempt": True,
            "streamed": True,
            "last_role": role,
            "agent_id": agent,
            "caller_trace_id": TRACE,
            "caller_span_id": name,
            "previous_turn_id": before,
        }
        if failing:
            self.spend(Part.INPUT_PROCESSING, self.ms(1, 4))
            started = self.now
            self.spend(Part.INPUT_PROCESSING, self.ms(50, 300))
            lost = Turn(turn_id=f"t{len(self.turns)}", started_ns=started, ended_ns=self.now, status="error", **told)
            self.turns.append(lost)
            told["retry_of"] = lost.turn_id
            self.spend(Part.INPUT_PROCESSING, self.ms(100, 400))
        self.spend(Part.INPUT_PROCESSING, self.ms(1, 4))
        started = self.now
        ttft, writing = self.ms(80, 900), self.ms(100, 2500)
        self.spend(Part.INPUT_PROCESSING, ttft)
        self.spend(Part.GENERATION, writing)
        prefill = self.rng.randint(0, ttft)
        self.turns.append(
            Turn(
                turn_id=f"t{len(self.turns)}",
                started_ns=started,
                ended_ns=self.now,
                duration_ns=ttft + writing,
                ttft_ns=ttft,
                ttft_prefill_ns=prefill,
                ttft_unattributed_ns=ttft - prefill,
                tool_calls=tools,
                **told,
            )
        )
        self.spend(Part.GENERATION, self.ms(1, 4))
        self.spans[[s.span_id for s in self.spans].index(name)].ended_ns = self.now + SKEW_NS

    def work(self) -> int:
        ns = self.ms(5, 150)
        self.spend(Part.APPLICATION_WORK, ns)
        return ns

    def tools(self, parent: str, count: int) -> int:
        """So many tools at once."""
        took = [self.ms(100, 3000) for _ in range(count)]
        for ns in took:
            self.span(SpanKind.TOOL, self.now, self.now + ns, parent, tool_name="grep")
        self.spend(Part.TOOL_WAIT, max(took))
        return max(took)

    def subagent(self, parent: str) -> None:
        """A tool that is an agent: it works, calls a model, works."""
        begin = self.now
        name = self.span(SpanKind.TOOL, begin, begin, parent)
        inner = self.span(SpanKind.AGENT, begin, begin, name)
        self.bounds[Part.TOOL_WAIT] += self.work()
        self.call(inner, "user", 0, agent="sub")
        self.bounds[Part.TOOL_WAIT] += self.work()
        for span in self.spans:
            if span.span_id in (name, inner):
                span.ended_ns = self.now + SKEW_NS


def scripted(seed: int) -> Scripted:
    """Two tasks with a pause between: model calls, tools, two at once, a retry, a subagent; times by ``seed``."""
    script = _Script(seed)
    for task in range(2):
        begin = script.now
        root = script.span(SpanKind.AGENT, begin, begin, None, agent_name="main")
        script.work()
        script.call(root, "user", 1)
        for step in script.rng.sample(["tool", "two", "retry", "sub"], 4):
            waited = script.work()
            if step == "sub":
                script.subagent(root)
            else:
                waited += script.tools(root, 2 if step == "two" else 1)
            waited += script.work()
            script.bounds[Part.TOOL_WAIT] += waited
            script.call(root, "tool", 1, failing=step == "retry")
        waited = script.work()
        script.bounds[Part.TOOL_WAIT] += waited + script.tools(root, 1) + script.work()
        script.call(root, "tool", 0)
        script.work()
        next(s for s in script.spans if s.span_id == root).ended_ns = script.now + SKEW_NS
        if task == 0:
            pause = script.ms(2000, 20_000)
            script.spend(Part.USER_WAIT, pause)
    return Scripted(script.turns, script.spans, script.truth, script.bounds)
