"""The evidence on one turn that its path, reason and suspicions are decided by."""

from __future__ import annotations

from turnscope.assembly.engines import Engines
from turnscope.assembly.handles import Handles
from turnscope.assembly.knowledge import (
    Ending,
    Evidence,
    Given,
    Left,
    Load,
    Missing,
    Offer,
    Previous,
    Progress,
    Session,
    Spent,
)
from turnscope.assembly.outcome import stuck_at
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import CHAINED, Settler
from turnscope.assembly.state import Past, Read, TurnState
from turnscope.assembly.tokens import Split, prefilled, split
from turnscope.assembly.traits import started_ns
from turnscope.assembly.turns import brings_answers, given_handle, hold_id
from turnscope.model import Handle, Transfer
from turnscope.semconv import Direction, Path, TransferState


def fetches(turn: TurnState) -> list[Read]:
    """What P's ranks did about D's handle, for the sample that speaks for the turn."""
    mine = ("", turn.prefill.request.request_id) if turn.prefill is not None else None
    return [
        read
        for read in turn.reads
        if read.transfer.direction is not Direction.HANDOFF and (mine is None or read.transfer.request_id in mine)
    ]


def fetch_reads(turn: TurnState) -> list[Transfer]:
    """The same, without who reported it and when."""
    return [read.transfer for read in fetches(turn)]


def turn_split(turn: TurnState) -> Split | None:
    """Where the prompt's tokens came from; None without the P leg."""
    if turn.prefill is None:
        return None
    return split(turn.prefill.request, fetch_reads(turn), has_handle=given_handle(turn) is not None)


def path_of(turn: TurnState, tokens: Split | None) -> Path:
    """Where the reused tokens came from; unknown unless P's prefill was done."""
    if tokens is None or tokens.local is None or turn.prefill is None:
        return Path.UNKNOWN
    if tokens.external:
        return Path.EXTERNAL_HIT
    if tokens.fetched:
        return Path.MIXED if tokens.local else Path.REVERSE_FETCH
    return Path.LOCAL_HIT if tokens.local else Path.RECOMPUTE


def used_hold(turn: TurnState) -> str | None:
    """The hold whose handle P was given."""
    given = given_handle(turn)
    return hold_id(given) if given is not None else None


def remainder(turn: TurnState, tokens: Split | None) -> int | None:
    """What the handle offered beyond the local hit, at most the prompt; below 0 where the local hit was longer."""
    given = given_handle(turn)
    if given is None or given.tokens is None or tokens is None or tokens.local is None:
        return None
    return min(given.tokens, tokens.prompt) - tokens.local


