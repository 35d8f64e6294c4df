"""A moment is a reading of one monotonic clock: only two readings of the same clock make a duration."""

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


def clock_of(emitter: Emitter) -> str:
    """The clock that a process reads; hooks that cannot tell have their host's name for it."""
    return emitter.clock or emitter.host


def moment(event: Event) -> Moment:
    """When the event happened, by its process's clock."""
    return Moment(clock_of(event.emitter), event.mono_ns)
