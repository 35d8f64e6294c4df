"""Codex's rollout files: JSON lines ``{timestamp, type, payload}``, each with the time at which it was written.

A task is told by its own two events, a command by its duration. A model call is taken to begin with the newest input
before it, a tool that tells no duration to last from the line that asks for it to its result: upper bounds both.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from turnscope.decode.imports.report import BadRecord, Line, Report
from turnscope.decode.imports.values import count, decoder, is_object, moment_ns, ms_to_ns, span_id, trace_id
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind, Timing, bounded

NAME: Final = "codex"
MAX_WAITING: Final = 4096
"""Tools without a result that are kept in mind."""
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}\Z")


class _Line(msgspec.Struct):
    type: str
    timestamp: dt.datetime | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class _Info(msgspec.Struct):
    total_token_usage: _Usage | None = None
    last_token_usage: _Usage | None = None


class _Spawn(msgspec.Struct):
    parent_thread_id: str | None = None


class _Subagent(msgspec.Struct):
    thread_spawn: _Spawn | None = None


class _Source(msgspec.Struct):
    subagent: msgspec.Raw = msgspec.Raw(b"null")


class _Meta(msgspec.Struct):
    id: str | None = None
    session_id: str | None = None
    cli_version: str | None = None
    parent_thread_id: str | None = None
    source: msgspec.Raw = msgspec.Raw(b"null")


class _Context(msgspec.Struct):
    model: str | None = None


class _Item(msgspec.Struct):
    """A ``response_item`` or an ``event_msg``."""

    type: str | None = None
    role: str | None = None
    name: str | None = None
    call_id: str | None = None
    turn_id: str | None = None
    exit_code: int | None = None
    success: bool | None = None
    reason: str | None = None
    duration: msgspec.Raw = msgspec.Raw(b"null")
    duration_ms: float | None = None
    time_to_first_token_ms: float | None = None
    info: _Info | None = None


class _Duration(msgspec.Struct):
    secs: int
    nanos: int


_line = decoder(_Line)
_meta = decoder(_Meta)
_context = decoder(_Context)
_item = decoder(_Item)
_source = decoder(_Source)
_subagent = decoder(_Subagent)
_duration = decoder(_Duration)


class _Reader:
    """What is kept between lines: little, however long the file."""

    def __init__(self) -> None:
        self.meta: _Meta | None = None
        self.parent: str | None = None
        self.model: str | None = None
        self.task: AgentSpan | None = None
        self.call: AgentSpan | None = None
        self.calls = 0
        self.waiting_for_usage = False
        """The call's tools have answered, and its usage has not come yet."""
        self.total: _Usage | None = None
        self.tools: OrderedDict[str, AgentSpan] = OrderedDict()
        self.input_ns: int | None = None
        self.ended_ns: int | None = None
        """When the newest task ended, if no other has begun."""

    def take(self, line: _Line) -> Iterator[AgentSpan]:
        if line.type == "session_meta":
            self.meta = self.meta or _meta(line.payload)  # a fork has its parent's after its own
            self.parent = self.parent or _parent(self.meta)
            return
        if line.type == "turn_context":
            self.model = _context(line.payload).model or self.model
            return
        item = _item(line.payload)
        if line.timestamp is None or self.meta is None or self._session() == "":
            raise BadRecord("without a time, or before its session_meta")
        at_ns = moment_ns(line.timestamp)
        if line.type == "event_msg":
            yield from self._event(item, at_ns)
        else:
            yield from self._response(item, at_ns)

    def end(self) -> Iterator[AgentSpan]:
        yield from self._finish_call()
        yield from self.tools.values()
        if self.task is not None:
            self.task.timing = Timing.UNKNOWN
            yield self.task

    def _event(self, item: _Item, at_ns: int) -> Iterator[AgentSpan]:
        match item.type:
            case "task_started" | "turn_started":
                yield from self._begin_task(item, at_ns)
            case "task_complete" | "turn_complete" | "turn_aborted":
                yield from self._end_task(item, at_ns)
            case "user_message":
                self.input_ns = at_ns
            case "token_count" if item.info is not None and item.info.last_token_usage is not None:
                if item.info.total_token_usage != self.total or self.total is None:
                    self.total = item.info.total_token_usage
                    yield from self._use(item.info.last_token_usage, at_ns)
            case _ if item.call_id and item.call_id in self.tools:
                _measure(self.tools[item.call_id], item, at_ns)

    def _response(self, item: _Item, at_ns: int) -> Iterator[AgentSpan]:
        kind = item.type or ""
        if kind.endswith("_output") and item.call_id:
            self.waiting_for_usage = self.call is not None
            self.input_ns = at_ns
            tool = self.tools.pop(item.call_id, None)
            if tool is not None:
                yield _answered(tool, at_ns)
        elif kind == "message" and item.role != "assistant":
            self.input_ns = at_ns
        elif kind in ("message", "reasoning") or kind.endswith("_call"):
            if self.waiting_for_usage:
                yield from self._finish_call()
            call = self._call(at_ns)
            if call.timing == Timing.INFERRED:
                call.ended_ns = max(at_ns, call.ended_ns or 0)
            if kind.endswith("_call") and item.call_id:
                call.tool_calls = (call.tool_calls or 0) + 1
                tool = self._span(SpanKind.TOOL, item.call_id, at_ns)
                tool.timing, tool.tool_call_id = Timing.UNKNOWN, bounded(item.call_id)
                tool.tool_name = bounded(item.name or kind.removesuffix("_call"))
                tool.parent_span_id = self.task.span_id if self.task is not None else None
                self.tools[item.call_id] = tool
                if len(self.tools) > MAX_WAITING:
                    yield self.tools.popitem(last=False)[1]

    def _begin_task(self, item: _Item, at_ns: int) -> Iterator[AgentSpan]:
        yield from self._finish_call()
        if self.task is not None:
            self.task.timing = Timing.UNKNOWN
            yield self.task
        if self.ended_ns is not None and at_ns >= self.ended_ns:
            wait = self._span(SpanKind.USER_WAIT, item.turn_id or str(at_ns), self.ended_ns)
            wait.ended_ns, wait.timing = at_ns, Timing.INFERRED
            yield wait
        self.task = self._span(SpanKind.AGENT, item.turn_id or str(at_ns), at_ns)
        self.input_ns, self.ended_ns = at_ns, None

    def _end_task(self, item: _Item, at_ns: int) -> Iterator[AgentSpan]:
        yield from self._finish_call()
        if self.task is not None and at_ns >= self.task.started_ns:
            task, self.task = self.task, None
            task.revision, task.ended_ns = 2, at_ns
            task.time_to_first_token_ns = ms_to_ns(item.time_to_first_token_ms)
            task.status = "error" if item.type == "turn_aborted" else "ok"
            if item.type == "turn_aborted":
                task.error_type = item.reason if item.reason and _WORD.match(item.reason) else "aborted"
            yield task
        self.ended_ns = at_ns

    def _use(self, usage: _Usage, at_ns: int) -> Iterator[AgentSpan]:
        call = self._call(at_ns)
        call.input_tokens, call.cached_tokens = count(usage.input_tokens), count(usage.cached_input_tokens)
        call.output_tokens = count(usage.output_tokens)
        if call.timing == Timing.INFERRED and not self.waiting_for_usage:
            call.ended_ns = max(at_ns, call.ended_ns or 0)
        call.revision = 2
        yield from self._finish_call()

    def _call(self, at_ns: int) -> AgentSpan:
        """The model call under way, or a new one."""
        if self.call is None:
            known = self.input_ns is not None and self.input_ns <= at_ns
            started_ns = self.input_ns if known and self.input_ns is not None else at_ns
            self.calls += 1
            self.call = self._span(SpanKind.MODEL_CALL, str(self.calls), started_ns)
            self.call.timing = Timing.INFERRED if known else Timing.UNKNOWN
            self.call.tool_calls = 0
            self.call.parent_span_id = self.task.span_id if self.task is not None else None
        return self.call

    def _finish_call(self) -> Iterator[AgentSpan]:
        call, self.call, self.waiting_for_usage = self.call, None, False
        if call is not None:
            yield call

    def _session(self) -> str:
        return (self.meta.id or self.meta.session_id or "") if self.meta is not None else ""

    def _span(self, kind: SpanKind, key: str, started_ns: int) -> AgentSpan:
        session = self._session()
        trace, span = trace_id(NAME, session), span_id(kind, key)
        version = self.meta.cli_version if self.meta is not None else None
        return AgentSpan(
            span_key=f"{trace}-{span}",
            trace_id=trace,
            span_id=span,
            session_id=bounded(session),
            session_source="session_meta.id",
            parent_session_id=bounded(self.parent) if self.parent else None,
            kind=kind,
            classified_by="payload.type",
            source=NAME,
            service_name=NAME,
            service_version=bounded(version) if version else None,
            model=bounded(self.model) if self.model and kind is SpanKind.MODEL_CALL else None,
            started_ns=started_ns,
        )


