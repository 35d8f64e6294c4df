"""What an attempt tells of messages: roles, lengths and keyed digests; never text.

Made in the background from the body as it came, message by message, so that serving threads neither decode nor hash a
history. The bodies that wait for it are bounded; one that finds no room is told without digests, at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from turnscope.decode.codec import MAX_LIST
from turnscope.history.pieces import FIELDS, MODEL, PROMPT, Piece, message, pieces
from turnscope.history.reasoning import reasoning_chars, trimmed, without_reasoning
from turnscope.marks import MARK_BYTES, Keys
from turnscope.model import Attempt
from turnscope.proxy.said import Said

WAITING_LIMIT: Final = 64 << 20
"""Bytes of bodies kept in one process until they are told."""

_SLICE: Final = 16_384
"""Characters that are read and hashed without a pause; what a message costs besides counts as ``_A_MESSAGE``."""
_A_MESSAGE: Final = 1_024

Pause = Callable[[], None]


class Told(NamedTuple):
    """What is sent of one request."""

    roles: list[str]
    chars: list[int]
    digests: bytes
    part_names: list[str]
    part_chars: list[int]
    part_digests: bytes


class Room:
    """Bytes of bodies that may still wait. For any thread."""

    def __init__(self, limit: int = WAITING_LIMIT) -> None:
        self._lock = threading.Lock()
        self.left = limit

    def take(self, size: int) -> bool:
        """Whether there was room; then it is taken."""
        with self._lock:
            fits = size <= self.left
            self.left -= size * fits
        return fits

    def give(self, size: int) -> None:
        """It is free again."""
        with self._lock:
            self.left += size


class Prompt:
    """One client request's body until it is told, and what is told of it, for all its attempts."""

    def __init__(self, body: bytes, room: Room) -> None:
        self._room = room
        self._taken = 0
        if room.take(len(body)):
            self._taken = len(body)
        self._body = body if self._taken else b""
        self._told = None if self._taken else tell(body, None)

    def __del__(self) -> None:
        # However it was given up: a request that reached no engine is never told.
        if self._taken:
            self._room.give(self._taken)

    def told(self, keys: Keys | None, pause: Pause) -> Told:
        """Computed once, then the body is let go. ``pause()`` is called between messages."""
        if self._told is None:
            self._told = tell(self._body, keys, pause)
            self._room.give(self._taken)
            self._taken, self._body = 0, b""
        return self._told


class Untold(NamedTuple):
    """An attempt without what is told of messages."""

    event: Attempt
    prompt: Prompt
    said: Said | None
    """D's answer, where it is whole."""

    def fill(self, keys: Keys | None, pause: Pause) -> Attempt:
        """The whole attempt."""
        event, told = self.event, self.prompt.told(keys, pause)
        event.message_roles, event.message_chars = told.roles, told.chars
        event.message_digests = told.digests
        event.part_names, event.part_chars, event.part_digests = told.part_names, told.part_chars, told.part_digests
        event.last_role = told.roles[-1] if told.roles else None
        answer = self.said.message() if self.said is not None else None
        if answer is not None:
            piece = message(answer)
            event.answer_chars = piece.chars
            event.answer_reasoning_chars = reasoning_chars(piece)
            if keys is not None:
                spoken = without_reasoning(piece)
                event.answer_digests = b"".join(digest(form, keys) for form in (piece, spoken, trimmed(spoken)))
        if keys is not None and (told.digests or told.part_digests or event.answer_digests):
            event.digest_key_id = keys.id
        return event


def _no_pause() -> None:
    return None


def tell(body: bytes, keys: Keys | None, pause: Pause = _no_pause) -> Told:
    """Of a request's body; nothing of one that is no JSON object. Of very many messages the newest are told."""
    told = Told([], [], b"", [], [], b"")
    digests: list[bytes] = []
    part_digests: list[bytes] = []
    work = 0
    for piece in _pieces(body):
        parts = piece.index is None or piece.role == PROMPT
        (told.part_names if parts else told.roles).append(piece.role)
        (told.part_chars if parts else told.chars).append(piece.chars)
        if keys is not None:
            (part_digests if parts else digests).append(digest(piece, keys))
        work += piece.chars + _A_MESSAGE
        if work > _SLICE:
            work = 0
            pause()
    newest = slice(-MAX_LIST, None)
    return Told(
        told.roles[newest],
        told.chars[newest],
        b"".join(digests[newest]),
        told.part_names[:MAX_LIST],
        told.part_chars[:MAX_LIST],
        b"".join(part_digests[:MAX_LIST]),
    )


def _pieces(body: bytes) -> Iterator[Piece]:
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        yield from (piece for piece in pieces({k: v for k, v in fields.items() if k in FIELDS}) if piece.role != MODEL)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return


def digest(piece: Piece, keys: Keys) -> bytes:
    """Of role and texts, so that no two different messages are fed to the hash alike."""
    state: Any = keys.begin(b"message", piece.role.encode("utf-8", "surrogatepass"), MARK_BYTES)
    for text in piece.texts:
        for part in (text.label, text.text):
            encoded = part.encode("utf-8", "surrogatepass")
            state.update(len(encoded).to_bytes(8, "little"))
            state.update(encoded)
    found: bytes = state.digest()
    return found
