"""What a stretch of time between model calls was in which nothing was seen to run: told by the calls around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from turnscope.measures.forest import Node
from turnscope.model import AgentSpan, Turn
from turnscope.semconv import Part, SpanKind, Status

_ASKED: Final = "tool_calls"
"""The finish reason of an answer that asks for tools, where nobody counted them."""


def asks(call: Turn | AgentSpan) -> bool | None:
    """Whether its answer asks for tools; None where nobody saw it."""
    if call.finish_reason == _ASKED:
        return True
    return call.tool_calls > 0 if call.tool_calls is not None else None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, or a model call that no turn is known of, as far as the waits around it depend on it."""

    key: str
    start: int
    end: int
    ok: bool
    asked: bool | None
    """Its answer asks for tools; None where nobody saw it."""
    agent: str | None
    role: str | None = None
    """Of the request's last message; None where nobody saw it."""
    before: str | None = None
    """The turn that it goes on from."""
    retry_of: str | None = None
    trace: str | None = None
    """Of a call that only its span tells of: the trace it is in."""


def call_of(node: Node) -> Call | None:
    """Of a turn, or of a model call's span that no turn was placed in; None of anything else."""
    turn, span = node.turn, node.span
    if turn is not None:
        return Call(
            key=node.key,
            start=node.start,
            end=node.end,
            ok=turn.status == Status.OK,
            asked=asks(turn),
            agent=turn.agent_id,
            role=turn.last_role,
            before=turn.previous_turn_id,
            retry_of=turn.retry_of,
        )
    if span is None or node.kind is not SpanKind.MODEL_CALL or node.calls:
        return None
    return Call(
        key=node.key,
        start=node.start,
        end=node.end,
        ok=span.status != "error",
        asked=asks(span),
        agent=span.agent_id or span.agent_name,
        trace=span.trace_id,
    )


class Waits:
    """Asked about any stretch in which no model call ran. ``tools``: (start, end) of every tool that was seen."""

    def __init__(self, calls: Iterable[Call], tools: Iterable[tuple[int, int]]) -> None:
        known = list(calls)
        self._by_key = {call.key: call for call in known}
        self._by_start = sorted(known, key=lambda call: (call.start, call.key))
        self._starts = [call.start for call in self._by_start]
        self._ended: defaultdict[str | None, list[Call]] = defaultdict(list)
        self._all = sorted(known, key=lambda call: (call.end, call.key))
        for call in self._all:
            self._ended[call.agent].append(call)
        runs = sorted(tools)
        self._tool_starts = [start for start, _ in runs]
        self._latest_end: list[int] = []
        for _, end in runs:
            self._latest_end.append(max(end, self._latest_end[-1]) if self._latest_end else end)

    @property
    def tools_seen(self) -> bool:
        """Somebody tells of tools in this session at all."""
        return bool(self._tool_starts)

    def told(self, start: int, end: int) -> Part | None:
        """What the time from ``start`` to ``end`` was; None where nothing tells. Always an inference, and a tool's or a
        user's wait is an upper bound: the application's own work is in it.

        ============================== ================================ ==============================================
        the call before                the call after                   the time between
        ============================== ================================ ==============================================
        asked for tools                brings a tool's result           tool wait; application work where tools were
                                                                        seen to run meanwhile
        asked for tools                is another agent's               the same: that agent is the tool
        answered, asking for no tool   brings a user's message          user wait
        failed                         is the same request again        application work
        ============================== ================================ ==============================================

        Of calls that only spans tell of nobody knows what they brought. After one that asked for tools the next of its
        trace is taken to bring their results, and a new trace after a plain answer to bring a user's message.
        """
        at = bisect_left(self._starts, end)
        if at == len(self._starts):
            return None
        after = self._by_start[at]
        before = self._before(after, start)
        if before is None:
            return None
        if not before.ok:
            return Part.APPLICATION_WORK if after.retry_of == before.key else None
        if before.asked is None:
            return None
        same_trace = after.trace is not None and after.trace == before.trace
        if before.asked:
            if after.role != "tool" and after.agent == before.agent and not same_trace:
                return None
            return Part.APPLICATION_WORK if self._tool_ran(before.end, after.start) else Part.TOOL_WAIT
        other_trace = after.trace is not None and before.trace is not None and not same_trace
        if after.agent == before.agent and (after.role == "user" or other_trace):
            return Part.USER_WAIT
        return None

    def _before(self, after: Call, start: int) -> Call | None:
        """What it goes on from: the turn that it names, else its agent's last, else the last of all."""
        named = self._by_key.get(after.before or "")
        if named is not None and (named.end > start or named.agent != after.agent):
            named = None
        return named or _last(self._ended[after.agent], start) or _last(self._all, start)

    def _tool_ran(self, start: int, end: int) -> bool:
        at = bisect_left(self._tool_starts, end)
        return at > 0 and self._latest_end[at - 1] > start


def _last(calls: list[Call], start: int) -> Call | None:
    at = bisect_right(calls, start, key=lambda call: call.end)
    return calls[at - 1] if at else None
