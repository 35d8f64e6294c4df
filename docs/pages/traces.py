"""The page about turn traces: spans and attributes as the encoder really makes them, and queries that use them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, get_args, get_origin

import msgspec
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from docs.pages.markdown import HEAD, field_docs, table
from turnscope.model import Turn, TurnAttempt, facts
from turnscope.outputs import spans
from turnscope_app.fields import GROUPS

Attributes = dict[str, dict[str, AnyValue]]
"""Span name to attribute key to value."""

INTRO: Final = f"""# Traces

With `turnscope serve --export-otlp URL` every turn becomes one OTLP trace, sent once, some seconds after its last
fact is in. Names are those of OpenTelemetry's conventions for GenAI where there is one, `turnscope.*` otherwise. What
was not measured is absent: a part without a time has no span, a figure without a value no attribute. Tables and
attributes here are read from what the encoder makes of a turn (`exporter/turnscope/outputs/spans.py`).

- **Ids.** The trace id is the turn's, the first 16 bytes of SHA-256 of `turnscope/turn`, P's engine id and P's
  request id, joined by zero bytes: engines, proxy and explorer come to the same one without asking each other. Span
  ids follow from it.
- **One trace a turn**, never one a session: a session of days would outgrow every backend's limit.
  `gen_ai.conversation.id` is on every span.
- **Limits.** No attribute is longer than {spans.MAX_BYTES:,} bytes and no trace than {spans.MAX_TRACE_BYTES:,}. Only
  attempts can be many: those that do not fit are left out, and `turnscope.turn.attempts_left_out` says how many.
- **Sampling.** All are sent unless `--trace-ratio` says otherwise. It is decided by the id, as OpenTelemetry's own
  samplers by ratio do. Always sent are turns with a suspicion, failed (`status` error or stuck) and slow ones
  (`--trace-slow-seconds`); a turn that becomes suspicious after it was left out is sent then. `/metrics` names the
  traces of observations in histograms as exemplars (`trace_id`), of turns whose trace was sent only.
"""

LINKS: Final = (
    ("proxy", "the proxy's span of the same request, which carries the turn's id as `turnscope.turn_id`"),
    ("caller", "the span of whoever called the proxy (`traceparent`)"),
    ("previous_turn", "the turn of the same session that this one continues"),
    ("hold", "the hold that the turn was offered: an id that the store has, not a span of its own"),
)

QUERIES: Final = (
    (
        "The turns of a session",
        '{ name = "turn" && span.gen_ai.conversation.id = "my-session" }',
    ),
    (
        "Turns whose answer may be wrong",
        '{ name = "turn" && span.turnscope.turn.suspicions != nil }',
    ),
    (
        "Turns that could have fetched and did not",
        '{ name = "turn" && span.turnscope.turn.path = "recompute" && '
        'span.turnscope.turn.reason =~ "handle_not_given|proxy_entry_expired|declined_expired|no_handle_from_decode" }',
    ),
    (
        "Turns that began to answer late because of the reverse fetch",
        '{ name = "turn" && span.gen_ai.response.time_to_first_chunk > 2 } >> '
        '{ name = "reverse_fetch" && duration > 1s }',
    ),
    (
        "Fetches that took longer than computing would have",
        '{ name = "turn" && span.turnscope.turn.net_gain_seconds < 0 }',
    ),
    (
        "Transfers that went over TCP",
        '{ name = "turn" && span.turnscope.turn.transport = "tcp" } >> { name =~ "handoff|reverse_fetch" }',
    ),
    (
        "Where the history of a session was edited",
        "{ span.turnscope.turn.diverged_kind != nil } | select(span.turnscope.turn.diverged_message, "
        "span.turnscope.turn.diverged_role)",
    ),
    (
        "Turns that took several attempts, with those that were given up",
        '{ name = "turn" && span.turnscope.turn.attempts > 1 } > '
        '{ name = "attempt" && span.turnscope.attempt.final = false }',
    ),
    (
        "Turns a second by reason",
        '{ name = "turn" } | rate() by (span.turnscope.turn.reason)',
    ),
    (
        "How long reverse fetches take",
        '{ name = "reverse_fetch" } | quantile_over_time(duration, 0.5, 0.95)',
    ),
)


def page() -> str:
    """Spans and attributes of a turn's trace, with queries."""
    docs = field_docs(facts)
    labels = {column.name: column.help for group in GROUPS for column in (*group.listed, *group.more)}
    out = [HEAD, INTRO, "\n## Spans\n\n"]
    whole = _attributes(_full())
    parents = {"turn": "none: the root", **dict.fromkeys(whole.keys() - {"turn"}, "`turn`")}
    out.append(table(("span", "child of", "what"), [(f"`{n}`", parents[n], _SPANS[n]) for n in whole]))
    out.append(
        "\nA span is an error when its turn or attempt failed or is stuck there; the root's message says where. "
        "Instants are wall time; lengths come from one monotonic clock each.\n\n## Links of `turn`\n\n"
    )
    out.append(table(("`turnscope.link`", "leads to"), [(f"`{name}`", what) for name, what in LINKS]))
    for name, attributes in whole.items():
        out.append(f"\n## Attributes of `{name}`\n\n")
        rows = []
        for key, value in attributes.items():
            rows.append((f"`{key}`", _kind(value), _what(name, key, docs, labels)))
        out.append(table(("attribute", "type", "what"), rows))
    out.append("\n## Queries\n\nTraceQL, for Tempo.\n")
    out += [f"\n{what}:\n\n```traceql\n{query}\n```\n" for what, query in QUERIES]
    return "".join(out)


