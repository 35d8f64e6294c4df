"""What is remembered of agents' spans."""

from __future__ import annotations

from sys import intern
from typing import Final

import msgspec

from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind

_SHARED: Final = (
    "trace_id",
    "session_id",
    "session_source",
    "name",
    "kind",
    "classified_by",
    "status",
    "timing",
    "source",
    "service_name",
    "service_version",
    "deployment",
    "host",
    "agent_name",
    "agent_id",
    "tool_name",
    "model",
)


def share_texts(span: AgentSpan) -> None:
    """Let texts that many spans have be one object: a good quarter of what is remembered of a span."""
    for name in _SHARED:
        text = getattr(span, name)
        if text is not None:
            setattr(span, name, intern(text))


class Inherited(msgspec.Struct, array_like=True, gc=False):
    """A span's session, where it came from, and the session that started that one."""

    session_id: str | None
    source: str | None
    parent_session_id: str | None


class Remembered(msgspec.Struct, kw_only=True, gc=False):
    """One span."""

    span: AgentSpan
    """As its sender told it."""
    shown: Inherited | None = None
    """With the row handed out last; None when the span was told anew since."""
    revision: int = 0
    """Of the row handed out last; 0: none was."""
    loose: bool = False
    """It is of an agent, and no session of it is known."""


class TraceState(msgspec.Struct, kw_only=True):
    """One trace."""

    last_ns: int
    """When a span of it last came."""
    spans: dict[str, Remembered] = {}
    children: dict[str, list[str]] = {}
    """Span id, also of one that is not here, to those that name it as their parent."""
    sessions: dict[str, int] = {}
    """Sessions that its spans tell of themselves, and how many do."""
    turns: dict[str, tuple[str, str]] = {}
    """Turns that its spans asked for, by id: the span that called, which need not be here, and the turn's session."""
    asking: dict[str, tuple[str, str | None]] = {}
    """Those whose requests name no session: the span that called, and the session that their row has from it."""
    evaluations: dict[str, AgentSpan] = {}
    """By span id, which need not be here: what a log record told."""
    loose: int = 0
    """Of its spans those that are ``loose``."""

    @property
    def size(self) -> int:
        """What counts for the limit of what is remembered."""
        return len(self.spans) + len(self.turns) + len(self.asking) + len(self.evaluations)

    def forget(self) -> None:
        """All but the sessions that its spans told."""
        self.spans, self.children, self.turns, self.asking, self.evaluations = {}, {}, {}, {}, {}
        self.loose = 0

    @property
    def agreed(self) -> str | None:
        """The session that all of its spans that tell one agree on."""
        return next(iter(self.sessions)) if len(self.sessions) == 1 else None

    @property
    def served(self) -> str | None:
        """The session that all of its turns agree on."""
        sessions = {session for _, session in self.turns.values()}
        return sessions.pop() if len(sessions) == 1 else None

    def called(self, span: AgentSpan) -> str | None:
        """The session of the turns that this span called, a model call also through its children (its HTTP client's);
        None for several."""
        callers = {span.span_id}
        if span.kind == SpanKind.MODEL_CALL:
            callers.update(self.children.get(span.span_id, ()))
        sessions = {session for caller, session in self.turns.values() if caller in callers}
        return sessions.pop() if len(sessions) == 1 else None


class SpansState(msgspec.Struct, kw_only=True):
    """All traces, the longest silent first."""

    traces: dict[str, TraceState] = {}
    remembered: int = 0
    """Spans in them, and turns that they called."""
    forgotten: int = 0
    """Spans that were forgotten before their time, to make room."""
    forgotten_loose: int = 0
    """Of these, those that were ``loose``: no session will be known of them any more."""
