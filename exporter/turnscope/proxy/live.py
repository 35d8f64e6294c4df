"""One client request while it runs: its record, its spans, and the guard that keeps both from harming it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from turnscope import semconv
from turnscope.decode.codec import record_key
from turnscope.model import Attempt
from turnscope.proxy.legs import AttemptRecord, LegRecord
from turnscope.proxy.messages import Untold
from turnscope.proxy.outgoing import Incoming, Outgoing
from turnscope.proxy.process import ProxyHook
from turnscope.proxy.record import TurnRecord
from turnscope.proxy.requests import read_leg_request
from turnscope.proxy.spans import TurnSpans, end_leg

SESSION_HEADER: Final = "x-session-id"
REQUEST_HEADER: Final = "x-request-id"

Message = MutableMapping[str, Any]
P = ParamSpec("P")
R = TypeVar("R")


class _Guarded(Protocol):
    _hook: ProxyHook


S = TypeVar("S", bound=_Guarded)


def guarded(body: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R | None]:
    """A method that never raises and does nothing when the hook is off; then it returns None."""

    @functools.wraps(body)
    def guarded_body(self: S, *args: P.args, **kwargs: P.kwargs) -> R | None:
        guard = self._hook.guard
        if guard.on:
            try:
                return body(self, *args, **kwargs)
            except Exception as error:
                guard.failed(error)
        return None

    return cast(Callable[Concatenate[S, P], R | None], guarded_body)


class LiveTurn:
    """Called by the server side (body, response) and by the client side (legs) of the hook."""

    def __init__(
        self,
        hook: ProxyHook,
        *,
        path: str,
        headers: Mapping[str, str],
        foreign_spans: bool,
        gone: Callable[[], bool],
    ) -> None:
        """``gone`` tells whether the client's connection is known to be closed."""
        self._hook = hook
        self._gone = gone
        self._event: Attempt | None = None
        self._token: Any = None
        self.spans = TurnSpans(hook.tracing, headers, path, foreign=foreign_spans)
        self.record = TurnRecord(
            turn_id=hook.new_id(),
            path=path,
            headers=headers,
            wall_ns=hook.wall_ns(),
            clock=hook.clock,
            emit=self._emit,
            chain=hook.chain,
            prompts=hook.prompts,
        )
        self.record.caller = self.spans.caller
        self.record.server = self.spans.server
        hook.open[self.record.turn_id] = None

    def _emit(self, untold: Untold) -> None:
        self._event = untold.event
        self._hook.emit(untold)

    # --- server side ----------------------------------------------------------------------------
    @guarded
    def entered(self) -> None:
        """The application begins: its own spans become children of our SERVER span."""
        self._token = self.spans.enter()

    @guarded
    def left(self) -> None:
        """The application has returned, in the same task."""
        self.spans.leave(self._token)

    @guarded
    def received(self, message: Message) -> None:
        """The application was given an ASGI message."""
        if message["type"] == "http.request":
            self.record.body(message.get("body", b""))
        elif message["type"] == "http.disconnect":
            self.record.client_left()

    def sending(self, message: Message) -> None:
        """The application hands an ASGI message to the client's connection."""
        guard = self._hook.guard  # by itself: one call less for each token
        if guard.on:
            try:
                if message["type"] == "http.response.body":
                    self.record.response_chunk(message.get("body", b""))
                elif message["type"] == "http.response.start":
                    headers = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}
                    self.record.response_started(
                        message["status"],
                        headers.get(b"content-type", b"").decode("latin-1"),
                        headers.get(b"content-encoding", b"").decode("latin-1"),
                    )
            except Exception as error:
                guard.failed(error)

    @guarded
    def client_left(self) -> None:
        """The client closed its connection too early."""
        self.record.client_left()

    @guarded
    def finish(self, error: BaseException | None = None) -> None:
        """The response has ended, or ``error`` ended it. Later calls do nothing."""
        if self.record.finished:
            return
        self._hook.open.pop(self.record.turn_id, None)
        self.look_for_client()
        self.record.server = self.record.server or self.spans.server
        final = self.record.finish(error)
        event = self._event if final is not None else None
        if event is not None and event.prefill is None:
            self.spans.turn(record_key(None, event))
        self.spans.finish(event, self.record.status)

    # --- client side ----------------------------------------------------------------------------
    @guarded
    def open_leg(self, describe: Callable[[], Outgoing]) -> LiveLeg | None:
        """The proxy is about to POST what ``describe`` tells of; None when that asks no engine for tokens. Adds the
        headers that the proxy left out."""
        if self.record.finished:
            return None
        outgoing = describe()
        request = read_leg_request(outgoing.path, outgoing.body)
        if request is None:
            return None
        headers = outgoing.headers
        self.spans.look_inside()
        self.record.server = self.record.server or self.spans.server
        attempt, leg = self.record.begin_leg(request)
        session = self.record.session
        span = None if outgoing.makes_spans else self.spans.start_leg(leg.kind, request, outgoing, session)
        if session is not None and SESSION_HEADER not in headers and _fits_header(session.id):
            headers[SESSION_HEADER] = session.id
        if REQUEST_HEADER not in headers:
            given = semconv.bounded(self.record.headers.get(REQUEST_HEADER, ""))
            headers[REQUEST_HEADER] = given if _fits_header(given) else self.record.turn_id
        leg.x_request_id = headers[REQUEST_HEADER]
        if not outgoing.makes_spans and "traceparent" not in headers:
            self.spans.inject(headers, span)
        return LiveLeg(self._hook, self, attempt, leg, span)

    def look_for_client(self) -> None:
        """Nobody tells an application that does not stream when its client leaves: look at the moments that count."""
        if self._gone():
            self.record.client_left()

    def leg_ended(self, attempt: AttemptRecord, leg: LegRecord) -> None:
        """Called by the leg, once."""
        handle = attempt.turn_handle
        if leg is attempt.prefill and handle is not None:
            self.spans.turn(semconv.turn_key(handle.engine_id, handle.request_id))
        self.record.leg_ended(attempt)


