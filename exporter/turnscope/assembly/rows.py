"""A turn as stored, from what is known of it."""

from __future__ import annotations

from turnscope.assembly.attempts import Attempts
from turnscope.assembly.attribution import transport_of
from turnscope.assembly.clocks import Clocks
from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import Witness, fetches, path_of, remainder, turn_split
from turnscope.assembly.gain import worth
from turnscope.assembly.knowledge import Ending
from turnscope.assembly.latency import on_p, ttft_parts
from turnscope.assembly.lateness import late_by
from turnscope.assembly.messages import parting
from turnscope.assembly.outcome import ending, finish_reason
from turnscope.assembly.provenance import provenance
from turnscope.assembly.ranks import done, moved
from turnscope.assembly.reasons import reason
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import EndedRequest, TurnState
from turnscope.assembly.tokens import prefilled, reported
from turnscope.assembly.traits import started_ns
from turnscope.assembly.turns import answering, decode, given_handle, hold_id, left_handle
from turnscope.model import Turn
from turnscope.semconv import Leg, Status


def _output_tokens(turn: TurnState) -> int | None:
    """D's, of all samples of the answer; what P generated to get going is no output."""
    made = answering(turn)
    if not made and turn.prefill is not None and turn.prefill.request.leg is Leg.WHOLE:
        made = [turn.prefill, *turn.samples]
    if made:
        return sum(max(0, leg.request.output_tokens) for leg in made)
    return turn.attempt.output_tokens if turn.attempt is not None else None


def _decode_computed(leg: EndedRequest | None) -> int | None:
    numbers = reported(leg.request) if leg is not None and prefilled(leg.request) else None
    return numbers.computed if numbers is not None else None


