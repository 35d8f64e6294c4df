"""What evidence can say at once."""

from __future__ import annotations

from turnscope.assembly.knowledge import Ending, Evidence, Given, Left, Missing, Progress, Session


def possible(evidence: Evidence) -> bool:
    """Whether events can say all of it at once: laws of how the parts are made, each from ``evidence.py``."""
    handle = evidence.handle
    measured = evidence.fetched is not None
    laws = [
        # Tokens are known to have been fetched only of a request that was given a handle, and whose read went well.
        evidence.fetched is not True or (isinstance(handle, Given) and handle.load is None),
        # What never ran or was never accepted measured nothing.
        evidence.progress is Progress.SERVED or not measured,
        # A refused request was given to no engine, and stuck is one that did not end by itself: it left no handle.
        evidence.progress is Progress.SERVED or not evidence.empty_handoff,
    ]
    if isinstance(handle, Given):
        laws += [
            # The offer is worked out from P's split; the split from a prefill that was done.
            handle.offer is None or measured,
            not (handle.cut_short and measured),
            # P without the feature queues no read: none can fail, none can fetch.
            handle.feature_on is not False or (handle.load is None and evidence.fetched is not True),
            not (evidence.progress is Progress.REJECTED and handle.cut_short),
        ]
    if isinstance(handle, Missing):
        before = handle.previous
        # Without a session there are no earlier turns.
        laws.append(before is None or handle.session in (Session.NAMED, Session.CHAINED))
        if before is not None:
            laws += [
                # An engine's abort is unclear only without a proxy, and only a proxy sees a handle in an answer.
                not (before.ending is Ending.UNCLEAR and before.left is Left.SEEN),
                # D with the feature off makes no handles: nobody can be given one, nothing is held.
                before.feature_on is not False
                or (before.left in (Left.NOTHING, None) and not (before.taken or before.diverged)),
            ]
    return all(laws)
