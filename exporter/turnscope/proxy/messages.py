"""What an attempt tells of messages: roles, lengths and keyed digests; never text.

Made in the background from the body as it came, in short steps, so that serving threads neither decode nor hash a
history. The bodies that wait for it are bounded; of one that finds no room roles and lengths are told if it is short,
and else nothing: they are unknown then.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from turnscope.decode.codec import MAX_LIST
from turnscope.history.digests import DIGEST_BYTES, Key
from turnscope.history.pieces import ATTACHMENT, FIELDS, MODEL, PROMPT, Piece, message, pieces
from turnscope.history.reading import Reading
from turnscope.history.reasoning import reasoning_chars, trimmed, without_reasoning
from turnscope.model import Attempt
from turnscope.proxy.said import Said

WAITING_LIMIT: Final = 64 << 20
"""Bytes of bodies kept in one process until they are told."""
AT_ONCE: Final = 32 << 10
"""Bytes of a body that serving threads read themselves where there is no room: about a millisecond."""
_TOLD: Final = FIELDS - {MODEL}
_LISTS: Final = ("messages", "input")

Pause = Callable[[], None]


class Told(NamedTuple):
    """What is sent of one request."""

    roles: list[str]
    chars: list[int]
    digests: bytes
    part_names: list[str]
    part_chars: list[int]
    part_digests: bytes
    key_id: str
    """"" without a key."""


class Prompt:
    """One client request's body until it is told, and what is told of it, for all its attempts."""

    __slots__ = ("body", "told")

    def __init__(self, body: bytes, told: Told | None = None) -> None:
        self.body = body
        self.told = told


class Untold(NamedTuple):
    """An attempt without what is told of messages."""

    event: Attempt
    prompt: Prompt
    said: Said | None
    """D's answer, where it is whole."""


class Prompts:
    """The bodies that wait. ``key`` gives the sidecar's key, None as long as it is not known."""

    def __init__(self, key: Callable[[], Key | None], limit: int = WAITING_LIMIT) -> None:
        self._key = key
        self._lock = threading.Lock()
        self._waiting: deque[Prompt] = deque()
        self._limit = limit
        self.room = limit
        """Bytes that may still wait."""

    def take(self, body: bytes) -> Prompt:
        """For serving threads: keep ``body`` for the background."""
        with self._lock:
            fits = len(body) <= self.room
            self.room -= len(body) * fits
        if not fits:
            return Prompt(b"", tell(body, None) if len(body) <= AT_ONCE else _nothing(None))
        prompt = Prompt(body)
        self._waiting.append(prompt)
        return prompt

    @property
    def pressing(self) -> bool:
        return 2 * self.room < self._limit

    def work(self, pause: Pause) -> None:
        """Tell what waits by now; ``pause()`` is called between short slices."""
        for _ in range(len(self._waiting)):
            self._tell(self._waiting.popleft(), pause)

    def fill(self, untold: Untold, pause: Pause) -> Attempt:
        """The whole attempt. Like ``work`` for the background thread."""
        event = untold.event
        told = self._tell(untold.prompt, pause)
        event.message_roles, event.message_chars, event.message_digests = told.roles, told.chars, told.digests
        event.part_names, event.part_chars, event.part_digests = told.part_names, told.part_chars, told.part_digests
        event.last_role = told.roles[-1] if told.roles else None
        event.digest_key_id = told.key_id
        answer = untold.said.message() if untold.said is not None else None
        if answer is not None:
            whole = message(answer)
            spoken = without_reasoning(whole)
            event.answer_chars, event.answer_reasoning_chars = whole.chars, reasoning_chars(whole)
            key = self._key()
            if key is not None and key.id == told.key_id:
                event.answer_digests = b"".join(map(key.digest, (whole, spoken, trimmed(spoken))))
        return event

    def _tell(self, prompt: Prompt, pause: Pause) -> Told:
        if prompt.told is None:
            body, prompt.body = prompt.body, b""
            try:
                prompt.told = tell(body, self._key(), pause)
            finally:
                with self._lock:
                    self.room += len(body)
        return prompt.told


def _no_pause() -> None:
    return None


def tell(body: bytes, key: Key | None, pause: Pause = _no_pause) -> Told:
    """Of a request's body; nothing of one that is no JSON object. Of very many messages the newest are told."""
    try:
        return _told(Reading(body, pause), key, pause)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _nothing(key)


def _nothing(key: Key | None) -> Told:
    return Told([], [], b"", [], [], b"", _id(key))


def _told(reading: Reading, key: Key | None, pause: Pause) -> Told:
    messages, parts = _Lines(), _Lines()
    fields = {name: value for name, value in reading.fields().items() if name in _TOLD}
    for name in _LISTS:
        if isinstance(entries := fields.get(name), list):
            del entries[:-MAX_LIST]  # neither told nor read any further
    pause()
    for piece in pieces(fields):
        pause()
        beside = piece.index is None or piece.role == PROMPT
        (parts if beside else messages).add(piece, reading, key, pause)
        pause()
    fields.clear()  # what was read of a long history takes a while to let go of
    pause()
    told = Told(*messages.newest(), *parts.first(), _id(key))
    pause()
    return told


class _Lines:
    """What is told of pieces, one after the other."""

    def __init__(self) -> None:
        self._roles: list[str] = []
        self._chars: list[int] = []
        self._digests = bytearray()

    def add(self, piece: Piece, reading: Reading, key: Key | None, pause: Pause) -> None:
        role = "".join(reading.windows(piece.role))
        texts = [("".join(reading.windows(text.label)), [*reading.windows(text.text)]) for text in piece.texts]
        pause()
        self._roles.append(role)
        self._chars.append(sum(len(part) for label, parts in texts if label != ATTACHMENT for part in parts))
        if key is not None:
            whole = ([role], *(part for label, parts in texts for part in ([label], parts)))
            self._digests += key.digest_of(whole, pause)

    def newest(self) -> tuple[list[str], list[int], bytes]:
        """Roles, characters and digests of the last ``MAX_LIST``."""
        return self._roles[-MAX_LIST:], self._chars[-MAX_LIST:], bytes(self._digests[-MAX_LIST * DIGEST_BYTES :])

    def first(self) -> tuple[list[str], list[int], bytes]:
        """Those of the first ``MAX_LIST``."""
        return self._roles[:MAX_LIST], self._chars[:MAX_LIST], bytes(self._digests[: MAX_LIST * DIGEST_BYTES])


def _id(key: Key | None) -> str:
    return key.id if key is not None else ""
