"""A turn as stored, from what is known of it."""

from __future__ import annotations

from turnscope.assembly.attribution import transport_of
from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import evidence, path_of, turn_split
from turnscope.assembly.outcome import ending, finish_reason
from turnscope.assembly.ranks import done, moved
from turnscope.assembly.reasons import reason
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler, ended_ns, started_ns
from turnscope.assembly.state import Leg, TurnState
from turnscope.assembly.turns import decode, given_handle, hold_id, left_handle
from turnscope.model import Turn
from turnscope.semconv import Leg as Part


def _queue_ns(leg: Leg | None) -> int | None:
    if leg is None or leg.request.scheduled_mono_ns is None:
        return None
    return max(0, leg.request.scheduled_mono_ns - leg.request.added_mono_ns)


def _output_tokens(turn: TurnState) -> int | None:
    """D's, all children of an n > 1 request; what P generated to get going is no output."""
    if turn.decodes:
        return sum(max(0, leg.request.output_tokens) for leg in turn.decodes)
    if turn.prefill is not None and turn.prefill.request.leg is Part.WHOLE:
        return max(0, turn.prefill.request.output_tokens)
    return turn.attempt.output_tokens if turn.attempt is not None else None


def build(turn: TurnState, settler: Settler, engines: Engines, settings: AssemblySettings) -> Turn:
    """The row; its revision is set by the caller."""
    leg, last, attempt = turn.prefill, decode(turn), turn.attempt
    whole = leg is not None and leg.request.leg is Part.WHOLE
    split = turn_split(turn)
    path = path_of(turn, split)
    why = reason(evidence(turn, path, settler, engines, settings))
    status, stage = ending(turn, settings)
    session = settler.session(turn.turn_id)
    previous = settler.previous(turn)
    given, left = given_handle(turn), left_handle(turn)
    fetch = moved(done(turn.reads, handoff=False), engines.facts)
    handoff = moved(done(turn.reads, handoff=True), engines.facts)
    transport, inferred_from = transport_of(turn)
    prefill_engine = engines.get(turn.prefill_engine_id)
    decode_engine_id = turn.prefill_engine_id if whole else turn.decode_engine_id
    prefill_facts, decode_facts = engines.facts(turn.prefill_engine_id), engines.facts(decode_engine_id)
    legs = [part for part in (leg, *turn.decodes) if part is not None]
    model = attempt.model if attempt is not None and attempt.model else None
    return Turn(
        turn_id=turn.turn_id,
        session_id=session[0] if session else None,
        session_source=session[1].source if session else None,
        turn_index=settler.index(turn.turn_id),
        previous_turn_id=previous.turn_id if previous else None,
        started_ns=started_ns(turn),
        ended_ns=ended_ns(turn),
        model=model or (prefill_engine.engine.model if prefill_engine else None),
        prefill_engine=prefill_engine.name if prefill_engine else None,
        decode_engine=engines.name(decode_engine_id) if engines.get(decode_engine_id) else None,
        prefill_engine_id=turn.prefill_engine_id,
        prefill_request_id=turn.prefill_request_id,
        decode_engine_id=decode_engine_id,
        decode_request_id=turn.prefill_request_id if whole else turn.decode_request_id,
        prefill_dp_rank=prefill_facts.dp_rank if prefill_facts else None,
        decode_dp_rank=decode_facts.dp_rank if decode_facts else None,
        join=turn.join,
        path=path,
        reason=why,
        status=status,
        stage=stage,
        finish_reason=finish_reason(turn),
        suspicions=sorted(set(turn.suspicions) - set(turn.withdrawn)),
        prompt_tokens=split.prompt if split else (attempt.input_tokens if attempt else None),
        local_hit_tokens=split.local if split else None,
        fetched_tokens=split.fetched if split else None,
        external_tokens=split.external if split else None,
        computed_tokens=split.computed if split else None,
        output_tokens=_output_tokens(turn),
        offered_tokens=given.tokens if given else None,
        threshold_tokens=prefill_engine.engine.recompute_threshold if prefill_engine else None,
        handoff_tokens=last.request.external_tokens if last else None,
        fetched_bytes=fetch.bytes,
        fetch_started_ns=fetch.started_ns,
        fetch_ns=fetch.duration_ns,
        fetch_reads=fetch.reads,
        fetch_logical_bytes=fetch.logical_bytes,
        fetch_transfers=fetch.transfers,
        fetch_ranks_seen=fetch.ranks_seen,
        fetch_ranks_expected=fetch.ranks_expected,
        handoff_bytes=handoff.bytes,
        handoff_started_ns=handoff.started_ns,
        handoff_ns=handoff.duration_ns,
        handoff_reads=handoff.reads,
        handoff_logical_bytes=handoff.logical_bytes,
        handoff_transfers=handoff.transfers,
        handoff_ranks_seen=handoff.ranks_seen,
        handoff_ranks_expected=handoff.ranks_expected,
        transport=transport,
        transport_inferred_from=inferred_from,
        prefill_queue_ns=_queue_ns(leg),
        prefill_started_ns=leg.started_wall_ns if leg and not whole else None,
        prefill_ns=leg.duration_ns if leg and not whole else None,
        decode_started_ns=last.started_wall_ns if last else None,
        decode_ns=last.duration_ns if last else None,
        ttft_ns=attempt.first_byte_ns if attempt else None,
        duration_ns=attempt.last_byte_ns if attempt else None,
        streamed=attempt.streamed if attempt else None,
        tool_calls=attempt.tool_calls if attempt else None,
        preemptions=sum(part.request.preemptions for part in legs) if legs else None,
        attempts=max((1, *settler.attempts(attempt))) if attempt else 1,
        used_hold_id=hold_id(given) if given else None,
        left_hold_id=hold_id(left) if left else None,
        has_prefill=leg is not None,
        has_decode=last is not None or whole,
        has_attempt=attempt is not None,
        caller_trace_id=attempt.caller_trace_id if attempt else None,
        caller_span_id=attempt.caller_span_id if attempt else None,
        server_trace_id=attempt.server_trace_id if attempt else None,
        server_span_id=attempt.server_span_id if attempt else None,
        late=turn.late,
    )
