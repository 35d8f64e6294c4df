"""Spans of agents: whose session each belongs to, in whatever order they come.

A span has its own session, else that of its nearest ancestor that has one, else the one that its trace agrees on, else
that of the turn that it called, else the one that its trace's turns agree on. All of it is asked of what is known of
the trace, so the order of arrival makes no difference to the newest rows. A row is
handed out when its span comes and again whenever the answer changes.

A turn whose request names no session is asked for the same way, as if it were a span below the one that called it.

Only what spans say of themselves is passed on, never what they inherited: so circles of parents have no beginning to
inherit from, and end where they began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from turnscope.assembly.ledger import Ledger, one
from turnscope.assembly.settler import CHAINED
from turnscope.assembly.span_state import Inherited, Remembered, SpansState, TraceState, share_texts
from turnscope.model import AgentSpan, Turn
from turnscope.semconv import EVALUATION_RESULT, SpanKind

PARENT: Final = "parent"
TRACE: Final = "trace"
TURN: Final = "turn"
SPAN: Final = "span"
"""Where a turn has its session from that has that of the span that called it."""
COMPLETE_NS: Final = 120 * 1_000_000_000
"""Without a new span, after which a trace is taken to be complete."""
MAX_DEPTH: Final = 200
"""Ancestors asked: deeper ones are as good as none."""


class AgentSpans:
    """Pure, like all of assembly. ``max_spans`` and ``max_traces`` are remembered; the longest silent go first."""

    def __init__(
        self, state: SpansState, ledger: Ledger, *, memory_ns: int, max_spans: int = 50_000, max_traces: int = 20_000
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._memory_ns = memory_ns
        self._max_spans = max_spans
        self._max_traces = max_traces
        self.moved: set[str] = set()
        """Turns that are now of another session than their row says."""

    def feed(self, spans: Iterable[AgentSpan], arrival_ns: int) -> None:
        """Take spans as their senders told them."""
        touched = set()
        for span in spans:
            self._take(span, arrival_ns)
            touched.add(span.trace_id)
        for trace_id in sorted(touched):
            trace = self._state.traces[trace_id]
            self.moved |= {turn for turn, (by, told) in trace.asking.items() if self._above(trace, by) != told}
        self._make_room()

    def session_of(self, trace_id: str, span_id: str, before: str | None) -> str | None:
        """That of a turn that this span, which need not be here, called: its own or its nearest ancestor's, else the
        one that the trace agrees on. ``before``, the last answer, where the trace is not known, or no more."""
        trace = self._state.traces.get(trace_id)
        return self._above(trace, span_id) if trace is not None and trace.spans else before

    def loose(self, now_ns: int) -> int:
        """Spans of agents that belong to no session, in traces that are complete by now: what names the session often
        ends, and comes, last."""
        return sum(trace.loose for trace in self._state.traces.values() if now_ns - trace.last_ns >= COMPLETE_NS)

    def _take(self, span: AgentSpan, arrival_ns: int) -> None:
        trace = self._touch(span.trace_id, arrival_ns)
        if span.classified_by == EVALUATION_RESULT:
            self._evaluate(trace, span)
            return
        agreed = trace.agreed
        known = trace.spans.get(span.span_id)
        if known is not None:
            told = newer(known.span, span)
            if told is known.span:
                return
            self._forget_told(trace, known.span)
            before, known.span, known.shown = known.span.parent_span_id, told, None
        else:
            share_texts(span)
            trace.spans[span.span_id] = known = Remembered(span=span)
            self._state.remembered += 1
            before = None
        told = known.span
        if told.parent_span_id is not None:
            trace.children.setdefault(told.parent_span_id, []).append(told.span_id)
        if told.session_id is not None:
            trace.sessions[told.session_id] = trace.sessions.get(told.session_id, 0) + 1
        self._show(trace, known)
        if trace.agreed != agreed:
            for other in trace.spans.values():
                self._show(trace, other)
            return
        self._show_below(trace, told.span_id)
        # It may be the HTTP client's span, through which its parent called a turn.
        for parent in dict.fromkeys((before, told.parent_span_id)) if trace.turns else ():
            if parent in trace.spans:
                self._show(trace, trace.spans[parent])

    def _evaluate(self, trace: TraceState, told: AgentSpan) -> None:
        """Keep what a log record told of a span, also before that comes: of several the latest."""
        before = trace.evaluations.get(told.span_id)
        self._state.remembered += before is None
        trace.evaluations[told.span_id] = told if before is None else max(before, told, key=_by_time)
        known = trace.spans.get(told.span_id)
        if known is not None and trace.evaluations[told.span_id] is not before:
            known.shown = None
            self._show(trace, known)

    def hear(self, turn: Turn, now_ns: int) -> None:
        """Take in what a turn tells of the session of the span that called it, also before that span comes. One that is
        withdrawn tells nothing, and what it told before is forgotten."""
        if turn.caller_trace_id is None or turn.caller_span_id is None:
            return
        trace = self._state.traces.get(turn.caller_trace_id) or self._touch(turn.caller_trace_id, now_ns)
        own = turn.session_id if turn.session_source != SPAN and not turn.withdrawn else None
        if may_ask(turn) and not turn.withdrawn:
            self._state.remembered += turn.turn_id not in trace.asking
            trace.asking[turn.turn_id] = turn.caller_span_id, turn.session_id if own is None else None
        elif trace.asking.pop(turn.turn_id, None) is not None:
            self._state.remembered -= 1
        told = (turn.caller_span_id, own) if own is not None else None
        if trace.turns.get(turn.turn_id) == told:
            return
        served = trace.served
        self._state.remembered += (told is not None) - (turn.turn_id in trace.turns)
        if told is not None:
            trace.turns[turn.turn_id] = told
        else:
            del trace.turns[turn.turn_id]
        caller = trace.spans.get(turn.caller_span_id)
        if trace.served != served:
            concerned = list(trace.spans.values())
        else:
            above = trace.spans.get(caller.span.parent_span_id or "") if caller is not None else None
            concerned = [known for known in (caller, above) if known is not None]
        for known in concerned:
            self._show(trace, known)
        self._make_room()

    def _forget_told(self, trace: TraceState, span: AgentSpan) -> None:
        """A span that is told anew: what it said before no longer holds."""
        if span.parent_span_id is not None:
            trace.children[span.parent_span_id].remove(span.span_id)
        if span.session_id is not None:
            trace.sessions[span.session_id] -= 1
            if not trace.sessions[span.session_id]:
                del trace.sessions[span.session_id]

    def _touch(self, trace_id: str, arrival_ns: int) -> TraceState:
        """The trace, moved to the end of those that may be forgotten."""
        trace = self._state.traces.pop(trace_id, None) or TraceState(last_ns=arrival_ns)
        trace.last_ns = arrival_ns
        self._state.traces[trace_id] = trace
        return trace

    # --- whose ---------------------------------------------------------------------------------------
    def _show(self, trace: TraceState, known: Remembered) -> bool:
        """Hand out the row if it is another than the one handed out before; whether it was."""
        found = self._inherited(trace, known.span)
        if known.shown == found:
            return False
        known.revision += 1
        known.shown = found
        loose = found.session_id is None and known.span.kind != SpanKind.OTHER
        trace.loose += loose - known.loose
        known.loose = loose
        row = msgspec.structs.replace(
            known.span,
            revision=known.revision,
            session_id=found.session_id,
            session_source=found.source,
            parent_session_id=found.parent_session_id,
            **_evaluation(known.span, trace.evaluations.get(known.span.span_id)),
        )
        self._ledger.revise(span=row)
        return True

    def _above(self, trace: TraceState, span_id: str) -> str | None:
        """The session of what this span started, as far as spans tell."""
        caller = trace.spans.get(span_id)
        known = (caller.span, *self._ancestors(trace, caller.span)) if caller is not None else ()
        return next((span.session_id for span in known if span.session_id is not None), trace.agreed)

    def _inherited(self, trace: TraceState, span: AgentSpan) -> Inherited:
        above = next((a.session_id for a in self._ancestors(trace, span) if a.session_id is not None), None)
        if span.session_id is not None:
            started_by = above if above != span.session_id else None
            return Inherited(span.session_id, span.session_source, span.parent_session_id or started_by)
        if above is not None:
            return Inherited(above, PARENT, span.parent_session_id)
        if trace.agreed is not None:
            return Inherited(trace.agreed, TRACE, span.parent_session_id)
        if trace.turns and (served := trace.called(span) or trace.served) is not None:
            return Inherited(served, TURN, span.parent_session_id)
        return Inherited(None, None, span.parent_session_id)

    def _ancestors(self, trace: TraceState, span: AgentSpan) -> Iterator[AgentSpan]:
        seen = {span.span_id}
        above = span.parent_span_id
        while above is not None and above not in seen and len(seen) < MAX_DEPTH:
            seen.add(above)
            known = trace.spans.get(above)
            if known is None:
                return
            yield known.span
            above = known.span.parent_span_id

    def _show_below(self, trace: TraceState, span_id: str) -> None:
        """Show those below it whose answer it may have a part in. One with a session of its own shields those below it,
        and one whose answer is the same as before has the same to pass on."""
        seen, waiting = {span_id}, list(trace.children.get(span_id, ()))
        while waiting:
            child = waiting.pop()
            if child in seen:
                continue
            seen.add(child)
            known = trace.spans[child]
            if self._show(trace, known) and known.span.session_id is None:
                waiting += trace.children.get(child, ())

    # --- memory ----------------------------------------------------------------------------------------
    def _make_room(self) -> None:
        """Beyond the limits whole traces go; of the one that is coming in all but the sessions it told."""
        state = self._state
        while len(state.traces) > self._max_traces:
            self._drop(next(iter(state.traces)))
        if state.remembered <= self._max_spans:
            return
        for trace_id in list(state.traces):
            if state.remembered <= self._max_spans:
                return
            trace = state.traces[trace_id]
            self._count_forgotten(trace)
            trace.forget()

    def _drop(self, trace_id: str) -> None:
        self._count_forgotten(self._state.traces.pop(trace_id))

    def _count_forgotten(self, trace: TraceState) -> None:
        spans = len(trace.spans)
        self._state.remembered -= trace.size
        self._state.forgotten += spans
        self._state.forgotten_loose += trace.loose
        if spans:
            key = f"spans_forgotten:{self._state.forgotten}"
            self._ledger.count(key, [one("turnscope_spans_forgotten_total", value=spans)])

    def prune(self, now_ns: int) -> None:
        """Forget traces that nothing was heard of for as long as anything is remembered."""
        for trace_id, trace in list(self._state.traces.items()):
            if trace.last_ns >= now_ns - self._memory_ns:
                return
            self._state.remembered -= trace.size
            del self._state.traces[trace_id]


def _evaluation(span: AgentSpan, told: AgentSpan | None) -> dict[str, object]:
    """What a log record told, for a span that tells no evaluation itself."""
    own = (getattr(span, name) for name in _EVALUATION)
    if told is None or any(value is not None for value in own):
        return {}
    return {name: getattr(told, name) for name in _EVALUATION}


_EVALUATION: Final = ("evaluation_name", "evaluation_label", "evaluation_score")
_ENCODE: Final[Callable[[object], bytes]] = msgspec.msgpack.Encoder().encode


def may_ask(turn: Turn) -> bool:
    """Whether it takes its caller's session: its request named none, and that is better than one made up for it."""
    return turn.session_id is None or turn.session_source in (CHAINED, SPAN)


def newer(known: AgentSpan, other: AgentSpan) -> AgentSpan:
    """Of two that tell of one span, the one that counts, whichever came first: the one that ended, and later; else
    the one that tells more. ``known`` when they are equal."""
    if known == other:
        return known

    def rank(span: AgentSpan) -> tuple[bool, int, int, bytes]:
        data = _ENCODE(span)
        return span.ended_ns is not None, span.ended_ns or 0, len(data), data

    return max(known, other, key=rank)


def _by_time(span: AgentSpan) -> tuple[int, bytes]:
    return span.started_ns, _ENCODE(span)
