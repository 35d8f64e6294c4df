"""Reads by the pair of engines that they passed between, with few pairs for each reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from turnscope.assembly.engines import Engines
from turnscope.assembly.ledger import one
from turnscope.assembly.state import Read, State
from turnscope.catalog.labels import OTHER_HOLDER, PAIR_STATES
from turnscope.model import Contribution

MAX_HOLDERS: Final = 12
"""Holders that one reader's name tells apart: with all that it has else it stays below 500 series."""


class Pairs:
    """The holders that each reader has been seen with; whoever comes after the last that fits is ``other``."""

    def __init__(self, state: State, engines: Engines) -> None:
        self._state = state
        self._engines = engines

    def count(self, reads: Iterable[Read]) -> list[Contribution]:
        """Of a turn that is counted: both names are known by then if they ever will be."""
        return [
            one("turnscope_pair_reads_total", *self._names(read), read.transfer.state)
            for read in reads
            if read.transfer.state in PAIR_STATES
        ]

    def _names(self, read: Read) -> tuple[str, str]:
        reader, holder = self._engines.name(read.engine_id), self._engines.name(read.transfer.remote_engine_id)
        known = self._state.holders.setdefault(reader, [])
        if holder not in known:
            if len(known) >= MAX_HOLDERS:
                return reader, OTHER_HOLDER
            known.append(holder)
        return reader, holder
