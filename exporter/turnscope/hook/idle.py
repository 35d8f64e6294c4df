"""Open requests that take no step: looked at by the background thread, at every heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_SLICE: Final = 32
"""Requests looked at without a pause."""


class Steps:
    """How many tokens each open request had computed when it was last looked at."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def idle(self, names: Iterable[str], requests: Mapping[str, Any], pause: Callable[[], None]) -> list[Any]:
        """Of ``requests`` those in ``names`` that computed nothing since the last call; none that is new."""
        before, now = self._before, dict[str, int]()
        found = []
        for number, name in enumerate(names, 1):
            request = requests.get(name)
            computed = getattr(request, "num_computed_tokens", None)
            if computed is not None:
                now[name] = computed
                # Taken out, so that little is left of the old table to be freed at once.
                if before.pop(name, None) == computed:
                    found.append(request)
            if number % _SLICE == 0:
                pause()
        pause()
        self._before = now
        pause()
        return found
