"""A session as a whole: what its time was spent on, its tasks, and what reuse could still give."""

from __future__ import annotations

import msgspec

from turnscope.semconv import Detail, Evidence, Part


class Segment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stretch of a session's time, spent on one thing. A session's segments are disjoint, in order, and without gaps.

    Unix nanoseconds; ``end_ns`` is no part of it.
    """

    start_ns: int
    end_ns: int
    part: Part
    detail: Detail | None = None
    evidence: Evidence = Evidence.MEASURED
    turn_id: str | None = None
    """The turn that it is of."""
    span_key: str | None = None
    """The span that it is of; None for both where nothing ran."""
