"""When sidecars look at the cards of their node, and what they say of the time in between, as ``/status`` tells it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from live.trials import Said
from turnscope.model import FabricStatus

LOOK_S: Final = 6.0
"""From look to look."""
ROOM_S: Final = 1.8
"""What can be counted on: of two that look every six seconds, one after the other, one pause has three, and the page
may be one second old when it first shows the look before it."""
CLOSE_S: Final = 0.4
"""A look that is nearer than this may have been meanwhile."""
POLL_S: Final = 0.1
WAIT_S: Final = 10 * LOOK_S


class Looks:
    """Of several sidecars, by view. A status page says how long ago something was when the page was made: of what it
    says again and again, the earliest time is right."""

    def __init__(
        self,
        views: Mapping[str, Callable[[], list[FabricStatus]]],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._views = views
        self._clock = clock
        self._sleep = sleep
        self._last: dict[str, float] = {}
        self._windows: dict[str, list[tuple[float, Said]]] = {view: [] for view in views}

    def wait(self) -> float | None:
        """Until each has looked once more and none will soon; when the next look is to be expected, at the earliest.
        None when that does not come about."""
        begun = self._clock()
        while self._clock() < begun + WAIT_S:
            self._watch()
            if len(self._last) == len(self._views) and min(self._last.values()) > begun:
                upcoming = min(self._last.values()) + LOOK_S - CLOSE_S
                if upcoming - self._clock() > ROOM_S:
                    return upcoming
            self._sleep(POLL_S)
        return None

    def watch(self, seconds: float) -> None:
        """Take in what is said for so long."""
        end = self._clock() + seconds
        while self._clock() < end:
            self._watch()
            self._sleep(POLL_S)

    def window(self, view: str, since: float) -> Said | None:
        """What was said of the window that ended with the first look after ``since``."""
        found = [(end, said) for end, said in self._windows[view] if since < end < since + LOOK_S + CLOSE_S]
        return min(found, key=lambda each: each[0])[1] if found else None

    def _watch(self) -> None:
        for view, nodes in self._views.items():
            for node in nodes():
                now = self._clock()
                last = self._last.get(view)
                self._last[view] = _earliest(last, now - node.silent_s)
                for window in node.windows:
                    self._keep(view, now - window.ended_s, Said(window.transport, window.inferred_from))

    def _keep(self, view: str, end: float, said: Said) -> None:
        kept = self._windows[view]
        for number, (other, same) in enumerate(kept):
            if same == said and abs(end - other) < LOOK_S / 2:
                kept[number] = min(end, other), said
                return
        kept.append((end, said))


def _earliest(known: float | None, seen: float) -> float:
    """The same look seen again, or the next."""
    return min(known, seen) if known is not None and seen - known < LOOK_S / 2 else seen
