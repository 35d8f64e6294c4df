"""Two runs of one benchmark side by side, by prompt length: time to first token, and what a prefill was spent on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median, quantiles
from typing import Final

import msgspec

MOST_BUCKETS: Final = 16


class RunTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared of a turn; None: not measured."""

    prompt_tokens: int | None
    ttft_ns: int | None
    prefill_ns: int | None
    fetch_ns: int | None
    fetch_reads: int | None
    """0: it is known that nothing was read."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One run's turns of about one prompt length."""

    ttft_turns: int
    """Whose time to first token was measured."""
    ttft_ns: int | None
    """Their median."""
    ttft_p90_ns: int | None
    """Nine in ten were faster; None of fewer than ten."""
    prefill_turns: int
    """Whose prefill was measured."""
    prefill_ns: int | None
    """Their mean."""
    split_turns: int
    """Whose transfer is known too. Where that is not all of them, the split is unknown: the others may differ."""
    transfer_ns: int | None
    """Their mean time of reading back what D had kept."""
    compute_ns: int | None
    """The rest of the prefill: computing, waiting in a queue and the way to P and back."""


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Turns whose prompts are of about one length."""

    from_tokens: int
    until_tokens: int
    """Exclusive."""
    a: Side
    b: Side

    @property
    def ratio(self) -> float | None:
        """How many times A's median time to first token B's is; None where one of them was not measured."""
        return self.b.ttft_ns / self.a.ttft_ns if self.a.ttft_ns and self.b.ttft_ns is not None else None


def side_by_side(a: Sequence[RunTurn], b: Sequence[RunTurn]) -> list[Bucket]:
    """The turns of both in steps of prompt length (1, 2 or 5 times a power of ten) that give at most ``MOST_BUCKETS``;
    steps without a turn are left out, as are turns without a prompt length."""
    lengths = [turn.prompt_tokens for turn in (*a, *b) if turn.prompt_tokens is not None]
    if not lengths:
        return []
    step = _step(max(lengths))
    sides = [_grouped(turns, step) for turns in (a, b)]
    return [
        Bucket(
            from_tokens=number * step,
            until_tokens=(number + 1) * step,
            a=_side(sides[0].get(number, [])),
            b=_side(sides[1].get(number, [])),
        )
        for number in sorted({*sides[0], *sides[1]})
    ]


def _step(longest: int) -> int:
    power = 1
    while True:
        for factor in (1, 2, 5):
            if longest // (factor * power) < MOST_BUCKETS:
                return factor * power
        power *= 10


def _grouped(turns: Sequence[RunTurn], step: int) -> dict[int, list[RunTurn]]:
    groups: dict[int, list[RunTurn]] = {}
    for turn in turns:
        if turn.prompt_tokens is not None:
            groups.setdefault(turn.prompt_tokens // step, []).append(turn)
    return groups


def _side(turns: list[RunTurn]) -> Side:
    first = [turn.ttft_ns for turn in turns if turn.ttft_ns is not None]
    prefills = [turn.prefill_ns for turn in turns if turn.prefill_ns is not None]
    moved = [ns for turn in turns if turn.prefill_ns is not None and (ns := _transfer(turn)) is not None]
    prefill_ns = round(fmean(prefills)) if prefills else None
    transfer_ns = round(fmean(moved)) if moved and len(moved) == len(prefills) else None
    return Side(
        ttft_turns=len(first),
        ttft_ns=round(median(first)) if first else None,
        ttft_p90_ns=round(quantiles(first, n=10, method="inclusive")[-1]) if len(first) >= 10 else None,
        prefill_turns=len(prefills),
        prefill_ns=prefill_ns,
        split_turns=len(moved),
        transfer_ns=transfer_ns,
        compute_ns=prefill_ns - transfer_ns if prefill_ns is not None and transfer_ns is not None else None,
    )


def _transfer(turn: RunTurn) -> int | None:
    return 0 if turn.fetch_reads == 0 else turn.fetch_ns
