"""Metrics of suspicions, and of how good the evidence is."""

from __future__ import annotations

from turnscope.catalog.labels import (
    EMITTER_KIND,
    ENGINE,
    ENTITIES,
    EVENT,
    FRAGMENTS,
    HOOKS,
    PREFILLS,
    SUSPICION,
    YES_NO,
)
from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import Path, Role

EVIDENCE = (
    # --- evidence of wrong answers
    Metric(
        name="turnscope_suspicions_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns with evidence that their answer may be wrong, once per turn and kind, at first evidence. engine: "
        "the prefill engine, or none.",
        labels=(ENGINE, SUSPICION),
        owner="settler",
        roles=PREFILLS,
        outside=True,
    ),
    Metric(
        name="turnscope_suspicions_withdrawn_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Suspicions that later facts refuted. turnscope_suspicions_total never goes back.",
        labels=(SUSPICION,),
        owner="settler",
    ),
    # --- how good the evidence is
    Metric(
        name="turnscope_turns_explained_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns finalised, by the hooks that told of them and whether the evidence gave a reason (explained: no "
        "is reason unknown). Its share with both hooks says how far reasons can be trusted.",
        labels=(Label("hooks", HOOKS), Label("explained", YES_NO)),
        owner="turn shard",
    ),
    Metric(
        name="turnscope_late_facts_total",
        kind=Kind.COUNTER,
        unit="events",
        help="Events that came after their turn or hold was counted: the store has them, its counters do not.",
        labels=(Label("entity", ENTITIES),),
        owner="settler",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_turns_reclassified_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns whose path changed in the store after they were counted, from the counted path to the new one.",
        labels=(Label("from", tuple(Path)), Label("to", tuple(Path))),
        owner="settler",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_fragments_total",
        kind=Kind.COUNTER,
        unit="fragments",
        help="Facts whose anchor never came (the prefill request, the start of a hold) or that no request could be "
        "tied to. direct: requests sent straight to one engine of a pair, past the proxy, as warm-ups are. None is "
        "counted as a turn or hold.",
        labels=(Label("leg", FRAGMENTS),),
        owner="turn shard",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_events_received_total",
        kind=Kind.COUNTER,
        unit="events",
        help="Events received from hooks, duplicates included.",
        labels=(EVENT,),
        owner="emitters",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_events_duplicate_total",
        kind=Kind.COUNTER,
        unit="events",
        help="Events received more than once and ignored from the second time on.",
        labels=(EVENT,),
        owner="emitters",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_events_missing_total",
        kind=Kind.COUNTER,
        unit="events",
        help="Numbered events that had not come a minute after a later one had. Less events_recovered, and less "
        "hook_dropped, this is what was lost on the way.",
        labels=(EMITTER_KIND,),
        owner="emitters",
    ),
    Metric(
        name="turnscope_events_recovered_total",
        kind=Kind.COUNTER,
        unit="events",
        help="Events that came after they had been counted as missing.",
        labels=(EMITTER_KIND,),
        owner="emitters",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_hook_dropped_total",
        kind=Kind.COUNTER,
        unit="events",
        help="Events that hooks dropped because a ring was full or sending failed for good, by their heartbeats.",
        labels=(EMITTER_KIND,),
        owner="emitters",
    ),
    Metric(
        name="turnscope_hook_errors_total",
        kind=Kind.COUNTER,
        unit="errors",
        help="Exceptions caught inside hooks, by their heartbeats. Serving is not affected; the evidence may be.",
        labels=(EMITTER_KIND,),
        owner="emitters",
    ),
    Metric(
        name="turnscope_engine_info",
        kind=Kind.INFO,
        unit="",
        help="One series per engine heard of within the last minute: what it is and how it is set.",
        labels=(
            ENGINE,
            Label("role", tuple(Role)),
            Label("model"),
            Label("vllm_version"),
            Label("connector"),
            Label("bidirectional", (*YES_NO, "unknown")),
        ),
        owner="emitters",
    ),
    Metric(
        name="turnscope_spans_forgotten_total",
        kind=Kind.COUNTER,
        unit="spans",
        help="Spans of agents forgotten before their time, since too many came at once: what comes later of their "
        "traces may not find its session. Their rows are stored.",
        owner="agent spans",
    ),
    Metric(
        name="turnscope_connector_info",
        kind=Kind.INFO,
        unit="",
        help="One series per KV connector of an engine, each child of a composite one: whether its transfers are "
        "measured. Where they are not, their bytes and times are absent, never 0.",
        labels=(ENGINE, Label("connector"), Label("measured", YES_NO)),
        owner="emitters",
    ),
    Metric(
        name="turnscope_emitters_alive",
        kind=Kind.GAUGE,
        unit="processes",
        help="Processes with an active hook, and collectors of card counters, heard of within the last half minute.",
        labels=(EMITTER_KIND,),
        owner="emitters",
    ),
)
