"""What a turn's recomputed tokens cost, and what fetching them would have: both by this engine's own measurements.

A fetch takes a fixed part and a part per token. The two are fitted to the newest measured fetches in relative
differences; what is left over, as measured / fitted, is the spread. Before there are enough of them the time is
assumed: half to twice what the published reference saw (30 ms at 2,000 tokens to 130 ms at 24,000, and 29 to 110 ms).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from turnscope.assembly.evidence import fetches
from turnscope.assembly.ranks import lasted_ns
from turnscope.assembly.rate import ENOUGH, Estimate, spared
from turnscope.assembly.sources import EngineState
from turnscope.assembly.state import Price, TurnState
from turnscope.model import Turn
from turnscope.semconv import TransferState

KEEP: Final = 64
"""Newest fetches remembered of an engine."""
STEP_NS: Final = 20_000_000
TOKEN_NS: Final = 4_500
"""Of the published reference."""
ASSUMED: Final = "assumed"
MEASURED: Final = "measured"


class Line(msgspec.Struct, frozen=True):
    """``step + token x tokens``, in nanoseconds, and how far measured fetches lie from it."""

    step: float
    token: float
    low: float
    high: float

    def estimate(self, tokens: int) -> Estimate:
        """Of a fetch of so many."""
        ns = self.step + self.token * tokens
        return Estimate(round(ns), round(ns * self.low), round(ns * self.high))


REFERENCE: Final = Line(STEP_NS, TOKEN_NS, 0.5, 2.0)


def learn_fetch(engine: EngineState | None, turn: TurnState, row: Turn) -> None:
    """Take the turn's fetch into what its P engine is known to need. Only of the engine's present start."""
    if engine is None or turn.prefill is None or turn.prefill.generation != engine.engine.generation:
        return
    reads = fetches(turn)
    took_ns = lasted_ns(reads)
    if not row.fetched_tokens or not took_ns or any(r.transfer.state is TransferState.FAILED for r in reads):
        return
    engine.fetches.append((row.fetched_tokens, took_ns))
    del engine.fetches[:-KEEP]


def line(measured: Sequence[tuple[int, int]]) -> Line | None:
    """Through (tokens, ns) of measured fetches; None while they are too few."""
    if len(measured) < ENOUGH:
        return None
    a = math.fsum(1 / ns / ns for _, ns in measured)
    b = math.fsum(tokens / ns / ns for tokens, ns in measured)
    c = math.fsum(tokens * tokens / ns / ns for tokens, ns in measured)
    p = math.fsum(1 / ns for _, ns in measured)
    q = math.fsum(tokens / ns for tokens, ns in measured)
    determinant = a * c - b * b
    step, token = 0.0, q / c
    if determinant > 1e-9 * a * c:
        step, token = (p * c - q * b) / determinant, (q * a - p * b) / determinant
    if token < 0:
        step, token = p / a, 0.0
    elif step < 0:
        step, token = 0.0, q / c
    ratios = sorted(ns / (step + token * tokens) for tokens, ns in measured)
    outside = int((len(ratios) + 1) / (ENOUGH + 1))
    return Line(step, token, ratios[outside - 1], ratios[-outside])


def price(turn: TurnState, row: Turn, engine: EngineState | None) -> None:
    """Write into ``row`` what its recomputed tokens cost. What it was first worked out with stays: later measurements
    change no row, unless late evidence changes how many tokens they are."""
    tokens = row.recomputed_tokens
    if not tokens or row.prompt_tokens is None or row.computed_tokens is None:
        return
    if turn.price is None or turn.price.tokens != tokens:
        turn.price = _price(tokens, row.prompt_tokens - row.computed_tokens, engine)
    found = turn.price
    if found.recompute is None:
        return
    row.recompute_ns, row.recompute_low_ns, row.recompute_high_ns = found.recompute
    row.refetch_ns, row.refetch_low_ns, row.refetch_high_ns = found.refetch
    row.refetch_basis = MEASURED if found.measured else ASSUMED


def _price(tokens: int, start: int, engine: EngineState | None) -> Price:
    rate = engine.rate if engine is not None else None
    own = line(engine.fetches) if engine is not None else None
    return Price(
        tokens=tokens,
        recompute=spared(rate, start, tokens) if rate is not None else None,
        refetch=(own or REFERENCE).estimate(tokens),
        measured=own is not None,
    )
