"""Bars in lanes: what runs at once beside each other, and too much of it as what took most of the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from turnscope_app import text, words

_MOST_NAMES: Final = 6
_MOST_BESIDE: Final = 4
"""Lanes for what runs at once; what is beyond shares the last."""
_MANY: Final = 30
"""Of more things than that only deadlines that were reached are drawn."""
_OTHERS: Final = "others"


class Bar(NamedTuple):
    """A stretch of time in a lane."""

    lane: str
    kind: str
    """A ``Part``; of a hold, its ``Fate``."""
    start_ns: int
    end_ns: int
    what: str
    """In plain words; foreign text in it is harmless, and Markdown in it is not escaped."""
    evidence: str
    turn: int | None = None
    """Its number, where it is a turn's."""
    deadline_ns: int | None = None
    """Of a hold: when it would have been let go, or was."""


def few(groups: list[list[Bar]], name: str) -> list[list[Bar]]:
    """The lanes of the busiest names by themselves, the others' in one."""
    spent: Counter[str] = Counter()
    for group in groups:
        spent[group[0].lane] += group[-1].end_ns - group[0].start_ns
    kept = {lane for lane, _ in spent.most_common(_MOST_NAMES)}
    return [
        group if group[0].lane in kept else [bar._replace(lane=f"{name}: {_OTHERS}") for bar in group]
        for group in groups
    ]


def beside(groups: list[list[Bar]]) -> dict[str, list[Bar]]:
    """Each group, the bars of one thing, in one lane; what runs at once in lanes beside it. What goes on to a deadline
    has room until then, as long as there are lanes."""
    lanes: dict[tuple[str, int], list[Bar]] = {}
    ends: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for group in sorted(groups, key=lambda group: (group[0].lane, group[0].start_ns, -group[-1].end_ns)):
        name, start, end = group[0].lane, group[0].start_ns, group[-1].end_ns
        wanted = max(end, group[-1].deadline_ns or 0)
        taken = ends[name]
        free = [place for place, (_, until) in enumerate(taken) if until <= start]
        if free:
            place = free[0]
        elif len(taken) < _MOST_BESIDE:
            place = len(taken)
            taken.append((0, 0))
        else:
            place = min(range(len(taken)), key=lambda place: taken[place])
        taken[place] = max(taken[place][0], end), max(end, wanted) if len(groups) <= _MANY else end
        lane = name if place == 0 else f"{name} ({place + 1})"
        lanes.setdefault((name, place), []).extend(bar._replace(lane=lane) for bar in group)
    first = {name: min(bars[0].start_ns for (of, _), bars in lanes.items() if of == name) for name, _ in lanes}
    ordered = sorted(lanes.items(), key=lambda item: (first[item[0][0]], item[0]))
    return {bars[0].lane: _deadlines_with_room(bars, many=len(groups) > _MANY) for _, bars in ordered}


def _deadlines_with_room(lane: list[Bar], many: bool) -> list[Bar]:
    """Without those that would be drawn over what comes after in the same lane, or that are too many to be read."""
    out = []
    for at, bar in enumerate(lane):
        after = lane[at + 1].start_ns if at + 1 < len(lane) else None
        until = bar.deadline_ns
        if until is not None and ((after is not None and until > after) or (many and until > bar.end_ns)):
            bar = bar._replace(deadline_ns=None)
        out.append(bar)
    return out


def at_most(lanes: dict[str, list[Bar]], most: int, start: int, end: int) -> tuple[list[Bar], bool]:
    """The bars as they are, or where they are more than ``most``, each lane in as many columns as fit: what took most
    of a column stands for it, and neighbours that are the same are one bar."""
    bars = [bar for lane in lanes.values() for bar in lane]
    if len(bars) <= most:
        return bars, False
    columns = max(1, most // len(lanes))
    edges = [start + (end - start) * column // columns for column in range(columns + 1)]
    return [merged for lane in lanes.values() if lane for merged in _columns(lane, edges)], True


def _columns(lane: list[Bar], edges: list[int]) -> Iterable[Bar]:
    whole, start, columns = max(1, edges[-1] - edges[0]), edges[0], len(edges) - 1
    spent: list[Counter[tuple[str, str]]] = [Counter() for _ in range(columns)]
    for bar in lane:
        column = min(columns - 1, (bar.start_ns - start) * columns // whole)
        while column < columns and edges[column] < max(bar.end_ns, bar.start_ns + 1):
            inside = min(bar.end_ns, edges[column + 1]) - max(bar.start_ns, edges[column])
            spent[column][bar.kind, bar.evidence] += max(1, inside)
            column += 1
    held: Bar | None = None
    for column, kinds in enumerate(spent):
        if not kinds:
            continue
        (kind, evidence), _ = kinds.most_common(1)[0]
        if held is not None and (held.kind, held.evidence, held.end_ns) == (kind, evidence, edges[column]):
            held = held._replace(end_ns=edges[column + 1])
            continue
        if held is not None:
            yield held
        word = words.PARTS.get(kind) or words.FATES.get(kind)
        plain = word.plain.lower() if word else text.harmless(kind)
        held = Bar(lane[0].lane, kind, edges[column], edges[column + 1], f"Mostly {plain}", evidence)
    if held is not None:
        yield held
