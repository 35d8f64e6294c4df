"""Two request bodies: does the second continue the first, where does it part from it, and what can still be reused?

On texts: for the machine of the person who has the requests. What leaves a process are digests, see
``assembly.messages``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Final

import msgspec

from turnscope.history.compare import Change, first_change
from turnscope.history.pieces import MODEL, PARAMETERS, PROMPT, SYSTEM_ROLES, TOOLS, Piece, Text
from turnscope.history.reasoning import trimmed, without_reasoning
from turnscope.measures.bodies import Saved
from turnscope.semconv import Divergence

SHORTEST_LINE: Final = 20
"""Characters of a line that is looked for elsewhere: shorter ones (``}``, ``- yes``) are found by chance."""


class Outcome(StrEnum):
    """What the second request is to the first."""

    CONTINUES = "continues"
    SHORTENED = "shortened"
    """It is a beginning of it: nothing in it is new."""
    DIVERGES = "diverges"


class Place(msgspec.Struct, frozen=True):
    """Where two requests part: in one text of one piece."""

    piece: Piece
    """The second request's; the first one's where it is gone."""
    label: str
    char: int
    """From 0, as in ``before_text[char]``; lines and columns count from 1."""
    line: int
    column: int
    before_text: str
    now_text: str
    kept_chars: int
    """Of the piece, before the place: texts that are equal, and the beginning of the one that is not."""


class Comparison(msgspec.Struct, frozen=True):
    """Characters are those of the prompt's texts; chat templates' marks and JSON around the messages are none."""

    outcome: Outcome
    kind: Divergence | None
    place: Place | None
    before_chars: int
    now_chars: int
    reusable_chars: int
    """Of the first request's: the same text at the same position."""
    displaced_chars: int
    """Of the second request's, past the place: text that the first one has past it as well."""
    removed: Sequence[Piece] = ()
    added: Sequence[Piece] = ()


def compare(before: Saved, now: Saved) -> Comparison:
    """What ``now`` keeps of ``before``."""
    ours, theirs = _prompt(before), _prompt(now)
    if not all(pieces and pieces[0].role == MODEL for pieces in (ours, theirs)):
        # Saved without it, a request is not of another model.
        ours, theirs = ([piece for piece in pieces if piece.role != MODEL] for pieces in (ours, theirs))
    change = first_change(_keys(ours), _keys(theirs))
    if change is not None and _more_of_a_prompt(ours, theirs, change):
        change = None
    if change is not None and change.kind is Divergence.TRUNCATED:
        kept = _chars(ours[: change.at])
        return _comparison(Outcome.SHORTENED, change.kind, None, ours, theirs, kept, 0)
    if change is not None:
        return _diverged(ours, theirs, change)
    for changed in (_answer_changed(before, theirs, len(ours)), _parameters_changed(before, now)):
        if changed is not None:
            kind, place = changed
            return _comparison(Outcome.DIVERGES, kind, place, ours, theirs, _chars(ours), 0)
    return _comparison(Outcome.CONTINUES, None, None, ours, theirs, _chars(ours), 0)


def _prompt(request: Saved) -> list[Piece]:
    return [piece for piece in request.pieces if piece.role != PARAMETERS]


def _keys(pieces: Iterable[Piece]) -> list[tuple[str, tuple[Text, ...]]]:
    return [(piece.role, piece.texts) for piece in pieces]


def _chars(pieces: Iterable[Piece]) -> int:
    return sum(piece.chars for piece in pieces if piece.role not in (MODEL, PARAMETERS))


def _more_of_a_prompt(before: Sequence[Piece], now: Sequence[Piece], change: Change) -> bool:
    """A Completions prompt is one text: it continues another by beginning with it."""
    if len(before) != len(now) or change.at != len(before) - 1 or now[-1].role != PROMPT:
        return False
    return before[-1].role == PROMPT and now[-1].texts[0].text.startswith(before[-1].texts[0].text)


def _diverged(before: Sequence[Piece], now: Sequence[Piece], change: Change) -> Comparison:
    at = change.at
    gone, new = before[at : at + change.removed], now[at : at + change.added]
    place = _place(before[at], now[at], before[at] if change.kind is Divergence.REMOVED else now[at])
    kept = _chars(before[:at]) + place.kept_chars
    displaced = _displaced(before[at:], now[at:], place)
    if place.piece.role == MODEL:
        kept = 0
    elif place.piece.role == TOOLS:
        first = _system_prompt(before, now)  # some templates print the tools after it
        kept, displaced = kept + first, displaced - min(displaced, first)
    return _comparison(Outcome.DIVERGES, change.kind, place, before, now, kept, displaced, gone, new)


