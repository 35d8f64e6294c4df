"""A request's body as the pieces that its prompt is made of: messages, and the fields beside them that are rendered.

The bodies of Chat Completions, Completions, Responses and Messages requests, of any shape at all. What is not rendered
(ids, cache marks, sampling) makes no difference; key order and spelling inside a tool or its arguments do, since
templates print them as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

MODEL: Final = "model"
SYSTEM: Final = "system"
TOOLS: Final = "tools"
PROMPT: Final = "prompt"
PARAMETERS: Final = "parameters"

SYSTEM_ROLES: Final = (SYSTEM, "developer")

CONTENT: Final = "content"
REASONING: Final = "reasoning"
NAME: Final = "name"
ARGUMENTS: Final = "arguments"
ATTACHMENT: Final = "attachment"

RENDERED: Final = (
    "documents",
    "chat_template",
    "chat_template_kwargs",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "response_format",
    "text",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "truncate_prompt_tokens",
    "suffix",
    "cache_salt",
)
"""Fields beside messages and tools that a chat template may print, or that change which KV belongs to the text."""
FIELDS: Final = frozenset((MODEL, SYSTEM, "instructions", TOOLS, "functions", "messages", "input", PROMPT, *RENDERED))
"""Every field of a body that is looked at."""


class Text(NamedTuple):
    """One text of a piece."""

    label: str
    """``content``, ``reasoning``, ``name``, ``arguments``, ``attachment``; of a field, its name or the tool's."""
    text: str

    @property
    def chars(self) -> int:
        """Characters; an attachment has none, since what it adds to a prompt is not its encoding."""
        return 0 if self.label == ATTACHMENT else len(self.text)


class Piece(msgspec.Struct, frozen=True):
    """A message, or a field beside the messages."""

    role: str
    """``system``, ``user``, ``assistant``, ``tool`` ... ; ``model``, ``system``, ``tools``, ``prompt``, ``parameters``
    of a field."""
    index: int | None
    """Its place among the messages, from 0; None for a field."""
    path: str
    """Where it stands in the body: ``messages[3]``, ``tools``."""
    texts: tuple[Text, ...]

    @property
    def chars(self) -> int:
        """Characters of text, reasoning, and tool calls' names and arguments."""
        return sum(text.chars for text in self.texts)


def pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    """The pieces in the order in which prompts have them: model, system, tools, messages, parameters.

    Values, and entries of lists, may still be encoded (``msgspec.Raw``): then messages are decoded one at a time, as
    they are asked for.
    """
    model = _plain(body.get(MODEL))
    if isinstance(model, str):
        yield Piece(MODEL, None, MODEL, (Text(MODEL, model),))
    for field in (SYSTEM, "instructions"):
        if texts := _texts(_plain(body.get(field))):
            yield Piece(SYSTEM, None, field, tuple(texts))
    for field in (TOOLS, "functions"):
        if tools := _tools(_plain(body.get(field))):
            yield Piece(TOOLS, None, field, tools)
    for field in ("messages", "input"):
        yield from _messages(field, body.get(field))
    yield from _prompts(_plain(body.get(PROMPT)))
    parameters = [Text(field, _json(value)) for field in RENDERED if (value := _plain(body.get(field))) is not None]
    if parameters:
        yield Piece(PARAMETERS, None, PARAMETERS, tuple(parameters))


def message(value: Mapping[str, Any], index: int | None = None, path: str = "") -> Piece:
    """One message, or one item of a Responses input."""
    return Piece(_role(value), index, path, tuple(text for text in _message(value) if text.text))


# --- fields -------------------------------------------------------------------------------------------
def _messages(field: str, value: Any) -> Iterator[Piece]:
    if isinstance(value, msgspec.Raw):
        try:
            value = msgspec.json.decode(value, type=list[msgspec.Raw])
        except msgspec.ValidationError:
            value = _plain(value)
    if isinstance(value, str):
        yield Piece("user", 0, field, (Text(CONTENT, value),))
    for index, item in enumerate(value if isinstance(value, list) else ()):
        found = _plain(item)
        if isinstance(found, dict):
            yield message(found, index, f"{field}[{index}]")


