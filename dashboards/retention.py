"""Retention: what engines keep for finished requests, what becomes of it, and what it costs."""

from __future__ import annotations

from typing import Final

from dashboards.panels import QUANTILES, Page, Panel, Query, Row, sessions_with
from dashboards.queries import increase, most, now, positive, quantile, rate, share

NOW: Final = Row(
    "Kept now",
    (
        Panel(
            title="Requests whose blocks are kept",
            about="hold: kept on D for the session's next turn. lease: kept on P until D has read them.",
            unit="requests",
            queries=(Query(now("turnscope_held_requests", "engine", "kind"), "{{engine}} {{kind}}"),),
        ),
        Panel(
            title="Tokens kept",
            about="Tokens of finished requests whose KV is kept.",
            unit="tokens",
            queries=(Query(now("turnscope_held_tokens", "engine", "kind"), "{{engine}} {{kind}}"),),
        ),
        Panel(
            title="Bytes kept",
            about="An estimate from the KV cache's configuration, all ranks.",
            unit="bytes",
            queries=(Query(now("turnscope_held_bytes", "engine", "kind"), "{{engine}} {{kind}}"),),
        ),
        Panel(
            title="Share of an engine's memory that is kept",
            about="KV blocks kept for finished requests over all KV blocks that the engine has: nothing else can have "
            "them. Near 100 % new requests wait.",
            alerts=("TurnscopeRetentionPressure",),
            unit="ratio",
            queries=(
                Query(
                    share(now("turnscope_held_blocks", "engine"), now("turnscope_engine_blocks", "engine")),
                    "{{engine}}",
                ),
            ),
        ),
        Panel(
            title="Memory in use, as the engine says",
            about="Share of KV blocks in use, kept ones included. Needs --engine-metrics; an engine that cannot be "
            "read has no curve.",
            unit="ratio",
            queries=(Query(now("turnscope_engine_kv_usage_ratio", "engine"), "{{engine}}"),),
        ),
        Panel(
            title="Age of the oldest",
            about="How long the oldest hold or lease has been kept.",
            unit="seconds",
            queries=(Query(most("turnscope_held_oldest_seconds", "engine", "kind"), "{{engine}} {{kind}}"),),
        ),
        Panel(
            title="Kept past the deadline",
            about="Holds past their time limit, and leases that nobody can renew any more, whose release was not "
            "seen: leaked blocks, or lost events.",
            alerts=("TurnscopeHoldsOverdue",),
            unit="requests",
            queries=(Query(now("turnscope_held_overdue", "engine", "kind"), "{{engine}} {{kind}}"),),
            view="figure",
            width=24,
        ),
    ),
)

OUTCOMES: Final = Row(
    "What becomes of it",
    (
        Panel(
            title="Holds and leases by outcome",
            about="read: its reader came. ttl: a hold reached its time limit. lease: a lease ran out. holder_lost: "
            "the engine ended. notified: its reader told that it needs nothing.",
            unit="holds/s",
            queries=(Query(positive(rate("turnscope_holds_total", "kind", "outcome")), "{{kind}} {{outcome}}"),),
            view="stacked",
        ),
        Panel(
            title="How long they were kept",
            about="By the holder's clock, until their observed release.",
            unit="seconds",
            queries=tuple(
                Query(quantile(q, "turnscope_hold_seconds", "kind"), f"{{{{kind}}}}, {name}") for q, name in QUANTILES
            ),
        ),
        Panel(
            title="Time between a session's turns, against how long D keeps",
            about="From a turn's end to its session's next one, by whether that fetched. Gaps above the limit "
            "(decoder_kv_blocks_ttl) cannot fetch.",
            unit="seconds",
            queries=(
                *(
                    Query(quantile(q, "turnscope_turn_gap_seconds", "opportunity"), f"{{{{opportunity}}}}, {name}")
                    for q, name in QUANTILES
                ),
                Query(most("turnscope_engine_hold_ttl_seconds", "engine"), "limit of {{engine}}"),
            ),
        ),
        Panel(
            title="Expired, as engines count",
            about="hold and lease: given up by their holder; declined: a reader came too late. Their sum equals "
            "vllm:nixl_num_kv_expired_reqs_total.",
            unit="reports/s",
            queries=(Query(rate("turnscope_kv_expired_total", "engine", "what"), "{{engine}} {{what}}"),),
        ),
        Panel(
            title="Readers that came after the release",
            about="The holder no longer knew the request when its reader told that it had read it: what was read may "
            "be foreign KV.",
            unit="notices",
            queries=(Query(increase("turnscope_late_notices_total", "engine"), "{{engine}}"),),
            view="figure",
            explorer=sessions_with(check="Possibly wrong"),
        ),
        Panel(
            title="Notices for requests never seen to be held",
            about="A reader named them too late, and their holder was never seen to keep or give them up: another "
            "request's id, or lost events. No sign of foreign KV.",
            unit="requests",
            queries=(Query(increase("turnscope_unmatched_notices_total", "engine"), "{{engine}}"),),
            view="figure",
        ),
    ),
)

COST: Final = Row(
    "What it costs",
    (
        Panel(
            title="Tokens kept, on average, by outcome",
            about="Token-seconds that ended, a second: so many tokens' memory was bound, on average, by holds that "
            "came to this end. What ended as ttl was kept for nobody.",
            unit="tokens",
            queries=(
                Query(positive(rate("turnscope_hold_token_seconds_total", "kind", "outcome")), "{{kind}} {{outcome}}"),
            ),
            view="stacked",
        ),
        Panel(
            title="Bytes kept, on average, by outcome",
            about="The same in bytes: an estimate from the KV cache's configuration, all ranks.",
            alerts=("TurnscopeRetentionWaste",),
            unit="bytes",
            queries=(
                Query(positive(rate("turnscope_hold_byte_seconds_total", "kind", "outcome")), "{{kind}} {{outcome}}"),
            ),
            view="stacked",
        ),
    ),
)

PAGE: Final = Page(
    "retention",
    "turnscope: Retention",
    "What engines keep for finished requests, what becomes of it, and what it costs.",
    (NOW, OUTCOMES, COST),
)
