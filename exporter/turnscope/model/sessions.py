"""A session as a whole: what its time was spent on, its tasks, and what reuse could still give."""

from __future__ import annotations

import msgspec

from turnscope.semconv import Detail, Evidence, Part, SpanKind


class Segment(msgspec.Struct, frozen=True, gc=False):
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


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """A model call, a tool or an agent, from its begin to its end, whether or not the session waited for it."""

    kind: SpanKind
    start_ns: int
    end_ns: int
    name: str | None = None
    """The tool's, the agent's or the model's, as the application names it."""
    agent: str | None = None
    """The agent that started it; of an agent, the one that started that."""
    failed: bool = False
    evidence: Evidence = Evidence.MEASURED
    turn_id: str | None = None
    """Of a model call that is a turn."""
    slices: tuple[Segment, ...] = ()
    """Of a model call: its own time in order, without gaps."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A ``gen_ai.evaluation.*`` result."""

    name: str | None = None
    label: str | None = None
    score: float | None = None


class Task(msgspec.Struct, kw_only=True):
    """From a user message to the first answer that asks for no tool."""

    number: int
    """1 for the first of its session."""
    started_ns: int
    ended_ns: int | None = None
    """When it was completed or failed, or was last seen; None where nothing tells."""
    outcome: str = "unknown"
    """``completed, failed, abandoned, unknown``."""
    latency_ns: int | None = None
    """From its begin to its end, of a completed task; None of any other."""
    first_token_ns: int | None = None
    """From its begin to the first token of its first answer."""
    turn_index: int | None = None
    """Of its first turn in its session."""
    context_tokens: int | None = None
    """Prompt of its first turn."""
    turns: int = 0
    """Model calls, those that only a span tells of included."""
    tools: int = 0
    """That ran, where spans tell of tools; else that were asked for."""
    tools_evidence: str = "inferred"
    """``measured`` where spans tell of tools, else ``inferred``."""
    errors: int = 0
    """Turns that failed, and spans of tools in error."""
    recomputed_tokens: int | None = None
    evaluations: list[Evaluation] = []
    input_processing_ns: int = 0
    """The parts: they sum to the time from its begin to its end."""
    generation_ns: int = 0
    tool_wait_ns: int = 0
    application_work_ns: int = 0
    user_wait_ns: int = 0
    unknown_ns: int = 0


class CeilingReason(msgspec.Struct, frozen=True, kw_only=True):
    """What one reason accounts for."""

    reason: str
    turns: int
    tokens: int
    free_ns: int


class Ceiling(msgspec.Struct, kw_only=True):
    """How much shorter a session would be without its avoidable recomputes: the most that reuse could give.

    Estimates with the interval in which they lie nine times in ten; None where no turn could be judged.
    """

    fetched_ns: int | None = None
    """If what was computed again had been fetched instead."""
    fetched_low_ns: int | None = None
    fetched_high_ns: int | None = None
    free_ns: int | None = None
    """If it had cost nothing at all."""
    free_low_ns: int | None = None
    free_high_ns: int | None = None
    judged_turns: int = 0
    """Turns of which it is known what they recomputed and what that cost, those that recomputed nothing included."""
    unjudged_turns: int = 0
    recomputed_tokens: int = 0
    """Of the judged turns."""
    transfer: str | None = None
    """What fetching is taken to cost: ``measured`` on these engines, ``assumed``, or ``both``, some so and some so;
    None where nothing was recomputed."""
    reasons: list[CeilingReason] = []
    """Why it was not fetched, the costliest first."""


class SessionSummary(msgspec.Struct, kw_only=True):
    """One session, as stored: a row of the ``sessions`` table.

    Time law: the six parts sum to ``wall_ns``, to the nanosecond.
    """

    session_id: str
    revision: int = 1
    """Unix nanoseconds of when it was worked out: the newest is the truth."""
    too_large: bool = False
    """It has more turns and spans than are taken apart at once: all of its time is unknown then."""
    counted_until_ns: int | None = None
    """Unix nanoseconds up to which the metrics have its time; 0: they are to have it and do not yet; None: they never
    will, of an imported session."""
    parent_session_id: str | None = None
    started_ns: int
    ended_ns: int
    wall_ns: int
    input_processing_ns: int = 0
    generation_ns: int = 0
    tool_wait_ns: int = 0
    application_work_ns: int = 0
    user_wait_ns: int = 0
    unknown_ns: int = 0
    inferred_ns: int = 0
    """How much of it is told by what came before and after, and not measured."""
    tool_wait_inferred_ns: int = 0
    user_wait_inferred_ns: int = 0
    generation_inferred_ns: int = 0
    retrieval_ns: int = 0
    """The part of the tool wait that was retrieval."""
    unknown_model_call_ns: int = 0
    """The part of the unknown time that was in model calls whose first token nobody timed."""
    input_proxy_ns: int = 0
    """What input processing was spent on: these eight sum to it."""
    input_queue_ns: int = 0
    input_reverse_fetch_ns: int = 0
    input_prefill_ns: int = 0
    input_handoff_ns: int = 0
    input_first_step_ns: int = 0
    input_unattributed_ns: int = 0
    input_client_ns: int = 0
    turns: int = 0
    spans: int = 0
    model_calls: int = 0
    """That only spans tell of."""
    tools: int | None = None
    """Tool calls that ran; None where no span tells of tools."""
    tool_calls: int | None = None
    """That answers asked for; None where nobody saw the answers."""
    errors: int = 0
    """Turns, and spans of tools, that failed."""
    failed_turns: int = 0
    """That were not answered."""
    suspicious_turns: int = 0
    prompt_tokens: int | None = None
    """Sums over its turns, as those below; None where none of them measured it."""
    source_tokens: int | None = None
    """Prompt tokens of the turns whose sources are all known, and how many of them were not computed."""
    reused_tokens: int | None = None
    local_hit_tokens: int | None = None
    fetched_tokens: int | None = None
    external_tokens: int | None = None
    computed_tokens: int | None = None
    recomputed_tokens: int | None = None
    output_tokens: int | None = None
    fetched_bytes: int | None = None
    engines: list[str] = []
    paths: list[str] = []
    """Those that occur among its turns, as those below."""
    reasons: list[str] = []
    suspicions: list[str] = []
    main_reason: str | None = None
    """The most frequent obstacle to fetching back; None where there was none."""
    ttft_median_ns: int | None = None
    models: list[str] = []
    agents: list[str] = []
    applications: list[str] = []
    """``service.name`` with its version, where spans tell."""
    deployments: list[str] = []
    sources: list[str] = []
    """What is known of it: ``proxy, engines, otlp``, or an importer's name."""
    tasks: list[Task] = []
    completed_tasks: int = 0
    failed_tasks: int = 0
    abandoned_tasks: int = 0
    task_latency_median_ns: int | None = None
    """Of completed tasks."""
    first_token_median_ns: int | None = None
    """Of tasks, from the user's message on."""
    evaluations: list[Evaluation] = []
    ceiling: Ceiling
