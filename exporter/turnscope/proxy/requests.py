"""What requests say: the client's to the proxy, and the proxy's to the engines. Names and handles, never text."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from turnscope import surrogates
from turnscope.model import Handle
from turnscope.proxy.handles import handle_of
from turnscope.semconv import Leg

GENERATION_PATHS: Final = ("/completions", "/responses", "/messages", "/generate")
"""Ends of the paths on which a request asks a model for an answer."""

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


def read_leg_request(path: str, body: Any) -> LegRequest | None:
    """Of a body in JSON, or of what it will be made of; None when the request asks no engine for tokens: health
    checks, lists of models, tokenizers."""
    request = _read(body, LegRequest) if isinstance(body, bytes | str) else _convert(body, LegRequest)
    if request is None:
        return LegRequest() if generates(path) else None
    return request if request.kv_transfer_params or generates(path) else None


def _read(body: bytes | str, kind: type[_T]) -> _T | None:
    try:
        return surrogates.reading(partial(msgspec.json.decode, type=kind))(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _convert(body: Any, kind: type[_T]) -> _T | None:
    try:
        return msgspec.convert(body, type=kind)
    except (msgspec.ValidationError, TypeError):
        return None
