"""Keyed digests of messages: equal ones mean equal messages, and without the key they tell nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from turnscope.history.pieces import Piece

DIGEST_BYTES: Final = 8


def _no_pause() -> None:
    return None


class Key:
    """What a secret is made into, once. ``id`` names it without telling it: 16 hex digits."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(secret).digest()
        self.id = self._begin(b"message key").hexdigest()

    def _begin(self, what: bytes) -> hashlib.blake2b:
        return hashlib.blake2b(digest_size=DIGEST_BYTES, key=self._key, person=what)

    def digest(self, piece: Piece) -> bytes:
        """Of role and texts."""
        return self.digest_of([[part] for part in (piece.role, *(part for text in piece.texts for part in text))])

    def digest_of(self, texts: Iterable[Sequence[str]], pause: Callable[[], None] = _no_pause) -> bytes:
        """Of texts, each in windows, with its length before it, so that no two messages are fed to the hash alike."""
        state = self._begin(b"message")
        for windows in texts:
            encoded = []
            for window in windows:
                encoded.append(window.encode("utf-8", "surrogatepass"))
                pause()
            state.update(sum(map(len, encoded)).to_bytes(8, "little"))
            for part in encoded:
                state.update(part)
                pause()
        return state.digest()


def unpacked(digests: bytes) -> list[bytes]:
    """One by one."""
    return [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
