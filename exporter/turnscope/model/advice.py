"""How people are told things: advice in the same words wherever it is given, and values as they are shown."""

from __future__ import annotations

from typing import Final

SESSION_ADVICE: Final = (
    "Let clients send the header X-Session-ID with every request of a session, or conversation_id in the body where "
    "proxy and engines accept it."
)
"""For turns without a session id. Strict front ends refuse a body field that they do not know."""


def shown(value: str, *, most: int = 80) -> str:
    """A value that somebody gave, for a sentence: in quotes, with what cannot be printed spelled out, and cut."""
    cut = value if len(value) <= most else value[: most // 2]
    return repr(cut) if cut == value else f"{cut + '...'!r} ({len(value)} characters)"
