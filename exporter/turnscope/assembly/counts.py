"""What each entity adds to the counters: one list of contributions, worked out from the entity alone."""

from __future__ import annotations

from typing import Final

from turnscope.assembly.ledger import one
from turnscope.assembly.state import HoldState
from turnscope.assembly.tokens import reported
from turnscope.catalog import NO_ENGINE
from turnscope.catalog.labels import FINISH_REASONS, context
from turnscope.model import SECOND_NS, TTFT_FIELDS, Contribution, HoldRecord, Request, Transfer, Turn
from turnscope.semconv import Direction, Reason, TokenSource, TransferState

_SOURCES: Final = (
    (TokenSource.LOCAL_HIT, "local_hit_tokens"),
    (TokenSource.FETCHED, "fetched_tokens"),
    (TokenSource.EXTERNAL, "external_tokens"),
    (TokenSource.COMPUTED, "computed_tokens"),
    (TokenSource.RECOMPUTED, "recomputed_tokens"),
    (TokenSource.NEW, "new_tokens"),
)


def leg(engine: str, request: Request) -> list[Contribution]:
    """One engine request. Tokens as the engine counted them: only of requests whose statistics it had sent."""
    finish = request.finish_reason if request.finish_reason in FINISH_REASONS else "other"
    out = [one("turnscope_requests_total", engine, request.leg, finish)]
    numbers = reported(request)
    if numbers is None:
        return out
    if request.stats_sent:
        sources = (
            ("local_compute", numbers.computed),
            ("local_cache_hit", numbers.local),
            ("external_kv_transfer", numbers.external),
        )
        out += [
            one("turnscope_request_prompt_tokens_total", engine, source, value=value)
            for source, value in sources
            if value
        ]
    if not numbers.consistent:
        out.append(one("turnscope_inconsistent_input_total", engine))
    return out


def read(engine: str, transfer: Transfer) -> list[Contribution]:
    """One rank's read."""
    out = [one("turnscope_transfer_reads_total", engine, transfer.direction, transfer.state)]
    if transfer.state is TransferState.DONE:
        if transfer.bytes is not None:
            out.append(one("turnscope_transfer_bytes_total", engine, transfer.direction, value=max(0, transfer.bytes)))
        if transfer.duration_ns is not None:
            seconds = max(0, transfer.duration_ns) / SECOND_NS
            out.append(one("turnscope_transfer_seconds", engine, transfer.direction, value=seconds))
    elif transfer.state is TransferState.DECLINED:
        out.append(one("turnscope_kv_expired_total", engine, "declined"))
    return out


def hooks(row: Turn) -> str:
    """Which hooks told of a turn, as a label value."""
    if not row.has_attempt:
        return "engines"
    return "both" if row.has_prefill or row.has_decode else "proxy"


def turn(row: Turn) -> list[Contribution]:
    """One turn."""
    engine = row.prefill_engine or NO_ENGINE
    out = [
        one("turnscope_turns_total", engine, row.path, row.reason),
        one("turnscope_turns_ended_total", engine, row.status),
        one("turnscope_turns_explained_total", hooks(row), "no" if row.reason == Reason.UNKNOWN else "yes"),
    ]
    out += _sources(row, engine)
    if row.prefill_engine is not None:
        out += _continuity(row, row.prefill_engine)
    for kind, before in (("retry", row.retry_of), ("fork", row.fork_of)):
        if before is not None:
            out.append(one("turnscope_repeated_turns_total", kind))
    if row.output_tokens:
        out.append(one("turnscope_output_tokens_total", row.decode_engine or NO_ENGINE, value=row.output_tokens))
    if row.ttft_ns is not None:
        out.append(one("turnscope_ttft_seconds", row.path, value=row.ttft_ns / SECOND_NS))
        if row.prompt_tokens is not None:
            out.append(one("turnscope_ttft_context_seconds", context(row.prompt_tokens), value=row.ttft_ns / SECOND_NS))
    out += [
        one("turnscope_ttft_part_seconds", part, value=ns / SECOND_NS)
        for part, field in TTFT_FIELDS.items()
        for ns in [getattr(row, field)]
        if ns is not None
    ]
    out += _fetch(engine, row)
    if row.duration_ns is not None:
        out.append(one("turnscope_turn_duration_seconds", row.path, value=row.duration_ns / SECOND_NS))
    if row.prefill_ns is not None:
        out.append(one("turnscope_prefill_seconds", engine, row.path, value=row.prefill_ns / SECOND_NS))
    return out + _transfers(row)


