"""How fast an engine computes prompts, by what it was seen to need, and what a fetch spared it.

A prefill of ``tokens`` behind ``start`` tokens of context takes ``step + tokens x (token + context x middle)``, where
``middle`` is the mean position of the tokens: a fixed part, a part per token, and attention, which grows with the
context. The three are fitted to relative differences, in which one slow prefill among many (others ran beside it)
weighs little. What is left over, as measured / fitted, is the spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import msgspec

KEEP: Final = 16
"""Newest measurements kept of each power of two of context: many short prompts push out no long one."""
ENOUGH: Final = 19
"""Of this many, the least and the greatest enclose the next nine times in ten, whatever the distribution."""
GROUPS: Final = 8
"""The fit is done again without each of so many parts of the measurements, to know how sure it is."""
REACH: Final = 2
"""Contexts longer than so many times the longest measured are not judged."""
_COVER: Final = 0.05
"""Share of measurements outside the spread, on either side."""

_Sums = list[float]
"""Of one group: the six products of the three terms with each other, and the three terms."""


class Prefill(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One measured prefill: ``tokens`` computed behind ``start`` that were there, in ``ns`` from its first step on."""

    start: int
    tokens: int
    ns: int


class Rate(msgspec.Struct, frozen=True, array_like=True):
    """What was fitted; times in nanoseconds."""

    step: float
    token: float
    context: float
    low: float
    """Of measured / fitted: the spread, and its middle."""
    middle: float
    high: float
    reach: int
    """Longest context that it speaks for."""
    without: list[tuple[float, float]]
    """(token, context) fitted without each group."""


class Estimate(NamedTuple):
    """Nanoseconds; nine in ten times the truth is between ``low`` and ``high``."""

    ns: int
    low_ns: int
    high_ns: int


def keep(measured: dict[int, list[Prefill]], new: Prefill) -> None:
    """Add a measurement; the oldest of its kind goes when there are enough."""
    alike = measured.setdefault((new.start + new.tokens).bit_length(), [])
    alike.append(new)
    if len(alike) > KEEP:
        del alike[0]


def fit(measured: dict[int, list[Prefill]]) -> Rate | None:
    """The rate by all measurements; None while they are too few, or do not tell what a token costs."""
    prefills = [prefill for _, alike in sorted(measured.items()) for prefill in alike]
    if len(prefills) < ENOUGH:
        return None
    groups = [_sums(prefills[number::GROUPS]) for number in range(GROUPS)]
    total = [math.fsum(column) for column in zip(*groups, strict=True)]
    chosen = _choose(total)
    if chosen is None:
        return None
    terms, whole = chosen
    without = []
    for group in groups:
        rest = _solve([all_ - mine for all_, mine in zip(total, group, strict=True)], terms)
        if rest is None:
            return None
        without.append((rest[1], rest[2]))
    step, token, context = whole
    ratios = sorted(p.ns / (step + p.tokens * (token + context * (p.start + p.tokens / 2))) for p in prefills)
    outside = int(_COVER * (len(ratios) + 1))
    return Rate(
        step=step,
        token=token,
        context=context,
        low=ratios[max(0, outside - 1)],
        middle=ratios[len(ratios) // 2],
        high=ratios[min(len(ratios) - 1, len(ratios) - outside)],
        reach=REACH * max(p.start + p.tokens for p in prefills),
        without=without,
    )


def spared(rate: Rate, start: int, tokens: int) -> Estimate | None:
    """The compute of ``tokens`` behind ``start``; None beyond the contexts that the rate speaks for.

    The fixed part is not in it: what was not fetched is computed in a step anyhow.
    """
    if start + tokens > rate.reach:
        return None
    middle = start + tokens / 2
    whole = tokens * (rate.token + rate.context * middle)
    others = [tokens * (token + context * middle) for token, context in rate.without]
    mean = math.fsum(others) / GROUPS
    error = 2 * math.sqrt((GROUPS - 1) / GROUPS * math.fsum((other - mean) ** 2 for other in others))
    return Estimate(
        round(whole * rate.middle),
        round(max(0.0, whole - error) * rate.low),
        round((whole + error) * rate.high),
    )


# --- the fit ------------------------------------------------------------------------------------------
def _sums(prefills: Sequence[Prefill]) -> _Sums:
    aa = ab = ac = bb = bc = cc = a = b = c = 0.0
    for prefill in prefills:
        x = 1 / prefill.ns
        y = x * prefill.tokens
        z = y * (prefill.start + prefill.tokens / 2)
        aa, ab, ac, bb, bc, cc = aa + x * x, ab + x * y, ac + x * z, bb + y * y, bc + y * z, cc + z * z
        a, b, c = a + x, b + y, c + z
    return [aa, ab, ac, bb, bc, cc, a, b, c]


_Terms = tuple[int, ...]
_Coefficients = tuple[float, float, float]
_EVERY: Final[tuple[_Terms, ...]] = tuple(chosen for size in (2, 1) for chosen in combinations(range(3), size))


def _choose(sums: _Sums) -> tuple[_Terms, _Coefficients] | None:
    """The least squares with no coefficient below zero: all three terms, else the best of fewer. None when tokens
    cost nothing by it."""
    full = (0, 1, 2)
    whole = _solve(sums, full)
    if whole is not None and min(whole) >= 0:
        return full, whole
    found: list[tuple[float, _Terms, _Coefficients]] = []
    for terms in _EVERY:
        coefficients = _solve(sums, terms)
        if coefficients is not None and min(coefficients) >= 0:
            explained = sum(c * total for c, total in zip(coefficients, sums[6:], strict=True))
            found.append((explained, terms, coefficients))
    _, terms, best = max(found, default=(0.0, full, (0.0, 0.0, 0.0)))
    return (terms, best) if best[1] + best[2] > 0 else None


def _solve(sums: _Sums, terms: _Terms) -> _Coefficients | None:
    """The least squares of some of the terms, 0 for the others; None when the terms hardly differ."""
    aa, ab, ac, bb, bc, cc, *right = sums
    matrix = ((aa, ab, ac), (ab, bb, bc), (ac, bc, cc))
    scale = [math.sqrt(matrix[i][i]) for i in terms]
    if not all(scale):
        return None
    rows = [
        [*(matrix[i][j] / s / t for j, t in zip(terms, scale, strict=True)), right[i] / s]
        for i, s in zip(terms, scale, strict=True)
    ]
    size = len(terms)
    for i in range(size):
        if rows[i][i] < 1e-9:
            return None
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            for j in range(i, size + 1):
                rows[k][j] -= factor * rows[i][j]
    out = [0.0, 0.0, 0.0]
    solved = [0.0] * size
    for i in reversed(range(size)):
        rest = sum(rows[i][j] * solved[j] for j in range(i + 1, size))
        solved[i] = (rows[i][size] - rest) / rows[i][i]
        out[terms[i]] = solved[i] / scale[i]
    return out[0], out[1], out[2]
