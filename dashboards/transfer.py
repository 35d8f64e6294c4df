"""Transfer and fabric: what was moved between engines, how fast, and what carried it."""

from __future__ import annotations

from typing import Final

from dashboards.panels import QUANTILES, Page, Panel, Query, Row
from dashboards.queries import increase, now, positive, quantile, rate, series, share

TRANSFERS: Final = Row(
    "Transfers",
    (
        Panel(
            title="Bytes read from other engines",
            about="On the wire, counted on the reader. handoff: D reads what P computed. reverse_fetch: P reads back "
            "what D held.",
            unit="bytes/s",
            queries=(Query(rate("turnscope_transfer_bytes_total", "direction"), "{{direction}}"),),
        ),
        Panel(
            title="Reads by how they ended",
            about="One per transfer and rank. failed and handshake_failed: the engines could not reach each other. "
            "declined: the reader came too late for the blocks. notice_only: nothing had to be read.",
            alerts=(
                "TurnscopeTransfersFail",
                "TurnscopeHandshakesFail",
                "TurnscopeReadsDeclined",
            ),
            unit="reads/s",
            queries=(
                Query(
                    positive(rate("turnscope_transfer_reads_total", "direction", "state")), "{{direction}} {{state}}"
                ),
            ),
        ),
        Panel(
            title="Speed of a transfer",
            about="Logical bytes over the time from a transfer's first rank to its last one, on average. Times "
            "include up to one engine step, so this is a lower bound.",
            unit="bytes/s",
            queries=(
                Query(
                    share(
                        rate("turnscope_transfer_logical_bytes_total", "direction"),
                        rate("turnscope_transfer_wall_seconds_sum", "direction"),
                    ),
                    "{{direction}}",
                ),
            ),
        ),
        Panel(
            title="Wire bytes for a byte of KV",
            about="Bytes read by all ranks over the KV that turns needed: above 1 where several ranks read the same "
            "(MLA), or where reads were repeated. Both are counted at different moments: read the long run.",
            unit="ratio",
            queries=(
                Query(
                    share(
                        increase("turnscope_transfer_bytes_total", "direction"),
                        increase("turnscope_transfer_logical_bytes_total", "direction"),
                    ),
                    "{{direction}}",
                ),
            ),
            view="bars",
        ),
        Panel(
            title="Duration of a turn's transfer",
            about="From its first rank's begin to its last rank's end.",
            unit="seconds",
            queries=tuple(
                Query(
                    quantile(q, "turnscope_transfer_wall_seconds", "direction"),
                    f"{{{{direction}}}}, {name}",
                    exemplars=True,
                )
                for q, name in QUANTILES
            ),
        ),
        Panel(
            title="Duration of one rank's read",
            about="An upper bound: it includes up to one engine step.",
            unit="seconds",
            queries=tuple(
                Query(quantile(q, "turnscope_transfer_seconds", "direction"), f"{{{{direction}}}}, {name}")
                for q, name in QUANTILES
            ),
        ),
        Panel(
            title="Transfers by whether all ranks were seen",
            about="some: a rank's report is missing, so bytes and times of these transfers are too low.",
            unit="transfers/s",
            queries=(Query(rate("turnscope_transfers_total", "ranks"), "{{ranks}}"),),
            view="stacked",
        ),
        Panel(
            title="Reads between two engines",
            about="By reader and holder: tells a pair that cannot reach each other from one engine in trouble.",
            unit="reads",
            queries=(
                Query(
                    increase("turnscope_pair_reads_total", "engine", "holder", "state"),
                    "{{engine}} from {{holder}}: {{state}}",
                ),
            ),
            view="bars",
        ),
        Panel(
            title="Bytes moved for nothing",
            about="Read for attempts that were given up, or for turns that failed.",
            unit="bytes/s",
            queries=(Query(rate("turnscope_wasted_bytes_total", "direction"), "{{direction}}"),),
        ),
        Panel(
            title="Connectors and whether they are measured",
            about="Transfers of connectors with measured = no are in no figure here: absent, not 0.",
            unit="",
            queries=(Query(series("turnscope_connector_info")),),
            view="table",
        ),
    ),
)

FABRIC: Final = Row(
    "What carried the bytes",
    (
        Panel(
            title="Bytes by what carried them",
            about="NIXL's bytes of windows of a minute, by what the node's card counters say carried them: efa, tcp "
            "(the Ethernet card), local (neither), or unknown where there are no EFA counters.",
            alerts=("TurnscopeFellBackToTcp",),
            unit="bytes/s",
            queries=(Query(rate("turnscope_fabric_window_bytes_total", "transport"), "{{transport}}"),),
            view="stacked",
        ),
        Panel(
            title="Minutes by what carried the bytes",
            about="Windows in which anything was moved, by node, in the time shown.",
            unit="windows",
            queries=(Query(increase("turnscope_fabric_windows_total", "node", "transport"), "{{node}} {{transport}}"),),
            view="bars",
        ),
        Panel(
            title="How far cards and NIXL agree",
            about="A card's bytes over NIXL's in the last window with transfers: near 1, this card carried them; "
            "above, it had other traffic as well; near 0, another card did.",
            alerts=("TurnscopeFabricDisagrees",),
            unit="ratio",
            queries=(Query(now("turnscope_fabric_agreement_ratio", "node", "card"), "{{node}} {{card}}"),),
        ),
        Panel(
            title="What cards and NIXL do not agree on",
            about="short: NIXL's bytes that the card did not count; all of them, of a card that carried nothing. "
            "surplus: the card's other traffic.",
            unit="bytes/s",
            queries=(
                Query(rate("turnscope_fabric_short_bytes_total", "node", "card"), "{{node}} {{card}} short"),
                Query(rate("turnscope_fabric_surplus_bytes_total", "node", "card"), "{{node}} {{card}} surplus"),
            ),
        ),
        Panel(
            title="EFA's own counters",
            about="By the driver's names, summed over the ports of a node. Several names count the same bytes: never "
            "add them up.",
            unit="bytes/s",
            queries=(Query(rate("turnscope_fabric_efa_bytes_total", "node", "counter"), "{{node}} {{counter}}"),),
        ),
        Panel(
            title="Ethernet's own counters",
            about="Bytes received and sent by the node's Ethernet interfaces, loopback left out.",
            unit="bytes/s",
            queries=(Query(rate("turnscope_fabric_ethernet_bytes_total", "node", "counter"), "{{node}} {{counter}}"),),
        ),
        Panel(
            title="Cards found",
            about="EFA ports and Ethernet interfaces at the last look. Inside a pod EFA may not be seen at all.",
            unit="devices",
            queries=(Query(now("turnscope_fabric_devices", "node", "card"), "{{node}} {{card}}"),),
            view="figure",
        ),
        Panel(
            title="Looks at cards that were incomplete",
            about="A device or counter had come, gone or begun anew: its bytes are not known there.",
            unit="looks",
            queries=(Query(increase("turnscope_fabric_partial_looks_total", "node", "card"), "{{node}} {{card}}"),),
            view="figure",
        ),
    ),
)

PAGE: Final = Page(
    "transfer",
    "turnscope: Transfer and fabric",
    "What was moved between engines, how fast, how it ended, and what carried it.",
    (TRANSFERS, FABRIC),
)
