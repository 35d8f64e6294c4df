"""The one table of what is read of an agent's span, and what it stands for.

An attribute or an event that is not named here is never decoded: this is the allowlist. Prompts, answers, arguments and
results of tools, status messages and stack traces are in none of these. Where several SDKs have a name for one thing,
the first that is there counts.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from turnscope.semconv import EVALUATION_RESULT, SpanKind

_MODEL_CALL, _TOOL, _RETRIEVAL, _AGENT = SpanKind.MODEL_CALL, SpanKind.TOOL, SpanKind.RETRIEVAL, SpanKind.AGENT
_OTHER = SpanKind.OTHER

# --- what kind of span: the first rule that knows the value decides --------------------------------------
NAME: Final = "name"
"""Stands for the span's name where an attribute's key is asked for."""


class Rule(msgspec.Struct, frozen=True):
    """An attribute (or ``NAME``) and what its values mean, in lower case; a value that is not there decides nothing."""

    key: str
    kinds: dict[str, SpanKind]


_LANG_KINDS: Final = {
    "llm": _MODEL_CALL,
    "tool": _TOOL,
    "retriever": _RETRIEVAL,
    "embedding": _RETRIEVAL,
    "reranker": _RETRIEVAL,
    "agent": _AGENT,
    # Made of other spans, or the application's own work. LangSmith's exporter calls a prompt's template a chat as well.
    **dict.fromkeys(("chain", "prompt", "parser", "guardrail", "evaluator"), _OTHER),
}
RULES: Final = (
    Rule(
        "langfuse.observation.type",
        {
            **_LANG_KINDS,
            "generation": _MODEL_CALL,
            # ``span`` is what Langfuse calls everything without a type.
            "event": _OTHER,
        },
    ),
    # Before anything about models: CrewAI's spans of agents name their model.
    Rule("openinference.span.kind", _LANG_KINDS),
    Rule("langsmith.span.kind", _LANG_KINDS),
    Rule("traceloop.span.kind", {"workflow": _AGENT, "agent": _AGENT, "tool": _TOOL, "task": _OTHER}),
    Rule(
        NAME,
        {
            "claude_code.interaction": _AGENT,
            "claude_code.llm_request": _MODEL_CALL,
            "claude_code.tool": _TOOL,
            # Both lie within claude_code.tool: the time until somebody agreed, and the tool's own.
            "claude_code.tool.blocked_on_user": SpanKind.USER_WAIT,
            "claude_code.tool.execution": _OTHER,
            "claude_code.hook": _OTHER,
        },
    ),
    Rule(
        "gen_ai.operation.name",
        {
            "chat": _MODEL_CALL,
            "text_completion": _MODEL_CALL,
            "generate_content": _MODEL_CALL,
            "execute_tool": _TOOL,
            "embeddings": _RETRIEVAL,
            "retrieval": _RETRIEVAL,
            "invoke_agent": _AGENT,
            "invoke_workflow": _AGENT,
            "create_agent": _OTHER,
            "plan": _OTHER,
        },
    ),
    Rule(
        "ai.operationId",
        {
            **dict.fromkeys(
                (
                    "ai.generatetext.dogenerate",
                    "ai.streamtext.dostream",
                    "ai.generateobject.dogenerate",
                    "ai.streamobject.dostream",
                ),
                _MODEL_CALL,
            ),
            **dict.fromkeys(("ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject"), _AGENT),
            **dict.fromkeys(("ai.embed", "ai.embed.doembed", "ai.embedmany", "ai.embedmany.doembed"), _RETRIEVAL),
            "ai.toolcall": _TOOL,
        },
    ),
)
TOOL_KEYS: Final = ("gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type")
"""After the rules: any of these makes a tool ..."""
MODEL_KEYS: Final = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "llm.model_name",
    "llm.request.type",
    "ai.model.id",
)
"""... else any of these a model call."""

# --- whose session: in the order in which they are asked, first of the span, then of its resource ----------
SESSION_KEYS: Final = (
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "session.id",
    *(f"traceloop.association.properties.{name}" for name in ("session_id", "conversation_id", "chat_id")),
    *(f"langsmith.metadata.{name}" for name in ("session_id", "thread_id", "conversation_id")),
)

# --- the fields of a span ----------------------------------------------------------------------------------
RESOURCE_TEXTS: Final = {
    "service_name": ("service.name",),
    "service_version": ("service.version",),
    "deployment": ("deployment.environment.name", "deployment.environment"),
    "host": ("host.name",),
}
TEXTS: Final = {
    "agent_name": ("gen_ai.agent.name", "agent.name"),
    "agent_id": ("gen_ai.agent.id",),
    "tool_call_id": ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id"),
    "model": (
        "gen_ai.response.model",
        "ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "ai.model.id",
        "langfuse.observation.model.name",
        "model",
    ),
}
"""Of every span."""
TOOL_NAMES: Final = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "tool_name", "traceloop.entity.name")
"""Of tools only: frameworks use ``traceloop.entity.name`` for whatever a span stands for."""
AGENT_NAMES: Final = ("traceloop.entity.name", "graph.node.id")
"""Of agents that have no other."""
WORDS: Final = {
    "finish_reason": (
        "gen_ai.response.finish_reasons",
        "llm.finish_reason",
        "gen_ai.completion.0.finish_reason",
        "ai.response.finishReason",
        "gen_ai.response.finish_reason",
    ),
    "error_type": ("error.type",),
    "evaluation_name": ("gen_ai.evaluation.name",),
    "evaluation_label": ("gen_ai.evaluation.score.label",),
}
"""Kept only when they are one short word, as these are by convention; of a list the first."""
COUNTS: Final = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "input_tokens",
    ),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
        "cache_read_tokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
        "output_tokens",
    ),
}
SCORE: Final = "gen_ai.evaluation.score.value"
FIRST_TOKEN: Final = {
    "gen_ai.response.time_to_first_chunk": 1_000_000_000,
    "gen_ai.client.operation.time_to_first_chunk": 1_000_000_000,
    "gen_ai.server.time_to_first_token": 1_000_000_000,
    "ai.response.msToFirstChunk": 1_000_000,
    "ttft_ms": 1_000_000,
}
"""Nanoseconds a unit."""
TOOL_CALL_KEY: Final = re.compile(
    r"(llm\.output_messages\.\d+\.message\.tool_calls\.\d+|gen_ai\.completion\.\d+\.tool_calls\.\d+)\."
)
"""Attributes of each tool that an answer asks for: they are counted by their keys, their values are not read."""

# --- events: of these names, and of them these attributes ----------------------------------------------------
EVALUATION_EVENT: Final = EVALUATION_RESULT
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
FIRST_TOKEN_EVENTS: Final = frozenset(
    {"First Token Stream Event", "gen_ai.content.completion.chunk", "llm.content.completion.chunk"}
)
"""Only their time is read."""
EVENTS: Final = frozenset({EVALUATION_EVENT, EXCEPTION_EVENT, *FIRST_TOKEN_EVENTS})

# --- the allowlist ---------------------------------------------------------------------------------------
RECORDED: Final = "turnscope.span."
"""Of a recording: what had been read of the span, field by field."""
ALLOWED: Final = frozenset(
    {rule.key for rule in RULES if rule.key != NAME}
    | {*TOOL_KEYS, *MODEL_KEYS, *SESSION_KEYS, *TOOL_NAMES, *AGENT_NAMES, *FIRST_TOKEN, SCORE, EXCEPTION_TYPE}
    | {key for table in (RESOURCE_TEXTS, TEXTS, WORDS, COUNTS) for keys in table.values() for key in keys}
)


def allowed(key: str) -> bool:
    """Whether the value of this attribute may be read."""
    return key in ALLOWED or key.startswith(RECORDED)


# --- names ---------------------------------------------------------------------------------------------------
_COMMON: Final = """
a agent agents ai ainvoke akickoff anthropic arun assistant async azurechatopenai batch blocked call chain chat
chatanthropic chatopenai claude code completion completions connect content conversation create created crew delete
dogenerate dostream embed embeddings execute execution flow function generate generateobject generatetext generation
get graph guardrail handoff hook http interaction invoke kickoff langgraph litellm llm loop mcp message messages
model node on openai post prompt put request rerank response responses result retrieval retrieve retriever run
runnable runnablesequence runner running search session span step steps stream streamobject streamtext sync task
text tool toolcall toolnode tools trace turn user v1 workflow
"""
_NAME_WORDS: Final = frozenset(_COMMON.split())
_SPLIT: Final = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_NAME: Final = 128


def safe_name(name: str, kept: list[str]) -> str | None:
    """``name`` if it says nothing but common words of the trade, short numbers and what of the span is ``kept`` anyway.

    Any other may be somebody's words: applications name spans after the question asked.
    """
    if not name or len(name) > _LONGEST_NAME:
        return None
    rest = name
    for value in sorted(kept, key=len, reverse=True):
        rest = re.sub(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])", " ", rest)
    words = (word for word in _SPLIT.split(rest) if word)
    plain = all(word.lower() in _NAME_WORDS or (word.isdigit() and len(word) <= 3) for word in words)
    # What the split passes over is no word of ASCII: it must be punctuation, not another script.
    return name if plain and rest.isascii() else None
