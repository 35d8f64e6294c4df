"""What an engine's answer says, read while it passes: handle, finish reason, tool calls, usage; its text is only kept
until it is digested."""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgspec

from turnscope.model import Handle
from turnscope.proxy.handles import count, handle_of
from turnscope.proxy.said import Said
from turnscope.proxy.sse import EventSplitter, data_of

PLAIN_LIMIT: Final = 32 << 20
"""Bytes of an answer that is not streamed; a longer one is not read."""
READ_BYTES: Final = 8 << 10
"""A streamed answer is read in pieces of this size: a few dozen events cost in one go little more than one alone."""


class _Delta(msgspec.Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    index: Any = None
    finish_reason: Any = None
    delta: _Delta | None = None


class _Glance(msgspec.Struct):
    """The few fields that tell an event of nothing but text, the usual one, from the others: one fast pass."""

    choices: list[_Choice] | None = None
    usage: Any = None
    kv_transfer_params: Any = None
    error: Any = None
    type: Any = None


_GLANCE: Final = msgspec.json.Decoder(_Glance)


def text_alone(data: bytes) -> list[_Choice] | None:
    """The choices of an event whose data holds nothing but text; None of one with more, or of a strange shape."""
    try:
        glance = _GLANCE.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if glance.usage or glance.kv_transfer_params or glance.error or glance.type:
        return None
    choices = glance.choices or []
    for choice in choices:
        if choice.finish_reason is not None or (choice.delta is not None and choice.delta.tool_calls):
            return None
    return choices


class Answer:
    """The facts of one answer, gathered from its events or its one body."""

    __slots__ = (
        "_calls",
        "failed",
        "finish_reason",
        "handle",
        "input_tokens",
        "output_tokens",
        "response_id",
        "said",
    )

    def __init__(self) -> None:
        self.handle: Handle | None = None
        self.finish_reason: str | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.response_id: str | None = None
        """Only of the Responses API, whose next request names it in ``previous_response_id``."""
        self.failed = False
        """It carried an error, whatever its status code was."""
        self.said = Said()
        self._calls: set[str] = set()

    @property
    def tool_calls(self) -> int:
        """Distinct tool calls asked for."""
        return len(self._calls)

    def see(self, part: Any) -> None:
        """Take in one event's object or the whole answer; anything of an unexpected shape is passed over."""
        if not isinstance(part, dict):
            return
        self.handle = handle_of(part.get("kv_transfer_params")) or self.handle
        if part.get("error"):
            self.failed = True
        self._usage(part.get("usage"))
        for choice in _dicts(part.get("choices")):
            self._choice(choice)
        self._responses(part)
        self._messages(part)

    def _usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.input_tokens = _count(usage, "prompt_tokens", "input_tokens", self.input_tokens)
            self.output_tokens = _count(usage, "completion_tokens", "output_tokens", self.output_tokens)

    def _choice(self, choice: dict[str, Any]) -> None:
        self._finish(choice.get("finish_reason"))
        message = choice.get("delta") or choice.get("message")
        if isinstance(message, dict):
            reasoning = message.get("reasoning_content") or message.get("reasoning")
            self.said.add(choice.get("index"), message.get("content"), reasoning, message.get("tool_calls"))
            for position, call in enumerate(_dicts(message.get("tool_calls"))):
                self._calls.add(f"{choice.get('index')}/{call.get('index', position)}")

    def _finish(self, reason: Any) -> None:
        if isinstance(reason, str):
            self.finish_reason = self.finish_reason or reason
            self.failed = self.failed or reason == "error"

    def _responses(self, part: dict[str, Any]) -> None:
        """The Responses API: one object, or events that carry it at the beginning and the end."""
        inner = part.get("response")
        if isinstance(inner, dict):
            self.see(inner)
        if part.get("object") == "response" and isinstance(part.get("id"), str):
            self.response_id = part["id"]
            if part.get("status") == "failed":
                self.failed = True
        for item in [part.get("item"), *_dicts(part.get("output"))]:
            if isinstance(item, dict) and item.get("type") == "function_call":
                self._calls.add(str(item.get("call_id") or item.get("id")))

    def _messages(self, part: dict[str, Any]) -> None:
        """The Messages API: one object, or its events."""
        inner = part.get("message")
        if part.get("type") == "message_start" and isinstance(inner, dict):
            self._usage(inner.get("usage"))
        delta = part.get("delta")
        if isinstance(delta, dict):
            self._finish(delta.get("stop_reason"))
        self._finish(part.get("stop_reason"))
        for block in [part.get("content_block"), *_dicts(part.get("content"))]:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                self._calls.add(str(block.get("id")))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _count(usage: dict[str, Any], name: str, other: str, before: int | None) -> int | None:
    value = count(usage.get(name, usage.get(other)))
    return before if value is None else value


class AnswerReader:
    """Reads an answer's bytes as they come off the wire into an ``Answer``, a piece at a time or when asked for it."""

    __slots__ = ("_answer", "_inflate", "_plain", "_size", "_splitter", "_unread", "_unread_size", "_unreadable")

    def __init__(self, content_type: str = "", content_encoding: str = "") -> None:
        self._answer = Answer()
        self._splitter = EventSplitter() if "event-stream" in content_type else None
        self._plain: list[bytes] = []
        self._size = 0
        self._unread: list[bytes] = []
        self._unread_size = 0
        encoding = content_encoding.strip().lower()
        self._inflate = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None
        self._unreadable = encoding not in ("", "identity", "gzip", "deflate")

    @property
    def answer(self) -> Answer:
        """What the bytes fed so far say."""
        self._read()
        return self._answer

    @property
    def skipped(self) -> int:
        """Events, or whole answers, too long or too strangely encoded to be read."""
        self._read()
        return int(self._unreadable) + (self._splitter.skipped if self._splitter else 0)

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes: the one step taken for every token while the client waits for it."""
        self._unread.append(chunk)
        self._unread_size += len(chunk)
        if self._unread_size >= READ_BYTES:
            self._read()

    def _read(self) -> None:
        if not self._unread:
            return
        chunk = b"".join(self._unread)
        self._unread.clear()
        self._unread_size = 0
        if self._unreadable:
            return
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk, PLAIN_LIMIT)
            except zlib.error:
                self._unreadable = True
                return
            self._unreadable = bool(self._inflate.unconsumed_tail)
        self._size += len(chunk)
        if self._splitter is not None:
            self._events(self._splitter.feed(chunk))
            if self._size > PLAIN_LIMIT:
                self._answer.said.forget()
        elif self._size > PLAIN_LIMIT:
            self._unreadable = True
            self._plain.clear()
        else:
            self._plain.append(chunk)

    def finish(self) -> None:
        """The answer has ended, or was left in the middle."""
        self._read()
        if self._splitter is not None:
            self._events(self._splitter.finish())
        elif self._plain:
            body = b"".join(self._plain)
            self._plain.clear()
            self._answer.see(_json(body))

    def _events(self, events: list[bytes]) -> None:
        for event in events:
            data = data_of(event)
            choices = text_alone(data)
            if choices is None:
                self._answer.see(_json(data))
            else:
                self._keep(choices)

    def _keep(self, choices: list[_Choice]) -> None:
        """The text of an event of nothing but text."""
        said = self._answer.said
        for choice in choices:
            delta = choice.delta
            if delta is None:
                continue
            if choice.index:
                said.forget()
            if delta.content:
                said.content.append(delta.content)
            if reasoning := delta.reasoning_content or delta.reasoning:
                said.reasoning.append(reasoning)


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_TEXT: Final = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")


class FirstContent:
    """Finds the first piece of a response that carries content: a token, not a role or a keep-alive."""

    __slots__ = ("_splitter",)

    def __init__(self, content_type: str, content_encoding: str = "") -> None:
        readable = "event-stream" in content_type and content_encoding in ("", "identity")
        self._splitter = EventSplitter() if readable else None

    def found_in(self, chunk: bytes) -> bool:
        """Whether ``chunk`` completes the first event with content; any bytes do where there are no events."""
        if self._splitter is None:
            return bool(chunk)
        return any(_has_content(data_of(event)) for event in self._splitter.feed(chunk))


def _has_content(data: bytes) -> bool:
    if not data or data == b"[DONE]":
        return False
    event = _json(data)
    if not isinstance(event, dict):
        return True
    if "choices" in event:
        for choice in _dicts(event["choices"]):
            delta = choice.get("delta")
            if choice.get("text") or (isinstance(delta, dict) and any(delta.get(key) for key in _TEXT)):
                return True
        return False
    kind = event.get("type")
    return kind.endswith(("delta", "_call")) if isinstance(kind, str) else True
