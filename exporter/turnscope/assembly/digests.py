"""Token digests by the request they are of: as many as there is room for, and who still waits for which."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.state import State, Told
from turnscope.assembly.turns import hold_id_of, turn_id
from turnscope.model import Digest, Event
from turnscope.semconv import Leg

_OVERHEAD: Final = 500
"""Bytes of a digest besides its marks and chunks, about."""


def _size(digest: Digest) -> int:
    return len(digest.marks) + len(digest.chunks) + _OVERHEAD


class Digests:
    """Those of P legs and whole requests are kept by turn, those of D legs by the hold that such a leg would leave."""

    def __init__(self, state: State, settings: AssemblySettings) -> None:
        self._state = state
        self._settings = settings

    def take(self, event: Event, digest: Digest, arrival_ns: int) -> list[str]:
        """Keep a digest; the turns that were judged without it."""
        name = hold_id_of if digest.leg is Leg.DECODE else turn_id
        key = name(event.engine.id if event.engine else "", digest.request_id)
        self._drop(key)
        self._state.digests[key] = Told(arrival_ns, digest)
        self._state.digest_bytes += _size(digest)
        while self._state.digest_bytes > self._settings.digest_bytes:
            self._drop(next(iter(self._state.digests)))
        return self._state.awaited.pop(key, [])

    def _drop(self, key: str) -> None:
        told = self._state.digests.pop(key, None)
        if told is not None:
            self._state.digest_bytes -= _size(told.digest)

    def get(self, key: str, asker: str) -> Digest | None:
        """The digest; ``asker`` is looked at again should it come later."""
        told = self._state.digests.get(key)
        if told is not None:
            return told.digest
        waiting = self._state.awaited.setdefault(key, [])
        if asker not in waiting:
            waiting.append(asker)
        return None

    def prune(self, now_ns: int) -> None:
        """Forget digests of sessions that are forgotten, and turns that wait but are forgotten themselves."""
        state = self._state
        old = now_ns - self._settings.session_memory_ns
        for key in [k for k, told in state.digests.items() if told.since_ns < old]:
            self._drop(key)
        known = state.turns.keys() | state.old_turns.keys()
        for key, waiting in list(state.awaited.items()):
            waiting[:] = [turn for turn in waiting if turn in known]
            if not waiting:
                del state.awaited[key]
