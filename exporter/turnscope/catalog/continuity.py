"""Metrics of how prompts continue what was there before: what was computed twice, moved, missed or is suspect.

Counted with their turn, of turns that reached a prefill engine.
"""

from __future__ import annotations

from turnscope.catalog.labels import ENGINE, GAP_SECONDS, OPPORTUNITIES, PREFILLS
from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import ContinuityEvidence, LocalMiss, Reason

CONTINUITY = (
    Metric(
        name="turnscope_avoidable_recompute_tokens_total",
        kind=Kind.COUNTER,
        unit="tokens",
        help="Prompt tokens computed on the prefill engine although their session had computed them before, beginning "
        "included, by why they were not fetched. At least so many: counted to the last mark that agrees. Of turns "
        "whose digests came in time: turnscope_turns_continuity_total tells how many.",
        labels=(ENGINE, Label("reason", tuple(Reason))),
        owner="settler",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_rewritten_tokens_total",
        kind=Kind.COUNTER,
        unit="tokens",
        help="The part of new prompt tokens that their session had seen before at another place: an early edit, a "
        "timestamp, a compaction moved them.",
        labels=(ENGINE,),
        owner="settler",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_suspect_tokens_total",
        kind=Kind.COUNTER,
        unit="tokens",
        help="Reused prompt tokens, local hits and fetched ones, whose KV may be of other text than the prompt. They "
        "count in their source as well: what was saved is what was reused less these.",
        labels=(ENGINE,),
        owner="settler",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_local_misses_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns by why the prefill engine did not find in its own prefix cache what the session had computed "
        "before. none: it did, or there was nothing.",
        labels=(ENGINE, Label("cause", tuple(LocalMiss))),
        owner="settler",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_turns_continuity_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns by what told, when they were counted, how their prompt continues the turns before. The share of "
        "digests and first_turn is the share of turns whose computed tokens are told apart into recomputed and new.",
        labels=(ENGINE, Label("evidence", tuple(ContinuityEvidence))),
        owner="settler",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_followup_turns_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns that continue an earlier one of their session, by whether D held more of it than P had, at least "
        "the threshold: taken, P fetched from it; missed, it did not; none, there was nothing to gain; unknown, D's "
        "hook or P's split does not tell.",
        labels=(ENGINE, Label("opportunity", OPPORTUNITIES)),
        owner="settler",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_turn_gap_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="From the end of the turn that it continues to a turn's begin, of turns whose clocks compare: what D had "
        "to hold its blocks for. By what became of the opportunity.",
        labels=(Label("opportunity", OPPORTUNITIES),),
        buckets=GAP_SECONDS,
        owner="settler",
    ),
)
