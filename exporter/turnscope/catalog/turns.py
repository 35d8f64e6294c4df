"""Metrics of turns, of the engine requests they are made of, and of transfers."""

from __future__ import annotations

from turnscope.catalog.labels import (
    CONTEXTS,
    DECODES,
    DIRECTION,
    DURATION_SECONDS,
    ENGINE,
    FINISH_REASONS,
    PAIR_STATES,
    PART_SECONDS,
    PATH,
    PREFILL_SECONDS,
    PREFILLS,
    RANKS,
    REPEATS,
    REQUEST_SOURCES,
    SECONDS,
    TRANSFER_SECONDS,
    TTFT_PARTS,
    TURN_DIRECTION,
    WORTH,
    YES_NO,
)
from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import Leg, Reason, Role, Status, StuckCause, TokenSource, TransferState

TURNS = (
    # --- turns
    Metric(
        name="turnscope_turns_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns finalised, by where reused prompt tokens came from (path) and why there was no (more) reverse "
        "fetch (reason). A retried turn counts once. engine: the prefill engine, or none.",
        labels=(ENGINE, PATH, Label("reason", tuple(Reason))),
        owner="turn shard",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_turns_ended_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns finalised, by how they ended. engine: the prefill engine, or none.",
        labels=(ENGINE, Label("status", tuple(Status))),
        owner="turn shard",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_prompt_tokens_total",
        kind=Kind.COUNTER,
        unit="tokens",
        help="Prompt tokens of turns by what really happened to them on the prefill engine: a failed load counts as "
        "computed. computed: not (yet) told apart into recomputed and new.",
        labels=(ENGINE, Label("source", tuple(TokenSource))),
        owner="turn shard",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_output_tokens_total",
        kind=Kind.COUNTER,
        unit="tokens",
        help="Tokens generated for turns. engine: the decode engine, or none when only the proxy reported them.",
        labels=(ENGINE,),
        owner="turn shard",
        roles=DECODES,
    ),
    Metric(
        name="turnscope_answers_total",
        kind=Kind.COUNTER,
        unit="answers",
        help="Finished answers seen by the proxy hook, by whether they were streamed and whether D's handle was in "
        "them. Streamed answers without a handle mean that no later turn can be fetched.",
        labels=(ENGINE, Label("streamed", YES_NO), Label("handle", YES_NO)),
        owner="turn shard",
        roles=DECODES,
    ),
    Metric(
        name="turnscope_ttft_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Client's request reaching the proxy to its first content byte. Absent without the proxy hook.",
        labels=(PATH,),
        buckets=SECONDS,
        owner="turn shard",
    ),
    Metric(
        name="turnscope_ttft_context_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="The same time by the prompt's length in tokens: comparable between days on which conversations were not "
        "equally long.",
        labels=(Label("context", CONTEXTS),),
        buckets=SECONDS,
        owner="turn shard",
    ),
    Metric(
        name="turnscope_ttft_part_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Parts of the time to first token, which add up to it: in the proxy, queueing on P and D, the reverse "
        "fetch, computing the prompt, the handoff, D's first step; unattributed is what nothing explains, an unusually "
        "slow first step included. A part that was not measured is absent and its time is unattributed.",
        labels=(Label("part", TTFT_PARTS),),
        buckets=PART_SECONDS,
        owner="turn shard",
    ),
    Metric(
        name="turnscope_fetches_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns that fetched, by whether that was faster than computing: undecided where the estimate's interval "
        "has both, unknown until the engine's compute rate is known. engine: the prefill engine, or none.",
        labels=(ENGINE, Label("worth", WORTH)),
        owner="turn shard",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_fetch_gain_seconds_total",
        kind=Kind.COUNTER,
        unit="seconds",
        help="Compute that fetches spared, less the time they took, of turns where that is positive: estimated by the "
        "engine's own measured rate, suspect tokens left out. Less turnscope_fetch_loss_seconds_total: the net gain.",
        labels=(ENGINE,),
        owner="turn shard",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_fetch_loss_seconds_total",
        kind=Kind.COUNTER,
        unit="seconds",
        help="Time that fetches took beyond the compute they spared, of turns where computing would have been faster.",
        labels=(ENGINE,),
        owner="turn shard",
        roles=PREFILLS,
    ),
    Metric(
        name="turnscope_turn_duration_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Client's request reaching the proxy to its last byte. Absent without the proxy hook.",
        labels=(PATH,),
        buckets=DURATION_SECONDS,
        owner="turn shard",
    ),
    Metric(
        name="turnscope_prefill_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Prefill leg of a turn, from its engine accepting the request to its end, queueing included.",
        labels=(ENGINE, PATH),
        buckets=PREFILL_SECONDS,
        owner="turn shard",
        roles=(Role.PREFILL, Role.BOTH),
    ),
    Metric(
        name="turnscope_turns_open",
        kind=Kind.GAUGE,
        unit="turns",
        help="Turns not ended, by the last heartbeats. stuck: an engine will never run them, or they have taken no "
        "step for longer than the limit.",
        labels=(Label("state", ("running", "stuck")),),
        owner="turn shard",
    ),
    Metric(
        name="turnscope_stuck_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns found to stand still, when they were found, by the cause that the engine's hook saw; unknown: "
        "they had taken no step for longer than the limit. engine: where they stand.",
        labels=(ENGINE, Label("cause", tuple(StuckCause))),
        owner="turn shard",
    ),
    Metric(
        name="turnscope_repeated_turns_total",
        kind=Kind.COUNTER,
        unit="turns",
        help="Turns that send an earlier one of their session again: retry after one that failed, fork (a "
        "regeneration) after one that was answered. Inferred from the lengths of messages and prompt.",
        labels=(Label("kind", REPEATS),),
        owner="settler",
    ),
    Metric(
        name="turnscope_wasted_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="Bytes read from another engine that served no answer: for attempts that were given up, and for turns "
        "that failed. engine: the reader. Part of turnscope_transfer_bytes_total.",
        labels=(ENGINE, DIRECTION),
        owner="turn shard",
    ),
    # --- engine requests, as the engine counts
    Metric(
        name="turnscope_requests_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Engine requests ended, by their part of the turn and vLLM's finish reason. A turn has two or more.",
        labels=(ENGINE, Label("leg", tuple(Leg)), Label("finish_reason", FINISH_REASONS)),
        owner="leg",
    ),
    Metric(
        name="turnscope_request_prompt_tokens_total",
        kind=Kind.COUNTER,
        unit="tokens",
        help="Prompt tokens of engine requests by source as the engine itself reported them: equals "
        "vllm:prompt_tokens_by_source_total. Keeps failed loads as external; use turnscope_prompt_tokens_total for "
        "what happened.",
        labels=(ENGINE, Label("source", REQUEST_SOURCES)),
        owner="leg",
    ),
    Metric(
        name="turnscope_inconsistent_input_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Engine requests whose reported token numbers were impossible (negative, or more than the prompt) and "
        "were clamped.",
        labels=(ENGINE,),
        owner="leg",
        diagnostic=True,
    ),
    # --- transfers
    Metric(
        name="turnscope_transfer_reads_total",
        kind=Kind.COUNTER,
        unit="reads",
        help="Reads of another engine's blocks, one per transfer and rank, counted on the reader by how they ended. "
        "done equals vllm:nixl_bytes_transferred_count.",
        labels=(ENGINE, DIRECTION, Label("state", tuple(TransferState))),
        owner="transfer",
        needs_transfers=True,
    ),
    Metric(
        name="turnscope_pair_reads_total",
        kind=Kind.COUNTER,
        unit="reads",
        help="The same reads by reader (engine) and holder, counted with their turn: tells a pair of engines that "
        "cannot reach each other from an engine that is in trouble itself. Of holders beyond the first 12 of a reader "
        "holder is other.",
        labels=(ENGINE, Label("holder"), Label("state", PAIR_STATES)),
        owner="turn shard",
        sparse=True,
    ),
    Metric(
        name="turnscope_transfer_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="Bytes read from another engine, on the wire, counted on the reader: equals "
        "vllm:nixl_bytes_transferred_sum.",
        labels=(ENGINE, DIRECTION),
        owner="transfer",
        needs_transfers=True,
    ),
    Metric(
        name="turnscope_transfer_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Duration of one rank's finished read: an upper bound, it includes up to one engine step. Ranks read side "
        "by side: for throughput divide by turnscope_transfer_wall_seconds.",
        labels=(ENGINE, DIRECTION),
        buckets=TRANSFER_SECONDS,
        owner="transfer",
        needs_transfers=True,
    ),
    Metric(
        name="turnscope_transfers_total",
        kind=Kind.COUNTER,
        unit="transfers",
        help="Logical transfers of finalised turns, all ranks' reads together, by whether all of the reader's ranks "
        "were seen. engine: the reader, or none.",
        labels=(ENGINE, TURN_DIRECTION, Label("ranks", RANKS)),
        owner="turn shard",
        needs_transfers=True,
    ),
    Metric(
        name="turnscope_transfer_logical_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="KV that finalised turns had moved, each part once; on the wire it is more where several ranks read the "
        "same (MLA). Absent while it is not known which do.",
        labels=(ENGINE, TURN_DIRECTION),
        owner="turn shard",
        needs_transfers=True,
    ),
    Metric(
        name="turnscope_transfer_wall_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Duration of a turn's transfer, from its first rank's begin to its last one's end.",
        labels=(ENGINE, TURN_DIRECTION),
        buckets=TRANSFER_SECONDS,
        owner="turn shard",
        needs_transfers=True,
    ),
)
