"""Turns and spans of a session as trees: what was started by what. From links where there are, else by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from turnscope.measures.calls import wall_ns
from turnscope.model import AgentSpan, Turn
from turnscope.semconv import SpanKind

_MAY_START: Final = frozenset({SpanKind.AGENT, SpanKind.TOOL, SpanKind.RETRIEVAL, SpanKind.OTHER})
"""What a span without a known parent may have been started by."""
_Row = TypeVar("_Row", Turn, AgentSpan)
_KINDS: Final = frozenset(SpanKind)
SpanId = tuple[str, str]
"""(trace id, span id)."""


class Node:
    """A turn or a span."""

    __slots__ = (
        "busy_ns",
        "calls",
        "children",
        "end",
        "key",
        "kind",
        "open_end",
        "parent",
        "solid",
        "span",
        "start",
        "turn",
    )

    def __init__(self, key: str, start: int, end: int, turn: Turn | None, span: AgentSpan | None) -> None:
        self.key = key
        self.start = start
        self.end = max(start, end)
        self.turn = turn
        self.span = span
        self.kind = _kind(span.kind) if span is not None else SpanKind.MODEL_CALL
        self.open_end = span is not None and span.ended_ns is None
        """Nobody told when it ended: with the last thing that it started."""
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.busy_ns = start
        """Of a model call: turns were placed in it up to here."""
        self.calls = turn is not None
        """It is a turn, or has one, or another model call, in it."""
        self.solid = self.kind is not SpanKind.OTHER
        """It, or something in it, says what the time was spent on."""

    @property
    def order(self) -> tuple[int, int, str]:
        """By start; of those that start together, the longest first."""
        return self.start, -self.end, self.key


def _kind(name: str) -> SpanKind:
    """``other`` of a kind that only a newer turnscope knows."""
    return SpanKind(name) if name in _KINDS else SpanKind.OTHER


def plant(turns: Iterable[Turn], spans: Iterable[AgentSpan]) -> list[Node]:
    """The roots, in order. Every turn and span, each given once and all by one clock, is in one tree.

    Spans that are linked in a circle are taken as if they had no links. A node lasts at least as long as what it
    started while it ran; what ran only before or after it is its parent's child instead.
    """
    nodes: dict[SpanId, Node] = {}
    for span in spans:
        end_ns = span.ended_ns if span.ended_ns is not None else span.started_ns
        nodes[span.trace_id, span.span_id] = Node(span.span_key, span.started_ns, end_ns, None, span)
    _link(nodes)
    of_spans = sorted(nodes.values(), key=lambda node: node.order)
    of_turns = [Node(t.turn_id, t.started_ns, t.started_ns + wall_ns(t), t, None) for t in turns]
    of_turns.sort(key=lambda node: node.order)
    _enclose(of_spans)
    _place(of_turns, of_spans, nodes)
    every = of_spans + of_turns
    for node in every:
        if node.parent is not None:
            node.parent.children.append(node)
    roots = [node for node in every if node.parent is None]
    _fit(roots)
    return sorted(roots, key=lambda node: node.order)


def newest(rows: Iterable[_Row], key: Callable[[_Row], str]) -> list[_Row]:
    """Of rows with the same key the one with the highest revision, in the order of their keys."""
    found: dict[str, _Row] = {}
    for row in rows:
        held = found.get(key(row))
        if held is None or row.revision > held.revision:
            found[key(row)] = row
    return [found[name] for name in sorted(found)]


def _caller(turn: Turn) -> SpanId:
    return turn.caller_trace_id or "", turn.caller_span_id or ""


# --- links --------------------------------------------------------------------------------------------
def _link(nodes: dict[SpanId, Node]) -> None:
    for node in nodes.values():
        if node.span is not None and node.span.parent_span_id:
            node.parent = nodes.get((node.span.trace_id, node.span.parent_span_id))
    circles: list[Node] = []
    seen: set[str] = set()
    for node in nodes.values():
        path: list[Node] = []
        at: Node | None = node
        while at is not None and at.key not in seen:
            seen.add(at.key)
            path.append(at)
            at = at.parent
        if at is not None and at in path:
            circles += path[path.index(at) :]
    for node in circles:
        node.parent = None


def _within(node: Node, above: Node) -> bool:
    """Whether ``above`` is the node itself or one that it hangs under."""
    at: Node | None = node
    while at is not None:
        if at is above:
            return True
        at = at.parent
    return False


# --- by time ------------------------------------------------------------------------------------------
class _Running:
    """Of nodes in order, those that may enclose what begins at a given time. Times asked for never go back."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._rest: Iterator[Node] = iter(nodes)
        self._next = next(self._rest, None)
        self._running: list[Node] = []

    def around(self, node: Node) -> list[Node]:
        """Those that began before it, in the order of nodes, and end no sooner."""
        while self._next is not None and self._next.order < node.order:
            self._running.append(self._next)
            self._next = next(self._rest, None)
        self._running = [other for other in self._running if other.end >= node.start]
        return [other for other in self._running if other.end >= node.end and other is not node]