def _transfers(row: Turn) -> list[Contribution]:
    """The turn's logical transfers, counted on their reader."""
    out = []
    for direction, engine, part in (
        (Direction.REVERSE_FETCH, row.prefill_engine, "fetch"),
        (Direction.HANDOFF, row.decode_engine, "handoff"),
    ):
        transfers, logical = getattr(row, f"{part}_transfers"), getattr(row, f"{part}_logical_bytes")
        seen, expected = getattr(row, f"{part}_ranks_seen"), getattr(row, f"{part}_ranks_expected")
        lasted = getattr(row, f"{part}_ns")
        labels = (engine or NO_ENGINE, direction)
        if transfers:
            ranks = "unknown" if expected is None else "all" if seen >= expected else "some"
            out.append(one("turnscope_transfers_total", *labels, ranks, value=transfers))
        if logical:
            out.append(one("turnscope_transfer_logical_bytes_total", *labels, value=logical))
        if lasted is not None:
            out.append(one("turnscope_transfer_wall_seconds", *labels, value=lasted / SECOND_NS))
    return out


def _sources(row: Turn, engine: str) -> list[Contribution]:
    """Computed tokens once: told apart, or, where nothing tells, as they are."""
    told_apart = row.recomputed_tokens is not None
    out = []
    for source, field in _SOURCES:
        tokens = getattr(row, field)
        if tokens and not (told_apart and source is TokenSource.COMPUTED):
            out.append(one("turnscope_prompt_tokens_total", engine, source, value=tokens))
    return out


def _continuity(row: Turn, engine: str) -> list[Contribution]:
    """How the prompt continues what was there before it."""
    out = [
        one("turnscope_local_misses_total", engine, row.local_miss),
        one("turnscope_turns_continuity_total", engine, row.continuity_evidence),
    ]
    if row.recomputed_tokens:
        out.append(one("turnscope_avoidable_recompute_tokens_total", engine, row.reason, value=row.recomputed_tokens))
    if row.rewritten_tokens:
        out.append(one("turnscope_rewritten_tokens_total", engine, value=row.rewritten_tokens))
    if row.suspect_tokens:
        out.append(one("turnscope_suspect_tokens_total", engine, value=row.suspect_tokens))
    return out


def _fetch(engine: str, row: Turn) -> list[Contribution]:
    """What the turn's fetch was worth; what came of it is judged by the whole interval."""
    gain, low, high = row.net_gain_ns, row.net_gain_low_ns, row.net_gain_high_ns
    if gain is None or low is None or high is None:
        return [one("turnscope_fetches_total", engine, "unknown")] if row.fetched_tokens else []
    worth = "gained" if low > 0 else "lost" if high < 0 else "undecided"
    out = [one("turnscope_fetches_total", engine, worth)]
    if gain > 0:
        out.append(one("turnscope_fetch_gain_seconds_total", engine, value=gain / SECOND_NS))
    elif gain < 0:
        out.append(one("turnscope_fetch_loss_seconds_total", engine, value=-gain / SECOND_NS))
    return out


def hold_fragment(engine: str, hold: HoldState) -> list[Contribution]:
    """Of a hold whose begin was not seen. A late notice for one that nobody gave up claims nothing: perhaps its id is
    another's."""
    out = [one("turnscope_fragments_total", "hold")]
    if hold.late_notices and not hold.reports:
        out.append(one("turnscope_unmatched_notices_total", engine))
    return out


def hold(record: HoldRecord) -> list[Contribution]:
    """One hold or lease that has ended."""
    outcome = record.outcome or "unknown"
    out = [one("turnscope_holds_total", record.engine, record.kind, outcome)]
    if record.held_ns is not None:
        seconds = record.held_ns / SECOND_NS
        out.append(one("turnscope_hold_seconds", record.kind, outcome, value=seconds))
        for metric, amount in (
            ("turnscope_hold_token_seconds_total", record.tokens),
            ("turnscope_hold_byte_seconds_total", record.bytes),
        ):
            if amount:
                out.append(one(metric, record.engine, record.kind, outcome, value=amount * record.held_ns / SECOND_NS))
    return out
