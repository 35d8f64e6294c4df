"""One client request as the proxy saw it, and the ``Attempt`` events that tell of it.

A pure state machine: the clock comes in as a function, the events go out through one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from turnscope.model import Attempt, Handle
from turnscope.proxy.answer import FirstContent
from turnscope.proxy.legs import AttemptRecord, LegRecord, stage_of
from turnscope.proxy.messages import Prompt, Prompts, Untold
from turnscope.proxy.requests import ClientRequest, LegRequest, generates, read_client_request
from turnscope.proxy.sessions import Lineage, ResponseChain, Session, find_lineage, find_session
from turnscope.semconv import Leg

BODY_LIMIT: Final = 64 << 20
"""Bytes of a client's request body; of a longer one only the headers are read."""


class TraceIds(msgspec.Struct, frozen=True):
    """Trace and span id in hex."""

    trace_id: str
    span_id: str


class TurnRecord:
    """Everything seen of one client request, from its arrival (offset 0) to its end."""

    def __init__(
        self,
        *,
        turn_id: str,
        path: str,
        headers: Mapping[str, str],
        wall_ns: int,
        clock: Callable[[], int],
        emit: Callable[[Untold], None],
        chain: ResponseChain,
        prompts: Prompts,
    ) -> None:
        self.turn_id = turn_id
        self.path = path
        self.headers = headers
        self.caller: TraceIds | None = None
        self.server: TraceIds | None = None
        self.request = ClientRequest()
        self.session: Session | None = None
        self.lineage = Lineage()
        self.attempts: list[AttemptRecord] = []
        self.finished = False
        self.status: int | None = None
        self.first_byte_ns: int | None = None
        self.last_byte_ns: int | None = None
        self._wall_ns = wall_ns
        self._now = clock
        self._start = clock()
        self._emit = emit
        self._chain = chain
        self._prompts = prompts
        self._body: list[bytes] = []
        self._body_size = 0
        self._read = False
        self._prompt = Prompt(b"")
        self._first_content: FirstContent | None = None
        self._cancelled_at: str | None = None

    def _clock(self) -> int:
        return self._now() - self._start

    # --- the client's request -------------------------------------------------------------------
    def body(self, chunk: bytes) -> None:
        """The application read the next piece of the request's body."""
        self._body_size += len(chunk)
        if self._body_size > BODY_LIMIT:
            self._body.clear()
        elif not self._read:
            self._body.append(chunk)

    def read_request(self) -> None:
        """Read what has come of the request, once; its bytes are left to what tells of its messages."""
        if self._read:
            return
        self._read = True
        body = b"".join(self._body) if self._body_size <= BODY_LIMIT else b""
        self._body.clear()
        self.request = read_client_request(body)
        self._prompt = self._prompts.take(body)
        self.session = find_session(self.request, self.headers, self._chain)
        self.lineage = find_lineage(self.headers)

    # --- the legs -------------------------------------------------------------------------------
    @property
    def current(self) -> AttemptRecord | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    def begin_leg(self, request: LegRequest) -> tuple[AttemptRecord, LegRecord]:
        """The proxy sends ``request`` to an engine. A prefill leg, or a whole one after another, begins an attempt."""
        self.read_request()
        kind = request.leg(self.request)
        leg = LegRecord(kind, request, self._clock)
        attempt = self.current
        if kind is Leg.PREFILL:
            attempt = self._new_attempt()
            attempt.prefill = leg
        else:
            if kind is Leg.DECODE:
                attempt = self._attempt_of(request.handle) or attempt
            elif attempt is not None and attempt.prefill is None:
                attempt = None
            attempt = attempt or self._new_attempt()
            attempt.decode = leg
        return attempt, leg

    def _new_attempt(self) -> AttemptRecord:
        before = self.current
        attempt = AttemptRecord(len(self.attempts) + 1)
        self.attempts.append(attempt)
        if before is not None:
            before.superseded = True
            if not before.in_flight and not before.sent:
                self._send(before, final=False)
        return attempt

    def _attempt_of(self, handle: Handle | None) -> AttemptRecord | None:
        """The attempt whose P leg ``handle`` names, where several prefill legs ran side by side."""
        if handle is None:
            return None
        for attempt in reversed(self.attempts):
            mine = attempt.turn_handle
            if mine and not attempt.sent and (mine.engine_id, mine.request_id) == (handle.engine_id, handle.request_id):
                return attempt
        return None

    def leg_ended(self, attempt: AttemptRecord) -> None:
        """A leg of ``attempt`` has ended. Superseded while it ran and without success, the attempt is sent now; with
        success it may still be the one that is answered."""
        if attempt.superseded and attempt.failing and not (attempt.in_flight or attempt.sent or self.finished):
            self._send(attempt, final=False)

    # --- the client's response ------------------------------------------------------------------
    def response_started(self, status: int, content_type: str, content_encoding: str) -> None:
        """The head of the response is handed to the client's connection."""
        self.status = status
        if status < 400:
            self._first_content = FirstContent(content_type, content_encoding)

    def response_chunk(self, chunk: bytes) -> None:
        """A piece of the response's body is handed to the client's connection."""
        if not chunk:
            return
        now = self._clock()
        self.last_byte_ns = now
        if self._first_content is not None and self._first_content.found_in(chunk):
            self.first_byte_ns = now
            self._first_content = None

    def client_left(self) -> None:
        """The client closed its connection before the response was complete."""
        if not self.finished and self._cancelled_at is None:
            self._cancelled_at = self.current.stage if self.current else "proxy"

    def finish(self, error: BaseException | None = None) -> AttemptRecord | None:
        """The response has ended, or the application raised: send what has not been sent, the last attempt as final.

        Returns the final attempt, None when the request never had to do with an engine.
        """
        if self.finished:
            return None
        self.read_request()
        if not self.attempts:
            if not generates(self.path):
                self.finished = True
                return None
            self.attempts.append(AttemptRecord(1))
        final = self._final()
        self._learn_session(final)
        for attempt in self.attempts:
            if attempt is not final and not attempt.sent:
                self._send(attempt, final=False)
        self.finished = True
        if self.status is None and self._cancelled_at is None and (error is None or isinstance(error, Exception)):
            self.status = 500  # what every ASGI server answers in the application's place
        self._send(final, final=True, error=error)
        return final

    def _final(self) -> AttemptRecord:
        """The attempt that was answered, else the newest."""
        unsent = [a for a in self.attempts if not a.sent]
        return ([a for a in unsent if a.decode is not None] or unsent)[-1]

    def _learn_session(self, final: AttemptRecord) -> None:
        """Remember the answer's id for ``previous_response_id``; a chain's first answer names its session."""
        response_id = final.decode.reader.answer.response_id if final.decode else None
        if response_id is None or self.request.store is False:
            return
        if self.session is None:
            self.session = Session(response_id, "response.id")
        self._chain.add(response_id, self.session.id)

    # --- the events -----------------------------------------------------------------------------
    def _send(self, attempt: AttemptRecord, *, final: bool, error: BaseException | None = None) -> None:
        attempt.sent = True
        answer = attempt.decode.reader if attempt.decode is not None and attempt.decode.ok else None
        said = answer.answer.said if answer is not None and not answer.skipped else None
        self._emit(Untold(self._event(attempt, final=final, error=error), self._prompt, said))

    def _event(self, attempt: AttemptRecord, *, final: bool, error: BaseException | None) -> Attempt:
        prefill, decode = attempt.prefill, attempt.decode
        first = prefill or decode
        outcome, stage = self._outcome(attempt, error) if final else _outcome_of_superseded(attempt)
        event = Attempt(
            proxy_turn_id=self.turn_id,
            number=attempt.number,
            final=final,
            model=_model(self.request, prefill, decode),
            session_id=self.session.id if self.session else None,
            session_source=self.session.source if self.session else None,
            parent_session_id=self.lineage.parent_session_id,
            agent_id=self.lineage.agent_id,
            parent_agent_id=self.lineage.parent_agent_id,
            prefill=attempt.turn_handle,
            x_request_id=first.x_request_id if first else None,
            handle_given=prefill.request.handle if prefill else None,
            prefill_status=prefill.status if prefill else None,
            prefill_start_ns=prefill.start_ns if prefill else None,
            prefill_end_ns=prefill.end_ns if prefill else None,
            outcome=outcome,
            error_stage=stage,
            streamed=bool(decode.request.stream if decode else self.request.stream),
            input_tokens=prefill.reader.answer.input_tokens if prefill else None,
            started_wall_ns=self._wall_ns,
            started_mono_ns=self._start,
            caller_trace_id=self.caller.trace_id if self.caller else None,
            caller_span_id=self.caller.span_id if self.caller else None,
            server_trace_id=self.server.trace_id if self.server else None,
            server_span_id=self.server.span_id if self.server else None,
        )
        if decode is not None:
            answer = decode.reader.answer
            event.decode_status = decode.status
            event.decode_start_ns = decode.start_ns
            event.handle_out = answer.handle
            event.finish_reason = answer.finish_reason
            event.tool_calls = answer.tool_calls
            event.output_tokens = answer.output_tokens
            if answer.input_tokens is not None:
                event.input_tokens = answer.input_tokens
        if final:
            event.status_code = self.status
            event.first_byte_ns = self.first_byte_ns
            event.last_byte_ns = self.last_byte_ns
        return event

    def _outcome(self, attempt: AttemptRecord, error: BaseException | None) -> tuple[str, str | None]:
        if self._cancelled_at is not None:
            return "cancelled", self._cancelled_at
        failing = attempt.failing
        if error is not None and not isinstance(error, Exception):
            return "cancelled", stage_of(failing) if failing else "proxy"
        if error is not None or self.status is None or self.status >= 400:
            return "error", stage_of(failing) if failing else "proxy"
        if failing is not None and failing is attempt.decode and not failing.in_flight:
            return "cancelled" if failing.cancelled else "error", "decode"
        return "ok", None


def _outcome_of_superseded(attempt: AttemptRecord) -> tuple[str, str | None]:
    failing = attempt.failing
    if failing is None:
        return "cancelled", "proxy"
    return "cancelled" if failing.cancelled or failing.in_flight else "error", stage_of(failing)


def _model(client: ClientRequest, *legs: LegRecord | None) -> str | None:
    """As the client named it, else as the proxy did."""
    names = [client.model, *(leg.request.model for leg in legs if leg is not None)]
    return next((name for name in names if isinstance(name, str)), None)
