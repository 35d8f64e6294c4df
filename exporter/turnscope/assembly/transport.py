"""What carried NIXL's bytes: its own count held against what the node's cards counted in the same time.

NIXL's bytes alone prove nothing: a backend that cannot drive EFA takes TCP without a word. So a card is named only when
its counters moved by as much, and ``tcp`` and ``local`` only where EFA cards were seen not to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from turnscope.assembly.nodes import Interval
from turnscope.semconv import Transport

COVERS: Final = 0.9
"""A card that moved this share of NIXL's bytes may have carried them: a read can lie across the edge of a look."""
CLOSE: Final = 1.25
"""A card that moved more than this has other traffic as well; below it, it is NIXL's bytes that it counted."""
QUIET: Final = 0.1
"""A card that moved less than this share carried none of them."""
ENOUGH: Final = 2**20
"""Bytes below which a node's ordinary Ethernet traffic hides what NIXL moves."""
UNTOLD: Final = "NIXL did not tell its bytes"
VERBS: Final = frozenset(
    {
        "rdma_read_bytes",
        "rdma_read_resp_bytes",
        "rdma_write_bytes",
        "rdma_write_recv_bytes",
        "send_bytes",
        "recv_bytes",
    }
)
WIRE: Final = frozenset({"tx_bytes", "rx_bytes"})


class Traffic(msgspec.Struct, frozen=True):
    """What is known of one stretch of a node's time. Bytes."""

    efa: int | None
    ethernet: int | None
    efa_partial: bool
    across: int
    """NIXL's, with one end on the node."""
    within: int
    """NIXL's, with both."""

    @property
    def nixl(self) -> int:
        """NIXL's."""
        return self.across + self.within

    @property
    def on_card(self) -> int:
        """NIXL's, as a card would count them that carried all: what stays on the node passes it twice."""
        return self.across + 2 * self.within

    @property
    def carried(self) -> int:
        """What the node's cards are asked for: where anything left the node, they are asked for that alone."""
        return self.across or self.within


def card_bytes(counters: Iterable[str], increases: Iterable[int]) -> int | None:
    """Bytes that went through cards, from their raw counters; None where none of them counts bytes.

    The verbs' counters and the wire's count the same bytes in two ways; directions are not told apart, because the
    counters' names do not tell them well. A missing counter makes one of the two ways fall short, hence the larger.
    """
    found = {name: max(0, increase) for name, increase in zip(counters, increases, strict=False)}
    ways = [[found[name] for name in way if name in found] for way in (VERBS, WIRE)]
    return max((sum(way) for way in ways if way), default=None)


def total(intervals: Iterable[Interval]) -> Traffic:
    """All of these together; a card is measured only where every look measured it."""
    parts = list(intervals)
    efa = [part.efa for part in parts if part.efa is not None]
    ethernet = [part.ethernet for part in parts if part.ethernet is not None]
    return Traffic(
        efa=sum(efa) if len(efa) == len(parts) > 0 else None,
        ethernet=sum(ethernet) if len(ethernet) == len(parts) > 0 else None,
        efa_partial=any(part.efa_partial for part in parts),
        across=sum(part.across for part in parts),
        within=sum(part.within for part in parts),
    )


def infer(traffic: Traffic) -> tuple[Transport, str]:
    """The transport, and in one clause what says so."""
    asked, efa, ethernet = traffic.carried, traffic.efa, traffic.ethernet
    if not asked:
        return Transport.UNKNOWN, UNTOLD
    if efa is None:
        return Transport.UNKNOWN, "no EFA counters are seen on this node"
    by_ethernet = ethernet is not None and ethernet >= COVERS * asked
    if efa >= COVERS * asked:
        elsewhere = by_ethernet or ethernet is None or not traffic.across
        if elsewhere and efa > CLOSE * traffic.on_card:
            return Transport.UNKNOWN, "EFA counters moved by more, and it may have gone another way as well"
        return Transport.EFA, "EFA counters moved by as much"
    if traffic.efa_partial:
        return Transport.UNKNOWN, "EFA counters came, went or began anew meanwhile"
    if efa > QUIET * asked:
        return Transport.UNKNOWN, "EFA counters moved by a part of it only"
    if ethernet is None:
        return Transport.UNKNOWN, "EFA counters stood still, and no Ethernet counters are seen on this node"
    if not traffic.across:
        if by_ethernet:
            return Transport.UNKNOWN, "both ends are on this node, but Ethernet moved by as much"
        return Transport.LOCAL, "both ends are on this node, and neither EFA nor Ethernet moved by as much"
    if not by_ethernet:
        return Transport.UNKNOWN, "neither EFA nor Ethernet moved by as much"
    if asked < ENOUGH:
        return Transport.UNKNOWN, "EFA counters stood still, and too little was moved to tell it from other Ethernet"
    return Transport.TCP, "EFA counters stood still while Ethernet moved by as much"


def figures(traffic: Traffic) -> str:
    """The numbers behind it, for a person."""
    cards = (("EFA", traffic.efa), ("Ethernet", traffic.ethernet))
    return f"NIXL {traffic.nixl:,} B, " + ", ".join(
        f"{name} {'not measured' if size is None else f'{size:,} B'}" for name, size in cards
    )
