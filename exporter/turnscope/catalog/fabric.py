"""Metrics of the nodes' cards, and of how far they agree with NIXL."""

from __future__ import annotations

from turnscope.catalog.labels import CARD, COUNTER, NODE, TRANSPORT
from turnscope.catalog.metric import Kind, Metric

FABRIC = (
    # --- what the cards count
    Metric(
        name="turnscope_fabric_efa_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="What the node's EFA ports counted since they were first looked at, by the driver's own counter name, "
        "summed over ports. Several names count the same bytes: never add them up.",
        labels=(NODE, COUNTER),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_efa_events_total",
        kind=Kind.COUNTER,
        unit="events",
        help="The EFA ports' other counters: work requests, packets, drops, errors; by the driver's own name.",
        labels=(NODE, COUNTER),
        owner="fabric",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_fabric_ethernet_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="What the node's Ethernet interfaces counted since they were first looked at. Loopback, and where there "
        "are physical interfaces all others, are left out.",
        labels=(NODE, COUNTER),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_partial_looks_total",
        kind=Kind.COUNTER,
        unit="looks",
        help="Looks at which a device or counter had come, gone or begun anew: its bytes are not known there.",
        labels=(NODE, CARD),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_devices",
        kind=Kind.GAUGE,
        unit="devices",
        help="EFA ports and Ethernet interfaces found at the last look. Inside a pod EFA may not be seen at all.",
        labels=(NODE, CARD),
        owner="fabric",
    ),
    # --- NIXL's bytes held against them
    Metric(
        name="turnscope_fabric_windows_total",
        kind=Kind.COUNTER,
        unit="windows",
        help="Windows in which NIXL moved something from or to the node's engines, by what the card counters say "
        "carried it. Never told from NIXL's bytes alone.",
        labels=(NODE, TRANSPORT),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_window_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="NIXL's bytes from and to the node's engines in those windows, by the window's transport.",
        labels=(NODE, TRANSPORT),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_short_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="NIXL's bytes of a window that the card did not count. Of a card that carried nothing this is all of "
        "them.",
        labels=(NODE, CARD),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_surplus_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="Bytes of a window that the card counted beyond NIXL's: other traffic.",
        labels=(NODE, CARD),
        owner="fabric",
    ),
    Metric(
        name="turnscope_fabric_agreement_ratio",
        kind=Kind.GAUGE,
        unit="ratio",
        help="The card's bytes over NIXL's, in the last window with transfers: near 1, this card carried them; "
        "more, it has other traffic as well. What stays on the node is taken to pass the card twice.",
        labels=(NODE, CARD),
        owner="fabric",
    ),
)