def build(
    turn: TurnState,
    settler: Settler,
    engines: Engines,
    settings: AssemblySettings,
    witness: Witness,
    attempts: Attempts,
    clocks: Clocks,
) -> Turn:
    """The row; its revision is set by the caller."""
    leg, last, attempt = turn.prefill, decode(turn), turn.attempt
    whole = leg is not None and leg.request.leg is Leg.WHOLE
    split = turn_split(turn)
    path = path_of(turn, split)
    status, stage = ending(turn, settings)
    session = settler.session(turn.turn_id)
    previous = settler.previous(turn)
    why = reason(witness.evidence(turn, split, previous))
    parted = parting(settler.history(turn, previous), attempt)
    given, left = given_handle(turn), left_handle(turn)
    fetch = moved(done(turn.reads, handoff=False), engines.facts)
    handoff = moved(done(turn.reads, handoff=True), engines.facts)
    transport, inferred_from = transport_of(turn)
    at_p, late = on_p(turn, split), late_by(turn, settler, engines, clocks)
    latency = ttft_parts(turn, at_p, clocks)
    prefill_engine = engines.get(turn.prefill_engine_id)
    decode_engine_id = turn.prefill_engine_id if whole else turn.decode_engine_id
    decode_engine = engines.get(decode_engine_id)
    prefill_facts, decode_facts = engines.facts(turn.prefill_engine_id), engines.facts(decode_engine_id)
    source = provenance(turn, split, prefill_engine.engine if prefill_engine else None)
    holder = engines.get(given.engine_id) if given else None
    repeats = settler.repeats(turn)
    again = repeats is not None and repeats.ending in (Ending.ERROR, Ending.ABORTED)
    legs = [part for part in (leg, *turn.decodes) if part is not None]
    model = attempt.model if attempt is not None and attempt.model else None
    row = Turn(
        turn_id=turn.turn_id,
        session_id=session[0] if session else None,
        session_source=session[1].source if session else None,
        turn_index=settler.index(turn.turn_id),
        previous_turn_id=previous.turn_id if previous else None,
        parent_session_id=attempt.parent_session_id if attempt else None,
        agent_id=attempt.agent_id if attempt else None,
        parent_agent_id=attempt.parent_agent_id if attempt else None,
        started_ns=started_ns(turn),
        ended_ns=settler.ended_ns(turn),
        model=model or (prefill_engine.engine.model if prefill_engine else None),
        prefill_engine=prefill_engine.name if prefill_engine else None,
        decode_engine=decode_engine.name if decode_engine else None,
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
        diverged_message=parted.message if parted else None,
        diverged_role=parted.role if parted else None,
        diverged_kind=parted.kind if parted else None,
        diverged_chars_before=parted.chars_before if parted else None,
        diverged_chars=parted.chars if parted else None,
        diverged_evidence=parted.evidence if parted else None,
        prompt_tokens=split.prompt if split else (attempt.input_tokens if attempt else None),
        local_hit_tokens=split.local if split else None,
        fetched_tokens=split.fetched if split else None,
        external_tokens=split.external if split else None,
        computed_tokens=split.computed if split else None,
        recomputed_tokens=source.recomputed,
        new_tokens=source.new,
        rewritten_tokens=source.rewritten,
        suspect_tokens=source.suspect,
        mismatch_evidence=source.mismatch_evidence,
        continuity_evidence=source.evidence,
        diverged_after=source.after,
        diverged_before=source.before,
        local_miss=source.local_miss,
        output_tokens=_output_tokens(turn),
        samples=1 + len(turn.samples),
        reported_local_tokens=leg.request.local_hit_tokens if leg else None,
        reported_external_tokens=leg.request.external_tokens if leg else None,
        reported_computed_tokens=leg.request.computed_tokens if leg else None,
        offered_tokens=given.tokens if given else None,
        offered_by_engine_id=given.engine_id if given else None,
        replaced_by_engine_id=holder.replaced_by if holder else None,
        threshold_tokens=prefill_engine.engine.recompute_threshold if prefill_engine else None,
        remainder_tokens=remainder(turn, split),
        handoff_tokens=last.request.external_tokens if last else None,
        decode_computed_tokens=_decode_computed(last),
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
        prefill_queue_ns=at_p.queue,
        prefill_started_ns=leg.started_wall_ns if leg and not whole else None,
        prefill_ns=leg.duration_ns if leg and not whole else None,
        decode_started_ns=last.started_wall_ns if last else None,
        decode_ns=last.duration_ns if last else None,
        ttft_ns=attempt.first_byte_ns if attempt else None,
        ttft_proxy_ns=latency.proxy if latency else None,
        ttft_queue_ns=latency.queue if latency else None,
        ttft_fetch_ns=latency.reverse_fetch if latency else None,
        ttft_prefill_ns=latency.prefill if latency else None,
        ttft_handoff_ns=latency.handoff if latency else None,
        ttft_first_step_ns=latency.first_step if latency else None,
        ttft_unattributed_ns=latency.unattributed if latency else None,
        first_step_ns=latency.measured_step if latency else None,
        first_step_usual_ns=turn.usual_step_ns,
        duration_ns=attempt.last_byte_ns if attempt else None,
        late_by_ns=late.ns if late else None,
        late_by_error_ns=late.error_ns if late else None,
        streamed=attempt.streamed if attempt else None,
        speculative=decode_engine.engine.speculative if decode_engine else None,
        tool_calls=attempt.tool_calls if attempt else None,
        last_role=attempt.last_role if attempt else None,
        preemptions=sum(part.request.preemptions for part in legs) if legs else None,
        attempts=max((1, *settler.attempts(attempt))) if attempt else 1,
        attempts_made=attempts.made(turn),
        wasted_bytes=attempts.wasted_bytes(turn),
        retry_of=repeats.turn_id if repeats and again else None,
        fork_of=repeats.turn_id if repeats and repeats.ending in (Ending.OK, Ending.STOP_STRING) else None,
        stuck_cause=turn.stuck.cause if turn.stuck and status is Status.STUCK else None,
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
    row.net_gain_ns, row.net_gain_low_ns, row.net_gain_high_ns = worth(row, turn.rate, fetches(turn)) or (None,) * 3
    return row