def _what(span: str, key: str, docs: dict[str, dict[str, str]], labels: dict[str, str]) -> str:
    if key.startswith(_ATTEMPT):
        return docs["TurnAttempt"].get(key.removeprefix(_ATTEMPT), "") or _OWN.get(key, "")
    field = _sources().get((span, key), "")
    if field.endswith(("_low_ns", "_high_ns")):
        return "Nine in ten times it lies between low and high."
    return docs["Turn"].get(field, "") or labels.get(field, "") or _OWN.get(key, "")


_ATTEMPT: Final = "turnscope.attempt."
_SPANS: Final = {
    "turn": "the whole turn, from the client's request to its last byte",
    "prefill": "P's leg, from its engine accepting the request to its end, queueing and the reverse fetch included",
    "reverse_fetch": "P reading back what D held, all ranks, below `turn` and inside `prefill`'s time",
    "handoff": "D reading P's blocks",
    "decode": "D's leg",
    "attempt": "one of several attempts of the proxy; of those given up there is nothing else in the trace",
}
_OWN: Final = {
    "turnscope.turn_id": "The turn's id, which is the trace's: the proxy's span has it too.",
    "turnscope.turn.end_measured": "false: nothing told when the turn ended; the span ends where it begins.",
    "turnscope.turn.attempts_left_out": "Attempts that had no room.",
    "gen_ai.operation.name": "Always chat.",
    "gen_ai.conversation.id": "The session's id.",
    "gen_ai.usage.cache_read.input_tokens": "Local hit, fetched and external tokens together; suspect ones are part of "
    "them.",
    "error.type": "The stage that failed, else the reason.",
    "turnscope.turn.revision": "1: as it was counted.",
    "turnscope.turn.previous_turn_id": "The turn that it continues.",
    "turnscope.turn.parent_agent_id": "The agent that asked the one that asked.",
    "turnscope.turn.prefill_engine_id": "vLLM's engine_id of P.",
    "turnscope.turn.decode_engine_id": "vLLM's engine_id of D.",
    "turnscope.turn.decode_dp_rank": "The same of D.",
    "turnscope.turn.reported_external_tokens": "The same of other stores, D among them.",
    "turnscope.turn.reported_computed_tokens": "The same of what was computed.",
    "turnscope.turn.handoff_transfers": "The same of the handoff.",
    "turnscope.attempt.number": "From 1.",
    "turnscope.attempt.path": "As of the turn.",
    "turnscope.attempt.status": "As of the turn.",
    "turnscope.attempt.stage": "As of the turn.",
    "turnscope.attempt.prefill_engine": "Where it was sent to.",
    "turnscope.turn.has_prefill": "P's hook told of it.",
    "turnscope.turn.has_decode": "D's hook told of it.",
    "turnscope.turn.has_attempt": "The proxy's hook told of it.",
    "turnscope.turn.caller_trace_id": "Of the span of whoever called the proxy: as the link.",
    "turnscope.turn.caller_span_id": "The same span's own id.",
    "turnscope.turn.server_trace_id": "Of the proxy's span: as the link.",
    "turnscope.turn.server_span_id": "The same span's own id.",
    "turnscope.prefill.queue_seconds": "From P accepting the request to its first step, less the reverse fetch.",
}


# --- what the encoder makes -----------------------------------------------------------------------------
def _full() -> Turn:
    """A turn of which everything is known, and that failed."""
    values = {field.name: _value(field.type, field.name) for field in msgspec.structs.fields(Turn)}
    attempt = {field.name: _value(field.type, field.name) for field in msgspec.structs.fields(TurnAttempt)}
    return Turn(**{**values, "attempts_made": [TurnAttempt(**attempt)], "status": "error"})


def _value(kind: Any, name: str) -> Any:
    if get_origin(kind) is list:
        return [name]
    kinds = get_args(kind) or (kind,)
    if name == "turn_id" or name.endswith("turn_id"):
        return "ab" * 16
    if name.endswith(("_trace_id", "_hold_id")):
        return "cd" * 16
    if name.endswith("_span_id"):
        return "ef" * 8
    return {bool: True, int: 1}.get(kinds[0], name)


def _attributes(turn: Turn) -> Attributes:
    request = spans.encode([turn], version="0")
    found: Attributes = {}
    for span in request.resource_spans[0].scope_spans[0].spans:
        found[span.name] = {item.key: item.value for item in span.attributes}
    return found


@cache
def _sources() -> dict[tuple[str, str], str]:
    """(span, attribute) to the field of ``Turn`` whose change changes it."""
    full = _full()
    whole = _attributes(full)
    found: dict[tuple[str, str], str] = {}
    for field in msgspec.structs.fields(Turn):
        different = _attributes(msgspec.structs.replace(full, **{field.name: _other(getattr(full, field.name))}))
        for name, attributes in whole.items():
            for key, value in attributes.items():
                if different.get(name, {}).get(key) != value:
                    found.setdefault((name, key), field.name)
    return found


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return []
    return "12" * (len(value) // 2) if len(value) in (16, 32) else f"other {value}"


def _kind(value: AnyValue) -> str:
    return {"bool_value": "bool", "int_value": "int", "double_value": "double", "array_value": "strings"}.get(
        value.WhichOneof("value") or "", "string"
    )


def every_key() -> set[str]:
    """The attributes of all spans of a turn of which everything is known."""
    return {key for attributes in _attributes(_full()).values() for key in attributes}
