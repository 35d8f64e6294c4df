"""The flat evidence on one turn that its path, reason and suspicions are decided by."""

from __future__ import annotations

from turnscope.assembly.engines import Engines
from turnscope.assembly.outcome import stuck
from turnscope.assembly.reasons import Evidence
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import Past, TurnState
from turnscope.assembly.tokens import LOAD_FAILED, Split, split
from turnscope.assembly.turns import given_handle, hold_id
from turnscope.model import Transfer
from turnscope.semconv import Direction, Path, TransferState


def fetch_reads(turn: TurnState) -> list[Transfer]:
    """What P's ranks did about D's handle."""
    return [read.transfer for read in turn.reads if read.transfer.direction is not Direction.HANDOFF]


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


def _rejected(turn: TurnState) -> bool:
    attempt = turn.attempt
    if attempt is None or turn.prefill is not None or attempt.prefill is not None:
        return False
    code = attempt.prefill_status if attempt.prefill_status is not None else attempt.status_code
    return code is not None and 400 <= code < 500


def _remainder(turn: TurnState, tokens: Split | None) -> int | None:
    given = given_handle(turn)
    if given is None or given.tokens is None or tokens is None or tokens.local is None:
        return None
    return min(given.tokens, tokens.prompt) - tokens.local


def _empty_handoff(turn: TurnState) -> bool:
    if turn.prefill is None:
        return False
    out = turn.prefill.request.handle_out
    return out is not None and (out.blocks == 0 or out.tokens == 0) and turn.prefill.request.preemptions > 0


def _spent_by_attempt(turn: TurnState, settler: Settler) -> bool:
    attempt = turn.attempt
    if attempt is None or attempt.handle_given is not None:
        return False
    earlier = (ref for number, ref in settler.attempts(attempt).items() if number < attempt.number)
    return any(ref.used_hold is not None for ref in earlier)


def _holder_lost(turn: TurnState, previous: Past | None, engines: Engines) -> bool:
    """The handle's engine, or the one that would have held, ended or restarted after it had left the hold."""
    given = given_handle(turn)
    holder = given.engine_id if given is not None else (previous.decode_engine_id if previous is not None else None)
    engine = engines.get(holder)
    if engine is None:
        return False
    left = previous.ended_ns if previous is not None else None
    restarted = len(engine.starts) > 1 and left is not None and engine.starts[engine.engine.generation] > left
    return engine.gone or restarted


def evidence(turn: TurnState, path: Path, settler: Settler, engines: Engines, settings: AssemblySettings) -> Evidence:
    """Everything the table of reasons asks for."""
    tokens = turn_split(turn)
    states = {read.state for read in fetch_reads(turn)}
    previous = settler.previous(turn)
    prefill_engine = engines.get(turn.prefill_engine_id)
    attempt = turn.attempt
    session: bool | None = settler.session(turn.turn_id) is not None
    if not session and attempt is None:
        session = None
    handle_left: bool | None = None
    if previous is not None:
        handle_left = previous.handle_seen if previous.handle_seen is not None else previous.left_hold is not None
    users = settler.users(previous.left_hold) if previous is not None and previous.left_hold is not None else []
    mine = {turn.turn_id}
    if attempt is not None:
        mine |= {ref.turn_id for ref in settler.attempts(attempt).values()}
    return Evidence(
        path=path,
        rejected=_rejected(turn),
        stuck=stuck(turn, settings),
        handle_at_prefill=given_handle(turn) is not None,
        local_tokens=tokens.local if tokens is not None else None,
        remainder_tokens=_remainder(turn, tokens),
        threshold_tokens=prefill_engine.engine.recompute_threshold if prefill_engine is not None else None,
        feature_on_prefill=prefill_engine.engine.bidirectional if prefill_engine is not None else None,
        declined=TransferState.DECLINED in states,
        handshake_failed=TransferState.HANDSHAKE_FAILED in states,
        load_failed=bool(states & LOAD_FAILED),
        holder_lost=_holder_lost(turn, previous, engines),
        empty_handoff=_empty_handoff(turn),
        spent_by_attempt=_spent_by_attempt(turn, settler),
        session=session,
        history="assistant" in attempt.message_roles if attempt is not None and attempt.message_roles else None,
        previous=previous is not None,
        previous_ending=previous.ending if previous is not None else None,
        feature_on_decode=_feature_on_decode(previous),
        handle_left=handle_left,
        entry_expired=_entry_expired(turn, previous, settler, settings),
        taken_by_sibling=any(use.turn_id not in mine for use in users),
    )


def _feature_on_decode(previous: Past | None) -> bool | None:
    if previous is None:
        return None
    return False if previous.whole else previous.decode_bidirectional


def _entry_expired(turn: TurnState, previous: Past | None, settler: Settler, settings: AssemblySettings) -> bool:
    pause_ns = settler.since_ns(previous, turn) if previous is not None else None
    if previous is None or pause_ns is None:
        return False
    kept = settings.proxy_ttl_ns
    if previous.left_hold is not None:
        ttl = settler.ttl_ns(previous.left_hold)
        kept = min(kept, ttl) if ttl is not None else kept
    return pause_ns >= kept


def used_hold(turn: TurnState) -> str | None:
    """The hold whose handle P was given."""
    given = given_handle(turn)
    return hold_id(given) if given is not None else None