def _system_prompt(before: Sequence[Piece], now: Sequence[Piece]) -> int:
    """Characters of the system prompt that both have."""
    ours, theirs = ([p for p in pieces if p.index is not None and p.role in SYSTEM_ROLES] for pieces in (before, now))
    same = takewhile(lambda pair: pair[0].texts == pair[1].texts, zip(ours, theirs, strict=False))
    return _chars(piece for piece, _ in same)


def _comparison(
    outcome: Outcome,
    kind: Divergence | None,
    place: Place | None,
    before: Sequence[Piece],
    now: Sequence[Piece],
    reusable: int,
    displaced: int,
    removed: Sequence[Piece] = (),
    added: Sequence[Piece] = (),
) -> Comparison:
    return Comparison(outcome, kind, place, _chars(before), _chars(now), reusable, displaced, removed, added)


# --- after an equal history ---------------------------------------------------------------------------
def _answer_changed(before: Saved, now: Sequence[Piece], at: int) -> tuple[Divergence, Place] | None:
    """Whether the answer in the history is another one than was given; None where that was not saved."""
    given, told = before.answer, next(iter(now[at:]), None)
    if given is None or told is None or given.texts == told.texts:
        return None
    spoken = trimmed(without_reasoning(given))
    stripped = spoken != trimmed(given) and spoken.texts == trimmed(told).texts
    kind = Divergence.REASONING_STRIPPED if stripped else Divergence.ANSWER_CHANGED
    return kind, _place(given, told, told)


def _parameters_changed(before: Saved, now: Saved) -> tuple[Divergence, Place] | None:
    ours, theirs = (
        next((piece for piece in request.pieces if piece.role == PARAMETERS), Piece(PARAMETERS, None, PARAMETERS, ()))
        for request in (before, now)
    )
    return None if ours == theirs else (Divergence.EDITED, _place(ours, theirs, theirs))


# --- the place ----------------------------------------------------------------------------------------
def _place(before: Piece, now: Piece, named: Piece) -> Place:
    """The first difference of two pieces that are not the same."""
    pairs = list(takewhile(lambda pair: pair[0] == pair[1], zip(before.texts, now.texts, strict=False)))
    if before.role != now.role:
        pairs = []
    one, other = (next(iter(piece.texts[len(pairs) :]), None) for piece in (before, now))
    alike = before.role == now.role and one is not None and other is not None and one.label == other.label
    ours, theirs = one.text if one else "", other.text if other else ""
    char = common_prefix(ours, theirs) if alike else 0
    known = other or one
    return Place(
        piece=named,
        label=known.label if known is not None else "",
        char=char,
        line=ours.count("\n", 0, char) + 1,
        column=char - ours.rfind("\n", 0, char),
        before_text=ours,
        now_text=theirs,
        kept_chars=sum(text.chars for text, _ in pairs) + char,
    )


def common_prefix(one: str, other: str) -> int:
    """With how many characters both begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# --- what moved ---------------------------------------------------------------------------------------
def _displaced(before: Sequence[Piece], now: Sequence[Piece], place: Place) -> int:
    """Characters of ``now`` past the place that ``before`` has past it as well: whole pieces, else lines."""
    pieces = Counter(_keys(before))
    lines = Counter(line for piece in before for line in _lines(piece))
    found = 0
    for number, (piece, key) in enumerate(zip(now, _keys(now), strict=True)):
        if pieces[key] > 0:
            pieces[key] -= 1
            lines.subtract(_lines(piece))
            found += piece.chars
            continue
        moved = 0
        for line in _lines(piece):
            if lines[line] > 0:
                lines[line] -= 1
                moved += len(line)
        if number == 0:
            # Lines before the place are where they were; what both texts end with has only moved along.
            left = piece.chars - place.kept_chars
            tail = common_prefix(place.before_text[place.char :][::-1], place.now_text[place.char :][::-1])
            moved = max(min(moved, left), tail)
        found += moved
    return found


def _lines(piece: Piece) -> list[str]:
    return [line for text in piece.texts for line in text.text.splitlines(keepends=True) if len(line) >= SHORTEST_LINE]
