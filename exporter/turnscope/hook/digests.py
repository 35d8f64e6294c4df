"""Digests of what requests were: tokens wait here, bounded, until the background thread has hashed them.

The engine appends to a request's list of tokens while it runs and leaves it alone once the request is freed: the list
itself is kept, and no longer than until it is hashed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from turnscope.emit.secret import Secret
from turnscope.hook.identity import DigestFacts
from turnscope.hook.values import count
from turnscope.marks import Keys, Marker, Media, seed, slices
from turnscope.model import Digest
from turnscope.semconv import Leg

WAITING_TOKENS: Final = 2**20
"""Tokens that may wait; each keeps about 40 bytes alive."""
_ENTRY: Final = 64
"""What a request counts for besides its tokens, so that many short ones are bounded as well."""


class Ended(NamedTuple):
    """A freed request, as far as its digest needs it."""

    request_id: str
    leg: Leg
    input_tokens: int
    answer_tokens: int
    anchor_tokens: int | None
    """Of the handle that P was given; of what D keeps."""
    computed_tokens: int | None = None
    """As the engine counts at the end: optimistic, it can be ahead of the tokens that exist."""

    def digest(self, **fields: Any) -> Digest:
        """Without marks, unless ``fields`` has them."""
        return Digest(
            request_id=self.request_id,
            leg=self.leg,
            tokens=self.covered,
            input_tokens=self.input_tokens,
            anchor_tokens=None if self.anchor_tokens is None else min(self.anchor_tokens, self.covered),
            **fields,
        )

    @property
    def covered(self) -> int:
        """The prompt and, unless on P, whose answer stays behind, the answer's tokens whose KV exists."""
        if self.leg is Leg.PREFILL or self.computed_tokens is None:
            return self.input_tokens
        return max(self.input_tokens, min(self.computed_tokens, self.input_tokens + self.answer_tokens))


class _Kept(NamedTuple):
    """What a digest is made of: references, taken when its request ended."""

    taken: int
    """``_Room.taken`` by then: when it is let go of, everything before it has been, too."""
    ids: Any
    """None where there was no room for them."""
    computed_tokens: Any
    all_tokens: bool | None
    """False with embeddings in the prompt; None where the engine's requests do not tell it all."""
    lora: Any
    salt: Any
    media: Collection[Media]


class _Room:
    """Both numbers only grow, and each is written by one thread: no lock, and no sum that a race could spoil."""

    __slots__ = ("limit", "taken")

    def __init__(self, limit: int) -> None:
        self.taken = 0
        """Of all requests so far, by the engine's thread."""
        self.limit = limit
        """How far ``taken`` may go by now, by the background thread."""


def _places(features: Any) -> list[Media]:
    """Without the media themselves, which are large."""
    return [Media(f.mm_position.offset, f.mm_position.length, f.identifier) for f in features]


class Digests:
    """Of one scheduler's requests, of which at most ``limit`` tokens wait. ``push`` leaves a digest in its ring."""

    def __init__(self, secret: Secret, facts: DigestFacts, *, limit: int = WAITING_TOKENS) -> None:
        secret.want()
        self._secret = secret
        self._facts = facts
        self._limit = limit
        self._room = _Room(limit)
        self._waiting: deque[tuple[Ended, _Kept]] = deque()
        self._keys: Keys | None = None
        self._keys_of: bytes | None = None
        self.push: Callable[[Digest], None]

    # --- engine thread --------------------------------------------------------------------------------
    def keeper(self) -> Callable[[Any, int], tuple[Any, ...]]:
        """A function of a freed request and the number of its tokens that takes references to what ``add`` needs."""
        room = self._room

        def keep(request: Any, tokens: int) -> tuple[Any, ...]:
            taken = room.taken + tokens + _ENTRY
            try:
                if taken <= room.limit:
                    room.taken, ids = taken, request.all_token_ids
                else:
                    taken, ids = room.taken, None
                media = request.mm_features
                return (
                    taken, ids, request.num_computed_tokens, request.prompt_embeds is None, request.lora_request,
                    request.cache_salt, _places(media) if media else (),
                )  # fmt: skip
            except AttributeError:  # an engine whose requests we do not know: all else is told of them as ever
                return room.taken, None, None, None, None, None, ()

        return keep

    # --- background thread ------------------------------------------------------------------------------
    @property
    def waiting_tokens(self) -> int:
        """Tokens that are kept alive, as they count against the limit."""
        return self._room.taken + self._limit - self._room.limit

    @property
    def pressing(self) -> bool:
        return 2 * self.waiting_tokens > self._limit

    def add(self, ended: Ended, kept: tuple[Any, ...]) -> None:
        """A request has ended, and ``kept`` was taken of it then: its digest is made by the next ``work``."""
        self._waiting.append((ended, _Kept(*kept)))

    def forget(self) -> None:
        """Let go of what waits."""
        while self._waiting:
            self._let_go(self._waiting.popleft()[1])

    def work(self, pause: Callable[[], None]) -> None:
        """Hash what waits by now, as soon as there is a key; ``pause()`` is called between short slices."""
        keys = self._current_keys()
        if keys is None and not self._secret.refused:
            return
        for _ in range(len(self._waiting)):
            ended, kept = self._waiting.popleft()
            try:
                self.push(self._made(ended, kept, keys, pause))
            finally:
                self._let_go(kept)
            pause()

    def _let_go(self, kept: _Kept) -> None:
        self._room.limit = kept.taken + self._limit

    def _current_keys(self) -> Keys | None:
        if self._secret.value is not self._keys_of:
            self._keys_of = self._secret.value
            self._keys = Keys(self._secret.value, self._facts.stops) if self._secret.value is not None else None
        return self._keys

    def _made(self, ended: Ended, kept: _Kept, keys: Keys | None, pause: Callable[[], None]) -> Digest:
        ended = ended._replace(computed_tokens=count(kept.computed_tokens))
        why = self._unverifiable(ended, kept)
        if why is not None or keys is None:
            return ended.digest(unverifiable=why or "no_key")
        told = seed(self._facts.model, getattr(kept.lora, "lora_name", None), kept.salt)
        pause()
        marker = Marker(keys, told, ended.covered, ended.anchor_tokens, kept.media)
        pause()
        try:
            for start, end in slices(ended.covered, ended.anchor_tokens):
                marker.feed(kept.ids[start:end])
                pause()
        except (OverflowError, TypeError):
            return ended.digest(unverifiable="strange_ids")
        marks, chunks = marker.result()
        return ended.digest(key_id=keys.id, marks=marks, chunks=chunks)

    def _unverifiable(self, ended: Ended, kept: _Kept) -> str | None:
        if kept.all_tokens is None:
            return "unsupported"
        if not kept.all_tokens:
            return "prompt_embeds"
        if kept.media and not self._facts.media_told:
            return "media"
        if kept.ids is None:
            return "too_long" if ended.covered > self._limit else "dropped"
        return "strange_ids" if len(kept.ids) < ended.covered else None
