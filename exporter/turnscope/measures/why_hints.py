"""What usually makes a request part from the one before, by what it looks like. A hint names, it does not prove."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

import msgspec

from turnscope.history.pieces import ARGUMENTS, MODEL, PARAMETERS, SYSTEM_ROLES, TOOLS, Piece
from turnscope.history.reasoning import trimmed, without_reasoning
from turnscope.measures.why import Comparison, Outcome, Place
from turnscope.model import plural
from turnscope.semconv import Divergence

_TIME: Final = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|"
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\b1[5-9]\d{8}(?:\d{3})?\b",
    re.IGNORECASE,
)
_RANDOM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{16,}\b", re.I)
_AROUND: Final = 24
"""Characters on both sides of the place that are looked at: a date is recognised by more than its last digit."""
EARLY: Final = 0.5
"""Share of the first request past the place from which its being so early is worth a word."""


class Hint(msgspec.Struct, frozen=True):
    """A likely cause and what to do about it."""

    kind: str
    text: str


def hints(found: Comparison) -> list[Hint]:
    """The causes that fit, likeliest first; none where nothing diverges."""
    if found.outcome is not Outcome.DIVERGES or found.place is None:
        return []
    told = [hint for look in _LOOKS if (hint := look(found, found.place)) is not None]
    return told[:1] + [hint for hint in told[1:] if hint.kind == "early"]


def _model(_: Comparison, place: Place) -> Hint | None:
    if place.piece.role != MODEL:
        return None
    return Hint("model", "The model is another one: nothing that one model computed can be used by another.")


def _parameters(_: Comparison, place: Place) -> Hint | None:
    if place.piece.role != PARAMETERS:
        return None
    return Hint(
        "parameters",
        f"The messages are equal, and '{place.label}' differs. Whether that changes the prompt is decided by the chat "
        "template: if it does, everything after the place where it is printed is computed again.",
    )


def _tools(found: Comparison, place: Place) -> Hint | None:
    if place.piece.role != TOOLS:
        return None
    before, now = _pair(found)
    if before is None or now is None or before.role != now.role:
        verb = "has no tools any more" if found.kind is Divergence.REMOVED else "has tools, and the first had none"
        return Hint(
            "tools", f"The second request {verb}. Tools are printed before the messages: keep the list the same."
        )
    ours, theirs = ({text.label: text.text for text in piece.texts} for piece in (before, now))
    if ours == theirs:
        return Hint("tool_order", "The same tools stand in another order: send them in a fixed one, sorted by name.")
    if list(ours) == list(theirs) and all(_value(ours[name]) == _value(theirs[name]) for name in ours):
        return Hint(
            "tool_spelling", "The tools mean the same and their keys stand in another order: print them the same."
        )
    changed = [f"'{name}' changed" for name in ours if name in theirs and ours[name] != theirs[name]]
    changed += [f"'{name}' left out" for name in ours if name not in theirs]
    changed += [f"'{name}' added" for name in theirs if name not in ours]
    return Hint(
        "tools",
        f"The tool list differs ({', '.join(changed[:5])}{', ...' if len(changed) > 5 else ''}). It is printed before "
        "the messages: keep it the same for a whole session, and leave it to tool_choice which may be used.",
    )


def _reasoning(found: Comparison, _: Place) -> Hint | None:
    text = (
        "The answer's reasoning is gone from the history: send it back as it came, or expect each answer with "
        "reasoning to be computed again."
    )
    if found.kind is Divergence.REASONING_STRIPPED:
        return Hint("reasoning", text)
    before, now = _pair(found)
    if before is None or now is None or before.role != "assistant":
        return None
    spoken = trimmed(without_reasoning(before))
    stripped = spoken != trimmed(before) and spoken.texts == trimmed(now).texts
    return Hint("reasoning", text) if stripped else None


def _spelling(_: Comparison, place: Place) -> Hint | None:
    if place.label != ARGUMENTS or place.before_text == place.now_text:
        return None
    value = _value(place.before_text)
    if value is None or value != _value(place.now_text):
        return None
    return Hint(
        "arguments",
        "A tool call's arguments mean the same and are written differently: send back the text that the model wrote "
        "instead of printing the parsed arguments anew.",
    )


def _whitespace(_: Comparison, place: Place) -> Hint | None:
    ours, theirs = place.before_text, place.now_text
    if ours == theirs or "".join(ours.split()) != "".join(theirs.split()):
        return None
    ends = ours.strip() == theirs.strip()
    where = "at its beginning or end" if ends else "inside it"
    return Hint("whitespace", f"Only blanks or line ends {where} differ: something trims or reformats the text.")


def _unicode(_: Comparison, place: Place) -> Hint | None:
    ours, theirs = (unicodedata.normalize("NFKC", text) for text in (place.before_text, place.now_text))
    if place.before_text == place.now_text or ours != theirs:
        return None
    return Hint("unicode", "The characters look the same and are encoded differently: something normalises the text.")


def _compaction(found: Comparison, _: Place) -> Hint | None:
    if found.kind is not Divergence.COMPACTED:
        return None
    return Hint(
        "compaction",
        f"{plural(len(found.removed), 'message was', 'messages were')} replaced by {len(found.added)}: the history "
        "was compacted or summarised. Compact rarely and much, rather than a little every turn.",
    )


def _window(found: Comparison, place: Place) -> Hint | None:
    if found.kind is not Divergence.REMOVED or place.piece.index is None or not found.removed:
        return None
    many = plural(len(found.removed), "message was", "messages were")
    return Hint(
        "dropped",
        f"{many} left out of the history. A window that moves with every turn parts from the turn before every time: "
        "drop many messages seldom.",
    )


def _inserted(found: Comparison, place: Place) -> Hint | None:
    if found.kind is not Divergence.INSERTED or place.piece.index is None:
        return None
    return Hint(
        "inserted",
        "Something was put between messages that were there already (memories, documents, a reminder): append it "
        "after them instead.",
    )


def _time(_: Comparison, place: Place) -> Hint | None:
    where = "system prompt" if place.piece.role in SYSTEM_ROLES else f"{place.piece.role} message"
    for pattern, what in ((_RANDOM, "a random id"), (_TIME, "a date or time")):
        if all(_at_place(pattern, text, place.char) for text in (place.before_text, place.now_text)):
            return Hint(
                "changing_value",
                f"What differs looks like {what} in the {where}: put what changes from turn to turn after the history, "
                "or leave it out.",
            )
    return None


def _at_place(pattern: re.Pattern[str], text: str, char: int) -> bool:
    start = max(0, char - 2 * _AROUND)
    around = text[start : char + 2 * _AROUND]
    return any(m.start() <= char - start < m.end() for m in pattern.finditer(around))


def _shortened(_: Comparison, place: Place) -> Hint | None:
    if not place.now_text or not place.before_text.startswith(place.now_text) or place.before_text == place.now_text:
        return None
    lost = len(place.before_text) - len(place.now_text)
    return Hint(
        "shortened",
        f"The text was cut off: {plural(lost, 'character')} at its end {'is' if lost == 1 else 'are'} gone. Cut tool "
        "results and answers before they are sent the first time, not later.",
    )


def _cleared(_: Comparison, place: Place) -> Hint | None:
    if place.piece.role != "tool" or len(place.now_text) * 2 > len(place.before_text):
        return None
    return Hint(
        "cleared",
        "An old tool result was replaced by a shorter text: clear many at once, and seldom, since each time everything "
        "after the first one is computed again.",
    )


def _early(found: Comparison, _: Place) -> Hint | None:
    if not found.before_chars or found.reusable_chars > EARLY * found.before_chars:
        return None
    if found.displaced_chars < EARLY * (found.before_chars - found.reusable_chars):
        return None
    return Hint(
        "early",
        "Nearly everything after the place is unchanged: the change costs so much only because it stands so early.",
    )


_LOOKS: Final[tuple[Callable[[Comparison, Place], Hint | None], ...]] = (
    _model,
    _parameters,
    _tools,
    _reasoning,
    _spelling,
    _whitespace,
    _unicode,
    _time,
    _compaction,
    _window,
    _inserted,
    _shortened,
    _cleared,
    _early,
)


def _pair(found: Comparison) -> tuple[Piece | None, Piece | None]:
    return next(iter(found.removed), None), next(iter(found.added), None)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
