"""Which sessions have come to rest, and are to be counted."""

from __future__ import annotations

from collections.abc import Iterable


class Resting:
    """Sessions in the order in which they were last heard of. ``rest_s`` of silence is rest; times are passed in."""

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._heard: dict[str, float] = {}

    def heard(self, session_ids: Iterable[str], now_s: float) -> None:
        """Something of them came."""
        for session_id in session_ids:
            self._heard.pop(session_id, None)
            self._heard[session_id] = now_s

    def __contains__(self, session_id: str) -> bool:
        """Heard of, and not at rest yet."""
        return session_id in self._heard

    def due(self, now_s: float) -> set[str]:
        """Those that have come to rest, each once until it is heard of again."""
        found = set()
        for session_id, heard_s in self._heard.items():
            if now_s - heard_s < self._rest_s:
                break
            found.add(session_id)
        for session_id in found:
            del self._heard[session_id]
        return found
