"""What the table of reasons asks about one turn.

It has a shape: what cannot be the case together cannot be written down together.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


# --- words of the evidence ----------------------------------------------------------------------------
class Progress(StrEnum):
    """How far the turn got."""

    SERVED = "served"
    REJECTED = "rejected"
    """The frontend refused it (4xx) before any engine had it."""
    STUCK = "stuck"
    """P never ran it."""


class Load(StrEnum):
    """How P's read failed."""

    DECLINED = "declined"
    HANDSHAKE_FAILED = "handshake_failed"
    FAILED = "failed"


class Offer(StrEnum):
    """What the handle offered beyond P's local hit, at most the prompt."""

    NOTHING = "nothing"
    COVERED = "covered"
    """Nothing beyond: the local hit is as long."""
    BELOW = "below"
    """Less than the threshold."""
    WORTH = "worth"


class Session(StrEnum):
    """How the turn is known to belong to a session."""

    NAMED = "named"
    CHAINED = "chained"
    """By handles alone: what came before the first of the chain cannot be known."""
    ABSENT = "absent"
    """A proxy saw the request, and it names none."""


class Ending(StrEnum):
    """How the previous turn ended."""

    OK = "ok"
    STOP_STRING = "stop_string"
    ABORTED = "aborted"
    ERROR = "error"
    UNCLEAR = "unclear"
    """D calls it aborted; only a proxy could tell a stop string from a client that left."""


class Left(StrEnum):
    """The handle that the previous turn left."""

    SEEN = "seen"
    """The proxy saw it in D's answer."""
    MADE = "made"
    """D made it; nobody tells whether the answer carried it."""
    NOTHING = "nothing"
    """The answer carried none, or D made none."""


# --- evidence -----------------------------------------------------------------------------------------
class Given(msgspec.Struct, frozen=True, kw_only=True):
    """P was given D's handle of an earlier turn."""

    feature_on: bool | None = None
    """Bidirectional transfer, on P."""
    load: Load | None = None
    """How its read failed; none as well when no read is known to have failed."""
    offer: Offer | None = None
    """What the handle was good for beyond P's local hit."""
    holder_lost: bool = False
    """The engine that held had ended or restarted."""
    cut_short: bool = False
    """The request ended before its prefill was done."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """P was given none: an earlier attempt of the same client request had it."""


class Previous(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that this one continues."""

    ending: Ending | None = None
    """How it ended."""
    feature_on: bool | None = None
    """Bidirectional transfer, on the engine that decoded it."""
    left: Left | None = None
    """Whether it left a handle, and who saw it."""
    taken: bool = False
    """Another turn had been given its handle."""
    entry_expired: bool = False
    """It is longer ago than the proxy keeps handles, or than D held."""
    holder_lost: bool = False
    """The engine that held for it has ended or restarted since."""
    diverged: bool = False
    """This prompt does not go on from what D held: it is shorter, by its length alone."""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """P was given no handle."""

    session: Session | None = None
    """How the turn belongs to a session; none where no proxy could tell."""
    history: bool | None = None
    """The request brings earlier answers along; None without the proxy's word."""
    previous: Previous | None = None
    """None: no earlier turn of the session is known."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one turn."""

    fetched: bool | None = None
    """P took tokens from D; None where its split is not known."""
    progress: Progress = Progress.SERVED
    """How far it got."""
    empty_handoff: bool = False
    """P was preempted and handed no blocks over."""
    handle: Given | Spent | Missing = Missing()
    """Whether P was given one, and what is known of it: a part of its own, below."""


Part = Evidence | Given | Spent | Missing | Previous


def parts(evidence: Evidence) -> dict[type[Part], Part]:
    """The evidence and what is in it, by kind."""
    handle = evidence.handle
    found: dict[type[Part], Part] = {Evidence: evidence, type(handle): handle}
    if isinstance(handle, Missing) and handle.previous is not None:
        found[Previous] = handle.previous
    return found