def read(lines: Iterable[Line], report: Report) -> Iterator[AgentSpan]:
    """The spans in a rollout file. A broken line is counted in ``report`` and costs nothing but itself."""
    reader = _Reader()
    for line in lines:
        report.records += 1
        try:
            record = _line(line.text)
            if record.type not in ("session_meta", "turn_context", "response_item", "event_msg"):
                report.other += 1
                continue
            yield from reader.take(record)
        except BadRecord as error:
            report.refuse(line.number, str(error))
    yield from reader.end()


def _parent(meta: _Meta) -> str | None:
    """The session that started this one, from either place where versions have it."""
    if meta.parent_thread_id or not is_object(meta.source):
        return meta.parent_thread_id
    subagent = _source(meta.source).subagent
    if not is_object(subagent):
        return None
    spawn = _subagent(subagent).thread_spawn
    return spawn.parent_thread_id if spawn is not None else None


def _measure(tool: AgentSpan, item: _Item, at_ns: int) -> None:
    """Take in what an event tells of a tool's end: its duration and whether it failed."""
    if item.exit_code is not None or item.success is not None:
        tool.status = "error" if item.exit_code or item.success is False else "ok"
    if not is_object(item.duration):
        return
    took = _duration(item.duration)
    ns = took.secs * 1_000_000_000 + took.nanos
    if 0 <= ns <= at_ns - tool.started_ns:
        tool.started_ns, tool.ended_ns, tool.timing, tool.revision = at_ns - ns, at_ns, Timing.MEASURED, 2


def _answered(tool: AgentSpan, at_ns: int) -> AgentSpan:
    """The tool with its result."""
    tool.revision = 2
    if tool.timing == Timing.UNKNOWN and at_ns >= tool.started_ns:
        tool.ended_ns, tool.timing = at_ns, Timing.INFERRED
    return tool
