"""What assembly waits for and remembers."""

from __future__ import annotations

from typing import Final

import msgspec

SECOND: Final = 1_000_000_000
MEMORY_NS: Final = 3600 * SECOND
"""How long what has ended is remembered, and so how much of the journal a replay without a checkpoint needs."""


class AssemblySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in nanoseconds of arrival time."""

    grace_ns: int = 5 * SECOND
    """From a turn or hold having all its facts to its being counted."""
    max_wait_ns: int = 60 * SECOND
    """After the last fact of a turn that never got all of them. Also: when a gap in an emitter's numbers is a loss."""
    memory_ns: int = MEMORY_NS
    """How long counted turns and holds take in late facts; older facts open nothing."""
    session_memory_ns: int = 4 * 3600 * SECOND
    """How long an idle session is remembered: after it a returning one begins anew."""
    stuck_ns: int = 300 * SECOND
    """A request that takes no step for longer, by its engine's heartbeats, is stuck."""
    alive_ns: int = 30 * SECOND
    """A process silent for longer counts as not there: nothing is awaited from it."""
    engine_lost_ns: int = 120 * SECOND
    """An engine whose processes are all silent for longer is gone, and with it what it held."""
    overdue_ns: int = 10 * SECOND
    """Past a hold's deadline before it is shown as overdue."""
    clock_ns: int = SECOND
    """How far the wall clocks of two hosts may differ when times of different processes are compared."""
    proxy_ttl_ns: int = 450 * SECOND
    """How long the proxy keeps a handle: tells an expired entry from a handle that was not given."""
    fabric_window_ns: int = 60 * SECOND
    """Looks at a node's cards that are judged together."""
    fabric_wait_ns: int = 2 * SECOND
    """From a look to its being judged: reads of its time may be under way for so long."""
    max_nodes: int = 64
    """Values of the label ``node``; what further nodes send is not taken in."""
    max_engines: int = 1024
    """Engines known at a time. One that is gone is forgotten with its turns; what further ones say of themselves is not
    taken in."""
    max_engine_names: int = 64
    """Engines with a name of their own in the label ``engine``; those beyond share ``<role>-other``."""
    digest_bytes: int = 64 * 2**20
    """Of token digests remembered: beyond it the oldest go, and what they would have told is unknown."""
