"""Attempts of one client request: which turn they belong to, what each did, and what was moved for nothing."""

from __future__ import annotations

from collections import defaultdict

from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import path_of, turn_split
from turnscope.assembly.ledger import one
from turnscope.assembly.outcome import ending
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import Read, TurnState
from turnscope.assembly.tokens import reported
from turnscope.assembly.traits import read_end_ns, started_ns
from turnscope.assembly.turns import Turns, answering, given_handle
from turnscope.model import Contribution, TurnAttempt
from turnscope.semconv import Path, Status, TransferState


class Attempts:
    """Looks at a turn together with the attempts before it."""

    def __init__(self, settings: AssemblySettings, engines: Engines, turns: Turns, settler: Settler) -> None:
        self._settings = settings
        self._engines = engines
        self._turns = turns
        self._settler = settler

    def superseded(self, turn: TurnState) -> list[TurnState]:
        """The other attempts of the same client request, in their order."""
        if turn.attempt is None:
            return []
        refs = sorted(self._settler.attempts(turn.attempt).items())
        others = (self._turns.get(ref.turn_id) for _, ref in refs if ref.turn_id != turn.turn_id)
        return [other for other in others if other is not None and other.attempt is not None]

    def made(self, turn: TurnState) -> list[TurnAttempt]:
        """All attempts, the answered one too; none where there was but one."""
        others = self.superseded(turn)
        if not others:
            return []
        every = sorted((*others, turn), key=lambda t: t.attempt.number if t.attempt is not None else 0)
        return [self._made(attempt, final=attempt is turn) for attempt in every]

    def _made(self, turn: TurnState, *, final: bool) -> TurnAttempt:
        attempt = turn.attempt
        assert attempt is not None
        status, stage = ending(turn, self._settings)
        begun, ended = _begun_ns(turn), self._settler.ended_ns(turn)
        engine = self._engines.get(turn.prefill_engine_id)
        sizes = [read.transfer.bytes for read in _done(turn.reads) if read.transfer.bytes is not None]
        return TurnAttempt(
            number=attempt.number,
            final=final,
            turn_id=turn.turn_id,
            path=_path(turn),
            status=status,
            stage=stage,
            prefill_engine=engine.name if engine is not None else None,
            started_ns=begun,
            duration_ns=ended - begun if begun is not None and ended is not None and ended >= begun else None,
            moved_bytes=sum(sizes) if sizes else None,
        )

    # --- moved for nothing ----------------------------------------------------------------------------
    def wasted_bytes(self, turn: TurnState) -> int | None:
        """Bytes read for it that served no answer; None where no read of it was measured."""
        others = self.superseded(turn)
        every = [read for state in (turn, *others) for read in _done(state.reads)]
        if all(read.transfer.bytes is None for read in every):
            return None
        return sum(read.transfer.bytes or 0 for read in self._wasted(turn, others))

    def wasted(self, turn: TurnState) -> list[Contribution]:
        """The same, by reader and direction, to be counted."""
        sums: dict[tuple[str, str], int] = defaultdict(int)
        for read in self._wasted(turn, self.superseded(turn)):
            sums[self._engines.name(read.engine_id), read.transfer.direction] += read.transfer.bytes or 0
        return [
            one("turnscope_wasted_bytes_total", *labels, value=size) for labels, size in sorted(sums.items()) if size
        ]

    def _wasted(self, turn: TurnState, others: list[TurnState]) -> list[Read]:
        """What was read for attempts that were given up; for requests to D before the one that answered; and for a
        turn that failed, or was given up before it had an answer to stream."""
        wasted = [read for other in others for read in _done(other.reads)]
        status, stage = ending(turn, self._settings)
        if status in (Status.ERROR, Status.STUCK) or (status is Status.CANCELLED and stage != "decode"):
            return wasted + _done(turn.reads)
        answered = {leg.request.request_id for leg in answering(turn)}
        given_up = {leg.request.request_id for leg in turn.decodes} - answered
        return wasted + [read for read in _done(turn.reads) if read.transfer.request_id in given_up]


def _done(reads: list[Read]) -> list[Read]:
    return [read for read in reads if read.transfer.state is TransferState.DONE]


def _begun_ns(turn: TurnState) -> int | None:
    """Wall time at which this attempt went to an engine: the client's request was there before."""
    attempt, leg = turn.attempt, turn.prefill
    if attempt is not None and attempt.started_wall_ns is not None:
        offset = attempt.prefill_start_ns if attempt.prefill_start_ns is not None else attempt.decode_start_ns
        if offset is not None:
            return attempt.started_wall_ns + offset
    return leg.started_wall_ns if leg is not None else started_ns(turn) or None


def _path(turn: TurnState) -> Path:
    """As of a turn; of an attempt that was given up after its fetch was done, that it was fetched."""
    path = path_of(turn, turn_split(turn))
    if path is not Path.UNKNOWN or read_end_ns(turn) is None or given_handle(turn) is None or turn.prefill is None:
        return path
    numbers = reported(turn.prefill.request)
    return Path.MIXED if numbers is not None and numbers.local else Path.REVERSE_FETCH
