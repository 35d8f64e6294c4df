"""A period as a whole: which sessions are of it, and the sums over them."""

from __future__ import annotations

from typing import Final

import msgspec

from turnscope.model.sessions import Ceiling, SessionSummary


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions: those that ended in it."""

    since_ns: int
    until_ns: int
    """No part of it."""
    application: str | None = None
    """One of its applications, by its whole name."""

    def before(self) -> Period:
        """The one before, as long."""
        return msgspec.structs.replace(self, since_ns=2 * self.since_ns - self.until_ns, until_ns=self.since_ns)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over some sessions, in nanoseconds where a name says so; None: none of them has a figure."""

    sessions: int = 0
    spanned_sessions: int = 0
    """With spans of an agent; likewise those that tell of tools, and those that the proxy hook saw."""
    tooled_sessions: int = 0
    proxied_sessions: int = 0
    suspicious_sessions: int = 0
    failing_sessions: int = 0
    wall_ns: int = 0
    input_processing_ns: int = 0
    generation_ns: int = 0
    tool_wait_ns: int = 0
    application_work_ns: int = 0
    user_wait_ns: int = 0
    unknown_ns: int = 0
    inferred_ns: int = 0
    tool_wait_inferred_ns: int = 0
    user_wait_inferred_ns: int = 0
    generation_inferred_ns: int = 0
    input_proxy_ns: int = 0
    input_queue_ns: int = 0
    input_reverse_fetch_ns: int = 0
    input_prefill_ns: int = 0
    input_handoff_ns: int = 0
    input_first_step_ns: int = 0
    input_unattributed_ns: int = 0
    input_client_ns: int = 0
    turns: int = 0
    spans: int = 0
    errors: int = 0
    failed_turns: int = 0
    suspicious_turns: int = 0
    completed_tasks: int = 0
    failed_tasks: int = 0
    abandoned_tasks: int = 0
    prompt_tokens: int | None = None
    source_tokens: int | None = None
    reused_tokens: int | None = None
    recomputed_tokens: int | None = None
    fetched_tokens: int | None = None
    fetched_bytes: int | None = None
    free_ns: int | None = None
    """Of the ceilings, as the others below."""
    fetched_ns: int | None = None
    fetched_low_ns: int | None = None
    fetched_high_ns: int | None = None
    judged_turns: int = 0
    unjudged_turns: int = 0
    judged_tokens: int = 0
    """Recomputed ones of the judged turns: what the ceilings are about."""
    assumed: bool = False
    """For some of them it is assumed what a fetch costs."""
    working_median_ns: int | None = None
    """Of sessions' times without the wait for a person."""
    ttft_median_ns: int | None = None
    task_latency_median_ns: int | None = None
    main_reason: str | None = None
    """What most often was most in the way of fetching back."""
    step: int | None = None
    """Of a period's course, from 0."""
    application: str | None = None


def _shared(of: type[msgspec.Struct], default: int | None) -> tuple[str, ...]:
    """The sums with this value over no sessions whose terms are fields of ``of``."""
    return tuple(
        f.name for f in msgspec.structs.fields(Figures) if f.name in of.__struct_fields__ and f.default == default
    )


SUMMED: Final = _shared(SessionSummary, 0)
"""Sums of what every session has."""
KNOWN: Final = tuple(name for name in _shared(SessionSummary, None) if name.endswith(("_tokens", "_bytes")))
"""Sums of what only some sessions have."""
JUDGED: Final = _shared(Ceiling, 0)
"""Sums of what every ceiling has."""
SPARED: Final = tuple(name for name in _shared(Ceiling, None) if name not in KNOWN)
"""Sums of what only some ceilings have."""

_ALONE: Final = ("ttft_median_ns", "task_latency_median_ns", "main_reason")
"""What is of one session as it is of many."""


def of_session(summary: SessionSummary) -> Figures:
    """One session as sums over it alone."""
    found = summary.ceiling
    return Figures(
        sessions=1,
        spanned_sessions=int(summary.spans > 0),
        tooled_sessions=int(summary.tools is not None),
        proxied_sessions=int("proxy" in summary.sources),
        suspicious_sessions=int(summary.suspicious_turns > 0),
        failing_sessions=int(summary.errors > 0),
        working_median_ns=summary.wall_ns - summary.user_wait_ns,
        judged_tokens=found.recomputed_tokens,
        assumed=found.transfer not in (None, "measured"),
        **{name: getattr(summary, name) for name in (*SUMMED, *KNOWN, *_ALONE)},
        **{name: getattr(found, name) for name in (*JUDGED, *SPARED)},
    )
