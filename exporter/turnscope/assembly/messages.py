"""Which message of a request parts it from the turn before: by keyed digests, else by roles and lengths alone.

Where all is equal that can be compared, nothing is said: equal lengths prove nothing, and what a chat template makes of
equal messages only the digests of tokens can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from turnscope.history.compare import first_change
from turnscope.history.digests import unpacked
from turnscope.history.pieces import MODEL, PARAMETERS, SYSTEM, TOOLS
from turnscope.model import Attempt
from turnscope.semconv import Divergence

DIGESTS: Final = "digests"
LENGTHS: Final = "lengths"
NAMES: Final = "names"
MOST: Final = 4096
"""Messages told of one request: of one with so many the first may be missing, and places mean nothing."""
_ON_THE_SERVER: Final = "body.previous_response_id"
"""Where a session id came from whose history the client does not send."""


class Parting(NamedTuple):
    """The first difference between a request and the one before it."""

    message: int | None
    """From 0; None of a field beside the messages."""
    role: str
    kind: Divergence
    chars_before: int | None
    chars: int | None
    """None where nothing stands."""
    evidence: str


class _Told(NamedTuple):
    """What two requests are compared by: digests, or characters where those cannot be compared."""

    roles: list[str]
    chars: list[int]
    messages: list[tuple[str, bytes | int]]
    fields: dict[str, tuple[list[bytes | int], int]]
    """By name: what stands for each of that name, and the characters of all."""


def parting(before: Attempt | None, now: Attempt | None) -> Parting | None:
    """Where ``now`` stops continuing ``before``; None where it is not seen to, or where they cannot be compared."""
    if before is None or now is None or _ON_THE_SERVER in (before.session_source, now.session_source):
        return None
    if before.model is not None and now.model is not None and before.model != now.model:
        return Parting(None, MODEL, Divergence.EDITED, None, None, NAMES)
    if not (0 < len(before.message_roles) < MOST and 0 < len(now.message_roles) < MOST):
        return None
    digested = bool(before.digest_key_id) and before.digest_key_id == now.digest_key_id
    ours, theirs = _told(before, digested), _told(now, digested)
    return (
        _field(SYSTEM, ours, theirs, digested)
        or _field(TOOLS, ours, theirs, digested)
        or _history(ours, theirs, digested)
        or _answer(before, theirs, digested)
        or _field(PARAMETERS, ours, theirs, digested)
    )


def _told(attempt: Attempt, digested: bool) -> _Told:
    messages: Sequence[bytes | int] = unpacked(attempt.message_digests) if digested else attempt.message_chars
    parts: Sequence[bytes | int] = unpacked(attempt.part_digests) if digested else attempt.part_chars
    fields: dict[str, tuple[list[bytes | int], int]] = {}
    for name, told, chars in zip(attempt.part_names, parts, attempt.part_chars, strict=False):
        known, so_far = fields.get(name, ([], 0))
        fields[name] = [*known, told], so_far + chars
    return _Told(
        attempt.message_roles,
        attempt.message_chars,
        list(zip(attempt.message_roles, messages, strict=False)),
        fields,
    )


def _evidence(digested: bool) -> str:
    return DIGESTS if digested else LENGTHS


def _field(name: str, before: _Told, now: _Told, digested: bool) -> Parting | None:
    ours, theirs = before.fields.get(name), now.fields.get(name)
    if ours == theirs:
        return None
    kind = Divergence.INSERTED if ours is None else Divergence.REMOVED if theirs is None else Divergence.EDITED
    return Parting(None, name, kind, ours and ours[1], theirs and theirs[1], _evidence(digested))


def _history(before: _Told, now: _Told, digested: bool) -> Parting | None:
    change = first_change(before.messages, now.messages)
    if change is None:
        return None
    gone = change.kind in (Divergence.REMOVED, Divergence.TRUNCATED)
    return Parting(
        change.at,
        (before if gone else now).roles[change.at],
        change.kind,
        _sum(before.chars, change.at, change.removed),
        _sum(now.chars, change.at, change.added),
        _evidence(digested),
    )


def _sum(chars: list[int], at: int, many: int) -> int | None:
    return sum(chars[at : at + many]) if many else None


def _answer(before: Attempt, now: _Told, digested: bool) -> Parting | None:
    """The history is whole: does the answer follow it, as it was given? Nothing is said where that is not known."""
    at = len(before.message_roles)
    if before.answer_chars is None or at >= len(now.roles):
        return None
    if now.roles[at] != "assistant":
        return Parting(at, "assistant", Divergence.REMOVED, before.answer_chars, None, _evidence(digested))
    forms = _forms(before, digested)
    told = now.messages[at][1]
    if not forms or told == forms[0]:
        return None
    stripped = bool(before.answer_reasoning_chars) and told in forms[1:]
    kind = Divergence.REASONING_STRIPPED if stripped else Divergence.ANSWER_CHANGED
    return Parting(at, "assistant", kind, before.answer_chars, now.chars[at], _evidence(digested))


def _forms(before: Attempt, digested: bool) -> list[bytes | int]:
    """The answer as it was given, then as it is without its reasoning."""
    if digested:
        return list(unpacked(before.answer_digests))
    whole = before.answer_chars or 0
    return [whole, whole - (before.answer_reasoning_chars or 0)]
