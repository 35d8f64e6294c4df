"""Digests of what requests were: tokens wait here, bounded, until the background thread has hashed them.

The engine appends to a request's list of tokens while it runs and leaves it alone once the request is freed: the list
itself is kept, and no longer than until it is hashed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
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

    def dropped(self) -> Digest:
        """What did not fit among those that wait."""
        return self.digest(unverifiable="too_long" if self.covered > WAITING_TOKENS else "dropped")

    @property
    def covered(self) -> int:
        """The prompt and, unless on P, whose answer stays behind, the answer's tokens whose KV exists."""
        if self.leg is Leg.PREFILL or self.computed_tokens is None:
            return self.input_tokens
        return max(self.input_tokens, min(self.computed_tokens, self.input_tokens + self.answer_tokens))


class _Waiting(NamedTuple):
    freed: tuple[Any, ...]
    size: int
    ids: Any
    computed_tokens: Any
    embedded: bool
    lora: Any
    salt: Any
    media: list[tuple[int, int, str]] | None


class Digests:
    """Of one scheduler's requests, which wait here, at most ``limit`` tokens of them."""

    def __init__(self, secret: Secret, facts: DigestFacts, *, limit: int = WAITING_TOKENS) -> None:
        secret.want()
        self._secret = secret
        self._facts = facts
        self._limit = limit
        self._waiting: deque[tuple[Any, ...]] = deque()
        self._kept = 0
        """Counted up by the engine's thread, ``_done`` by the background: what waits is the difference."""
        self._done = 0
        self._keys: Keys | None = None
        self._keys_of: bytes | None = None

    # --- engine thread --------------------------------------------------------------------------------
    def keeper(
        self, describe: Callable[[tuple[Any, ...]], Ended], push: Callable[[Any], None]
    ) -> Callable[[Any, tuple[Any, ...], int], None]:
        """A function for a freed request, what was read of it, and the number of its tokens: it takes references.

        ``describe`` tells what such a request was, ``push`` leaves its digest in a ring.
        """
        self._describe, self._push = describe, push
        append, limit = self._waiting.append, self._limit

        def keep(request: Any, freed: tuple[Any, ...], tokens: int) -> None:
            size = tokens + _ENTRY
            if self._kept - self._done + size > limit:
                push(freed)
                return
            features = request.mm_features
            append((
                freed, size, request.all_token_ids, request.num_computed_tokens,
                request.prompt_token_ids is None or getattr(request, "prompt_is_token_ids", None) is not None,
                request.lora_request, request.cache_salt,
                [(f.mm_position.offset, f.mm_position.length, f.identifier) for f in features] if features else None,
            ))  # fmt: skip
            self._kept += size

        return keep

    # --- background thread ------------------------------------------------------------------------------
    @property
    def waiting_tokens(self) -> int:
        """Tokens that wait, as they count against the limit."""
        return self._kept - self._done

    def forget(self) -> None:
        """Let go of what waits."""
        while self._waiting:
            self._done += self._waiting.popleft()[1]

    def work(self, pause: Callable[[], None]) -> None:
        """Hash what waits by now, as soon as there is a key; ``pause()`` is called between short slices."""
        keys = self._current_keys()
        if keys is None and not self._secret.refused:
            return
        for _ in range(len(self._waiting)):
            waiting = _Waiting(*self._waiting.popleft())
            try:
                self._push(self._made(waiting, keys, pause))
            finally:
                self._done += waiting.size
            pause()

    def _current_keys(self) -> Keys | None:
        if self._secret.value is not self._keys_of:
            self._keys_of = self._secret.value
            self._keys = Keys(self._secret.value, self._facts.stops) if self._secret.value is not None else None
        return self._keys

    def _made(self, waiting: _Waiting, keys: Keys | None, pause: Callable[[], None]) -> Digest:
        ended = self._describe(waiting.freed)._replace(computed_tokens=count(waiting.computed_tokens))
        if len(waiting.ids) < ended.covered:
            return ended.digest(unverifiable="strange_ids")
        if waiting.embedded:
            return ended.digest(unverifiable="prompt_embeds")
        if waiting.media and not self._facts.media_told:
            return ended.digest(unverifiable="media")
        if keys is None:
            return ended.digest(unverifiable="no_key")
        media = [Media(*medium) for medium in waiting.media or ()]
        lora = getattr(waiting.lora, "lora_name", None)
        marker = Marker(keys, seed(self._facts.model, lora, waiting.salt), ended.covered, ended.anchor_tokens, media)
        try:
            for start, end in slices(ended.covered, ended.anchor_tokens):
                marker.feed(waiting.ids[start:end])
                pause()
        except (OverflowError, TypeError):
            return ended.digest(unverifiable="strange_ids")
        marks, chunks = marker.result()
        return ended.digest(key_id=keys.id, marks=marks, chunks=chunks)