def _prompts(value: Any) -> Iterator[Piece]:
    """Of a Completions request: text, token ids, or several of either."""
    if isinstance(value, list) and value and not isinstance(value[0], int):
        for index, one in enumerate(value):
            yield Piece(PROMPT, index, f"{PROMPT}[{index}]", (Text(PROMPT, _prompt(one)),))
    elif value:
        yield Piece(PROMPT, None, PROMPT, (Text(PROMPT, _prompt(value)),))


def _prompt(value: Any) -> str:
    """Token ids one a line, so that a place among them has a number."""
    if isinstance(value, list) and all(isinstance(token, int) for token in value):
        return "".join(f"{token}\n" for token in value)
    return value if isinstance(value, str) else _json(value)


def _tools(value: Any) -> tuple[Text, ...]:
    """One text a tool."""
    return tuple(
        Text(_tool_name(tool), _json({k: v for k, v in tool.items() if k != "cache_control"})) for tool in _dicts(value)
    )


def _tool_name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    name = (function if isinstance(function, dict) else tool).get("name")
    return name if isinstance(name, str) else str(tool.get("type"))


# --- messages -----------------------------------------------------------------------------------------
def _role(value: Mapping[str, Any]) -> str:
    """The results of tools count as role ``tool`` in every API."""
    kind = value.get("type")
    if kind == "function_call_output":
        return "tool"
    if kind in ("function_call", "reasoning"):
        return "assistant"
    if any(part.get("type") == "tool_result" for part in _dicts(value.get("content"))):
        return "tool"
    role = value.get("role")
    return role if isinstance(role, str) else "unknown"


def _message(value: Mapping[str, Any]) -> Iterator[Text]:
    own = REASONING if value.get("type") == "reasoning" else CONTENT
    for key in ("reasoning_content", "reasoning", "thinking"):
        if texts := _texts(value.get(key), REASONING):
            yield from texts
            break  # engines send the same text under an old and a new name
    yield from _texts(value.get("summary"), REASONING)
    yield from _texts(value.get("content"), own)
    yield from _texts(value.get("text"), own)
    yield from _texts(value.get("refusal"))
    yield from _call(value)
    yield from _texts(value.get("output"))
    for call in [*_dicts(value.get("tool_calls")), {"function": value.get("function_call")}]:
        if isinstance(function := call.get("function"), dict):
            yield from _call(function)


def _call(value: Mapping[str, Any]) -> Iterator[Text]:
    """A call's name and arguments; arguments that are no text are printed."""
    if isinstance(name := value.get("name"), str):
        yield Text(NAME, name)
    for key in (ARGUMENTS, "input"):
        if (given := value.get(key)) is not None:
            yield Text(ARGUMENTS, given if isinstance(given, str) else _json(given))


def _texts(value: Any, label: str = CONTENT) -> list[Text]:
    """Of a text or a list of parts, in their order."""
    if isinstance(value, str):
        return [Text(label, value)]
    return [text for part in value for text in _part(part, label)] if isinstance(value, list) else []


def _part(part: Any, label: str) -> list[Text]:
    if not isinstance(part, dict):
        return _texts(part, label)
    if isinstance(thinking := part.get("thinking"), str):
        return [Text(REASONING, thinking)]
    for key in ("text", "content", "refusal", "output"):
        if texts := _texts(part.get(key), label):
            return texts
    if calls := list(_call(part)):
        return calls
    kept = {k: v for k, v in part.items() if k not in ("cache_control", "type", "tool_use_id", "id")}
    return [Text(ATTACHMENT, _json(kept))] if kept else []


# --- shapes -------------------------------------------------------------------------------------------
def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _json(value: Any) -> str:
    """As it stands, but for blanks between the parts."""
    return msgspec.json.encode(value).decode()