def _fits_header(text: str) -> bool:
    """Whether ``text`` can be sent as a header's value as it is."""
    return bool(text) and text.isascii() and text.isprintable() and text == text.strip()


class LiveLeg:
    """One request to an engine while it runs."""

    def __init__(self, hook: ProxyHook, turn: LiveTurn, attempt: AttemptRecord, record: LegRecord, span: Any) -> None:
        self._hook = hook
        self._turn = turn
        self._attempt = attempt
        self._record = record
        self._span = span

    @guarded
    def took(self, describe: Callable[[], Incoming]) -> bool:
        """The response has come: whole (True), and then the leg has ended, or only its head."""
        incoming = describe()
        self._record.responded(incoming.status, incoming.content_type, incoming.content_encoding)
        if incoming.content is not None:
            self._record.reader.feed(incoming.content)
            self.ended()
        return incoming.content is not None

    @guarded
    def refused(self, status: int | None) -> None:
        """The library made an error of a response with this status; None: of something else."""
        if status is not None:
            self._record.responded(status, "", "")

    @guarded
    def follow(self, install: Callable[[], None]) -> None:
        """Run ``install``, which lets this leg see the rest of the response."""
        install()

    def chunk(self, data: bytes) -> None:
        """A piece of the engine's answer has come."""
        guard = self._hook.guard  # by itself, as above
        if guard.on:
            try:
                self._record.reader.feed(data)
            except Exception as error:
                guard.failed(error)

    @guarded
    def ended(self, error: BaseException | None = None, *, complete: bool = True) -> None:
        """The answer has ended, whole or by ``error``; not ``complete``: the proxy closed it. Once."""
        record = self._record
        if not record.in_flight:
            return
        self._turn.look_for_client()
        broke = isinstance(error, Exception)
        record.ended(failed=broke, cancelled=not broke and (error is not None or not complete))
        if record.reader.skipped:
            self._hook.say_unread()
        kind = None
        if not record.ok:
            status = record.status or 0
            kind = str(status) if status >= 400 else type(error).__name__ if error else "answer"
        end_leg(self._span, record.status, kind)
        self._turn.leg_ended(self._attempt, record)
