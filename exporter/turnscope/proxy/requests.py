"""What requests say: the client's to the proxy, and the proxy's to the engines. Lengths and names, never text."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from turnscope.model import Handle
from turnscope.proxy.handles import handle_of
from turnscope.semconv import Leg

GENERATION_PATHS: Final = ("/completions", "/responses", "/messages", "/generate")
"""Ends of the paths on which a request asks a model for an answer."""

MAX_MESSAGES: Final = 4096

_T = TypeVar("_T", bound=msgspec.Struct)


def generates(path: str) -> bool:
    """Whether a request to ``path`` asks for an answer."""
    return path.rstrip("/").endswith(GENERATION_PATHS)


class ClientRequest(msgspec.Struct):
    """The client's request: every field may hold anything at all."""

    model: Any = None
    stream: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    store: Any = None
    conversation_id: Any = None
    session_id: Any = None
    conversation: Any = None
    previous_response_id: Any = None
    vllm_xargs: Any = None
    messages: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()


class LegRequest(msgspec.Struct):
    """A request of the proxy to an engine."""

    model: Any = None
    stream: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    kv_transfer_params: Any = None

    @property
    def handle(self) -> Handle | None:
        """The handle it carries: D's in a prefill request, P's in a decode request."""
        return handle_of(self.kv_transfer_params)

    def leg(self, client: ClientRequest) -> Leg:
        """Which part of the turn it asks for. Where no ``kv_transfer_params`` say so, a request for one token that the
        client did not make is a prefill."""
        params = self.kv_transfer_params
        if isinstance(params, dict):
            if params.get("do_remote_decode"):
                return Leg.PREFILL
            if params.get("do_remote_prefill"):
                return Leg.DECODE
        if not self.stream and _one_token(self) and not _one_token(client):
            return Leg.PREFILL
        return Leg.WHOLE


def _one_token(request: LegRequest | ClientRequest) -> bool:
    return 1 in (request.max_tokens, request.max_completion_tokens)


def read_client_request(body: bytes) -> ClientRequest:
    """Of an incomplete body or one that is no JSON object, every field is None."""
    return _read(body, ClientRequest) or ClientRequest()


def read_leg_request(path: str, body: bytes) -> LegRequest | None:
    """None when the request asks no engine for tokens: health checks, lists of models, tokenizers."""
    request = _read(body, LegRequest)
    if request is None:
        return LegRequest() if generates(path) else None
    return request if request.kv_transfer_params or generates(path) else None


def _read(body: bytes, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def roles_and_lengths(request: ClientRequest) -> tuple[list[str], list[int]]:
    """Role and characters of each message, oldest first; the results of tools count as role ``tool``.

    Characters are those of text, reasoning and tool calls' names and arguments. Of more than ``MAX_MESSAGES``
    messages the newest are kept.
    """
    raw = bytes(request.messages) or bytes(request.input)
    try:
        messages = msgspec.json.decode(raw) if raw else []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        messages = []
    if isinstance(messages, str):
        return ["user"], [len(messages)]
    kept = [m for m in messages if isinstance(m, dict)][-MAX_MESSAGES:] if isinstance(messages, list) else []
    return [_role(m) for m in kept], [_characters(m) for m in kept]


def _role(message: dict[str, Any]) -> str:
    kind = message.get("type")
    if kind == "function_call_output":
        return "tool"
    if kind in ("function_call", "reasoning"):
        return "assistant"
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(p, dict) and p.get("type") == "tool_result" for p in content):
        return "tool"
    role = message.get("role")
    return role if isinstance(role, str) else "unknown"


_TEXTS: Final = ("text", "thinking", "content", "reasoning_content", "reasoning", "refusal")
_CALLS: Final = ("arguments", "name", "output", "input")


def _characters(part: Any) -> int:
    if isinstance(part, str):
        return len(part)
    if isinstance(part, list):
        return sum(_characters(p) for p in part)
    if not isinstance(part, dict):
        return 0
    total = sum(_characters(part[key]) for key in _TEXTS if key in part)
    total += sum(_plain_length(part[key]) for key in _CALLS if key in part)
    calls = part.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            total += _characters(call.get("function"))
    return total


def _plain_length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(msgspec.json.encode(value)) if value is not None else 0
