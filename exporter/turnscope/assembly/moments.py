"""A moment is a reading of one monotonic clock: only two readings of the same clock make a duration. And what is known
of the clocks themselves."""

from __future__ import annotations

import msgspec

from turnscope.model import Emitter, Event


class Moment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What ``clock`` showed. A clock "" is of an unknown host and like no other."""

    clock: str
    mono_ns: int

    def after(self, earlier: Moment | None) -> int | None:
        """Nanoseconds since ``earlier``; None when that was another clock's."""
        if earlier is None or not self.clock or self.clock != earlier.clock:
            return None
        return self.mono_ns - earlier.mono_ns


class ClockState(msgspec.Struct, kw_only=True):
    """One host's clocks."""

    host: str
    last_ns: int
    mono_ns: int
    """Of the newest event."""
    wall_ns: int
    """Its wall time less that."""


class Offset(msgspec.Struct, kw_only=True):
    """Between what two monotonic clocks show at the same instant: it lies between ``low`` and ``high``."""

    low_ns: int
    high_ns: int
    at_ns: int
    """Arrival of what last narrowed it."""
    seen: int = 1


def clock_of(emitter: Emitter) -> str:
    """The clock that a process reads; hooks that cannot tell have their host's name for it."""
    return emitter.clock or emitter.host


def moment(event: Event) -> Moment:
    """When the event happened, by its process's clock."""
    return Moment(clock_of(event.emitter), event.mono_ns)
