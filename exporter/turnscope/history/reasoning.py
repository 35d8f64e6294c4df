"""An answer's message in the forms in which clients send it back: whole, and without its reasoning."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from turnscope.history.pieces import CONTENT, REASONING, Piece

_THOUGHT: Final = re.compile(r"\A.*?</think>", re.DOTALL)
"""Where no parser takes it out, reasoning stands in front of the answer; its opening tag can be the template's."""


def reasoning_chars(piece: Piece) -> int:
    """How many of the message's characters are reasoning."""
    return piece.chars - without_reasoning(piece).chars


def without_reasoning(piece: Piece) -> Piece:
    """The message as it is spoken."""
    spoken = (
        text._replace(text=_THOUGHT.sub("", text.text)) if text.label == CONTENT else text
        for text in piece.texts
        if text.label != REASONING
    )
    return msgspec.structs.replace(piece, texts=tuple(text for text in spoken if text.text))


def trimmed(piece: Piece) -> Piece:
    """Without blanks around its text: parsers leave some, and many clients take them away."""
    texts = (text._replace(text=text.text.strip()) if text.label == CONTENT else text for text in piece.texts)
    return msgspec.structs.replace(piece, texts=tuple(text for text in texts if text.text))
