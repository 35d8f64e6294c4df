"""What ran when in a session, as bars in lanes on one axis: for the page's chart and for the report's drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from turnscope.model import Activity, Segment
from turnscope.semconv import Evidence, Part, SpanKind
from turnscope.store.whole import Whole
from turnscope_app import lanes, text, words
from turnscope_app.axis import Axis, shortened
from turnscope_app.lanes import Bar

MOST: Final = 1_000
"""Bars of one drawing at most: the rows that are sent to a browser."""
WAITED_FOR: Final = "Waited for"
MODEL: Final = "Model calls"
TOOLS: Final = "Tools"
AGENT: Final = "Agent"
HOLDS: Final = "Kept memory"
_TOOLS: Final = (SpanKind.TOOL, SpanKind.RETRIEVAL)
_PAST_THE_END: Final = 12
"""A hold that outlasts the session is drawn on for a twelfth of the drawing."""


class Timeline(NamedTuple):
    """Bars from ``axis.start_ns`` to ``axis.end_ns``, a lane at a time."""

    lanes: list[str]
    """The upper first."""
    bars: list[Bar]
    holds: list[Bar]
    """In the lanes under the others."""
    axis: Axis
    merged: bool
    """There was too much to draw each thing by itself: a bar stands for what took most of its stretch."""


def build(
    whole: Whole, turns: Sequence[Mapping[str, Any]], numbers: Sequence[int], first: bool, last: bool
) -> Timeline:
    """The time of ``turns``, which are some of the session's in order, and of what was before, between and after them;
    what was before the first or after the last one of the session where ``first`` and ``last`` say so."""
    start, end = _window(whole, turns, first=first, last=last)
    kept = list(_holds(whole, turns, numbers))
    by_id = {turn["turn_id"]: number for turn, number in zip(turns, numbers, strict=True)}
    segments = list(_clipped(whole.segments, start, end))
    axis = shortened(segments, whole.summary.started_ns, start, end)
    if last and any(bar.end_ns > end for bar in kept):
        end += round(axis.length * 1e9) // _PAST_THE_END
        axis = axis._replace(end_ns=end)
    above: dict[str, list[Bar]] = {WAITED_FOR: list(_waited_for(segments, by_id))}
    ran = [a for a in whole.activities if a.start_ns < end and (a.end_ns > start or a.start_ns == a.end_ns >= start)]
    for kinds, name in (((SpanKind.AGENT,), AGENT), ((SpanKind.MODEL_CALL,), MODEL), (_TOOLS, TOOLS)):
        groups = [[_clip(bar, start, end) for bar in _bars(a, name, by_id)] for a in ran if a.kind in kinds]
        above |= lanes.beside(lanes.few([group for group in groups if group], name))
    below = lanes.beside([[_clip(bar, start, end)] for bar in kept if bar.start_ns < end])
    bars, merged = lanes.at_most(above, MOST - MOST // 4, start, end)
    held, held_merged = lanes.at_most(below, MOST // 4, start, end)
    return Timeline(
        [lane for lane, found in {**above, **below}.items() if found],
        bars,
        held,
        axis,
        merged or held_merged,
    )


def _window(whole: Whole, turns: Sequence[Mapping[str, Any]], *, first: bool, last: bool) -> tuple[int, int]:
    start, end = whole.summary.started_ns, whole.summary.ended_ns
    if turns and not first:
        start = turns[0]["started_ns"]
    if turns and not last:
        end = max(turn["ended_ns"] or turn["started_ns"] for turn in turns)
    return start, max(start, end)


def _clipped(segments: Iterable[Segment], start: int, end: int) -> Iterable[Segment]:
    for at in segments:
        begin, stop = max(at.start_ns, start), min(at.end_ns, end)
        if begin < stop:
            yield Segment(begin, stop, at.part, at.detail, at.evidence, at.turn_id, at.span_key)


def _clip(bar: Bar, start: int, end: int) -> Bar:
    return bar._replace(start_ns=max(bar.start_ns, start), end_ns=max(start, min(bar.end_ns, end)))


def _waited_for(segments: Iterable[Segment], by_id: Mapping[str, int]) -> Iterable[Bar]:
    """What follows each other and is the same part of the same thing is one bar."""
    held: Bar | None = None
    for at in segments:
        number = by_id.get(at.turn_id or "")
        bar = Bar(WAITED_FOR, at.part, at.start_ns, at.end_ns, words.PARTS[at.part].plain, at.evidence, number)
        if held is not None and held[:2] == bar[:2] and held[4:] == bar[4:] and held.end_ns == bar.start_ns:
            held = held._replace(end_ns=bar.end_ns)
            continue
        if held is not None:
            yield held
        held = bar
    if held is not None:
        yield held


def _bars(activity: Activity, lane: str, by_id: Mapping[str, int]) -> Iterable[Bar]:
    name = text.harmless(activity.name) if activity.name else ""
    failed = ", failed" if activity.failed else ""
    start, end, known = activity.start_ns, activity.end_ns, activity.evidence
    if activity.kind is SpanKind.AGENT:
        yield Bar(f"{AGENT} {name}".strip(), Part.APPLICATION_WORK, start, end, f"Agent {name}{failed}", known)
        return
    if activity.kind in _TOOLS:
        yield Bar(lane, Part.TOOL_WAIT, start, end, f"Tool {name or 'without a name'}{failed}", known)
        return
    if activity.agent:
        lane = f"{lane}: {text.harmless(activity.agent, 24)}"
    number = by_id.get(activity.turn_id or "")
    who = f"Turn {number}" if number is not None else f"Model call {name}".strip()
    if activity.turn_id is not None and number is None:
        return  # of another page
    merged: list[Bar] = []
    for at in activity.slices or (Segment(start, end, Part.UNKNOWN, evidence=Evidence.NONE),):
        what = f"{who}{failed}: {words.PARTS[at.part].plain.lower()}"
        if merged and merged[-1].kind == at.part:
            merged[-1] = merged[-1]._replace(
                end_ns=at.end_ns, evidence=at.evidence if at.evidence is Evidence.INFERRED else merged[-1].evidence
            )
        else:
            merged.append(Bar(lane, at.part, at.start_ns, at.end_ns, what, at.evidence, number))
    yield from merged


def _holds(whole: Whole, turns: Sequence[Mapping[str, Any]], numbers: Sequence[int]) -> Iterable[Bar]:
    """What each of ``turns`` left. One that is still held, or whose end nobody saw, goes on to its deadline."""
    left = [turn["left_hold_id"] for turn in turns if turn["left_hold_id"] is not None]
    mine = whole.holds.filter(pc.is_in(whole.holds["hold_id"], pa.array(left, pa.string())))
    by_id = {hold["hold_id"]: hold for hold in mine.to_pylist()}
    for turn, number in zip(turns, numbers, strict=True):
        hold = by_id.get(turn["left_hold_id"])
        if hold is None:
            continue
        start, held = hold["started_ns"], hold["held_ns"]
        if held is None and hold["ended_ns"] is not None:
            held = max(0, hold["ended_ns"] - start)
        deadline = hold["deadline_ns"]
        if deadline is None and hold["ttl_ns"] is not None:
            deadline = start + hold["ttl_ns"]
        word = words.FATES.get(turn["hold_fate"] or "")
        fate = word.plain if word else text.harmless(str(turn["hold_fate"]))
        for_time = f" after {text.duration(held)}" if held is not None else ""
        what = f"Left by turn {number}: {fate.lower()}{for_time}"
        end = max(start, deadline or whole.summary.ended_ns) if held is None else start + held
        yield Bar(HOLDS, turn["hold_fate"] or "", start, end, what, Evidence.MEASURED, number, deadline)
