"""A period as a whole: which sessions are of it, and the sums over them."""

from __future__ import annotations

import msgspec


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
    free_ns: int | None = None
    """Of the ceilings, as the others below."""
    fetched_ns: int | None = None
    fetched_low_ns: int | None = None
    fetched_high_ns: int | None = None
    judged_turns: int = 0
    unjudged_turns: int = 0
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
