"""What carried one turn's transfers: its nodes' cards, in the looks around each direction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.assembly import cards
from turnscope.assembly.engines import Engines
from turnscope.assembly.nodes import Interval, NodeState
from turnscope.assembly.ranks import done
from turnscope.assembly.state import Read, State, TurnState
from turnscope.assembly.transport import CLOSE, UNTOLD, figures, infer, total
from turnscope.model import SECOND_NS
from turnscope.semconv import Transport

PARTS: Final = (("fetch", False), ("handoff", True))


def transport_of(turn: TurnState) -> tuple[str | None, str | None]:
    """The turn's transport and what says so; None where nothing was moved. Directions that differ are unknown."""
    parts = [part for part, handoff in PARTS if done(turn.reads, handoff=handoff)]
    if not parts:
        return None, None
    later = (Transport.UNKNOWN, "the cards were not looked at since")
    found = [(part, *turn.transports.get(part, later)) for part in parts]
    transports = {transport for _, transport, _ in found}
    return (
        transports.pop() if len(transports) == 1 else Transport.UNKNOWN,
        "; ".join(f"{part} {transport}: {why}" for part, transport, why in found),
    )


class Attribution:
    """Decides each direction of a turn once."""

    def __init__(self, state: State, engines: Engines) -> None:
        self._state = state
        self._engines = engines

    def judge(self, turn: TurnState) -> None:
        """Decide what is not decided yet; a turn whose transfers ended after the last look waits for the next one."""
        for part, handoff in PARTS:
            reads = done(turn.reads, handoff=handoff)
            if reads and part not in turn.transports:
                verdict = self._verdict(reads, turn.turn_id)
                if verdict is not None:
                    turn.transports[part] = verdict

    def _verdict(self, reads: list[Read], turn_id: str) -> tuple[str, str] | None:
        found = []
        for group, node in self._by_node(reads):
            if node is None:
                return Transport.UNKNOWN, "nobody looks at the cards of its engines' nodes"
            spans = [cards.span(node, read) for read in group]
            begin, end = min(begin for begin, _ in spans), max(end for _, end in spans)
            if end > node.end_ns:
                node.waiting.setdefault(turn_id, self._state.now_ns)
                return None
            around = cards.around(node, begin, end)
            if around is None:
                return Transport.UNKNOWN, f"the cards of {node.node} were not looked at then"
            found.append(_explained(group, around))
        transports = {transport for transport, _ in found}
        return transports.pop() if len(transports) == 1 else Transport.UNKNOWN, "; ".join(why for _, why in found)

    def _by_node(self, reads: list[Read]) -> Iterator[tuple[list[Read], NodeState | None]]:
        """The reads by the node whose cards tell: their reader's, else their holder's, else None."""
        nodes = self._state.nodes
        groups: dict[str | None, list[Read]] = {}
        for read in reads:
            told = [name for name, node in nodes.items() if cards.here(node, read.host)] or [
                name for name, node in nodes.items() if cards.holder_here(node, read, self._engines)
            ]
            groups.setdefault(told[0] if told else None, []).append(read)
        for name, group in groups.items():
            yield group, nodes[name] if name is not None else None


def _explained(reads: list[Read], around: list[Interval]) -> tuple[str, str]:
    """The transport of these reads, from the looks around them."""
    own = sum(max(0, read.transfer.bytes or 0) for read in reads)
    if not own:
        return Transport.UNKNOWN, UNTOLD
    traffic = total(around)
    transport, why = infer(traffic)
    seconds = (around[-1].end_ns - around[0].begin_ns) / SECOND_NS
    text = f"{why} in the {seconds:.1f} s around its {own:,} B: {figures(traffic)}"
    card = traffic.efa if transport is Transport.EFA else traffic.ethernet if transport is Transport.TCP else None
    if card is not None and (traffic.nixl > own or card > CLOSE * traffic.on_card):
        text += "; upper bound, other traffic shared the card"
    return transport, text
