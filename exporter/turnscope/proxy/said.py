"""An answer's message, put together from its pieces: kept until its digest is made, never sent."""

from __future__ import annotations

from typing import Any


class Said:
    """The message of a chat answer's one choice, streamed or whole. Pieces may be of any type at all."""

    __slots__ = ("_calls", "_unclear", "content", "reasoning")

    def __init__(self) -> None:
        self.content: list[Any] = []
        self.reasoning: list[Any] = []
        self._calls: dict[int, tuple[list[Any], list[Any]]] = {}
        self._unclear = False

    def add(self, index: Any, content: Any, reasoning: Any, calls: Any) -> None:
        """What an event, or the whole answer, adds to choice ``index``."""
        if index:
            self.forget()  # which of several the client goes on with is not known
        self.content.append(content)
        self.reasoning.append(reasoning)
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
                number = call.get("index")
                names, arguments = self._calls.setdefault(number if isinstance(number, int) else place, ([], []))
                names.append(function.get("name"))
                arguments.append(function.get("arguments"))

    def forget(self) -> None:
        """It is too long, or not one message: nothing is told of it."""
        self._unclear = True
        self.content.clear()
        self.reasoning.clear()
        self._calls.clear()

    def message(self) -> dict[str, Any] | None:
        """As a client would send it back; None when there is none, or not one."""
        calls = [
            {"function": {"name": _text(names), "arguments": _text(arguments)}}
            for _, (names, arguments) in sorted(self._calls.items())
        ]
        content, reasoning = _text(self.content), _text(self.reasoning)
        if self._unclear or not (content or reasoning or calls):
            return None
        return {"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": calls}


def _text(parts: list[Any]) -> str:
    return "".join(part for part in parts if isinstance(part, str))
