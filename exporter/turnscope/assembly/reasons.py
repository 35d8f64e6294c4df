"""Why there was no (more) reverse fetch: one table, first match wins.

A row is plain data, which part of the evidence it asks and for what, so that people, documentation and tests can read
the table.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from turnscope.assembly.knowledge import (
    Ending,
    Evidence,
    Given,
    Left,
    Load,
    Missing,
    Offer,
    Part,
    Previous,
    Progress,
    Session,
    Spent,
    parts,
)
from turnscope.semconv import Reason


class Row(msgspec.Struct, frozen=True):
    """One line: it matches when there is a part ``of`` the evidence whose fields all have one of the values asked."""

    reason: Reason
    says: str
    of: type[Part]
    asks: dict[str, tuple[Any, ...]]

    def matches(self, known: dict[type[Part], Part]) -> bool:
        """Whether the evidence, as ``parts`` gives it, answers to the row."""
        part = known.get(self.of)
        if part is None:
            return False
        # Asked of every turn some twenty times: a generator would cost more than the question.
        for field, values in self.asks.items():  # noqa: SIM110
            if getattr(part, field) not in values:
                return False
        return True


def _row(reason: Reason, says: str, of: type[Part] = Evidence, **asks: Any) -> Row:
    return Row(reason, says, of, {field: v if isinstance(v, tuple) else (v,) for field, v in asks.items()})


TABLE: Final[tuple[Row, ...]] = (
    _row(Reason.NONE, "P fetched from D.", fetched=True),
    _row(Reason.REJECTED_BY_FRONTEND, "The frontend refused the request.", progress=Progress.REJECTED),
    # P had a handle: what came of it.
    _row(Reason.FEATURE_OFF_PREFILL, "P was given a handle and has the feature off.", Given, feature_on=False),
    _row(Reason.STUCK, "P never ran the request: a load was promised and not queued.", progress=Progress.STUCK),
    _row(Reason.DECLINED_EXPIRED, "P declined: the hold had ended or was about to.", Given, load=Load.DECLINED),
    _row(Reason.HANDSHAKE_FAILED, "P could not connect to the holder.", Given, load=Load.HANDSHAKE_FAILED),
    _row(
        Reason.HOLDER_LOST,
        "The read failed, and its holder had ended or restarted.",
        Given,
        load=Load.FAILED,
        holder_lost=True,
    ),
    _row(Reason.TRANSFER_FAILED, "The read failed.", Given, load=Load.FAILED),
    _row(
        Reason.EMPTY_HANDOFF_AFTER_PREEMPTION,
        "P was preempted in its last step and handed no blocks over: D computed all.",
        empty_handoff=True,
    ),
    _row(Reason.LOCAL_HIT_COVERS, "P had all that the handle offered.", Given, offer=Offer.COVERED),
    _row(Reason.BELOW_THRESHOLD, "The handle offered less than the threshold.", Given, offer=Offer.BELOW),
    _row(Reason.HOLDER_LOST, "P was given the handle of an engine that was gone.", Given, holder_lost=True),
    _row(Reason.OTHER, "The request ended before P had done its part.", Given, cut_short=True),
    _row(
        Reason.OTHER,
        "P could have fetched and did not: the handle lacked what a read needs, or the request skips caches.",
        Given,
        offer=(Offer.WORTH, Offer.NOTHING),
    ),
    # P had none: why not.
    _row(Reason.HANDLE_CONSUMED_BY_RETRY, "An earlier attempt of the same request had the handle.", Spent),
    _row(Reason.NO_SESSION_ID, "The request names no session.", Missing, session=Session.ABSENT),
    _row(
        Reason.FIRST_TURN,
        "The first turn of a named session, with no earlier answer in its messages as far as they were seen.",
        Missing,
        session=Session.NAMED,
        history=(False, None),
        previous=None,
    ),
    _row(
        Reason.FIRST_TURN,
        "No session is named, and there is no earlier answer in its messages.",
        Missing,
        session=Session.CHAINED,
        history=False,
        previous=None,
    ),
    _row(Reason.STOPPED_BY_STRING, "A stop string ended the previous turn.", Previous, ending=Ending.STOP_STRING),
    _row(
        Reason.PREVIOUS_TURN_ABORTED,
        "The previous turn failed or was broken off.",
        Previous,
        ending=(Ending.ABORTED, Ending.ERROR),
    ),
    _row(Reason.FEATURE_OFF_DECODE, "The previous turn's D has the feature off.", Previous, feature_on=False),
    _row(
        Reason.NO_HANDLE_FROM_DECODE,
        "The previous turn's answer carried no handle.",
        Previous,
        ending=Ending.OK,
        left=Left.NOTHING,
    ),
    _row(
        Reason.HANDLE_TAKEN_BY_SIBLING, "Another turn was given the previous turn's handle first.", Previous, taken=True
    ),
    _row(
        Reason.PROXY_ENTRY_EXPIRED,
        "The proxy had a handle and the pause was longer than it keeps one.",
        Previous,
        left=Left.SEEN,
        entry_expired=True,
    ),
    _row(
        Reason.HOLDER_LOST,
        "D had made a handle and was gone before this turn.",
        Previous,
        left=(Left.SEEN, Left.MADE),
        holder_lost=True,
    ),
    _row(
        Reason.PREFIX_DIVERGED,
        "D had made a handle, and this prompt does not go on from what D held.",
        Previous,
        left=(Left.SEEN, Left.MADE),
        diverged=True,
    ),
    _row(Reason.HANDLE_NOT_GIVEN, "The proxy had seen a handle and did not give it to P.", Previous, left=Left.SEEN),
    _row(Reason.UNKNOWN, "There is not enough evidence."),
)
"""In the order in which they are asked; the last one asks nothing."""


def reason(evidence: Evidence) -> Reason:
    """The first row that matches."""
    known = parts(evidence)
    return next(row.reason for row in TABLE if row.matches(known))
