"""Two looks at a node's cards to what they counted in between: pure, the files are read elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Counters = Mapping[str, Mapping[str, int]]
"""Device to raw counter name to value. What is not there was not measured."""


class Increase(msgspec.Struct, frozen=True):
    """What a kind of card counted between two looks, summed over devices by raw counter name."""

    devices: int
    """Found at the later look."""
    counters: dict[str, int]
    partial: bool
    """A device or counter came, went or began anew: where it did, the sum is a lower bound."""


def increase(before: Counters, after: Counters) -> Increase:
    """What was counted from ``before`` to ``after``; never below zero.

    A counter that fell was set to 0 in between and has counted at least what it shows. What is on one side only cannot
    be told, so its device adds nothing: a counter that no device has on both sides is absent.
    """
    sums: dict[str, int] = {}
    partial = before.keys() != after.keys()
    for device in before.keys() & after.keys():
        old, new = before[device], after[device]
        partial |= old.keys() != new.keys()
        for name in sorted(old.keys() & new.keys()):
            fell = new[name] < old[name]
            partial |= fell
            sums[name] = sums.get(name, 0) + max(0, new[name] if fell else new[name] - old[name])
    return Increase(devices=len(after), counters=dict(sorted(sums.items())), partial=partial)


def first(after: Counters) -> Increase:
    """The first look has nothing to compare with: every counter that is there, at 0."""
    names = sorted({name for counters in after.values() for name in counters})
    return Increase(devices=len(after), counters=dict.fromkeys(names, 0), partial=False)
