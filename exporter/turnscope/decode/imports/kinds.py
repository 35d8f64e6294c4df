"""The kinds of files that can be imported: what each gives and lacks, and how one is recognised by a line of it."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from turnscope import surrogates
from turnscope.decode.imports import (
    claude_code,
    codex,
    dynamo,
    otlp,
    proxy_log,
    published,
    transfer_log,
    vllm_benchmark,
)


class Kind(NamedTuple):
    """One kind, for the command and the documentation. A test holds ``gives`` against what the importer fills."""

    name: str
    files: str
    """What one imports."""
    gives: frozenset[str]
    """The fields of ``AgentSpan``, or of ``Turn``, that it can fill beside ids, names of its own and the start."""
    timing: str
    lacks: str


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            otlp.NAME,
            "OTLP JSON lines of traces (a collector's file exporter, `turnscope serve --record`)",
            _names(
                "session_id parent_session_id parent_span_id name kind ended_ns time_to_first_token_ns service_version "
                "deployment host agent_name agent_id tool_name tool_call_id model input_tokens cached_tokens "
                "output_tokens tool_calls finish_reason status error_type evaluation_name evaluation_label "
                "evaluation_score"
            ),
            "`measured` by the agent's own SDK",
            "what the SDK did not tell; of logs among the lines only evaluations are taken, metrics are passed over",
        ),
        Kind(
            claude_code.NAME,
            "session files of Claude Code (`~/.claude/projects/*/*.jsonl`, subagents' files too)",
            _names(
                "session_id agent_id service_version kind ended_ns tool_name tool_call_id model input_tokens "
                "cached_tokens output_tokens tool_calls finish_reason status error_type"
            ),
            "`inferred`, an upper bound: from the newest input to the last line of an answer, from a tool's call to "
            "its result (permission asked of the user included); `measured` where a result tells its duration",
            "time to first token, which subagent a tool started, and retries of the model's API",
        ),
        Kind(
            codex.NAME,
            "rollout files of Codex (`~/.codex/sessions/**/rollout-*.jsonl`)",
            _names(
                "session_id parent_session_id parent_span_id service_version kind ended_ns time_to_first_token_ns "
                "tool_name tool_call_id model input_tokens cached_tokens output_tokens tool_calls status "
                "error_type"
            ),
            "`measured` for tasks and for commands that tell their duration; else `inferred`, an upper bound",
            "time to first token of each call (only the task's), finish reasons, searches on the provider's side",
        ),
        Kind(
            dynamo.NAME,
            "request traces of Dynamo (`DYN_REQUEST_TRACE=1`; `dynamo.request.trace.v1`, `dynamo.agent.trace.v1`)",
            _names(
                "session_id parent_session_id kind ended_ns time_to_first_token_ns tool_name tool_call_id model "
                "input_tokens cached_tokens output_tokens tool_calls finish_reason status error_type"
            ),
            "`measured` by Dynamo's frontend and by the harness",
            "waits of the user, application work; waiting for and time of prefill, workers and KV estimates have no "
            "place in a span and are left out",
        ),
        Kind(
            vllm_benchmark.NAME,
            "statistics of vLLM's multi-turn benchmark (`--stats-json-output`)",
            _names("run session_id turn_index ended_ns duration_ns ttft_ns prompt_tokens output_tokens"),
            "measured by the client, way to the server included; its clock tells no date, so turns stand in 1970",
            "where the prompt came from, all of P and D, the date, failed requests; tokens are the client's count",
        ),
        Kind(
            published.NAME,
            "the statistics, the proxy's log and P's log of one run of the published benchmark, together",
            _names(
                "run session_id turn_index ended_ns duration_ns ttft_ns prompt_tokens output_tokens join path reason "
                "prefill_ns fetch_ns fetched_bytes fetch_reads"
            ),
            "the client's and the proxy's own; a transfer is the average of its ten seconds in P's log",
            "tokens fetched, D; what cannot be joined stays unknown, and the command says so",
        ),
    )
}
RUNS: Final = frozenset({vllm_benchmark.NAME, published.NAME})
"""Kinds whose files are runs of a benchmark: they give turns, the others give spans."""
_SESSION_TYPES: Final = frozenset({b'"user"', b'"assistant"', b'"summary"', b'"system"', b'"progress"'})
_ROLLOUT_TYPES: Final = frozenset({b'"session_meta"', b'"turn_context"', b'"response_item"', b'"event_msg"'})
_SCHEMAS: Final = frozenset(f'"{schema}"'.encode() for schema in dynamo.SCHEMAS)
_SAMPLE: Final = frozenset({"ttft_ms", "latency_ms", "start_time_ms"})
_decode: Final = surrogates.reading(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)


def looks_like(line: bytes) -> str | None:
    """The name of the kind that ``line`` is of; None where it does not tell."""
    if proxy_log.MARK in line or transfer_log.MARK in line:
        return published.NAME
    try:
        found = {key: bytes(value) for key, value in _decode(line).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if "event" in found and "schema" not in found:
        return looks_like(found["event"])
    if found.get("schema") in _SCHEMAS:
        return dynamo.NAME
    if found.keys() & {"resourceSpans", "resourceLogs", "resourceMetrics"}:
        return otlp.NAME
    if found.get("type") in _ROLLOUT_TYPES and "payload" in found:
        return codex.NAME
    if found.get("type") in _SESSION_TYPES and found.keys() & {"sessionId", "leafUuid"}:
        return claude_code.NAME
    return vllm_benchmark.NAME if found.keys() >= _SAMPLE else None
