"""Claude Code's session files: JSON lines, one a piece of a message, each with the time at which it was written.

The file tells no moment at which a request was sent or a tool began. A model call is taken to begin with the newest
input before it (a prompt, or the last result of a tool), a tool with the line that asks for it: both are upper
bounds, and the time a tool waited for the user's permission is in it. Where a result tells its own duration, that is
used.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from turnscope.decode.imports.report import BadRecord, Line, Report
from turnscope.decode.imports.values import count, decoder, is_list, is_object, moment_ns, ms_to_ns, span_id, trace_id
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind, Timing, bounded

NAME: Final = "claude-code"
MAX_WAITING: Final = 4096
"""Tools without a result, and agents, that are kept in mind."""
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}\Z")


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Block(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    stop_reason: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    """Looked into only where it is a list of blocks, and then only for what ``_Block`` names."""


class _Record(msgspec.Struct, rename="camel"):
    type: str
    uuid: str | None = None
    session_id: str | None = None
    timestamp: dt.datetime | None = None
    version: str | None = None
    agent_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    request_id: str | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")
    message: _Message | None = None
    tool_use_result: msgspec.Raw = msgspec.Raw(b"null")


class _Took(msgspec.Struct, rename="camel"):
    duration_ms: float | None = None
    total_duration_ms: float | None = None


_record = decoder(_Record)
_blocks = decoder(list[_Block])
_took = decoder(_Took)
_word = decoder(str)


class _Chain(msgspec.Struct):
    """One agent of a session: the main one, or a subagent."""

    input_ns: int | None = None
    """When the newest prompt or result was written."""
    answered_ns: int | None = None
    """When the newest answer was, if it asked for no tool."""
    request: AgentSpan | None = None
    """Several lines are one request."""
    key: str = ""


class _Reader:
    """What is kept between lines: little, however long the file."""

    def __init__(self) -> None:
        self.chains: OrderedDict[tuple[str, str], _Chain] = OrderedDict()
        self.tools: OrderedDict[tuple[str, str], AgentSpan] = OrderedDict()

    def take(self, record: _Record) -> Iterator[AgentSpan]:
        if record.message is None or record.timestamp is None or not record.session_id:
            raise BadRecord("without a time, a session or a message")
        at_ns = moment_ns(record.timestamp)
        agent = record.agent_id or ("sidechain" if record.is_sidechain else "")
        place = (record.session_id, agent)
        chain = self.chains.pop(place, None) or _Chain()
        self.chains[place] = chain
        if len(self.chains) > MAX_WAITING:
            yield from _finished(self.chains.popitem(last=False)[1])
        content = record.message.content
        blocks = _blocks(content) if is_list(content) else []
        if record.type == "assistant":
            yield from self._answer(record, record.message, blocks, chain, at_ns)
        else:
            yield from self._input(record, blocks, chain, at_ns)

    def end(self) -> Iterator[AgentSpan]:
        for chain in self.chains.values():
            yield from _finished(chain)
        yield from self.tools.values()

    def _answer(
        self, record: _Record, message: _Message, blocks: list[_Block], chain: _Chain, at_ns: int
    ) -> Iterator[AgentSpan]:
        key = record.request_id or message.id or record.uuid or ""
        if chain.request is None or chain.key != key:
            yield from _finished(chain)
            known = chain.input_ns is not None and chain.input_ns <= at_ns
            started_ns = chain.input_ns if known and chain.input_ns is not None else at_ns
            chain.key = key
            chain.request = _span(record, SpanKind.MODEL_CALL, key, started_ns)
            chain.request.timing = Timing.INFERRED if known else Timing.UNKNOWN
            chain.request.revision = 0
            chain.request.tool_calls = 0
        call = chain.request
        call.revision += 1  # a file that has grown since tells more of the same request
        if call.timing == Timing.INFERRED:
            call.ended_ns = max(at_ns, call.ended_ns or 0)
        if message.usage is not None:
            _use(call, message.usage)
        call.model = bounded(message.model) if message.model and message.model != "<synthetic>" else call.model
        call.finish_reason = bounded(message.stop_reason) if message.stop_reason else call.finish_reason
        call.status = "error" if record.is_api_error_message else call.status
        if record.is_api_error_message:
            call.error_type = _error(record.error)
        for block in blocks:
            if block.type == "tool_use" and block.id:
                call.tool_calls = (call.tool_calls or 0) + 1
                tool = _span(record, SpanKind.TOOL, block.id, at_ns)
                tool.timing, tool.tool_call_id = Timing.UNKNOWN, bounded(block.id)
                tool.tool_name = bounded(block.name) if block.name else None
                self.tools[(tool.trace_id, block.id)] = tool
                if len(self.tools) > MAX_WAITING:
                    yield self.tools.popitem(last=False)[1]
        chain.answered_ns = None if call.tool_calls else at_ns

    def _input(self, record: _Record, blocks: list[_Block], chain: _Chain, at_ns: int) -> Iterator[AgentSpan]:
        results = [block for block in blocks if block.type == "tool_result"]
        for block in results:
            tool = self.tools.pop((trace_id(NAME, record.session_id), block.tool_use_id or ""), None)
            if tool is not None and at_ns >= tool.started_ns:
                tool.revision, tool.ended_ns, tool.timing = 2, at_ns, Timing.INFERRED
                tool.status = "error" if block.is_error else "ok"
                _measure(tool, record.tool_use_result if len(results) == 1 else None)
            if tool is not None:
                yield tool
        asked = not results and not record.is_meta and not record.is_compact_summary
        if asked and chain.answered_ns is not None and at_ns >= chain.answered_ns:
            wait = _span(record, SpanKind.USER_WAIT, record.uuid or str(at_ns), chain.answered_ns)
            wait.ended_ns, wait.timing = at_ns, Timing.INFERRED
            yield wait
        if asked or results:
            chain.input_ns, chain.answered_ns = at_ns, None


def read(lines: Iterable[Line], report: Report) -> Iterator[AgentSpan]:
    """The spans in a session file. A broken line is counted in ``report`` and costs nothing but itself."""
    reader = _Reader()
    for line in lines:
        report.records += 1
        try:
            record = _record(line.text)
            if record.type not in ("user", "assistant"):
                report.other += 1
                continue
            yield from reader.take(record)
        except BadRecord as error:
            report.refuse(line.number, str(error))
    yield from reader.end()


def _span(record: _Record, kind: SpanKind, key: str, started_ns: int) -> AgentSpan:
    session = record.session_id or ""
    trace, span = trace_id(NAME, session), span_id(kind, key)
    return AgentSpan(
        span_key=f"{trace}-{span}",
        trace_id=trace,
        span_id=span,
        session_id=bounded(session),
        session_source="sessionId",
        kind=kind,
        classified_by="type",
        source=NAME,
        service_name=NAME,
        service_version=bounded(record.version) if record.version else None,
        agent_id=bounded(record.agent_id) if record.agent_id else None,
        started_ns=started_ns,
    )


def _finished(chain: _Chain) -> Iterator[AgentSpan]:
    if chain.request is not None:
        yield chain.request
        chain.request = None


def _use(call: AgentSpan, usage: _Usage) -> None:
    """Every line of a request repeats its usage; the last one is complete."""
    cached, made = count(usage.cache_read_input_tokens), count(usage.cache_creation_input_tokens)
    fresh = count(usage.input_tokens)
    call.cached_tokens = cached
    call.input_tokens = None if fresh is None else fresh + (cached or 0) + (made or 0)
    call.output_tokens = count(usage.output_tokens)


def _measure(tool: AgentSpan, result: msgspec.Raw | None) -> None:
    """Let the tool begin by its own duration, where its result tells one that fits between the two lines."""
    if result is None or not is_object(result) or tool.ended_ns is None:
        return
    try:
        took = _took(result)
    except BadRecord:
        return
    ns = ms_to_ns(took.total_duration_ms if took.total_duration_ms is not None else took.duration_ms)
    if ns is not None and tool.ended_ns - ns >= tool.started_ns:
        tool.started_ns, tool.timing = tool.ended_ns - ns, Timing.MEASURED


def _error(raw: msgspec.Raw) -> str:
    """The error's name, if it is one; never its message."""
    try:
        name = _word(raw)
    except BadRecord:
        return "api_error"
    return name if _WORD.match(name) else "api_error"
