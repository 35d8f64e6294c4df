"""Ratios of alternating runs, with intervals that come from the blocks themselves."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean

import msgspec


class Ratio(msgspec.Struct, frozen=True):
    """A ratio and its 95% interval."""

    value: float
    low: float
    high: float


def ratio(blocks: Sequence[tuple[float, float]], *, rng: random.Random, draws: int = 4000) -> Ratio:
    """Geometric mean of ``with / without`` over ``blocks`` of ``(without, with)``, and its bootstrap interval.

    A block holds runs made right after each other, so that slow drift of the machine divides out. All
    values must be positive; raises ValueError for fewer than two blocks, of which no interval can be made.
    """
    if len(blocks) < 2:
        raise ValueError("an interval needs at least two blocks")
    logs = [math.log(with_ / without) for without, with_ in blocks]
    means = sorted(fmean(rng.choices(logs, k=len(logs))) for _ in range(draws))
    low, high = means[int(0.025 * draws)], means[int(0.975 * draws) - 1]
    return Ratio(math.exp(fmean(logs)), math.exp(low), math.exp(high))
