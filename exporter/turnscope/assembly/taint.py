"""Taint: where one mismatch has put KV of other text, for other turns to find.

After a mismatched reverse fetch P files the wrong blocks under the hashes of the *new* prompt, and D, which reads them
from P, does so too: later turns, of other sessions as well, get clean-looking local hits on them, and what D holds of
the turn is wrong. Blocks hang together by their beginnings, so one mark that a prompt shares tells that it found them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Final

from turnscope.assembly.cache_state import Cache, Spoiled
from turnscope.assembly.state import EndedRequest, State
from turnscope.marks import Shared, chunks_of, marks_of
from turnscope.model import Digest

MAX_MARKS: Final = 4096
"""Remembered of one start of an engine; beyond it the oldest go."""
MAX_HITS: Final = 512
"""Turns with local hits that are looked at again when a mismatch becomes known only after them."""


MAX_EMPTIED: Final = 512
"""Times at which a cache was emptied that are remembered; beyond it the oldest go."""


def cache_key(engine_id: str, generation: str) -> str:
    """Of the prefix cache of one start of an engine."""
    return f"{engine_id}/{generation}"


def scheduled_ns(leg: EndedRequest) -> int:
    """When the engine looked into its cache for it, by its own clock: its end, where it does not say."""
    return leg.request.scheduled_mono_ns if leg.request.scheduled_mono_ns is not None else leg.mono_ns


def first_in_each(legs: Iterable[EndedRequest]) -> Iterable[EndedRequest]:
    """Of several requests of one turn, as samples are, the first in each cache: it filed what the others found."""
    first: dict[str, EndedRequest] = {}
    for leg in sorted(legs, key=scheduled_ns):
        first.setdefault(cache_key(leg.engine_id, leg.generation), leg)
    return first.values()


def _by_time(filed: Spoiled) -> tuple[int, str]:
    return filed.since_ns, filed.turn_id


def _first_marks(prompt: Digest, wrong: Shared) -> dict[int, bytes]:
    """The marks past where a prompt's KV is wrong, to the first that whoever shares more of it has as well."""
    high = wrong.high
    if high is None:
        return {}
    last = next((chunk.end for chunk in chunks_of(prompt) if chunk.end >= high), high)
    return {place: mark for place, mark in marks_of(prompt).items() if high <= place <= last}


def spoilers(cache: Cache) -> set[str]:
    """The turns whose wrong KV a request that is scheduled from now on may still find."""
    since = cache.emptied[-1] if cache.emptied else -1
    return {filed.turn_id for spoiled in cache.spoiled.values() for filed in spoiled if filed.since_ns > since}


def _emptied_before(cache: Cache, at_ns: int) -> int:
    """When it was emptied last before then; -1: never."""
    place = bisect_left(cache.emptied, at_ns)
    return cache.emptied[place - 1] if place else -1


class Taint:
    """By start of an engine: a restart clears it, since its cache is empty then. Where a running engine's cache is
    emptied, what was filed until then is kept, for the requests that had been scheduled by then."""

    def __init__(self, state: State) -> None:
        self._state = state

    def _cache(self, engine_id: str, generation: str) -> Cache:
        return self._state.caches.setdefault(cache_key(engine_id, generation), Cache())

    # --- asking ---------------------------------------------------------------------------------------
    def hit(self, turn_id: str, leg: EndedRequest, tokens: int, prompt: Digest) -> Shared | None:
        """From where on the leg's local hit of ``tokens`` is of wrong KV; None when it is not known to be."""
        if tokens <= 0:
            return None
        cache, at = self._cache(leg.engine_id, leg.generation), scheduled_ns(leg)
        longest, last = cache.hits.pop(turn_id, (tokens, at))
        cache.hits[turn_id] = max(tokens, longest), max(at, last)
        while len(cache.hits) > MAX_HITS:
            del cache.hits[next(iter(cache.hits))]
        emptied = _emptied_before(cache, at)
        for place, mark in marks_of(prompt).items() if cache.spoiled else ():
            filed = cache.spoiled.get(mark, ()) if place <= tokens else ()
            before = [spoiled for spoiled in filed if spoiled.turn_id != turn_id and emptied < spoiled.since_ns < at]
            if before:
                return Shared(min(before, key=_by_time).low, place)
        return None

    def held(self, hold_id: str | None) -> Shared | None:
        """From where on what D holds is wrong; None when it is not known to be."""
        found = self._state.wrong_holds.get(hold_id or "")
        return found[1] if found is not None else None

    # --- telling --------------------------------------------------------------------------------------
    def hold(self, turn_id: str, holds: set[str], wrong: Shared | None) -> set[str]:
        """A turn left holds that are wrong from ``wrong`` on, or are not after all; turns that used them."""
        touched: set[str] = set()
        former = {hold for hold, (by, _) in self._state.wrong_holds.items() if by == turn_id}
        for hold in sorted(holds | former):
            before = self._state.wrong_holds.pop(hold, None)
            after = (turn_id, wrong) if wrong is not None and hold in holds else None
            if after is not None:
                self._state.wrong_holds[hold] = after
            if before != after:
                touched |= {use.turn_id for use in self._state.uses.get(hold, ())}
        return touched

    def file(self, turn_id: str, leg: EndedRequest, prompt: Digest, wrong: Shared | None) -> set[str]:
        """A leg filed wrong KV of its prompt from ``wrong`` on, or did not after all; turns that had hits on it."""
        places, low = (_first_marks(prompt, wrong), wrong.low) if wrong is not None else ({}, 0)
        cache, since_ns = self._cache(leg.engine_id, leg.generation), scheduled_ns(leg)
        before = {mark: s for mark, filed in cache.spoiled.items() for s in filed if s.turn_id == turn_id}
        after = {mark: Spoiled(place, since_ns, turn_id, low) for place, mark in places.items()}
        changed = []
        for mark in [mark for mark in before | after if before.get(mark) != after.get(mark)]:
            others = [spoiled for spoiled in cache.spoiled.get(mark, ()) if spoiled.turn_id != turn_id]
            filed = [*others, after[mark]] if mark in after else others
            changed += [spoiled[mark] for spoiled in (before, after) if mark in spoiled]
            if filed:
                cache.spoiled[mark] = filed
            else:
                del cache.spoiled[mark]
        while len(cache.spoiled) > MAX_MARKS:
            del cache.spoiled[next(iter(cache.spoiled))]
        return {
            turn
            for turn, (tokens, at) in cache.hits.items()
            if any(tokens >= filed.position and at > filed.since_ns for filed in changed)
        }

    def emptied(self, engine_id: str, generation: str, at_ns: int) -> set[str]:
        """That cache was emptied then; turns that had hits in it since."""
        cache = self._cache(engine_id, generation)
        insort(cache.emptied, at_ns)
        del cache.emptied[:-MAX_EMPTIED]
        return {turn for turn, (_, last) in cache.hits.items() if last > at_ns}

    def prune(self) -> None:
        """Forget caches that are gone with their engine's start, and holds of turns that are forgotten."""
        state = self._state
        for key in [k for k in state.caches if not self._lives(k)]:
            del state.caches[key]
        known = state.turns.keys() | state.old_turns.keys()
        for hold in [h for h, (turn, _) in state.wrong_holds.items() if turn not in known]:
            del state.wrong_holds[hold]

    def _lives(self, key: str) -> bool:
        engine_id, _, generation = key.rpartition("/")
        engine = self._state.engines.get(engine_id)
        return engine is not None and engine.engine.generation == generation
