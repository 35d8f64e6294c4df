"""Metrics of holds and leases."""

from __future__ import annotations

from turnscope.catalog.labels import ENGINE, EXPIRED, HOLD, HOLD_SECONDS
from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import HoldKind

HOLDS = (
    # --- holds and leases
    Metric(
        name="turnscope_holds_total",
        kind=Kind.COUNTER,
        unit="holds",
        help="Holds (kept on D for the next turn) and leases (kept on P until D has read) ended, by what became of "
        "them. One per request, however many ranks.",
        labels=(ENGINE, *HOLD),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_hold_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="How long blocks were held, by the holder's clock, until their observed release.",
        labels=HOLD,
        buckets=HOLD_SECONDS,
        owner="hold shard",
    ),
    Metric(
        name="turnscope_hold_token_seconds_total",
        kind=Kind.COUNTER,
        unit="token-seconds",
        help="Tokens held times seconds held: the KV capacity that holds and leases cost.",
        labels=(ENGINE, *HOLD),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_hold_byte_seconds_total",
        kind=Kind.COUNTER,
        unit="byte-seconds",
        help="Bytes held (an estimate from the KV cache's configuration, all ranks) times seconds held.",
        labels=(ENGINE, *HOLD),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_kv_expired_total",
        kind=Kind.COUNTER,
        unit="reports",
        help="Holds and leases reaped by their holder and reads declined as expired by their reader, one per rank as "
        "the engine counts: the sum over what equals vllm:nixl_num_kv_expired_reqs_total.",
        labels=(ENGINE, Label("what", EXPIRED)),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_late_notices_total",
        kind=Kind.COUNTER,
        unit="notices",
        help="Readers' notices that came when the holder no longer knew the request, one per rank: equals "
        "vllm:nixl_num_notifications_after_expiry_total. A read behind one may have seen foreign KV.",
        labels=(ENGINE,),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_unmatched_notices_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Requests that a reader's notice named too late and that their holder was never seen to hold or give up, "
        "one however many ranks: another request's id, or lost events. No sign of foreign KV.",
        labels=(ENGINE,),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_held_requests",
        kind=Kind.GAUGE,
        unit="requests",
        help="Finished requests whose blocks are held now.",
        labels=(ENGINE, Label("kind", tuple(HoldKind))),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_held_tokens",
        kind=Kind.GAUGE,
        unit="tokens",
        help="Tokens held now for finished requests.",
        labels=(ENGINE, Label("kind", tuple(HoldKind))),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_held_blocks",
        kind=Kind.GAUGE,
        unit="blocks",
        help="KV blocks held now for finished requests: no request runs or waits on them, and none can have them.",
        labels=(ENGINE, Label("kind", tuple(HoldKind))),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_engine_blocks",
        kind=Kind.GAUGE,
        unit="blocks",
        help="KV blocks that the engine has.",
        labels=(ENGINE,),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_held_bytes",
        kind=Kind.GAUGE,
        unit="bytes",
        help="Bytes held now for finished requests: an estimate from the KV cache's configuration, all ranks.",
        labels=(ENGINE, Label("kind", tuple(HoldKind))),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_held_oldest_seconds",
        kind=Kind.GAUGE,
        unit="seconds",
        help="Age of the oldest hold or lease; 0 when there is none.",
        labels=(ENGINE, Label("kind", tuple(HoldKind))),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_held_overdue",
        kind=Kind.GAUGE,
        unit="requests",
        help="Holds past their deadline, and leases that nobody can renew any more, whose release was not seen: "
        "leaked blocks, or lost events.",
        labels=(ENGINE, Label("kind", tuple(HoldKind))),
        owner="hold shard",
    ),
    Metric(
        name="turnscope_engine_hold_ttl_seconds",
        kind=Kind.GAUGE,
        unit="seconds",
        help="How long the engine holds a finished turn's blocks for the next one: decoder_kv_blocks_ttl.",
        labels=(ENGINE,),
        owner="hold shard",
    ),
)
