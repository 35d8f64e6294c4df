"""What keeping blocks for later turns costs."""

from __future__ import annotations

from alerts.rule import COUNT, TICKET, Alert, Group

RETENTION = Group(
    name="turnscope-retention",
    title="Retention",
    rules=(
        Alert(
            name="TurnscopeRetentionPressure",
            severity=TICKET,
            expr="""\
sum without (kind) (turnscope_held_blocks) / (turnscope_engine_blocks > 0) > 0.8""",
            wait="5m",
            wait_reason="A burst of turns that end together is read or given up within minutes.",
            summary="{{ $value | humanizePercentage }} of {{ $labels.engine }}'s KV blocks are held for finished "
            "requests",
            description="New requests wait for memory although the engine's queue gauges may say idle: what is held "
            "belongs to no running request. Holds that nobody reads end only at decoder_kv_blocks_ttl.",
        ),
        Alert(
            name="TurnscopeRetentionWaste",
            severity=TICKET,
            expr="""\
sum without (kind, outcome) (rate(turnscope_hold_byte_seconds_total{kind="hold",outcome="read"}[6h]))
/ (sum without (kind, outcome) (rate(turnscope_hold_byte_seconds_total{kind="hold"}[6h])) > 0)
< 0.05
and
sum without (kind) (avg_over_time(turnscope_held_blocks{kind="hold"}[6h])) > 0.2 * turnscope_engine_blocks""",
            wait="1h",
            wait_reason="It is a matter of hours: every session has a last turn whose hold nobody reads.",
            summary="{{ $labels.engine }} holds blocks for later turns, and {{ $value | humanizePercentage }} of what "
            "that cost was read",
            description="More than a fifth of the engine's KV blocks were held over the last six hours, and of the "
            "byte-seconds less than one in twenty served a later turn: sessions end, or come back too late. That "
            "memory is missing for running requests.",
        ),
        Alert(
            name="TurnscopeHoldsOverdue",
            severity=TICKET,
            expr="turnscope_held_overdue > 0",
            wait="10m",
            wait_reason="Engines look for expired blocks only as they step, and events of a release take a moment.",
            summary=COUNT + " {{ $labels.kind }}s on {{ $labels.engine }} are past their deadline and not released",
            description="Their release was not seen: leaked blocks, which only a restart gives back, or lost events. "
            "The memory is missing for running requests if they are leaked.",
        ),
    ),
)
