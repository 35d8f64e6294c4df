"""Which turns have a trace: a share by the hash that their id is, and always those that somebody will look for."""

from __future__ import annotations

from typing import Final

from turnscope.model import Turn
from turnscope.semconv import Status

REMEMBERED: Final = 10_000
"""Turns with a suspicion whose trace was sent: a later revision of them sends none again."""
_FAILED: Final = frozenset({Status.ERROR, Status.STUCK})


class Sampler:
    """``ratio``: share of ordinary turns that are kept, 1 for all. ``slow_ns``: from this time to first token, or this
    duration of its prefill leg, on a turn is slow."""

    def __init__(self, ratio: float = 1.0, slow_ns: int = 10_000_000_000) -> None:
        self._below = round(ratio * 2**64)
        self._slow_ns = slow_ns
        self._suspicious: dict[str, None] = {}

    def keeps(self, turn: Turn) -> bool:
        """Whether a turn that has just been counted is sent."""
        if turn.suspicions:
            self._remember(turn.turn_id)
        return bool(turn.suspicions) or self._chosen(turn)

    def keeps_late(self, turn: Turn) -> bool:
        """Whether a turn is sent after all, since what came later makes it suspicious. True once."""
        if not turn.suspicions or self._chosen(turn) or turn.turn_id in self._suspicious:
            return False
        self._remember(turn.turn_id)
        return True

    def _chosen(self, turn: Turn) -> bool:
        if turn.status in _FAILED or max(turn.ttft_ns or 0, turn.prefill_ns or 0) >= self._slow_ns:
            return True
        # The half of the id that OpenTelemetry's own samplers by ratio look at.
        return int(turn.turn_id[16:], 16) < self._below

    def _remember(self, turn_id: str) -> None:
        self._suspicious[turn_id] = None
        while len(self._suspicious) > REMEMBERED:
            del self._suspicious[next(iter(self._suspicious))]