def _shortest(nodes: Iterable[Node]) -> Node | None:
    return min(nodes, key=lambda node: (node.end - node.start, -node.start, node.key), default=None)


def _enclose(spans: list[Node]) -> None:
    """A span whose parent is not known is taken to be started by the shortest that encloses it."""
    running = _Running(node for node in spans if node.kind in _MAY_START)
    for node in spans:
        if node.parent is None:
            node.parent = _shortest(other for other in running.around(node) if not _within(other, node))


def _place(turns: list[Node], spans: list[Node], nodes: dict[SpanId, Node]) -> None:
    """A turn belongs to the proxy's own span, else to its caller's; where that is no model call, or is not known, to
    the shortest model call that encloses it and has no other turn then; else to whatever else encloses it."""
    running = _Running(node for node in spans if node.kind is not SpanKind.USER_WAIT)
    for node in turns:
        around = running.around(node)
        assert node.turn is not None
        server = nodes.get((node.turn.server_trace_id or "", node.turn.server_span_id or ""))
        caller = server or nodes.get(_caller(node.turn))
        if caller is None or not _in_call(caller):
            calls = [
                other
                for other in around
                if other.kind is SpanKind.MODEL_CALL and (caller is None or _within(other, caller))
            ]
            free = [call for call in calls if call.busy_ns <= node.start]
            caller = _shortest(free) or _shortest(calls) or caller or _shortest(around)
        node.parent = caller
        if caller is not None:
            caller.busy_ns = max(caller.busy_ns, node.end)


def _in_call(node: Node) -> bool:
    at: Node | None = node
    while at is not None and at.kind is SpanKind.OTHER:
        at = at.parent
    return at is not None and at.kind is SpanKind.MODEL_CALL


# --- sizes --------------------------------------------------------------------------------------------
def _fit(roots: list[Node]) -> None:
    """Bottom up: leave out what says nothing, and let each node last as long as what it started."""
    down = list(roots)
    for node in down:
        down.extend(node.children)
    for node in reversed(down):
        node.children = sorted((c for c in node.children if c.solid), key=lambda child: child.order)
        node.solid = node.solid or bool(node.children)
        node.calls = node.calls or any(c.calls or c.kind is SpanKind.MODEL_CALL for c in node.children)
        _grow(node)
        inside = [child for child in node.children if _touches(child, node)]
        outside = [child for child in node.children if not _touches(child, node)]
        node.children = inside
        for child in outside:
            child.parent = node.parent
            (node.parent.children if node.parent is not None else roots).append(child)


def _grow(node: Node) -> None:
    if node.open_end:
        node.end = max([node.end, *(child.end for child in node.children)])
    for child in node.children:
        if child.start < node.end < child.end:
            node.end = child.end
    for child in sorted(node.children, key=lambda child: -child.end):
        if child.start < node.start < child.end:
            node.start = child.start


def _touches(child: Node, node: Node) -> bool:
    return node.start <= child.start and child.end <= node.end
