"""A session's time, cut into disjoint parts that sum to its wall time to the nanosecond.

**The rule.** A session is a tree: what was started by what (``forest``). Time goes down it: of several things that
something started and that run at once, it is taken to wait for the one that ends last, and the time is that one's; what
runs beside it is not waited for and takes no time of its own. Where nothing that it started runs, the time is its own.
So

- of parallel tools, the longest one's time is tool wait, once;
- a tool that calls a model: the call's time is the model's, the rest the tool's;
- a subagent beside model calls or tools of its parent: the branch that ends last, with all that is in it;
- a retry within a turn is in its time to first token (``unattributed``), one that is a turn of its own counts as one;
- a span in error or without a known parent counts as any other, where it was;
- a span that ends before it starts takes no time; one without an end ends with what it started;
- a span whose times come from a log's lines, and not from round the operation, is ``inferred``;
- the session begins with the first thing known of it and ends with the last.

A model call's time is input processing up to its first token and generation after it. A turn's, which the proxy and
the engines measured, goes before its caller's span, which adds what was outside the proxy. What is left, where no span
and no turn was, is told by the model calls around it (``waits``), and then says ``inferred``; else it is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from turnscope.measures.alignment import aligned
from turnscope.measures.calls import Slice, cut, cut_span
from turnscope.measures.forest import Node, newest, plant
from turnscope.measures.waits import Waits, call_of
from turnscope.model import AgentSpan, Segment, Turn
from turnscope.semconv import Detail, Evidence, Part, SpanKind

_OWN = {
    SpanKind.TOOL: (Part.TOOL_WAIT, None),
    SpanKind.RETRIEVAL: (Part.TOOL_WAIT, Detail.RETRIEVAL),
    SpanKind.USER_WAIT: (Part.USER_WAIT, None),
    SpanKind.AGENT: (Part.APPLICATION_WORK, None),
}


def partition(turns: Iterable[Turn], spans: Iterable[AgentSpan]) -> list[Segment]:
    """The segments of one session, given all that is known of it, in any order: disjoint, in order and without gaps,
    from its begin to its end. Empty where it lasted no time. Pure."""
    kept = newest(turns, lambda turn: turn.turn_id)
    return cut_up(kept, aligned(kept, newest(spans, lambda span: span.span_key)))


def cut_up(turns: Sequence[Turn], spans: Sequence[AgentSpan]) -> list[Segment]:
    """The same of turns and spans in their newest revisions, in the order of their keys and by one clock."""
    roots = plant(turns, spans)
    return _Cutter(roots).segments() if roots else []


def clip(segments: Sequence[Segment], start_ns: int, end_ns: int) -> list[Segment]:
    """What of ``segments``, which are in order, is from ``start_ns`` to ``end_ns``."""
    out = []
    for place in range(bisect_right(segments, start_ns, key=lambda at: at.end_ns), len(segments)):
        at = segments[place]
        if at.start_ns >= end_ns:
            break
        start, end = max(at.start_ns, start_ns), min(at.end_ns, end_ns)
        if start < end:
            whole = start == at.start_ns and end == at.end_ns
            out.append(at if whole else replace(at, start_ns=start, end_ns=end))
    return out


def sums(segments: Iterable[Segment]) -> Counter[Part]:
    """Nanoseconds of each part."""
    found: Counter[Part] = Counter()
    for segment in segments:
        found[segment.part] += segment.end_ns - segment.start_ns
    return found


_What = tuple[Part, Detail | None, Evidence]


class _Cutter:
    def __init__(self, roots: list[Node]) -> None:
        self._roots = roots
        every = list(roots)
        for node in every:
            every.extend(node.children)
        calls = (call_of(node) for node in every)
        tools = ((n.start, n.end) for n in every if n.kind in (SpanKind.TOOL, SpanKind.RETRIEVAL))
        self._waits = Waits((call for call in calls if call is not None), tools)
        self._out: list[Segment] = []

    def segments(self) -> list[Segment]:
        start, end = min(root.start for root in self._roots), max(root.end for root in self._roots)
        # (node or None for the session itself, the kind its own time counts as, from, to)
        todo: list[tuple[Node | None, SpanKind, int, int]] = [(None, SpanKind.OTHER, start, end)]
        while todo:
            node, kind, start, end = todo.pop()
            if node is not None and node.turn is not None:
                self._slices(node, cut(node.turn), start, end)
                continue
            children = node.children if node is not None else self._roots
            runs = _runs(children, start, end)
            last = runs[-1][2] if runs else start
            at = start
            for child, begin, stop in runs:
                self._own(node, kind, at, begin, after=False)
                todo.append((child, child.kind if child.kind is not SpanKind.OTHER else kind, begin, stop))
                at = stop
            self._own(node, kind, last, end, after=bool(runs))
        self._out.sort(key=lambda segment: segment.start_ns)
        return self._out

    def _own(self, node: Node | None, kind: SpanKind, start: int, end: int, *, after: bool) -> None:
        """Time of ``node`` in which nothing that it started runs; ``after``: nothing will any more."""
        if start >= end:
            return
        key = node.key if node is not None else None
        timed = Evidence.MEASURED
        if node is not None and node.span is not None and node.span.timing == Evidence.INFERRED:
            timed = Evidence.INFERRED
        if kind in _OWN:
            part, detail = _OWN[kind]
            unseen = kind is SpanKind.AGENT and not self._waits.tools_seen
            if unseen and self._waits.told(start, end) is Part.TOOL_WAIT:
                self._add(start, end, (Part.TOOL_WAIT, None, Evidence.INFERRED), key)
            else:
                self._add(start, end, (part, detail, timed), key)
        elif kind is SpanKind.MODEL_CALL and node is not None and node.calls:
            part = Part.GENERATION if after else Part.INPUT_PROCESSING
            self._add(start, end, (part, Detail.CLIENT, timed), key)
        elif kind is SpanKind.MODEL_CALL and node is not None and node.span is not None:
            self._slices(node, cut_span(node.span, node.end - node.start), start, end)
        else:
            told = self._waits.told(start, end)
            if told is not None:
                self._add(start, end, (told, None, Evidence.INFERRED), key)
            elif node is not None:
                self._add(start, end, (Part.APPLICATION_WORK, None, timed), key)
            else:
                self._add(start, end, (Part.UNKNOWN, None, Evidence.NONE), None)

    def _slices(self, node: Node, slices: list[Slice], start: int, end: int) -> None:
        """The slices of a call, which begin with it, as far as they are from ``start`` to ``end``."""
        at = node.start
        turn_id, span_key = (node.key, None) if node.turn is not None else (None, node.key)
        for ns, part, detail, evidence in slices:
            begin, at = at, at + ns
            if at > start and begin < end:
                begin, stop = max(begin, start), min(at, end)
                self._out.append(Segment(begin, stop, part, detail, evidence, turn_id, span_key))

    def _add(self, start: int, end: int, what: _What, span_key: str | None) -> None:
        self._out.append(Segment(start, end, *what, None, span_key))


def _runs(children: list[Node], start: int, end: int) -> list[tuple[Node, int, int]]:
    """Which of ``children``, in order, is waited for when. Each of them once at most: the one that ends last of those
    that run, until it ends or one that ends later begins."""
    out: list[tuple[Node, int, int]] = []
    for child in children:
        begin, stop = max(child.start, start), min(child.end, end)
        if begin >= stop:
            continue
        if out and begin < out[-1][2]:
            if stop <= out[-1][2]:
                continue
            before, since, _ = out[-1]
            if since == begin:
                out.pop()
            else:
                out[-1] = before, since, begin
        out.append((child, begin, stop))
    return out