class Witness:
    """Gathers the evidence on a turn from all that is known."""

    def __init__(self, settings: AssemblySettings, engines: Engines, settler: Settler, handles: Handles) -> None:
        self._settings = settings
        self._engines = engines
        self._settler = settler
        self._handles = handles

    def evidence(self, turn: TurnState, tokens: Split | None, previous: Past | None) -> Evidence:
        """Everything the table of reasons asks for, of a turn, its split and the turn that it continues."""
        given = given_handle(turn)
        handle: Given | Spent | Missing
        if given is not None:
            handle = self._given(turn, given, tokens, previous)
        elif self._spent(turn):
            handle = Spent()
        else:
            handle = self._missing(turn, tokens, previous)
        return Evidence(
            fetched=None if tokens is None or tokens.fetched is None else tokens.fetched > 0,
            progress=self._progress(turn),
            empty_handoff=_empty_handoff(turn),
            handle=handle,
        )

    def _progress(self, turn: TurnState) -> Progress:
        if _rejected(turn):
            return Progress.REJECTED
        return Progress.STUCK if stuck_at(turn, self._settings) == "prefill" else Progress.SERVED

    # --- P had a handle -------------------------------------------------------------------------------
    def _given(self, turn: TurnState, given: Handle, tokens: Split | None, previous: Past | None) -> Given:
        engine = self._engines.get(turn.prefill_engine_id)
        leg = turn.prefill
        return Given(
            feature_on=engine.engine.bidirectional if engine is not None else None,
            load=_load(fetch_reads(turn)),
            offer=self._offer(turn, given, tokens),
            holder_lost=self._lost(hold_id(given), given.engine_id, previous, turn),
            cut_short=leg is not None and not prefilled(leg.request),
        )

    def _offer(self, turn: TurnState, given: Handle, tokens: Split | None) -> Offer | None:
        if tokens is None or tokens.local is None:
            return None
        left = remainder(turn, tokens)
        if left is None or not given.tokens:
            return Offer.NOTHING
        if left <= 0:
            return Offer.COVERED if tokens.local else Offer.NOTHING
        engine = self._engines.get(turn.prefill_engine_id)
        threshold = engine.engine.recompute_threshold if engine is not None else None
        if threshold is None:
            return None
        return Offer.BELOW if left < threshold else Offer.WORTH

    def _lost(self, key: str, engine_id: str, left_by: Past | None, turn: TurnState) -> bool:
        """Whether the holder had ended or restarted before the turn did, as its present generation shows; of a handle
        that D's hook never told of, by the time at which the turn that left it ended."""
        known = self._handles.get(key)
        generation = known.generation if known is not None else None
        since = left_by.ended_ns if left_by is not None else None
        lost = self._engines.lost(engine_id, generation, since)
        ended = self._settler.ended_ns(turn)
        return lost is not None and (ended is None or lost.wall_ns <= ended)

    # --- P had none -----------------------------------------------------------------------------------
    def _spent(self, turn: TurnState) -> bool:
        attempt = turn.attempt
        if attempt is None or attempt.handle_given is not None:
            return False
        earlier = (ref for number, ref in self._settler.attempts(attempt).items() if number < attempt.number)
        return any(ref.used_hold is not None for ref in earlier)

    def _missing(self, turn: TurnState, tokens: Split | None, previous: Past | None) -> Missing:
        attempt = turn.attempt
        found = self._settler.session(turn.turn_id)
        session: Session | None = None
        if found is not None and not self._settler.forgot(turn.turn_id):
            session = Session.CHAINED if found[1].source == CHAINED else Session.NAMED
        elif found is None and attempt is not None:
            session = Session.ABSENT
        return Missing(
            session=session,
            history=brings_answers(turn),
            previous=self._previous(turn, tokens, previous) if previous is not None else None,
        )

    def _previous(self, turn: TurnState, tokens: Split | None, past: Past) -> Previous:
        hold, engine_id = past.left_hold, past.decode_engine_id
        known = self._handles.get(hold)
        started = started_ns(turn)
        users = self._settler.users(hold) if hold is not None else []
        mine = {turn.turn_id}
        if turn.attempt is not None:
            mine |= {ref.turn_id for ref in self._settler.attempts(turn.attempt).values()}
        return Previous(
            ending=past.ending,
            feature_on=False if past.whole else past.decode_bidirectional,
            left=_left(past),
            taken=any(use.turn_id not in mine and use.started_ns <= started for use in users),
            entry_expired=self._entry_expired(past, turn),
            holder_lost=engine_id is not None and self._lost(hold or "", engine_id, past, turn),
            diverged=self._diverged(turn, tokens, known.tokens if known is not None else None),
        )

    def _diverged(self, turn: TurnState, tokens: Split | None, held: int | None) -> bool:
        """By digests: what agrees with the text before it is no more than P had, or too little to fetch. Where nothing
        can be compared: the prompt is shorter than what D held."""
        if turn.prefill is None:
            return False
        known = turn.verdict.continues if turn.verdict is not None else None
        if known is None:
            return held is not None and turn.prefill.request.input_tokens < held
        if known.high is None or tokens is None or tokens.local is None:
            return False
        engine = self._engines.get(turn.prefill_engine_id)
        threshold = engine.engine.recompute_threshold if engine is not None else None
        return known.low - tokens.local - (tokens.external or 0) < max(1, threshold or 0)

    def _entry_expired(self, past: Past, turn: TurnState) -> bool:
        pause_ns = self._settler.since_ns(past, turn)
        if pause_ns is None:
            return False
        ttl = self._settler.ttl_ns(past.left_hold) if past.left_hold is not None else None
        kept = self._settings.proxy_ttl_ns
        return pause_ns >= (min(kept, ttl) if ttl is not None else kept)


def _left(past: Past) -> Left | None:
    if past.handle_seen is not None:
        return Left.SEEN if past.handle_seen else Left.NOTHING
    if past.left_hold is not None:
        return Left.MADE
    return Left.NOTHING if past.ending is Ending.OK else None


def _load(reads: list[Transfer]) -> Load | None:
    states = {read.state for read in reads}
    for state, load in (
        (TransferState.DECLINED, Load.DECLINED),
        (TransferState.HANDSHAKE_FAILED, Load.HANDSHAKE_FAILED),
        (TransferState.FAILED, Load.FAILED),
    ):
        if state in states:
            return load
    return None


def _rejected(turn: TurnState) -> bool:
    attempt = turn.attempt
    if attempt is None or turn.prefill is not None or attempt.prefill is not None:
        return False
    code = attempt.prefill_status if attempt.prefill_status is not None else attempt.status_code
    return code is not None and 400 <= code < 500


def _empty_handoff(turn: TurnState) -> bool:
    if turn.prefill is None:
        return False
    out = turn.prefill.request.handle_out
    return out is not None and (out.blocks == 0 or out.tokens == 0) and turn.prefill.request.preemptions > 0
