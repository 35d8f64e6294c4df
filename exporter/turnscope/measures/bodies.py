"""Request bodies out of what people have saved: the body alone, a log line round it, JSON lines of either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from turnscope.history.pieces import FIELDS, MODEL, Piece, message, pieces

WRAPPERS: Final = ("body", "request", "params", "payload", "data", "event", "attributes", "kwargs")
"""Fields under which logs and batch files keep a request."""
_DEPTH: Final = 4


class NoBody(ValueError):
    """What a text holds instead of a request body, in a few words."""


class Saved(msgspec.Struct, frozen=True):
    """One request as it was found."""

    pieces: tuple[Piece, ...]
    answer: Piece | None
    """The answer's message, where it was saved beside the request."""


def read(text: str, line: int | None = None) -> Saved:
    """The request in a JSON text or in one line of JSON lines: the last one, or line number ``line`` from 1.

    Raises ``NoBody``.
    """
    if line is None and (whole := _decoded(text)) is not None:
        return _saved(whole)
    lines = text.splitlines()
    if line is not None:
        if not 1 <= line <= len(lines):
            raise NoBody(f"has no line {line}, only {len(lines)}")
        return _saved(_strictly(lines[line - 1], f"line {line} "))
    filled = [number for number, content in enumerate(lines, 1) if content.strip()]
    if len(filled) < 2 or _decoded(lines[filled[0] - 1]) is None:
        return _saved(_strictly(text, ""))
    return _saved(_strictly(lines[filled[-1] - 1], f"line {filled[-1]} "))


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _strictly(text: str, where: str) -> Any:
    if not text.strip():
        raise NoBody(f"{where}is empty")
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise NoBody(f"{where}is nested too deep") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise NoBody(f"{where}is no JSON ({error})") from None


def _saved(value: Any) -> Saved:
    found = _body(value)
    if found is None:
        raise NoBody(
            f"holds {_kind(value)}, and no request: its body has 'messages', 'prompt' or 'input', alone or under "
            "'body' or 'request'"
        )
    body, around = found
    try:
        return Saved(tuple(pieces(body)), _answer(around))
    except RecursionError:
        raise NoBody("is nested too deep") from None


def _body(value: Any, depth: int = 0) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The body and what holds it together with its answer, else the outermost around it."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _decoded(value)  # logs keep bodies as text, too
    if not isinstance(value, dict) or depth > _DEPTH:
        return None
    if any(isinstance(value.get(field), list | str) and value.get(field) for field in ("messages", "prompt", "input")):
        return value, value
    for name in WRAPPERS:
        found = _body(value.get(name), depth + 1)
        if found is not None:
            return found if "response" in found[1] else (found[0], value)
    return None


def _answer(around: Mapping[str, Any]) -> Piece | None:
    response = around.get("response")
    for name in ("body", "data", ""):
        choices = response.get("choices") if isinstance(response, dict) else None
        if isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], dict):
            said = choices[0].get("message")
            return message(said) if isinstance(said, dict) else None
        response = response.get(name) if isinstance(response, dict) else None
    return None


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        named = [name for name in value if name not in FIELDS or name == MODEL][:4]
        return f"an object with {', '.join(repr(name) for name in named)}" if named else "an object"
    return {list: "a list", str: "a text", bool: "true or false"}.get(type(value), "a number or null")
