"""What network cards may count while a pair moves KV, and what must be said then of what carried it.

Everything is seen in two ways: both engines on the node whose cards are looked at, and P elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from live.driver import TurnTruth
from live.sysfs import Sysfs
from live.verdict import Row
from turnscope.semconv import Transport

UPPER_BOUND: Final = "upper bound, other traffic shared the card"
TOGETHER: Final = "together"
"""Both engines on the node."""
APART: Final = "apart"
"""D on the node, P on another."""


BEGIN: Final = 10**12
"""What the cards have counted before."""


def plugged(tree: Sysfs) -> None:
    """The EFA device is there."""
    if not any(tree.infiniband.iterdir()):
        tree.add_efa(value=BEGIN)


def _nothing(_: Sysfs) -> None:
    """Nothing happens."""


def _no_card(_: Sysfs, __: int) -> None:
    """No card counts."""


def _efa(tree: Sysfs, size: int) -> None:
    tree.efa(rdma_read_bytes=size, rx_bytes=size * 101 // 100)


def _shared_efa(tree: Sysfs, size: int) -> None:
    tree.efa(rdma_read_bytes=3 * size, rx_bytes=3 * size)


def _ethernet(tree: Sysfs, size: int) -> None:
    tree.ethernet(rx_bytes=size * 103 // 100, tx_bytes=size // 100)


def _efa_and_ethernet(tree: Sysfs, size: int) -> None:
    _efa(tree, size)
    _ethernet(tree, size)


@dataclass(frozen=True)
class Trial:
    """What the cards do while turns go on, and what must be said of each, by view."""

    name: str
    count: Callable[[Sysfs, int], None]
    """The cards count so many bytes that NIXL moved."""
    transport: Mapping[str, Transport]
    because: Mapping[str, str]
    """A part of the explanation."""
    shared: bool = False
    """Other traffic is on the card: what is said of a turn says so too."""
    turns: int = 1
    before: Callable[[Sysfs], None] = _nothing
    """Done before the look that begins it."""
    between: Callable[[Sysfs], None] = _nothing
    """Done when the first turn's bytes are counted."""


def _both(value: str) -> dict[str, str]:
    return {TOGETHER: value, APART: value}


UNKNOWN: Final = {TOGETHER: Transport.UNKNOWN, APART: Transport.UNKNOWN}
EFA: Final = {TOGETHER: Transport.EFA, APART: Transport.EFA}
CHANGED = "EFA counters came, went or began anew meanwhile"
NO_CARD = "no EFA counters are seen on this node"
TRIALS: Final = (
    Trial("efa", _efa, EFA, _both("EFA counters moved by as much")),
    Trial(
        "ethernet",
        _ethernet,
        {TOGETHER: Transport.UNKNOWN, APART: Transport.TCP},
        {TOGETHER: "both ends are on this node, but Ethernet moved", APART: "while Ethernet moved by as much"},
    ),
    Trial(
        "no card",
        _no_card,
        {TOGETHER: Transport.LOCAL, APART: Transport.UNKNOWN},
        {TOGETHER: "both ends are on this node, and neither", APART: "neither EFA nor Ethernet moved"},
    ),
    Trial("reset", _efa_and_ethernet, UNKNOWN, _both(CHANGED), turns=2, between=Sysfs.reset),
    Trial(
        "shared card",
        _shared_efa,
        {TOGETHER: Transport.UNKNOWN, APART: Transport.EFA},
        {TOGETHER: "EFA counters moved by more", APART: "EFA counters moved by as much"},
        shared=True,
    ),
    Trial("device goes", _ethernet, UNKNOWN, _both(NO_CARD), turns=2, before=plugged, between=Sysfs.remove),
    Trial("device missing", _ethernet, UNKNOWN, _both(NO_CARD)),
    Trial("device back", _efa, EFA, _both("EFA counters moved by as much"), before=plugged),
)


@dataclass(frozen=True)
class Said:
    """What carried something, and why."""

    transport: str | None
    because: str | None


@dataclass(frozen=True)
class Done:
    """A trial as it went."""

    trial: Trial
    turns: list[TurnTruth]
    windows: Mapping[str, Said | None]
    """By view: what was said of the time between the two looks; None: nothing."""


def judge(done: Iterable[Done], rows: Mapping[str, Sequence[Row]]) -> Iterable[str]:
    """``rows``: the turns in the stores of the two views. One sentence for each thing that is not right."""
    for each in done:
        if len(each.turns) != each.trial.turns:
            yield f"cards, {each.trial.name}: could not be done between two looks"
            continue
        for view, window in each.windows.items():
            where = f"cards, {each.trial.name}, {view}"
            if window is None:
                yield f"{where}: no window"
            else:
                yield from _wrong(f"{where}: window", each.trial, view, window)
            for turn in each.turns:
                found = [r for r in rows[view] if str(r["decode_request_id"]).startswith(str(turn.answer_id))]
                if len(found) != 1:
                    yield f"{where}: {len(found)} turns in the store, not one"
                for row in found:
                    said = Said(row["transport"], row["transport_inferred_from"])
                    yield from _wrong(f"{where}: turn", each.trial, view, said)
                    bound = UPPER_BOUND in str(said.because)
                    if bound != (each.trial.shared and said.transport == Transport.EFA):
                        yield f"{where}: turn {said.transport}, {'an' if bound else 'no'} upper bound ({said.because})"


def _wrong(where: str, trial: Trial, view: str, said: Said) -> Iterable[str]:
    if said.transport != trial.transport[view]:
        yield f"{where} {said.transport}, expected {trial.transport[view]} ({said.because})"
    elif trial.because[view] not in str(said.because):
        yield f"{where} {said.transport}, but because {said.because}"
