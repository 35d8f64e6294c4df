"""Do blocks reach the engine that asks for them, over the card that they should take?"""

from __future__ import annotations

from alerts.rule import COUNT, TICKET, Alert, Group

TRANSFERS = Group(
    name="turnscope-transfers",
    title="Transfers and fabric",
    rules=(
        Alert(
            name="TurnscopeHandshakesFail",
            severity=TICKET,
            expr="""\
sum without (state) (increase(turnscope_pair_reads_total{state="handshake_failed"}[15m])) >= 3""",
            wait="2m",
            wait_reason="An engine that is just starting answers within that time. Shorter than that of "
            "TurnscopeTransfersFail, which this one silences.",
            summary="{{ $labels.engine }} cannot shake hands with {{ $labels.holder }}: "
            + COUNT
            + " reads failed in 15 minutes",
            description="Usually {{ $labels.holder }} was restarted and {{ $labels.engine }} keeps what it knew of the "
            "one before (address, engine id), so every transfer of this pair fails while both engines look ready. "
            "Other pairs are not concerned unless they are named too.",
        ),
        Alert(
            name="TurnscopeTransfersFail",
            severity=TICKET,
            expr="""\
sum without (state) (increase(turnscope_pair_reads_total{state="failed"}[15m])) >= 3
and
sum without (state) (increase(turnscope_pair_reads_total{state="failed"}[15m]))
> 0.5 * sum without (state) (increase(turnscope_pair_reads_total{state=~"done|failed"}[15m]))""",
            wait="5m",
            wait_reason="Reads that were under way when an engine stopped fail once; a broken path goes on.",
            summary=COUNT
            + " reads of {{ $labels.engine }} from {{ $labels.holder }} failed in 15 minutes, more than succeeded",
            description="Most transfers of this pair fail, and other pairs are not concerned unless they are named "
            "too. With kv_load_failure_policy fail, the default, each such turn fails; with recompute it computes its "
            "whole prompt.",
        ),
        Alert(
            name="TurnscopeFellBackToTcp",
            severity=TICKET,
            expr="""\
sum without (transport) (increase(turnscope_fabric_window_bytes_total{transport="tcp"}[5m])) > 0""",
            wait="0s",
            wait_reason="A whole window of 60 s says so already: Ethernet moved what NIXL did, and EFA stood still.",
            summary="Node {{ $labels.node }} has EFA, and {{ $value | humanize1024 }}B of KV went over TCP in 5 "
            "minutes",
            description="NIXL's default backend takes TCP without a word where it cannot drive EFA. Answers are right; "
            "transfers are tens to hundreds of times slower. turnscope doctor names the backend and both cards' bytes.",
        ),
        Alert(
            name="TurnscopeFabricDisagrees",
            severity=TICKET,
            expr="""\
node:turnscope_fabric_agreed_bytes:ratio_rate30m < 0.5
and on (job, instance, node) turnscope_fabric_devices{card="efa"} > 0""",
            wait="30m",
            wait_reason="Other traffic on the card, or a device that came or went, spoils single windows.",
            summary="On node {{ $labels.node }} the cards account for {{ $value | humanizePercentage }} of NIXL's "
            "bytes",
            description="EFA is there, and for most of the bytes that NIXL says it moved no card's counters fit: other "
            "traffic, a part over TCP, or counters that do not say what they seem to. Until then what carried a turn's "
            "transfer is unknown.",
        ),
    ),
)
