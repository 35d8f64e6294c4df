"""Where a request names its session, and the chain by which the Responses API names the one before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from turnscope.proxy.requests import ClientRequest
from turnscope.semconv import bounded

HEADERS: Final = (
    "x-session-id",
    "x-conversation-id",
    "x-dynamo-session-id",
    "x-claude-code-session-id",
    "session-id",
    "x-correlation-id",
)
"""Headers that name a session, first match wins. ``user`` and its like name a person, so they are not here."""

CHAIN_LIMIT: Final = 50_000


class Session(NamedTuple):
    """A session id and where it was found."""

    id: str
    source: str


class ResponseChain:
    """Which session a response belongs to, so that ``previous_response_id`` can be followed.

    Bounded: of more than ``limit`` responses the oldest is forgotten; a chain that goes on from a forgotten one
    starts anew under that response's id.
    """

    def __init__(self, limit: int = CHAIN_LIMIT) -> None:
        self._limit = limit
        self._session: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._session)

    def session_of(self, response_id: str) -> str:
        """The session of a response; an unknown one is the root of its own."""
        return self._session.get(response_id, response_id)

    def add(self, response_id: str, session_id: str) -> None:
        """``response_id`` was an answer in ``session_id``."""
        self._session[response_id] = session_id
        self._session.move_to_end(response_id)
        if len(self._session) > self._limit:
            self._session.popitem(last=False)


def find_session(request: ClientRequest, headers: Mapping[str, str], chain: ResponseChain) -> Session | None:
    """The request's session; None when it names none. ``headers`` have lower-case names."""
    for name, value in (
        ("conversation_id", request.conversation_id),
        ("session_id", request.session_id),
        ("conversation", request.conversation),
    ):
        if found := _text(value):
            return Session(found, f"body.{name}")
    if previous := _text(request.previous_response_id):
        return Session(chain.session_of(previous), "body.previous_response_id")
    for name in HEADERS:
        if found := _text(headers.get(name)):
            return Session(found, f"header.{name}")
    if isinstance(request.vllm_xargs, dict) and (found := _text(request.vllm_xargs.get("session_id"))):
        return Session(found, "body.vllm_xargs.session_id")
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return bounded(value) if isinstance(value, str) and value.strip() else None
