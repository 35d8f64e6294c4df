"""A turn as stored, from what is known of it."""

from __future__ import annotations

from typing import NamedTuple

from turnscope.assembly.clocks import Clocks
from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import evidence, path_of, turn_split
from turnscope.assembly.gain import worth
from turnscope.assembly.latency import on_p, ttft_parts
from turnscope.assembly.lateness import late_by
from turnscope.assembly.outcome import ending, finish_reason
from turnscope.assembly.reasons import reason
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler, ended_ns, started_ns
from turnscope.assembly.state import TurnState
from turnscope.assembly.turns import decode, given_handle, hold_id, left_handle
from turnscope.model import Turn
from turnscope.semconv import Direction, TransferState
from turnscope.semconv import Leg as Part


class _Moved(NamedTuple):
    """The reads of all ranks that make up one logical transfer."""

    bytes: int | None = None
    reads: int | None = None
    started_ns: int | None = None
    duration_ns: int | None = None


def _moved(turn: TurnState, *, handoff: bool) -> _Moved:
    """Ranks read side by side: bytes add up, the slowest one's duration is the transfer's."""
    done = [
        read
        for read in turn.reads
        if read.transfer.state is TransferState.DONE and (read.transfer.direction is Direction.HANDOFF) is handoff
    ]
    if not done:
        return _Moved()
    sizes = [read.transfer.bytes for read in done if read.transfer.bytes is not None]
    times = [read.transfer.duration_ns for read in done if read.transfer.duration_ns is not None]
    starts = [
        read.wall_ns - max(0, read.mono_ns - read.transfer.started_mono_ns)
        for read in done
        if read.transfer.started_mono_ns is not None
    ]
    return _Moved(
        bytes=sum(sizes) if sizes else None,
        reads=len(done),
        started_ns=min(starts, default=None),
        duration_ns=max(times, default=None),
    )


def _output_tokens(turn: TurnState) -> int | None:
    """D's, all children of an n > 1 request; what P generated to get going is no output."""
    if turn.decodes:
        return sum(max(0, leg.request.output_tokens) for leg in turn.decodes)
    if turn.prefill is not None and turn.prefill.request.leg is Part.WHOLE:
        return max(0, turn.prefill.request.output_tokens)
    return turn.attempt.output_tokens if turn.attempt is not None else None


def build(turn: TurnState, settler: Settler, engines: Engines, settings: AssemblySettings, clocks: Clocks) -> Turn:
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
    fetch, handoff = _moved(turn, handoff=False), _moved(turn, handoff=True)
    at_p, late = on_p(turn, split), late_by(turn, settler, engines, clocks)
    latency = ttft_parts(turn, at_p, clocks)
    prefill_engine = engines.get(turn.prefill_engine_id)
    decode_engine_id = turn.prefill_engine_id if whole else turn.decode_engine_id
    decode_engine = engines.get(decode_engine_id)
    legs = [part for part in (leg, *turn.decodes) if part is not None]
    model = attempt.model if attempt is not None and attempt.model else None
    row = Turn(
        turn_id=turn.turn_id,
        session_id=session[0] if session else None,
        session_source=session[1].source if session else None,
        turn_index=settler.index(turn.turn_id),
        previous_turn_id=previous.turn_id if previous else None,
        started_ns=started_ns(turn),
        ended_ns=ended_ns(turn, clocks),
        model=model or (prefill_engine.engine.model if prefill_engine else None),
        prefill_engine=prefill_engine.name if prefill_engine else None,
        decode_engine=decode_engine.name if decode_engine else None,
        prefill_engine_id=turn.prefill_engine_id,
        prefill_request_id=turn.prefill_request_id,
        decode_engine_id=decode_engine_id,
        decode_request_id=turn.prefill_request_id if whole else turn.decode_request_id,
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
        handoff_bytes=handoff.bytes,
        handoff_started_ns=handoff.started_ns,
        handoff_ns=handoff.duration_ns,
        handoff_reads=handoff.reads,
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
    row.net_gain_ns, row.net_gain_low_ns, row.net_gain_high_ns = worth(row, turn.rate, turn.reads) or (None,) * 3
    return row
